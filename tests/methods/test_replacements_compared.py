import numpy as np
import pandas as pd
import pytest
import torch
from as_users_call import unchecked
from hand_model import ARE, BY, IS, WORDS, HandModel, varied_task
from scipy.stats import kendalltau, spearmanr

from interp.errors import InputError
from interp.methods.ablation import ablate
from interp.methods.replacements_compared import REPLACEMENTS, ReplacementComparison, compare_replacements

pytestmark = pytest.mark.filterwarnings("ignore:.*bit-identical")  # without either head, the answers' logits are 0


class OpenedModel(HandModel):
    """Head 1 writes 1 to a filler in every prompt; the answers' logits are multiplied by that."""

    def __init__(self):
        super().__init__(bias=0.0)

    def forward(self, tokens):
        x = torch.eye(len(WORDS))[tokens]
        written = self.blocks[0].attn(x)
        out = x + written
        out[..., [IS, ARE]] = written[..., [IS, ARE]] * written[..., BY, None]
        return out


class Untrained(HandModel):
    """It answers "is" to every prompt: right for one of two."""

    def forward(self, tokens):
        out = 1e-3 * super().forward(tokens)
        out[..., IS] += 0.1
        return out


@pytest.fixture(scope="module")
def opened():
    return compare_replacements(OpenedModel(), varied_task())


def test_a_head_that_always_writes_the_same_flips(opened):
    """Without it the answers are lost; with its mean, or its value on another sentence, nothing is."""
    found = opened.conclusions().set_index("head")
    assert found.loc[0, list(REPLACEMENTS)].tolist() == ["drop"] * len(REPLACEMENTS)
    assert REPLACEMENTS[0] == "zero"
    assert found.loc[1, list(REPLACEMENTS)].tolist() == ["drop", *["none"] * (len(REPLACEMENTS) - 1)]
    assert found["agreement"].tolist() == ["agrees", "flips"]
    flips = opened.flips()
    assert flips[["layer", "head"]].to_numpy().tolist() == [[0, 1]]


def test_effects_are_those_of_each_ablation(opened):
    effects = opened.summary()
    assert effects["replacement"].drop_duplicates().tolist() == list(REPLACEMENTS)
    for kind in REPLACEMENTS:
        alone = ablate(OpenedModel(), varied_task(), replacement=kind).summary()
        found = effects[effects["replacement"] == kind]
        for column in ("effect", "low", "high", "base", "n_units", "n_clusters"):
            np.testing.assert_allclose(found[column], alone[column], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found["minimum"], 0.1 * found["base"])


def test_conclusions_are_those_of_the_report(opened):
    """Head by head, what `interp.heads` says of the effect under either of its replacements."""
    from interp.methods.dossier import heads

    report = heads(OpenedModel(), [varied_task()], max_group=0).summary()
    for kind, column in (("resample", "resample_state"), ("positional_mean", "mean_state")):
        assert opened.conclusions()[kind].tolist() == report[column].tolist() == ["drop", "none"]


