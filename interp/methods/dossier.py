"""Which heads track what? All kinds of evidence on every head and task, joined into verdicts.

1. Per task: attention against the relation and its baselines; ablation of every head; probes for the feature that the
   task is about, beside their controls, and erasure where it can be read (``representation.py``).
   Of heads that look and matter, the values at the related word alone (``related_effect.py``).
2. One family of tests per kind over layers x heads x tasks, and joint claims (``family.py``).
3. Each kind by itself comes to a state (``methods/verdict.py``). Then it is asked whether a head's effect is about the
   task (``specificity.py``), and heads that look or carry are ablated two by two: do they hide each other
   (``standing_in.py``)?
4. ``methods/verdict.py`` turns all that into a verdict.

Heads are not selected before they are tested, so one correction covers all; or they are chosen on other items
(``choosing.py``), and it covers the chosen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from interp.errors import InputError
from interp.interventions.asked import model_asked, task_asked
from interp.interventions.given_numbers import whole_number
from interp.interventions.provenance import model_provenance, task_provenance
from interp.interventions.replacement import DRAWS, Kind
from interp.interventions.sweep import Progress
from interp.methods.attention_maps import attention_maps
from interp.methods.choosing import apart
from interp.methods.conclusions import check_share
from interp.methods.given_task import several_predicted
from interp.methods.in_one_line import counted_verdicts
from interp.methods.judged_models import Asked, Judged, judge_models
from interp.methods.partners import PARTNER_COLUMNS
from interp.methods.probing import MINIMUM
from interp.methods.replication import COLUMNS as REPLICATION
from interp.methods.replication import check_siblings, names, replication
from interp.methods.standing_in import MOST_PAIRED
from interp.runs.answers import answered
from interp.runs.run import Run, as_run
from interp.stats.multiplicity import Correction
from interp.tasks.task import Task

TASKS = ("agreement", "coreference", "reflexive", "ioi", "induction")
COLUMNS = (
    *("layer", "head", "task", "query", "attention", "attention_baseline", "attention_q"),
    *("effect", "effect_low", "effect_high", "effect_q", "accuracy_base", "accuracy_ablated"),
    *("probe", "probe_control", "selectivity", "probe_q", "erasure_effect", "verdict"),
    *("reason", "baseline", "baseline_overlap", "excess", "excess_low", "excess_high"),
    *("attention_p", "effect_p", "joint_q"),
    *("minimum_attention", "minimum_effect", "metric", "relation", "change_norm", "n_units", "n_clusters"),
    *("n_attention_clusters", "n_excluded", "n_templates", "n_templates_attended", "n_to_decide"),
    *("feature", "probe_low", "probe_high", "probe_baseline", "probe_baseline_score", "probe_excess"),
    *("probe_excess_low", "probe_excess_high", "selectivity_low", "erasure_low", "erasure_high", "erasure_random"),
    *("representation", "probe_p", "erasure_p", "tracks_q", "minimum_probe", "n_probe_clusters"),
    *("attention_state", "effect_state", "specificity", "undecidable", *PARTNER_COLUMNS),
    *("related_effect", "related_low", "related_high", "related_p", "related_state"),
)
"""Of ``HeadsReport.frame``, in order."""


@dataclass(frozen=True, repr=False)
class HeadsReport:
    """What was found, as tidy frames.

    Attributes:
        frame: One row per layer, head and task; columns as in ``COLUMNS``. Means are over balanced
            units within templates, then over templates. ``excess`` is attention minus baseline (NaN
            where the baseline leaves no room for the minimum; ``baseline_overlap`` is the share of the related words at
            which it looks, too), ``n_templates_attended`` the templates in which it alone reaches the minimum;
            ``n_to_decide`` the units that would decide an undecided verdict (normal
            approximation; NaN where none is needed or no number would do). What probes and erasure say is as in
            ``interp.methods.representation``; NaN where the task has no ``feature`` or probes were left out.
            ``attention_state``, ``effect_state``, ``representation`` and ``specificity`` are what the verdict rests on
            (``interp.methods.verdict``), ``partners`` and what follows are who stands in for the head
            (``interp.methods.partners``); ``related_effect``, ``related_low``, ``related_high``, ``related_p`` and
            ``related_state`` are what ablating its values at the related word alone does
            (``interp.methods.related_effect``).
        examples: One row per layer, head, task and example: the effects (as in ``SweepResult``)
            and the attention (as in ``AttentionResult``; NaN where not testable).
        tasks: One row per task: what was asked, and how well the unablated model does. ``accuracy_base`` is
            over balanced units; ``accuracy_items`` over the items without their counterfactuals, as others
            report it of a published file.
        pairs: One row per task and pair of heads that were ablated together, as of ``interp.methods.standing_in``.
        replication: Which heads of which model get each verdict, as of ``interp.methods.replication``; empty without
            siblings.
        attention_maps: Attention of up to 8 top heads per task on 4 sentences each, one row per query and key position;
            as of ``interp.methods.attention_maps``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    examples: pd.DataFrame
    tasks: pd.DataFrame
    pairs: pd.DataFrame
    replication: pd.DataFrame
    attention_maps: pd.DataFrame
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"HeadsReport({', '.join(self.tasks['task'])}: {counted_verdicts(self.frame)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.heads_glance import heads_glance

        return as_html(heads_glance(self))

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
    most_paired: int = MOST_PAIRED,
    correction: Correction = "max-T",
    choose_on: Sequence[Task] = (),
    siblings: Sequence[Any] = (),
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
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
            has its own. The absence that ``none`` claims, and others with it, is judged by one 95 % interval
            a head.
        minimum_attention: The smallest excess attention that counts, as a share of all attention.
        minimum_effect: The smallest effect that counts, as a share of the base run's mean metric: a
            share, because logits have no scale that tasks and models have in common.
        probes: Whether the tasks' features are probed for and erased, too; without, the verdicts rest on attention and
            ablation.
        minimum_probe: The smallest excess of a probe over its toughest control that counts, as a share of the examples.
        most_paired: How many heads of a task are ablated two by two, at most; 0 leaves that out.
        correction: ``"max-T"`` bounds the chance of any false claim; ``"fdr"``, exploratory, the
            expected share of false ones. The joint claim is Holm-corrected in either case.
        choose_on: The same tasks, of other items, on which heads are chosen first: then only these are tested and
            corrected for (``interp.methods.choosing``); not with ``"fdr"``. Empty to test all.
        siblings: Models of other seeds of the same training, judged in the same way on the same examples: which
            verdicts replicate?
        progress: Called with (steps done, steps in all).
        run: Where the sweeps are kept as they are measured, and at last the report, and found again: a folder of runs;
            or an ``interp.Run``, whose executor measures several tasks, and siblings, at the same time. None to keep
            nothing.

    Raises:
        InputError: No task, one twice, thresholds out of range, fewer heads to pair than none, a task that the model
            cannot carry, a sibling with another tokenizer, choosing tasks of other names or with nothing but
            what is scored, or, with several workers, a model that cannot be sent to one.
        TaskError: A named task cannot be loaded.
    """
    shares = {"alpha": alpha, "minimum_attention": minimum_attention, "minimum_effect": minimum_effect}
    _check({**shares, "minimum_probe": minimum_probe}, correction)
    most_paired = whole_number("most_paired", most_paired, least=0, expected="a whole number of heads")
    given = several_predicted(tasks, model, n=n, seed=seed)
    if not given or len({each.name for each in given}) < len(given):
        raise InputError(f"tasks: expected different tasks, at least one; got {[each.name for each in given]}")
    if choose_on:
        _check_only_max_t(correction)
        choose_on = apart(given, choose_on)
    models = [model, *siblings]
    check_siblings(model, siblings)
    asked = Asked(
        **shares,
        seed=seed,
        ablation=ablation,
        draws=draws,
        probes=probes,
        minimum_probe=minimum_probe,
        most_paired=most_paired,
        correction=correction,
    )
    kept = as_run(run)

    def judging() -> HeadsReport:
        judged = judge_models(models, given, choose_on, asked, run=kept, progress=progress)
        return _report(models, given, choose_on, asked, judged)

    return answered(
        kept, lambda: _request(models, given, choose_on, asked), model_provenance(model), HeadsReport, judging
    )


def _request(models: Sequence[Any], given: Sequence[Task], choose_on: Sequence[Task], asked: Asked) -> dict[str, Any]:
    return {
        "kind": "heads",
        "models": [model_asked(each, model_provenance(each)) for each in models],
        "names": names(models) if len(models) > 1 else [],  # which the table of replication has
        "tasks": [task_asked(each) for each in given],
        "chosen_on": [task_asked(each) for each in choose_on],
        **asdict(asked),
    }


def _report(
    models: Sequence[Any], given: Sequence[Task], choose_on: Sequence[Task], asked: Asked, judged: Sequence[Judged]
) -> HeadsReport:
    first, frames = judged[0], dict(zip(names(models), (each.frame for each in judged), strict=True))
    empty = pd.DataFrame(columns=list(REPLICATION))
    return HeadsReport(
        frame=first.frame[list(COLUMNS)],
        examples=pd.concat([each.examples() for each in first.evidence], ignore_index=True),
        tasks=pd.DataFrame([each.description() for each in first.evidence]),
        pairs=first.pairs,
        replication=replication(frames) if len(models) > 1 else empty,
        attention_maps=attention_maps(models[0], given, first.frame),
        provenance={
            **model_provenance(models[0]),
            **asdict(asked),
            "chosen_on": [task_provenance(task) for task in choose_on],
            "siblings": [model_provenance(each) for each in models[1:]],
            "tasks": [dict(each.provenance()) for each in first.evidence],
        },
    )


def _check_only_max_t(correction: Correction) -> None:
    if correction != "max-T":
        raise InputError(
            f"choose_on: what is chosen on other items is corrected by max-T, got correction={correction!r}, too; give "
            "one of the two"
        )


def _check(shares: Mapping[str, float], correction: str) -> None:
    for name, value in shares.items():
        check_share(name, value)
    if correction not in get_args(Correction):
        raise InputError(f"correction: expected one of {', '.join(get_args(Correction))}, got {correction!r}")
