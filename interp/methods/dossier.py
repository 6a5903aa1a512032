"""Which heads track what? All kinds of evidence on every head and task, joined into verdicts.

1. Per task: attention against the relation and its baselines; ablation of every head under two replacements; probes
   for the task's feature, beside their controls. For heads that look and matter, the related word is exchanged
   (``word_exchange.py``).
2. Each kind of evidence is one family of tests over layers x heads x tasks, and comes to a state (``evidence.py``,
   ``claims/verdicts.py``). Ablations are measured in looks, and heads whose effect is settled leave
   (``claims/looks.py``). Heads that look or carry are ablated together: do they stand in for each other?
3. ``claims/rules.py`` turns the states into a verdict.

No head is selected before it is tested, so one correction covers all; or heads are chosen on other items, or declared
in a file, and it covers these.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from interp.arguments import require_different, whole_number
from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.declared import Declared, read_claims
from interp.claims.groups import PARTNER_COLUMNS
from interp.errors import InputError
from interp.interventions.provenance import model_asked, task_asked, task_provenance
from interp.interventions.sweep import Progress
from interp.methods.attention_maps import attention_maps
from interp.methods.judging import COLUMNS as REPLICATION
from interp.methods.judging import Judged, check_siblings, judge_models, names, replication
from interp.methods.task_arguments import apart, carried, with_left_out, without_verdict
from interp.model.devices import documented
from interp.model.provenance import model_provenance
from interp.options import HeadsOptions
from interp.result import Result
from interp.runs.key import LOG
from interp.runs.root import root_of
from interp.runs.run import Run, answered, as_run
from interp.runs.run_folder import Log
from interp.tasks.catalogue import TASKS
from interp.tasks.task import Task

_LOG = logging.getLogger(__name__)
COLUMNS = (
    *("layer", "head", "task", "query", "attention", "attention_baseline", "verdict", "reason"),
    *("attention_value", "attention_values", "n_attention_values", "attention_self", "attention_first"),
    *("excess", "excess_low", "excess_high", "excess_p", "excess_p_adjusted", "excess_p_absent"),
    *("effect", "effect_low", "effect_high", "effect_p", "effect_p_adjusted", "effect_p_absent"),
    *("mean_replacement", "mean_effect", "mean_effect_low", "mean_effect_high"),
    *("mean_effect_p", "mean_effect_p_adjusted", "mean_effect_p_absent", "accuracy_base", "accuracy_ablated"),
    *("exchange", "exchange_low", "exchange_high", "min_exchange"),
    *("exchange_p", "exchange_p_adjusted", "exchange_p_absent", "tracks_p_adjusted"),
    *("probe", "probe_low", "probe_high", "probe_control", "probe_baseline", "probe_baseline_score"),
    *("probe_excess", "probe_excess_low", "probe_excess_high"),
    *("probe_excess_p", "probe_excess_p_adjusted", "probe_excess_p_absent"),
    *("selectivity", "selectivity_low", "selectivity_p_adjusted", "feature"),
    *("baseline", "baseline_overlap", "min_attention", "min_effect", "min_probe", "metric", "relation"),
    *("change_norm", "n_units", "n_clusters", "n_effective", "n_attention_clusters"),
    *("n_exchange_units", "n_probe_clusters"),
    *("n_excluded", "n_templates", "n_templates_attended", "n_to_decide"),
    *("attention_state", "effect_state", "resample_state", "mean_state", "exchange_state", "representation"),
    *("specificity", "undecidable", *PARTNER_COLUMNS),
)
"""Of ``HeadsReport.summary()``, in order."""
_PUBLIC = {
    "excess_minimum": "min_attention",
    "effect_minimum": "min_effect",
    "exchange_minimum": "min_exchange",
    "probe_excess_minimum": "min_probe",
    "excess_n_clusters": "n_attention_clusters",
    "exchange_n_units": "n_exchange_units",
    "probe_excess_n_clusters": "n_probe_clusters",
}


@dataclass(frozen=True, eq=False, repr=False)
class HeadsReport(Result):
    """What was found of every head.

    Attributes:
        examples: One row per layer, head, task and example: the effects (as in ``SweepResult``, by resampling;
            ``mean_effect`` by the mean; NaN where a head was not ablated), what gradients predict of both
            (``effect_predicted``, ``mean_effect_predicted``; only if some were not measured) and the attention (as in
            ``AttentionResult``; NaN where not testable).
        provenance: How the numbers were made. ``left_out`` says what was asked and is not in here, and why, by the name
            of the task, or of the task and the kind of evidence.
        cells: What ``summary`` returns.
        tasks: One row per task: what was asked, and how well the unablated model does. ``accuracy_base`` is over
            balanced units; ``accuracy_items`` over the items without their counterfactuals, as others report it of a
            published file.
        groups: One row per task and head that was ablated together with others, as of ``interp.claims.groups``.
        replication: Which heads of which model get each verdict, as of ``interp.methods.judging``; empty without
            siblings.
        attention_maps: Attention of up to 8 top heads per task on 4 sentences each, one row per query and key position;
            as of ``interp.methods.attention_maps``.
    """

    cells: pd.DataFrame
    tasks: pd.DataFrame
    groups: pd.DataFrame
    replication: pd.DataFrame
    attention_maps: pd.DataFrame

    shown_by: ClassVar[str] = "heads"

    def summary(self) -> pd.DataFrame:
        """One row per layer, head and task: the evidence and the verdict; columns as in ``COLUMNS``.

        Means are over balanced units within templates, then over templates. Effects are those of the look at which a
        head left (``interp.claims.looks``): of ``n_units`` both ablations were measured, and gradients predict those of
        the others. ``n_effective`` units would say as much as both together (the fewer, of the two ablations).

        - ``excess`` is attention minus baseline. It is NaN where the baseline leaves no room for the minimum;
          ``baseline_overlap`` is the share of the related words at which the baseline looks, too.
          ``n_templates_attended`` counts the templates in which the excess alone reaches the minimum.
          ``attention_self`` and ``attention_first`` rest on the query itself and on the first token.
        - Where the task names a feature, attention is that at one of its values, ``attention_value``, at which it is
          clearest; ``attention_values`` are all at which it is shown, of ``n_attention_values``. It is absent only
          where it is absent at each.
        - ``effect`` is that of resampling the head, ``mean_effect`` that of putting its mean in its place
          (``mean_replacement``: of the position, or the template); ``exchange`` that of exchanging the related word for
          this head alone (NaN where that was not measured); ``probe`` and what follows as in
          ``interp.methods.evidence``.
        - ``_p`` is of "no more than the minimum", ``_p_adjusted`` the same, family-wise over heads and tasks, and
          ``_p_absent`` of "at least the minimum", family-wise, too. ``tracks_p_adjusted`` is the largest of attention,
          both effects, the exchange, the probe and its selectivity (that another task is spared is not in it), 1 where
          the exchange is above 0, and NaN where one of these was not tested, or nothing can be said of the task.
        - ``n_to_decide`` are the units that would decide an undecided verdict, of a head without effect or with twice
          the minimum (four times as many for one with 1.5 times the minimum); where that many were measured already,
          those that tell the estimate from the minimum; NaN where none is needed or no number would do.
        - ``attention_state``, ``effect_state``, ``exchange_state``, ``representation`` and ``specificity`` are what the
          verdict rests on (``interp.claims.rules``); ``partners`` and what follows are who stands in for the head
          (``interp.claims.groups``).
        """
        return self.cells

    def save(self, folder: str | Path, *, command: str | None = None, cards: Mapping[str, str] | None = None) -> Path:
        """Write the tables, the figures, a page (``report.html``) and a manifest into a folder.

        Args:
            folder: Made, with its parents, or replaced where it holds an older report and nothing else.
            command: The command line that asked for the result, for the page and the manifest.
            cards: Pages of heads by their names, which lie in the folder's ``cards``.

        Returns:
            The folder, as an absolute path.

        Raises:
            InputError: A card is of no head such as ``2.1``.
            OutputError: The folder cannot be used.
        """
        from interp.report.folder import save
        from interp.report.heads import page_of

        return save(self, folder, command=command, page=page_of(self, cards))


def require_sizes(asked: HeadsOptions) -> None:
    """Refuse numbers of heads or clusters that decide nothing: no model is needed to know."""
    if asked.max_group == 1:
        raise InputError("max_group: expected 2 heads or more, or 0 to leave that out, got 1")
    whole_number("max_group", asked.max_group, least=0, expected="a whole number of heads")
    for name, none, otherwise in (
        ("first_look", 0, "or 0 for a single look"),
        ("max_clusters", None, "or leave it out"),
    ):
        number = getattr(asked, name)
        if number != none and whole_number(name, number, least=0, expected="a number of clusters") < FEWEST_CLUSTERS:
            fewest = f"{FEWEST_CLUSTERS} clusters or more, since fewer decide nothing"
            raise InputError(f"{name}: expected {fewest}, {otherwise}; got {number}")


@documented
def heads(
    model: Any,
    tasks: Sequence[str | Task] = TASKS,
    options: HeadsOptions | None = None,
    *,
    choose_on: Sequence[Task] = (),
    siblings: Sequence[Any] = (),
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> HeadsReport:
    """Say which heads of `model` track what, with the evidence.

    A task that the model or its tokenizer cannot carry is left out, with a warning and its reason in the provenance, as
    long as another is left.

    Args:
        model: Follows TransformerLens' protocol.
        tasks: Tasks, or names for ``interp.load_task``.
        options: What is asked; or its fields by name: see ``HeadsOptions``.
        choose_on: The same tasks, of other items, on which heads are chosen first: then only of these is anything
            shown, and corrected for (``interp.claims.declared``); not with ``"fdr"``. Empty to test all.
        siblings: Models of other seeds of the same training, judged in the same way on the same examples: which
            verdicts replicate?
        progress: Called with (steps done, steps in all); if it has a method ``about``, with what is being done first;
            a method ``took`` is given the seconds of every stage at the end.
        run: Where the sweeps are kept as they are measured, and at last the report, and found again: a folder of runs;
            or an ``interp.Run``, whose executor measures several tasks, and siblings, at the same time. None to keep
            nothing.
        fields: Fields of the options, by name.

    Returns:
        ``summary()`` has one row per layer, head and task: each kind of evidence with its interval and p, and the
        verdict. Attention is a share of all attention; an effect is in the units of the task's metric, such as logits.
        ``save(folder)`` writes the page, and a notebook shows what was found.

    Raises:
        InputError: No task, one twice, thresholds out of range, one head to ablate together, no task that the model can
            carry, a file of claims with an unknown head, task or key, or with a claim on a task that is left out, a
            sibling with another tokenizer, choosing tasks of other names or with nothing but what is scored, or, with
            several workers, a model that cannot be sent to one.
        TaskError: A named task cannot be loaded, or the tokenizer carries none.

    Examples:
        >>> import interp
        >>> report = interp.heads(interp.load_model(), "agreement", n=40, probes=False, max_group=0)
        >>> sorted(report.tasks["task"])
        ['agreement']
    """
    asked = HeadsOptions.of(options, fields)
    require_sizes(asked)
    given, left_out = carried(tasks, model, n=asked.n, seed=asked.seed)
    require_different("tasks", [each.name for each in given], "tasks")
    declared = None
    if asked.claims is not None:
        declared = _declared(asked, choose_on, siblings)
        declared.require_measured(left_out)
        declared.check([each.name for each in given], (model.cfg.n_layers, model.cfg.n_heads))
    # The tasks are drawn and the file is read: the key has what is in them.
    thresholds: dict[str, Any] = {} if declared is None else dict(declared.thresholds)
    asked = replace(asked, n=None, claims=None, **thresholds)
    if choose_on:
        _check_only_max_t(asked, "choose_on: what is chosen on other items")
        choose_on = apart(given, choose_on)
    check_siblings(model, siblings)
    for each in given:
        if few := without_verdict(each):
            _LOG.warning("task %r: every head will be undecided, with %s", each.name, few)
    models, kept = [model, *siblings], as_run(run)

    def judging() -> HeadsReport:
        judged, unmeasured = judge_models(models, given, choose_on, asked, declared, run=kept, progress=progress)
        about = None
        if declared is not None:
            declared.require_measured(unmeasured)
            about = declared.described(judged[0].frame, _measured_first(judged, declared, kept))
        more = {"declared": about, "chosen_on": [task_provenance(task) for task in choose_on]}
        return _report(models, asked, judged, {**more, "left_out": unmeasured})

    def request() -> dict[str, Any]:
        return {
            "kind": "heads",
            "models": [model_asked(each, model_provenance(each)) for each in models],
            "names": names(models) if len(models) > 1 else [],  # which the table of replication has
            "tasks": [task_asked(each) for each in given],
            "chosen_on": [task_asked(each) for each in choose_on],
            **asked.asked(),
            "claims": [] if declared is None else [declared.file, declared.sha256],
        }

    return with_left_out(answered(kept, request, model_provenance(model), HeadsReport, judging), left_out)


def _declared(asked: HeadsOptions, choose_on: Sequence[Task], siblings: Sequence[Any]) -> Declared:
    """The claims of the file, which go with neither another correction nor chosen heads nor siblings."""
    declared = read_claims(asked.claims)
    _check_only_max_t(asked, "claims: what is declared")
    if choose_on:
        raise InputError(
            "claims: expected no heads chosen on other items beside it (choose_on, --choose), got both; leave one out"
        )
    if siblings:
        raise InputError(
            "claims: expected no siblings beside it (siblings, --sibling), got both; heads of two models have "
            "nothing to do with each other's numbers, so declare claims on each model by itself"
        )
    return declared


def _check_only_max_t(asked: HeadsOptions, what: str) -> None:
    if asked.correction != "max-T":
        raise InputError(f"{what} is corrected by max-T, got correction={asked.correction!r}, too; give one of the two")


def _measured_first(judged: Sequence[Judged], declared: Declared, run: Run | None) -> datetime:
    """When the first of the sweeps that are kept here of the declared tasks began; now, where there is none."""
    now = datetime.now().astimezone()
    if run is None or run.folder is None:
        return now
    tasks, root = {each.task for each in declared.claims}, root_of(run.folder)
    evidence = [each for one in judged for each in one.evidence if each.task.name in tasks]
    sweeps = filter(None, (sweep for each in evidence for sweep in (each.resampled, each.averaged, each.exchange)))
    questions = {str(each.provenance["run"]).partition("-")[0] for each in sweeps}  # whichever answer, old or fresh
    logs = [Log(folder / LOG) for question in questions for folder in root.glob(f"{question}*")]
    return min(filter(None, (log.begun() for log in logs)), default=now)


def _report(
    models: Sequence[Any], asked: HeadsOptions, judged: Sequence[Judged], about: Mapping[str, Any]
) -> HeadsReport:
    first, frames = judged[0], dict(zip(names(models), (each.frame for each in judged), strict=True))
    evidence = first.evidence
    return HeadsReport(
        examples=pd.concat([each.examples() for each in evidence], ignore_index=True),
        cells=_public(first.frame),
        tasks=pd.DataFrame([each.description() for each in evidence]),
        groups=first.groups,
        replication=replication(frames) if len(models) > 1 else pd.DataFrame(columns=list(REPLICATION)),
        attention_maps=attention_maps(models[0], [each.task for each in evidence], first.frame),
        provenance={
            **model_provenance(models[0]),
            **{name: value for name, value in asked.asked().items() if name not in ("n", "claims")},
            **about,
            "siblings": [model_provenance(each) for each in models[1:]],
            "tasks": [dict(each.provenance()) for each in evidence],
            "left_out": {
                **about["left_out"],
                **{f"{each.task.name}, {kind}": why for each in evidence for kind, why in each.left_out.items()},
            },
        },
    )


def _public(frame: pd.DataFrame) -> pd.DataFrame:
    """The evidence in the columns of a report."""
    kinds = ("excess", "effect", "mean_effect", "exchange", "probe_excess", "selectivity")
    p = frame[[f"{each}_p_adjusted" for each in kinds]].copy()
    p.loc[frame["feature"].isna(), ["probe_excess_p_adjusted", "selectivity_p_adjusted"]] = 0.0
    joint = np.maximum(p.max(axis=1, skipna=False), frame["exchange"] > 0)  # which speaks against the answer
    joint = joint.where(frame["undecidable"] == "")
    effective = frame[["effect_n_effective", "mean_effect_n_effective"]].min(axis=1)
    return frame.rename(columns=_PUBLIC).assign(tracks_p_adjusted=joint, n_effective=effective)[list(COLUMNS)]