def planted(states):
    """A comparison of two kinds whose heads have given effects: (mean, spread) by kind."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=40)
    noise = (noise - noise.mean()) / noise.std()
    rows = [
        pd.DataFrame(
            {
                "replacement": kind,
                "layer": 0,
                "head": head,
                "unit": range(40),
                "example": range(40),
                "cluster": [str(each) for each in range(40)],
                "template": "t",
                "base": 1.0,
                "effect": mean + spread * noise,
            }
        )
        for head, pair in enumerate(states)
        for kind, (mean, spread) in zip(("zero", "mean"), pair, strict=True)
    ]
    asked = {"metric": "logit_difference", "min_effect": 0.1, "alpha": 0.05, "seed": 0}
    return ReplacementComparison(pd.concat(rows, ignore_index=True), asked, ("zero", "mean"), ("layer", "head"))


DROP, RISE, NONE, OPEN = (-0.5, 0.1), (0.5, 0.1), (0.0, 0.05), (0.08, 0.5)


def test_what_flips_what_agrees_and_what_is_open():
    found = planted([(DROP, RISE), (DROP, NONE), (DROP, OPEN), (OPEN, OPEN), (NONE, NONE), (RISE, RISE)]).conclusions()
    assert found["zero"].tolist() == ["drop", "drop", "drop", "undecided", "none", "rise"]
    assert found["mean"].tolist() == ["rise", "none", "undecided", "undecided", "none", "rise"]
    assert found["agreement"].tolist() == ["flips", "flips", "open", "open", "agrees", "agrees"]


def test_nothing_is_concluded_where_the_base_run_is_at_chance():
    comparison = planted([(DROP, RISE)])
    noise = comparison.examples["effect"] * 0 + np.tile(np.linspace(-1, 1, 40), 2)
    at_chance = type(comparison)(
        comparison.examples.assign(base=noise), comparison.provenance, comparison.replacements, comparison.labels
    )
    assert at_chance.conclusions()["agreement"].tolist() == ["open"]
    assert at_chance.flips().empty


@pytest.mark.parametrize(("correct", "agreement"), [(1.0, "flips"), (0.5, "open"), (0.4, "open"), (np.nan, "open")])
@pytest.mark.parametrize("metric", ["probability", "accuracy"])
def test_of_other_metrics_the_share_of_right_answers_tells_chance(metric, correct, agreement):
    """A probability of 0.0003 is surely above 0, in an untrained model too."""
    frame = planted([(DROP, RISE), (DROP, NONE)]).examples
    tiny = frame.assign(base=3e-4, effect=3e-4 * frame["effect"], base_correct=correct)
    asked = {"metric": metric, "min_effect": 0.1, "alpha": 0.05, "seed": 0}
    found = ReplacementComparison(tiny, asked, ("zero", "mean"), ("layer", "head")).conclusions()
    assert found["agreement"].tolist() == [agreement] * 2


def test_nothing_is_concluded_of_a_model_that_guesses():
    """All words have nearly the same probability, and no head changes it by a tenth."""
    found = compare_replacements(Untrained(), varied_task(), replacements=("zero", "mean"), metric="probability")
    assert set(found.summary()["state"]) == {"undecided"}
    assert found.examples["base"].min() > 0.1


def test_rank_agreement_is_scipys_over_mean_effects():
    means = [(-0.9, -0.8), (-0.1, -0.4), (0.0, -0.5), (0.2, 0.1), (0.3, 0.6)]
    found = planted([((one, 0.01), (other, 0.01)) for one, other in means]).agreement()
    one, other = np.array(means).T
    assert found["kendall"].item() == pytest.approx(kendalltau(one, other).statistic)
    assert found["spearman"].item() == pytest.approx(spearmanr(one, other).statistic)
    assert (found["low"].item(), found["high"].item()) == (found["kendall"].item(),) * 2  # nothing is near a tie
    assert found["n_cells"].item() == 5


def test_rank_agreement_of_noise_has_a_wide_interval():
    found = planted([((mean, 1.0), (mean, 0.01)) for mean in (0.0, 0.01, 0.02, 0.03, 0.04)])
    frame = found.examples
    rng = np.random.default_rng(1)
    noisy = frame["effect"] + (frame["replacement"] == "zero") * rng.normal(size=len(frame))
    found = type(found)(frame.assign(effect=noisy), found.provenance, found.replacements, found.labels).agreement()
    assert found["low"].item() < 0 < found["high"].item()


def test_where_all_effects_are_equal_there_is_no_order():
    found = planted([((0.0, 0.0), DROP), ((0.0, 0.0), RISE)]).agreement()
    assert found[["kendall", "low", "high", "spearman"]].isna().all(axis=None)


def test_each_pair_of_kinds_has_a_row(opened):
    found = opened.agreement()
    assert len(found) == len(REPLACEMENTS) * (len(REPLACEMENTS) - 1) / 2
    assert found[["first", "second"]].iloc[0].tolist() == ["zero", "mean"]


def test_sets_and_fewer_kinds():
    found = compare_replacements(
        OpenedModel(), varied_task(), replacements=("mean", "zero"), sets=[[(0, 0), (0, 1)], [(0, 1)]]
    )
    assert found.conclusions().columns.tolist() == ["heads", "mean", "zero", "agreement"]
    assert found.flips()["heads"].tolist() == ["0.1"]


@pytest.mark.parametrize("kinds", [("zero",), ("zero", "zero"), ()])
def test_at_least_two_kinds(kinds):
    with pytest.raises(InputError, match="replacements: expected different replacements, at least two"):
        compare_replacements(HandModel(), varied_task(), replacements=kinds)


def test_unknown_kinds_and_metrics_without_a_share_are_refused():
    with pytest.raises(InputError, match="replacements: 'meen' is unknown; did you mean 'mean'"):
        unchecked(compare_replacements)(HandModel(), varied_task(), replacements=("zero", "meen"))
    with pytest.raises(InputError, match="kl_divergence: effects are judged as shares"):
        compare_replacements(HandModel(), varied_task(), metric="kl_divergence")


def test_interrupted_it_holds_what_is_complete_under_every_kind():
    def stop(done, total):
        if done == total // 2:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"):
        part = compare_replacements(OpenedModel(), varied_task(), progress=stop)
    assert not part.provenance["complete"]
    counts = part.examples.groupby(["replacement", "head"])["example"].count()
    assert len(counts) == 2 * len(REPLACEMENTS)
    assert counts.nunique() == 1
    assert 0 < counts.iloc[0] < len(varied_task().examples)
