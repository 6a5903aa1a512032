"""Which heads track what? All kinds of evidence on every head and task, joined into verdicts.

1. Per task: attention against the relation and its baselines; ablation of every head; probes for the feature that the
   task is about, beside their controls, and erasure where it can be read (``representation.py``).
2. One family of tests per kind over layers x heads x tasks: sign flips with max-T correction
   (family-wise), or Benjamini-Hochberg as the exploratory alternative.
   Probes are corrected by max-T over the heads of a task, and by Bonferroni over tasks.
3. A joint claim's p is the largest of its kinds' raw p (an intersection-union test; Berger 1982),
   Holm-corrected over layers x heads x tasks.
4. ``methods/verdict.py`` turns estimates, intervals and corrected p into a verdict.

Heads are not selected before they are tested, so one correction covers all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from interp.errors import InputError
from interp.interventions.replacement import DRAWS, Kind
from interp.interventions.sweep import Progress
from interp.methods.attention_maps import attention_maps
from interp.methods.evidence import TaskEvidence, gather
from interp.methods.given_task import as_predicted
from interp.methods.judging import judge_row
from interp.methods.probing import MINIMUM
from interp.methods.progress import part_of
from interp.stats.intervals import FEWEST_CLUSTERS
from interp.stats.multiplicity import benjamini_hochberg, holm
from interp.stats.permutation import FLIPS, sign_flip_test
from interp.tasks.task import Task

Correction = Literal["max-T", "fdr"]
TASKS = ("agreement", "coreference", "reflexive", "ioi", "induction")
COLUMNS = (
    *("layer", "head", "task", "query", "attention", "attention_baseline", "attention_q"),
    *("effect", "effect_low", "effect_high", "effect_q", "accuracy_base", "accuracy_ablated"),
    *("probe", "probe_control", "selectivity", "probe_q", "erasure_effect", "verdict"),
    *("reason", "baseline", "excess", "excess_low", "excess_high", "attention_p", "effect_p", "joint_q"),
    *("minimum_attention", "minimum_effect", "metric", "relation", "change_norm", "n_units", "n_clusters"),
    *("n_attention_clusters", "n_excluded", "n_templates", "n_templates_attended", "n_to_decide"),
    *("feature", "probe_low", "probe_high", "probe_baseline", "probe_baseline_score", "probe_excess"),
    *("probe_excess_low", "probe_excess_high", "selectivity_low", "erasure_low", "erasure_high", "erasure_random"),
    *("representation", "probe_p", "erasure_p", "tracks_q", "minimum_probe", "n_probe_clusters"),
)
"""Of ``HeadsReport.frame``, in order."""


@dataclass(frozen=True, repr=False)
class HeadsReport:
    """What was found, as tidy frames.

    Attributes:
        frame: One row per layer, head and task; columns as in ``COLUMNS``. Means are over balanced
            units within templates, then over templates. ``excess`` is attention minus baseline,
            ``n_templates_attended`` the templates in which it alone reaches the minimum;
            ``n_to_decide`` the units that would decide an undecided verdict (normal
            approximation; NaN where none is needed or no number would do). What probes and erasure say is as in
            ``interp.methods.representation``, ``representation`` what it comes to (``verdict.RepresentationState``);
            NaN where the task has no ``feature`` or probes were left out.
        examples: One row per layer, head, task and example: the effects (as in ``SweepResult``)
            and the attention (as in ``AttentionResult``; NaN where not testable).
        tasks: One row per task: what was asked, and how well the unablated model does. ``accuracy_base`` is
            over balanced units; ``accuracy_items`` over the items without their counterfactuals, as others
            report it of a published file.
        attention_maps: Attention from the query of up to 3 top heads per task on 2 sentences each,
            one row per key position.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    examples: pd.DataFrame
    tasks: pd.DataFrame
    attention_maps: pd.DataFrame
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in self.frame["verdict"].value_counts().items())
        return f"HeadsReport({', '.join(self.tasks['task'])}: {verdicts})"

    def save(self, out: str | Path, *, command: str | None = None) -> Path:
        """Write tables, figures, manifest and page into the folder `out`; returns its absolute path.

        Args:
            out: Made, or replaced where it holds an older report.
            command: The command line that asked for it, for the page and the manifest.

        Raises:
            OutputError: `out` exists and is not such a folder, or cannot be written.
        """
        from interp.report.folder import save_report

        return save_report(self, out, command=command)


