"""What holds of every architecture: causality, padding, the cache, saving, folding, one forward whoever listens."""

import itertools

import pytest
import torch
from tiny_models import random_model, random_tokens, relative_error
from variants import ADDITIVE, AXES, SIZES, WITH_EVERY_VALUE, covering, each_variant, fields_of, is_a_model

from interp.errors import ConfigError, InputError
from interp.model.attention import KeyValueCache
from interp.model.config import TransformerConfig
from interp.model.folding import center_writing_weights, fold_layer_norm
from interp.model.loading import load_model, save_model
from interp.model.loading.native import parameter_shapes
from interp.model.training import TrainingConfig, train
from interp.model.transformer import HookedTransformer
from interp.residual.stream import direct_logit_attribution, residual_stream

every_variant = each_variant(30)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def test_the_variants_hold_every_pair_of_choices():
    covered = {frozenset(pair) for choice in covering() for pair in itertools.combinations(choice, 2)}
    options = [(axis, value) for axis, values in AXES.items() for value in values]
    assert {value for choice in covering()[:WITH_EVERY_VALUE] for value in choice} == set(options)
    first = {axis: next(iter(values)) for axis, values in AXES.items()}
    for one, other in itertools.combinations(options, 2):
        if one[0] != other[0] and is_a_model(tuple((first | dict([one, other])).items())):
            assert frozenset([one, other]) in covered


