"""Which task is meant, whether the model can be asked it, and which of several can be measured.

A causal model can always be asked what comes next. Each position of an encoder (BERT) sees the words on both sides, so
that it has no next token to predict: it can be asked where the prompts of a task of the user's own end in its mask
token, which it was trained to fill in.

Of several tasks, those that this model or its tokenizer cannot carry are left out, with the reason. What is wrong with
the question is an error: a name that no task has, a file that is not there.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from reprlib import repr as short
from typing import Any, TypeVar, get_args

from interp.arguments import as_list
from interp.claims.bootstrap import few_clusters, units_for_clusters
from interp.errors import InputError, InterpError, NotCarriedError, shown
from interp.model.loading.bridge import require_model, why_no_head
from interp.model.positions import looks_back_only
from interp.options import AskedMetric
from interp.tasks.alignment import tokenize
from interp.tasks.task import EncodedExample, Metric, Task, Unit


def require_prediction(model: Any, task: Task | str, metric: AskedMetric | None = None) -> None:
    """Refuse a model without a head that predicts tokens, and an encoder whose prompts do not end in its mask token.

    A model without a tokenizer has no mask token that is known: what its prompts ask for is then the user's to say.
    """
    why = why_no_head(model)
    if why is not None:
        raise InputError(
            f"model: its checkpoint has no head that predicts tokens ({why}), so it has no logits",
            "save one of a class with a head (AutoModelForCausalLM, BertForMaskedLM) that was trained",
            "use interp.attend, which reads none",
        )
    tokenizer = getattr(model, "tokenizer", None)
    if looks_back_only(model) or (tokenizer is None and isinstance(task, Task)):
        return
    name = task if isinstance(task, str) else task.name
    mask, token = (getattr(tokenizer, key, None) for key in ("mask_token_id", "mask_token"))
    if isinstance(task, str) or mask is None or any(each.prompt[-1] != mask for each in task.examples):
        own = [] if mask is None else [f"measure a Task of your own whose prompts end in {token} (interp.encode_task)"]
        raise InputError(
            f"task {name!r} asks for the next token, which an encoder does not predict: it reads both sides of a word",
            "score its attention with interp.attend",
            *own,
        )
    asked = task.metric if metric in (None, "accuracy") else metric
    if asked == "sentence_log_probability":
        raise InputError(
            f"sentence_log_probability: task {name!r} would score words that the encoder has read, which is not "
            "a prediction",
            "give metric='logit_difference'",
        )


def as_task(
    task: Task | str,
    model: Any,
    *,
    n: int | None,
    seed: int,
    metric: AskedMetric | None = None,
    **how: Any,
) -> Task:
    """The task, loaded where it is a name; `metric` says what answers a named task needs, `how` is for ``load_task``.

    Raises:
        InputError: No model, one without a tokenizer to load a named task with, or one whose tokenizer makes other
            tokens of a given task's text; or `n` of a task that has its units.
        TaskError: The name is unknown, or the task cannot be used.
    """
    require_model(model)
    tokenizer = getattr(model, "tokenizer", None)
    if isinstance(task, Task):
        if n is not None:
            raise InputError(
                f"n: expected None, since task {task.name!r} has its {len(task.units)} units and nothing is drawn; got "
                f"{n!r}: draw them when you make it, with interp.load_task(name, n=...), or give the task's name"
            )
        _require_tokens_of(tokenizer, task)
        return _as_read_by(model, task)
    if not isinstance(task, str):
        raise InputError(f"task: expected a Task or the name of one, got {shown(task)}; see interp.list_tasks()")
    if tokenizer is None:
        raise InputError(
            f"task {task!r} is a name, but the model has no tokenizer to encode it with; "
            "give the model its tokenizer, or encode the task yourself and pass the Task"
        )
    from interp.tasks.catalogue import load_task

    how |= {
        "tokenizer": tokenizer,
        "n_ctx": model.cfg.n_ctx,
        "metric": metric if metric in get_args(Metric) else None,
    }
    return _as_read_by(model, load_task(task, n=n, seed=seed, **how))


def _as_read_by(model: Any, task: Task) -> Task:
    """The task as `model` reads it: one that looks back only continues its prompts, which so have no end."""
    if not looks_back_only(model) or not any(each.after for each in task.examples):
        return task
    units, *references = (tuple(map(_without_end, units)) for units in (task.units, *task.references))
    return replace(task, units=units, references=tuple(references))


def _without_end(unit: Unit) -> Unit:
    """The unit without special tokens behind its examples."""

    def open_(encoded: EncodedExample) -> EncodedExample:
        other = encoded.word_counterfactual
        return replace(encoded, after=(), word_counterfactual=other and open_(other))

    return replace(unit, item=open_(unit.item), counterfactual=unit.counterfactual and open_(unit.counterfactual))


def _require_tokens_of(tokenizer: Any, task: Task) -> None:
    """Refuse a task whose ids another tokenizer made: they fit, and mean other words. A slow one cannot be asked."""
    if not task.from_text or not getattr(tokenizer, "is_fast", False):
        return
    texts = [each.example.prompt for each in task.examples]
    chat = any(each.example.chat for each in task.examples)
    for given, expected in zip(task.examples, tokenize(tokenizer, texts, chat=chat), strict=True):
        if given.prompt != expected.ids or given.after not in ((), expected.after):
            raise InputError(
                f"task {task.name!r} was encoded by another tokenizer than the model's: for {short(expected.text)} "
                f"expected tokens {short(list(expected.ids + expected.after))}, got "
                f"{short(list(given.prompt + given.after))}; encode it with tokenizer=model.tokenizer"
            )


def as_predicted(task: Task | str, model: Any, *, metric: AskedMetric | None = None, **how: Any) -> Task:
    """``as_task``, for who measures by `metric` what the model predicts."""
    if isinstance(task, str) and hasattr(model, "cfg"):  # before it is encoded, which may fail for other reasons
        require_prediction(model, task, metric)
    given = as_task(task, model, metric=metric, **how)
    require_prediction(model, given, metric)
    return given


def require_single_answers(task: Task, what: str) -> None:
    """Refuse sets of answers, for what reads one direction of the unembedding."""
    for each in task.examples:
        if each.also_right or each.also_wrong:
            raise InputError(
                f"{what}: expected one right and one wrong answer, got {len(each.rights)} and {len(each.wrongs)} for "
                f"{each.example.prompt!r:.80}: the logarithm of their summed probabilities is no direction of the "
                "stream, so that no part of it writes a share of its own; give a task with single answers"
            )


def several_predicted(tasks: Sequence[Task | str] | Task | str, model: Any, *, n: int | None, seed: int) -> list[Task]:
    """``as_predicted`` of each, where `n` is for those that are given by name, if any are."""
    return [as_predicted(each, model, n=own, seed=seed) for each, own in _with_n(tasks, n)]


def _with_n(tasks: Sequence[Task | str] | Task | str, n: int | None) -> list[tuple[Task | str, int | None]]:
    """The tasks as a list, where one was given, too, each with the units to draw of it."""
    given = [tasks] if isinstance(tasks, str | Task) else as_list(tasks)
    if given is None:
        raise InputError(f"tasks: expected tasks, or names of some, got {shown(tasks)}; see interp.list_tasks()")
    of_tasks = None if any(isinstance(each, str) for each in given) else n
    return [(each, of_tasks if isinstance(each, Task) else n) for each in given]


def as_pairs(task: Task | str, model: Any, *, n: int | None, seed: int, metric: AskedMetric | None = None) -> Task:
    """``as_predicted``, without the units that have no counterfactual; a warning and ``dropped`` count these."""
    given = as_predicted(task, model, n=n, seed=seed, metric=metric)
    units = tuple(unit for unit in given.units if unit.counterfactual is not None)
    without = len(given.units) - len(units)
    if not without:
        return given
    if not units:
        raise InputError(
            f"patching needs a clean and a corrupted prompt, but none of the {without} units of {given.name!r} has a "
            "counterfactual; ablate instead"
        )
    warnings.warn(
        f"{given.name}: {without} of {len(given.units)} units have no counterfactual to patch from and are left out",
        RuntimeWarning,
        stacklevel=3,
    )
    return replace(given, units=units, dropped={**given.dropped, "no counterfactual": without})


def apart(tasks: Sequence[Task], choosing: Sequence[Task]) -> list[Task]:
    """The choosing tasks without the units whose cluster or prompt is scored, too."""
    if isinstance(choosing, Task | str) or not all(isinstance(each, Task) for each in choosing):
        raise InputError(
            f"choose_on: expected a list of tasks of other items, got {choosing!r:.60}; make them with "
            "interp.load_task(name, split='select', ...)"
        )
    names, others = ([task.name for task in each] for each in (tasks, choosing))
    if names != others:
        raise InputError(
            f"choose_on: expected the same tasks, {', '.join(names)}, in this order; got {', '.join(others)}"
        )
    found = []
    for task, other in zip(tasks, choosing, strict=True):
        clusters, prompts = {unit.cluster for unit in task.units}, {each.prompt for each in task.examples}
        units = tuple(
            unit
            for unit in other.units
            if unit.cluster not in clusters and not prompts & {each.prompt for each in unit.examples}
        )
        if not units:
            raise InputError(
                f"choose_on: every unit of {task.name} has a cluster or a prompt that is scored, too, and would choose "
                "what flatters it; give other items, such as those of load_task(..., split='select')"
            )
        dropped = {**other.dropped, "scored, too": len(other.units) - len(units)}
        found.append(replace(other, units=units, dropped=dropped))
    return found


AnyReport = TypeVar("AnyReport")


def carried(
    tasks: Sequence[Task | str] | Task | str, model: Any, *, n: int | None, seed: int, **how: Any
) -> tuple[list[Task], dict[str, str]]:
    """The tasks that the model's tokenizer can carry, and by its name why each of the others is left out.

    A warning tells of those. `n` is for tasks that are given by name, if any is; `how` is for ``as_task``.

    Raises:
        InputError: As ``as_predicted``; or there is no list.
        TaskError: No task is left; or as ``as_task``.
    """
    found, failed = list[Task](), dict[str, InterpError]()
    for each, own in _with_n(tasks, n):
        try:
            found.append(as_predicted(each, model, n=own, seed=seed, **how))
        except NotCarriedError as error:
            failed[each if isinstance(each, str) else each.name] = error
    if failed and not found:
        raise none_left(failed)
    return found, told(failed)


def without_verdict(task: Task) -> str:
    """Why no verdict can come of so few clusters, with the number of units that would do; empty where one can."""
    n_clusters, n_units = len({unit.cluster for unit in task.units}), len(task.units)
    few, enough = few_clusters(n_clusters, n_units), units_for_clusters(n_clusters, n_units)
    return few and f"{few}; {'no n' if enough is None else f'about n={enough}'} would do"


def told(failed: Mapping[str, InterpError]) -> dict[str, str]:
    """Why each task is left out, by its name; a warning says so, too."""
    reasons = {name: _reason(name, error) for name, error in failed.items()}
    for name, reason in reasons.items():
        warnings.warn(f"{name} is left out: {reason}", RuntimeWarning, stacklevel=3)
    return reasons


def none_left(failed: Mapping[str, InterpError]) -> InterpError:
    """What to raise where no task is left: the only error, or one with the reason of each."""
    first, *others = failed.values()
    if all(str(each) == str(first) for each in others):
        return first
    ways = [way for way in first.ways if all(way in each.ways for each in others)]
    reasons = "; ".join(f"{name}: {_reason(name, error)}" for name, error in failed.items())
    return type(first)(f"none of the {len(failed)} tasks can be measured: {reasons}", *ways)


def _reason(name: str, error: InterpError) -> str:
    return error.fault.removeprefix(f"{name}: ")


def with_left_out(report: AnyReport, reasons: Mapping[str, str]) -> AnyReport:
    """The report, whose provenance says of these tasks, too, why they were left out."""
    if not reasons:
        return report
    made: Any = report
    left_out = {**reasons, **made.provenance["left_out"]}
    return replace(made, provenance={**made.provenance, "left_out": left_out})


def those_in(report: Any, tasks: Sequence[Task]) -> list[Task]:
    """The tasks without those that a report says were left out of it; an error where none is in it."""
    left_out = report.provenance.get("left_out", {})
    found = [task for task in tasks if task.name not in left_out]
    if tasks and not found:
        reasons = "; ".join(f"{task.name}: {left_out[task.name]}" for task in tasks)
        raise InputError(f"tasks: expected one that is in the report, got those that were left out of it ({reasons})")
    return found