def heads(
    model: Any,
    tasks: Sequence[str | Task] = TASKS,
    *,
    n: int | None = None,
    seed: int = 0,
    ablation: Kind = "mean",
    draws: int = DRAWS,
    alpha: float = 0.05,
    minimum_attention: float = 0.1,
    minimum_effect: float = 0.1,
    probes: bool = True,
    minimum_probe: float = MINIMUM,
    correction: Correction = "max-T",
    progress: Progress | None = None,
) -> HeadsReport:
    """Say which heads of `model` track what, with the evidence.

    Args:
        model: Follows TransformerLens' protocol.
        tasks: Tasks, or names for ``interp.load_task``.
        n: Units per named task; None for each task's own default.
        seed: Of every draw.
        ablation: What replaces an ablated head's ``z``.
        draws: How many resamples to average the effects of.
        alpha: Chance of any false claim of attention, or of an effect, over all heads and tasks; each kind of evidence
            has its own. The absence that ``none`` and ``attends only`` claim is judged by one 95 % interval a head.
        minimum_attention: The smallest excess attention that counts, as a share of all attention.
        minimum_effect: The smallest effect that counts, as a share of the base run's mean metric: a
            share, because logits have no scale that tasks and models have in common.
        probes: Whether the tasks' features are probed for and erased, too; without, the verdicts rest on attention and
            ablation.
        minimum_probe: The smallest excess of a probe over its toughest control that counts, as a share of the examples.
        correction: ``"max-T"`` bounds the chance of any false claim; ``"fdr"``, exploratory, the
            expected share of false ones. The joint claim is Holm-corrected in either case.
        progress: Called with (steps done, steps in all).

    Raises:
        InputError: No task, one twice, thresholds out of range, or a task that the model cannot carry.
        TaskError: A named task cannot be loaded.
    """
    shares = {"alpha": alpha, "minimum_attention": minimum_attention, "minimum_effect": minimum_effect}
    _check({**shares, "minimum_probe": minimum_probe}, correction)
    given = [as_predicted(each, model, n=n, seed=seed) for each in _listed(tasks)]
    names = [each.name for each in given]
    if not names or len(set(names)) < len(names):
        raise InputError(f"tasks: expected different tasks, at least one; got {names}")
    # Holm multiplies the smallest p by the number of cells: it must be able to fall below alpha.
    n_cells = model.cfg.n_layers * model.cfg.n_heads * len(given)
    flips = max(FLIPS, int(np.ceil(2 * n_cells / alpha)))
    evidence = []
    for number, task in enumerate(given):
        step = part_of(progress, number, len(given))
        found = gather(
            model,
            task,
            kind=ablation,
            draws=draws,
            seed=seed,
            probes=probes,
            minimum_probe=minimum_probe,
            alpha=alpha,
            flips=flips,
            progress=step,
        )
        evidence.append(found)
    judged = [each.heads(minimum_attention, minimum_effect, minimum_probe) for each in evidence]
    frame = pd.concat(judged, ignore_index=True)
    frame = _test(frame, evidence, flips=flips, correction=correction, seed=seed)
    # What one test of the family would have to reach, by Bonferroni; effects alone are tested on both sides.
    n_tests = {kind: max(1, frame[f"{kind}_q"].notna().sum()) for kind in ("effect", "attention", "probe")}
    sides = {kind: (1 if kind == "effect" else 2) * alpha / n for kind, n in n_tests.items()}
    frame = frame.join(pd.DataFrame([judge_row(row, alpha, sides) for row in frame.to_dict("records")]))
    options = {
        "seed": seed,
        "ablation": ablation,
        "alpha": alpha,
        "minimum_attention": minimum_attention,
        "minimum_effect": minimum_effect,
        "probes": probes,
        "minimum_probe": minimum_probe,
        "correction": correction,
    }
    return HeadsReport(
        frame=frame[list(COLUMNS)],
        examples=pd.concat([each.examples() for each in evidence], ignore_index=True),
        tasks=pd.DataFrame([each.description() for each in evidence]),
        attention_maps=attention_maps(model, given, frame),
        provenance={**options, "tasks": [dict(each.provenance()) for each in evidence]},
    )


def _listed(tasks: Sequence[str | Task] | str | Task) -> list[str | Task]:
    return [tasks] if isinstance(tasks, str | Task) else list(tasks)


def _check(shares: Mapping[str, float], correction: str) -> None:
    for name, value in shares.items():
        if not 0 < value < 1:
            raise InputError(f"{name}: expected a share between 0 and 1, got {value}")
    if correction not in get_args(Correction):
        raise InputError(f"correction: expected one of {', '.join(get_args(Correction))}, got {correction!r}")


def _test(
    frame: pd.DataFrame, evidence: Sequence[TaskEvidence], *, flips: int, correction: Correction, seed: int
) -> pd.DataFrame:
    """Raw and corrected p of all kinds and of the joint claims, as columns."""
    effects = sign_flip_test([each.effects for each in evidence], flips=flips, seed=seed)
    scored = [each for each in evidence if each.excess is not None]
    excesses = [each.excess for each in scored if each.excess is not None]
    looks = sign_flip_test(excesses, alternative="greater", flips=flips, seed=seed + 1) if excesses else []
    columns = {"effect_p": np.concatenate([each.p for each in effects])}
    columns["effect_family"] = np.concatenate([each.p_family for each in effects])
    columns["attention_p"], columns["attention_family"] = np.full((2, len(frame)), np.nan)
    for each, test in zip(scored, looks, strict=True):
        here = (frame["task"] == each.task.name).to_numpy()
        columns["attention_p"][here], columns["attention_family"][here] = test.p, test.p_family
    decidable = {}
    for kind in ("effect", "attention"):
        family = columns.pop(f"{kind}_family")
        # What has too few clusters to be decided is no hypothesis, and costs the others nothing.
        decidable[kind] = np.where(np.isnan(family), np.nan, columns[f"{kind}_p"])
        columns[f"{kind}_q"] = benjamini_hochberg(decidable[kind]) if correction == "fdr" else family
    # NaN where attention is not testable: there is no joint claim to make.
    both = np.maximum(decidable["effect"], decidable["attention"])
    columns["joint_q"] = holm(both)
    probes = frame["probe_p"].where(frame["n_probe_clusters"] >= FEWEST_CLUSTERS)
    if correction == "fdr":
        columns["probe_q"] = benjamini_hochberg(probes.to_numpy())
    else:  # they are corrected over a task's heads, and not over tasks yet
        n_tasks = frame.loc[probes.notna(), "task"].nunique()
        columns["probe_q"] = np.minimum(1.0, n_tasks * frame["probe_q"]).to_numpy()
    # 1 where no probe read the feature, so that it was not erased.
    columns["tracks_q"] = holm(np.maximum(both, np.maximum(probes, frame["erasure_p"].fillna(1.0)).to_numpy()))
    return frame.assign(**columns)
