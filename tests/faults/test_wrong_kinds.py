"""Another kind of value in the place of any argument: the refusal is ours, one line, and names the argument.

What has a meaning anyway (``verbose=2.5``) is not refused; what Python or torch would say of it is.
"""

from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import torch
from random_tasks import random_task
from tiny_models import random_gpt2

import interp
from interp.arguments import named_arguments
from interp.errors import CLEAR, HookError, InputError, InterpError
from interp.methods.erasure.erase import erase
from interp.methods.function_heads import function_heads
from interp.methods.paths import parse_path
from interp.residual.logit_lens import logit_lens
from interp.tasks import agreement
from interp.tasks.token_ids import example_of_ids

pytestmark = pytest.mark.unchecked

GPT2 = random_gpt2()
MODEL, TASK, IDS = interp.load_model(GPT2), random_task(2), torch.tensor([[1, 2, 3]])
KINDS = {
    "frame": pd.DataFrame(np.zeros((10, 5))),
    "numbers": list(range(1_000)),
    "text": "word " * 500,
    "none": None,
    "object": object(),
}
CALLS = {
    "ablate": partial(interp.ablate, MODEL, TASK),
    "patch": partial(interp.patch, MODEL, TASK),
    "path_patch": partial(interp.path_patch, MODEL, TASK, [["0.0", "1.0"]]),
    "heads": partial(interp.heads, MODEL, [TASK]),
    "probe": partial(interp.probe, MODEL, TASK, "number"),
    "erase": partial(erase, MODEL, TASK, "number"),
    "function_heads": partial(function_heads, MODEL),
    "parse_path": partial(parse_path, ["0.0", "1.0"], MODEL),
    "residual_stream": partial(interp.residual_stream, MODEL, IDS),
    "direct_logit_attribution": partial(interp.direct_logit_attribution, MODEL, interp.residual_stream(MODEL, IDS), 3),
    "logit_lens": partial(logit_lens, MODEL, IDS),
    "fold_layer_norm": partial(interp.fold_layer_norm, MODEL),
    "save_model": partial(interp.save_model, MODEL, "saved"),
    "load_model": interp.load_model,
    "load_task": partial(interp.load_task, "agreement", tokenizer=interp.load_model().tokenizer),
    "encode_task": partial(
        interp.encode_task,
        list(agreement.pairs(4, seed=0)),
        tokenizer=interp.load_model().tokenizer,
        name="own",
        description="own",
        metric="logit_difference",
    ),
    "example_of_ids": partial(example_of_ids, (1, 2), (3,), (4,)),
    "Span.find": partial(interp.Span.find, "keys", "The keys are"),
    "HookedTransformer": partial(interp.HookedTransformer, MODEL.config),
    "generate": partial(MODEL.generate, IDS),
    "to_tokens": partial(MODEL.to_tokens, "a"),
    "tokenize": partial(MODEL.tokenize, "a"),
}


@pytest.mark.parametrize(
    "kind", ["frame", "none", *(pytest.param(each, marks=pytest.mark.slow) for each in ("numbers", "text", "object"))]
)
@pytest.mark.parametrize("name", CALLS)
def test_in_the_place_of_each_argument(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", 40)
    call = CALLS[name]
    function, args, given = (call.func, call.args, call.keywords) if isinstance(call, partial) else (call, (), {})
    kinds = signature(function)
    for parameter in kinds.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        asked = kinds.bind(*args, **given)
        asked.arguments[parameter.name] = KINDS[kind]
        message = refusal_of(function, asked)
        assert "\n" not in message, parameter.name
        assert len(message) < CLEAR + 100, parameter.name


def refusal_of(function, asked):
    try:
        function(*asked.args, **asked.kwargs)
    except InterpError as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": GPT2}, r"seed: expected a whole number from 0 to 2\*\*63 - 1, got a GPT2LMHeadModel"),
        ({"seed": -1}, r"seed: expected a whole number from 0 to 2\*\*63 - 1, got -1"),
        ({"progress": 3}, r"progress: expected Callable\[\[int, int\], None\] \| None, got 3; see help\(interp\."),
        (
            {"site": IDS},
            r"site: expected str \| None, got tensor.*; see help\(interp.methods.ablation.ablate\)",
        ),
    ],
)
def test_what_is_said(given, message):
    with pytest.raises(InputError, match=message):
        interp.ablate(MODEL, TASK, **given)