class Seen(torch.nn.Module):
    """What a bidirectional model can learn of rows alone: to say which token stands at each position."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, return_type):
        return torch.nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), tokens.flatten())


@every_variant
class TestEveryVariant:
    def test_the_future_is_seen_where_attention_is_bidirectional_and_only_there(self, fields):
        model = random_model(**fields)
        tokens = random_tokens(model)
        changed = tokens.clone()
        changed[:, -1] = (tokens[:, -1] + 1) % 40
        moved = (model(tokens) - model(changed))[:, :-1].abs().amax((0, 2))
        if fields.get("causal") is False:
            assert (moved > 1e-9).all()
        else:  # an expert's products round by how many tokens it gets
            assert (moved <= 1e-12 * bool(fields.get("n_experts"))).all()

    def test_padding_changes_nothing(self, fields):
        model = random_model(**fields)
        prompts = [[3, 1, 4, 1, 5], [9, 2, 6], [7]]
        alone = [model(torch.tensor([prompt]))[0] for prompt in prompts]
        for left in (True, False):
            tokens, mask = torch.full((3, 7), 8), torch.zeros(3, 7, dtype=torch.long)
            for row, prompt in enumerate(prompts):
                columns = slice(7 - len(prompt), 7) if left else slice(0, len(prompt))
                tokens[row, columns], mask[row, columns] = torch.tensor(prompt), 1
            logits = model(tokens, attention_mask=mask)
            for row, expected in enumerate(alone):
                assert relative_error(logits[row][mask[row].bool()], expected) < 1e-12

    def test_the_cache_gives_what_the_whole_prompt_gives(self, fields):
        model = random_model(**fields)
        tokens, cache = random_tokens(model), KeyValueCache.empty(2)
        if fields.get("causal") is False:
            with pytest.raises(InputError, match="cache: every position of a bidirectional model sees the new ones"):
                model(tokens, cache=cache)
            return
        parts = [model(part, cache=cache) for part in tokens.split([4, 1, 3, 1], dim=1)]
        assert relative_error(torch.cat(parts, 1), model(tokens)) < 1e-12

    def test_listening_changes_nothing(self, fields):
        model = random_model(**fields)
        tokens = random_tokens(model)
        fired = set()
        note = lambda x, *, hook: fired.add(hook.name)  # noqa: E731
        logits = model.run_with_hooks(tokens, fwd_hooks=[(lambda name: True, note)])
        assert fired == set(model.hook_dict)
        assert relative_error(logits, model(tokens)) < 1e-12

    def test_patterns_are_distributions_over_what_may_be_seen(self, fields):
        model = random_model(**fields)
        pattern = model.run_with_cache(random_tokens(model))[1]["pattern", 1]
        assert pattern.shape == (3, 4, 9, 9)
        if fields.get("sinks"):
            assert pattern.sum(-1).max() <= 1 > pattern.sum(-1).min() + 0.01  # what the sinks take is missing
        else:
            assert relative_error(pattern.sum(-1), torch.ones_like(pattern[..., 0])) < 1e-12
        if model.config.is_local(1):
            assert pattern.tril(-fields["window"]).abs().max() == 0 < pattern.tril(1 - fields["window"]).abs().max()
        upper = pattern.triu(1).abs().max() if fields.get("causal", True) else torch.tensor(0.0)
        assert upper == 0

    def test_it_is_saved_and_loaded(self, fields, tmp_path):
        model = random_model(**fields)
        loaded = load_model(save_model(model, tmp_path), dtype="float64")
        assert loaded.config == model.config
        assert loaded.hash == model.hash
        assert torch.equal(loaded(random_tokens(model)), model(random_tokens(model)))
        shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
        assert dict(parameter_shapes(model.config)) == shapes

    def test_it_learns(self, fields):
        with torch.enable_grad():
            model = HookedTransformer(TransformerConfig(**fields))
            rows = [[(7 * row + 3 * i) % 40 for i in range(8)] for row in range(60)] * 8
            steps = 60 if model.config.prediction_head else 30  # a head that is drawn small begins slowly
            config = TrainingConfig(steps=steps, batch_size=8, muon_lr=0.1, adamw_lr=0.02, warmup_steps=3)
            curve = train(model if model.config.causal else Seen(model), rows, config).train
        assert curve[-1] < 0.97 * curve[0]

    def test_components_sum_to_the_stream_where_there_is_a_sum(self, fields):
        model = random_model(**fields)
        tokens, mask = random_tokens(model), torch.ones(3, 9)
        mask[0, :4] = 0
        if not model.config.additive_stream:
            with pytest.raises(InputError, match="not a sum of components: this architecture normalises"):
                residual_stream(model, tokens, attention_mask=mask)
            return
        stream = residual_stream(model, tokens, attention_mask=mask)
        assert relative_error(stream.components.sum(0), stream.total) < 1e-12
        logits = model(tokens, attention_mask=mask)
        assert relative_error(model.unembed(model.ln_final(stream.total)), logits) < 1e-12
        found = direct_logit_attribution(model, stream, 3, 5).examples.groupby("example")["attribution"].sum()
        logits = model.ln_final(stream.total) @ model.W_U + model.b_U  # not capped
        expected = logits[:, -1, 3] - logits[:, -1, 5]
        assert torch.tensor(found.to_numpy()).sub(expected).abs().max() < 1e-12 * logits.abs().max()

    def test_folding_changes_the_weights_and_not_the_function(self, fields):
        model = random_model(**fields)
        tokens = random_tokens(model)
        if model.config.norm_position == "post":
            with pytest.raises(InputError, match="normalises the stream itself"):
                fold_layer_norm(model)
            return
        folded = fold_layer_norm(model)
        assert relative_error(folded(tokens), model(tokens)) < 1e-12
        assert torch.equal(folded.ln_final.w, torch.ones(12, dtype=torch.float64))
        if model.config.normalization != "LN" or model.config.embed_norm or model.config.normalises_what_is_written:
            with pytest.raises(InputError, match="center_writing_weights: the stream's mean"):
                center_writing_weights(model)
        else:
            assert relative_error(center_writing_weights(folded)(tokens), model(tokens)) < 1e-12

    def test_only_biases_that_exist_are_parameters(self, fields):
        model = random_model(**fields)
        found = {name.rpartition(".")[2] for name, _ in model.named_parameters() if name != "ln_final.b"}
        given = set(fields.get("biases", ("qkv", "o", "mlp", "norm", "unembed")))
        kinds = {"b_Q": "qkv", "b_K": "qkv", "b_V": "qkv", "b_O": "o", "b_U": "unembed"}
        for name, kind in kinds.items():
            assert (name in found) == (kind in given)
        assert ("b" in found) == ("norm" in given and fields.get("normalization", "LN") == "LN")
        assert ("b_in" in found) == ("mlp" in given and fields["d_mlp"] > 0)


def test_there_are_additive_variants_of_every_kind():
    assert len(ADDITIVE) > 15


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positions": "rotary", "d_head": 5}, "d_head: rotary positions turn pairs .* even number, got 5"),
        ({"positions": "rotary", "rotary_dim": 3}, "rotary_dim: pairs of components turn, .* at most d_head=6, got 3"),
        ({"positions": "rotary", "rotary_dim": 8}, "rotary_dim: .* at most d_head=6, got 8"),
        ({"n_kv_heads": 3}, "n_kv_heads: expected a divisor of n_heads=4, .* got 3"),
        ({"n_kv_heads": 8}, "n_kv_heads: expected a divisor of n_heads=4, .* got 8"),
        ({"n_kv_heads": 0}, "n_kv_heads: expected a whole number of at least 1, got 0"),
        ({"positions": "relative", "scores": "additive"}, "'relative' adds to keys that are multiplied with queries"),
        ({"positions": "rotatory"}, "positions: expected one of none, learned, .*, got 'rotatory'"),
        (
            {"norm_position": "post", "normalization": "none"},
            "'post' normalises the stream, but normalization is 'none'",
        ),
        ({"norm_position": "post", "parallel": True}, "parallel: attention and MLP cannot both read a stream"),
        ({"d_mlp": 0, "parallel": True}, "parallel: speaks of the MLP, but d_mlp is 0"),
        ({"d_mlp": 0, "gated": True}, "gated: speaks of the MLP, but d_mlp is 0"),
        ({"biases": ["qkv", "query"]}, "biases: expected some of qkv, o, mlp, norm, unembed, each once"),
        ({"biases": "qkv"}, "biases: expected some of"),
        ({"causal": "no"}, "causal: expected true or false, got 'no'"),
        ({"relative_distance": 0}, "relative_distance: expected a whole number of at least 1, got 0"),
        ({"rotary_base": 0}, "rotary_base: expected a positive number, got 0"),
    ],
)
def test_what_is_no_model_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        TransformerConfig.from_dict(SIZES | fields)


def test_a_config_goes_round():
    for choice in covering():
        config = TransformerConfig(**fields_of(choice))
        assert TransformerConfig.from_dict(config.to_dict()) == config


def test_positions_that_are_not_embedded_have_no_table():
    with pytest.raises(InputError, match="W_pos: positions are 'rotary' here and have no embedding"):
        random_model(**SIZES, positions="rotary").W_pos  # noqa: B018