def test_what_works_is_not_refused():
    """Numbers of NumPy's own kinds, and what only looks like a list."""
    of_numpy = interp.ablate(MODEL, TASK, seed=np.int64(3), layers=np.arange(1), n=None)
    assert of_numpy.summary().equals(interp.ablate(MODEL, TASK, seed=3, layers=[0]).summary())


def test_a_fault_of_another_kind_stays_what_it_is():
    def fails(_done, _total):
        raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="the caller's own"):
        interp.ablate(MODEL, TASK, progress=fails)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'task'"):
        interp.ablate(MODEL)


def test_a_path_that_is_none():
    with pytest.raises(InputError, match=r"^'word .*: expected the path of a file or folder, got a longer text$"):
        interp.save_model(MODEL, KINDS["text"])
    with pytest.raises(InputError, match=r"^save_model: expected the path .*, got one with a null character$"):
        interp.save_model(MODEL, "a\0b")
    with pytest.raises(InputError, match=r"^'\\ud800': expected Unicode text, got half of a surrogate pair"):
        interp.save_model(MODEL, "\ud800")


def test_a_seed_is_looked_at_wherever_it_stands():
    @named_arguments
    def drawn(n: int, seed: int = 0):
        return n, seed

    @named_arguments
    def seeds(*names: str, seed: int = 0):
        return names, seed

    assert seeds("a", "b") == (("a", "b"), 0)
    assert drawn(3, np.int64(4)) == drawn(3, seed=4) == (3, 4)
    for call in (partial(drawn, 3, -1), partial(drawn, 3, seed=-1), partial(drawn, seed=MODEL, n=3)):
        with pytest.raises(InputError, match="seed: expected a whole number"):
            call()


def test_a_stream_of_another_model():
    stream = interp.residual_stream(MODEL, IDS)
    for fields in ({"n_layer": 1}, {"n_embd": 6}):
        with pytest.raises(InputError, match="stream: expected one of this model, of "):
            interp.direct_logit_attribution(interp.load_model(random_gpt2(**fields)), stream, 3)
    with pytest.raises(InputError, match=r"pos: expected -1 .*, got True"):
        interp.direct_logit_attribution(MODEL, stream, 3, pos=True)


@pytest.mark.parametrize("hooks", [("hook_embed", print), {"hook_embed": print}, 5, [("hook_embed", 3)], ["ab"]])
def test_hooks_that_are_no_pairs(hooks):
    message = r"fwd_hooks: expected a list of pairs, \(point, function\), got "
    with pytest.raises(HookError, match=message):
        MODEL.run_with_hooks(IDS, fwd_hooks=hooks)
    with pytest.raises(HookError, match=message), MODEL.hooks(fwd_hooks=hooks):
        pass


def test_points_and_functions_that_are_none():
    for names in (5, [5]):
        with pytest.raises(HookError, match=r"hook point.*5"):
            MODEL.run_with_cache(IDS, names_filter=names)
    with pytest.raises(HookError, match="hook: expected a function of an activation and its point, got 3"):
        MODEL.add_hook("hook_embed", 3)


def test_whose_model_is_any():
    """The kind of a model is not in the signature where TransformerLens' bridges are taken, too."""

    @named_arguments
    def shape(model):
        return model.cfg.n_heads

    assert shape(MODEL) == MODEL.cfg.n_heads
    with pytest.raises(InputError, match=r"model: expected a model, got a GPT2LMHeadModel; interp.load_model makes"):
        shape(GPT2)


def test_an_unknown_option_is_told_all_that_there_are_and_the_methods_own_first():
    with pytest.raises(InputError) as refused:
        interp.ablate(MODEL, TASK, ablation="zero")
    assert str(refused.value) == (
        "ablation: AblateOptions has no such option; known are 'replacement', 'site', 'by', 'n', 'seed', "
        "'memory_budget', 'metric', 'components', 'heads', 'sets', 'layers', 'draws'"
    )
