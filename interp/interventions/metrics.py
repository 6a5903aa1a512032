"""How well does the model do on an example? One number for each, read off the last logits.

- **Logit difference**: the right minus the wrong answer's logit at the prompt's last position. Of sets ``R`` and ``W``
  of answers ``log sum_R exp(logit) - log sum_W exp(logit)``, which is ``log P(R) - log P(W)``.
- **Probability difference**: ``P(R) - P(W)``, summed over the right and over the wrong answers (Hanna et al. 2023,
  greater-than). It has the same sign.
- **Best logit difference**: ``max_R logit - max_W logit``: above 0 where a right answer is the most probable of
  all that are named, as in multiple choice.
- **Sentence log-probability difference**: log-probability in nats of the right minus the wrong
  continuation, each summed over its tokens. What the two sentences share before they differ
  cancels, so this is BLiMP's full-sentence comparison (Warstadt et al. 2020). Of sets, as above, the logarithms of the
  summed probabilities.
- **Probability**: ``P(R)``, of the right answers at the prompt's last position.
- **KL divergence**: ``sum p_base (log p_base - log p)`` in nats at the prompt's last position: 0 for
  the base run, and larger the more an intervention changes what the model predicts, whatever the answers.
- **Accuracy**: 1 where the task's own metric is above 0.
- **A function of your own**: ``(logits, example) -> number``, of the logits ``[d_vocab]`` at the prompt's last position
  and the ``EncodedExample`` (``MetricFunction``). It has no margin.

Every metric but the last two also has a *margin*, above 0 where the example is answered right.
An example has one row, or one for each right and each wrong sentence, whose signed scores add up: ``Measured`` holds
the scores by cell, draw and row, and adds them up.
"""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, cast, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from interp.errors import InputError, shown, suggest
from interp.interventions.rows import Batch, Row
from interp.model.devices import sent
from interp.options import MetricName
from interp.tasks.task import EncodedExample

COLUMNS_ALONE = ("logit_difference", "best_logit_difference")
"""The metrics that read the answers' logits and no others."""
Logits = Float[Tensor, "batch d_vocab"]
AnswerIds = Int[Tensor, "batch answer"]
ReadLogits = Float[Tensor, "batch answer_pos d_vocab"]
Squares = Float[np.ndarray, " row"]
Fired = Int[np.ndarray, " row"]


def _functions(name: str, function: Any, found: dict[str, Any]) -> dict[str, Any]:
    """By its name, a function, and those of its module that it uses."""
    found[name] = function = inspect.unwrap(function)
    for used in sorted((_names(function.__code__) & function.__globals__.keys()) - found.keys()):
        other = function.__globals__[used]
        if inspect.isfunction(other) and other.__module__ == function.__module__:
            _functions(used, other, found)
    return found


def _source(function: Any) -> str:
    """A function's source, or its code where there is none, and the numbers and texts of its module that it uses."""
    code, known = function.__code__, function.__globals__
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr((code.co_code, code.co_names, [each for each in code.co_consts if not inspect.iscode(each)]))
    used = (each for each in sorted(_names(code) & known.keys()) if isinstance(known[each], str | int | float))
    return "\n".join([source, *(f"{each} = {known[each]!r}" for each in used)])


def _names(code: CodeType) -> set[str]:
    """The names that a function's code looks up, and those of functions within it."""
    inner = (_names(each) for each in code.co_consts if inspect.iscode(each))
    return {*code.co_names}.union(*inner)


@dataclass(frozen=True)
class MetricFunction:
    """A metric of the user's own: ``(logits, example) -> number``."""

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not inspect.isfunction(self.function):
            raise InputError(
                f"metric: expected a name, or a function (logits, example) -> number, got {shown(self.function)}; "
                "write one with def, whose source says what it is"
            )

    @property
    def name(self) -> str:
        """The function's module and qualified name."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def source_hash(self) -> str:
        """SHA-256 of its source and, of its module, of the functions, numbers and texts that it uses.

        Where there is no source, of the code. What else it uses, such as lists or other modules, is not in it.
        """
        sources = map(_source, self._functions().values())
        return hashlib.sha256("\n".join(sources).encode()).hexdigest()

    def _functions(self) -> dict[str, Any]:
        return _functions(self.function.__name__, self.function, {})

    def asked(self) -> str:
        """What a kept run is found by. Refuses what the source does not say: variables of a function around it."""
        for name, used in self._functions().items():
            if names := used.__code__.co_freevars:
                own = self.name if name == self.function.__name__ else f"{self.name}'s {name}"
                raise InputError(
                    f"run: metric {own} takes {', '.join(names)} from the function around it, which no hash of its "
                    "source can tell; write it at the top of a module, or measure without run"
                )
        if self.function.__name__ == "<lambda>":
            raise InputError(
                f"run: metric {self.name} has no name, and its source is the whole line, which may hold several; "
                "write it with def, or measure without run"
            )
        defaults = (self.function.__defaults__, self.function.__kwdefaults__)
        return f"{self.name} {self.source_hash}{'' if defaults == (None, None) else f' {defaults!r}'}"

    def score(self, last: Logits, examples: Sequence[EncodedExample]) -> Float[Tensor, " batch"]:
        """Its number for each row."""
        found = []
        for logits, example in zip(last, examples, strict=True):
            value = self.function(logits, example)
            try:
                found.append(float(value))
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"metric {self.name}: expected a number of {example.example.prompt!r:.80}, got {shown(value)}"
                ) from error
        return torch.tensor(found, dtype=torch.float64, device=last.device)


AnyMetric = MetricName | MetricFunction


def as_metric(metric: str | Callable[[Any, Any], Any]) -> AnyMetric:
    """The metric of this name, or of this function; refuses an unknown name with the nearest ones."""
    if not isinstance(metric, str):
        return metric if isinstance(metric, MetricFunction) else MetricFunction(metric)
    if metric not in get_args(MetricName):
        raise InputError(f"no metric is called {metric!r}; {suggest(metric, get_args(MetricName))}")
    return cast(MetricName, metric)


def name_of(metric: AnyMetric) -> str:
    """What results call a metric."""
    return metric.name if isinstance(metric, MetricFunction) else metric


@dataclass(frozen=True)
class Answers:
    """What is read of the logits of some rows of a batch."""

    positions: range  # the token positions whose logits are read
    # the right answers' tokens; -1 behind the last, and everywhere where some answer of the row has several tokens
    right: Int[Tensor, "batch right"]
    wrong: Int[Tensor, "batch wrong"]  # likewise the wrong answers'
    ids: Int[Tensor, " token"]  # all rows' right and wrong ones, in order
    targets: Int[Tensor, "batch answer_pos"]  # the tokens that `positions` predict, where a continuation is scored
    scored: Bool[Tensor, "batch answer_pos"]  # which of them belong to the row's continuation
    examples: tuple[EncodedExample, ...] = ()  # each row's, where the metric is a function

    @classmethod
    def of(cls, metric: AnyMetric, batch: Batch) -> "Answers":
        """What `metric` reads of `batch`: the last position, or those that predict the longest continuation."""
        device, last = batch.tokens.device, batch.deciding
        known = [row.encoded if row.encoded.single_tokens else None for row in batch.rows]
        right, wrong = (
            _padded([[token for (token,) in getattr(each, name)] if each else [] for each in known])
            for name in ("rights", "wrongs")
        )
        ids = np.unique(np.concatenate([right.ravel(), wrong.ravel()]))
        n_scored = np.array([len(row.continuation) for row in batch.rows])
        longest = int(n_scored.max()) if metric == "sentence_log_probability" else 0
        positions = range(last - longest, last) if longest else range(last, last + 1)
        return cls(
            positions,
            sent(right, device),
            sent(wrong, device),
            sent(ids[ids >= 0], device),
            batch.tokens[:, last + 1 - longest : last + 1],
            sent(np.arange(longest, 0, -1) <= n_scored[:, None], device),
            tuple(row.encoded for row in batch.rows) if isinstance(metric, MetricFunction) else (),
        )

    def take(self, index: Int[Tensor, " row"]) -> "Answers":
        """Those of some rows, in this order and as often as they are named."""
        examples = tuple(self.examples[each] for each in index.tolist()) if self.examples else ()
        found = (self.right[index], self.wrong[index], self.ids, self.targets[index], self.scored[index])
        return Answers(self.positions, *found, examples)


def _padded(rows: Sequence[Sequence[int]]) -> Int[np.ndarray, "row longest"]:
    """The rows, with -1 behind what is shorter than the longest; one column at least."""
    longest = max(1, *map(len, rows))
    return np.array([[*row, *[-1] * (longest - len(row))] for row in rows])


@dataclass(frozen=True)
class Scores:
    """What each row adds to its example, before its sign: to the metric, and to the margin."""

    value: Float[Tensor, " batch"]
    margin: Float[Tensor, " batch"]


def score(
    metric: AnyMetric, logits: ReadLogits, answers: Answers, base: Float[Tensor, "batch d_vocab"] | None = None
) -> Scores:
    """Score the logits at the answers' positions, in at least 32-bit floats, whatever the model's.

    `base` has, for a KL divergence, the base run's log-probabilities at the last position.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if metric == "sentence_log_probability":
        nats = logits.log_softmax(-1).gather(2, answers.targets[..., None]).squeeze(2)
        total = (nats * answers.scored).sum(1)
        return Scores(total, total)
    last = logits[:, -1]
    if isinstance(metric, MetricFunction):
        value = metric.score(last, answers.examples)
        return Scores(value, torch.full_like(value, torch.nan))
    if metric == "best_logit_difference":
        best = _best(last, answers.right) - _best(last, answers.wrong)
        return Scores(best, best)
    margin = _together(last, answers.right) - _together(last, answers.wrong)
    if metric == "logit_difference":
        return Scores(margin, margin)
    log_p = last.log_softmax(-1)
    if metric in ("probability", "probability_difference"):
        right, wrong = (_together(log_p, each).exp() for each in (answers.right, answers.wrong))
        return Scores(right if metric == "probability" else right - wrong, margin)
    if base is None:
        raise InputError("a KL divergence needs the base run's log-probabilities, got none")
    return Scores((base.exp() * (base - log_p)).sum(-1), margin)


def _of_answers(last: Logits, ids: AnswerIds) -> Float[Tensor, "batch answer"]:
    """The logits of a set of answers; -inf in the place of -1, which is no answer."""
    return last.gather(1, ids.clamp(min=0)).masked_fill(ids < 0, -torch.inf)


def _together(last: Logits, ids: AnswerIds) -> Float[Tensor, " batch"]:
    """Logarithm of the summed exponentials: of one answer its own number, of none -inf."""
    return _of_answers(last, ids).logsumexp(1)


def _best(last: Logits, ids: AnswerIds) -> Float[Tensor, " batch"]:
    return _of_answers(last, ids).amax(1)


@dataclass(frozen=True)
class RowScores:
    """Scores of the rows of a batch, with the squared change and the number of interventions that acted."""

    value: Float[np.ndarray, " row"]
    margin: Float[np.ndarray, " row"]
    squares: Squares
    fired: Fired

    @classmethod
    def of(cls, scores: Scores, squares: Squares | None = None, fired: Fired | None = None) -> "RowScores":
        """Of some scores; without the rest, of a run in which nothing is changed."""
        nothing = np.zeros(len(scores.value))
        value, margin = torch.stack([scores.value, scores.margin]).double().cpu()
        return cls(
            as_numbers(value),
            margin.numpy(),
            nothing if squares is None else squares,
            nothing.astype(np.int64) if fired is None else fired,
        )

    def take(self, rows: slice) -> "RowScores":
        """Those of some rows."""
        return RowScores(self.value[rows], self.margin[rows], self.squares[rows], self.fired[rows])


UNCHANGED, SOURCE = -1, -2
"""In a cell's place: the run without interventions; that which is patched from."""


@dataclass(frozen=True)
class CellScores:
    """Scores of one cell and draw on the rows of a batch; within a sweep, on its rows from `first_row` on."""

    cell: int
    draw: int
    scores: RowScores
    first_row: int = 0


class Measured:
    """Scores by cell, draw and row, filled in any order; ``value`` and ``margin`` are NaN until they are measured.

    Behind the cells come the source, which has a draw where something is ``patched``, and the unchanged run.
    """

    def __init__(self, rows: Sequence[Row], draws: Sequence[int], *, patched: bool = False):
        """Room for cells of `draws` draws each."""
        self.draws, self.patched = np.array([*draws, int(patched), 1]), patched
        shape = (len(self.draws), int(self.draws.max()), len(rows))
        self.value, self.margin = np.full(shape, np.nan), np.full(shape, np.nan)
        self.squares, self.fired = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        self._example = np.array([row.example for row in rows])
        # The rows of one example and sign are the sentences of a set of answers.
        sets, self._set = np.unique([(row.example, row.sign) for row in rows], axis=0, return_inverse=True)
        self._example_of, self._sign_of = sets.T

    def put(self, found: CellScores) -> None:
        """Write down the scores of some rows, from the first on."""
        rows = slice(found.first_row, found.first_row + len(found.scores.value))
        for name in ("value", "margin", "squares", "fired"):
            getattr(self, name)[found.cell, found.draw, rows] = getattr(found.scores, name)

    @property
    def complete(self) -> Bool[np.ndarray, " row"]:
        """Which rows are measured in every cell and draw."""
        return (np.isfinite(self.value) | ~self._wanted[..., None]).all(axis=(0, 1))

    @property
    def _wanted(self) -> Bool[np.ndarray, "cell draw"]:
        return np.arange(self.value.shape[1]) < self.draws[:, None]

    def by_example(self, metric: AnyMetric) -> dict[str, Num[np.ndarray, "cell example"]]:
        """What was measured on each example; NaN where nothing was.

        ``value``: the metric, averaged over the draws. ``correct``: 1 where the margin is above 0; the share of draws
        where it is, with several. ``fired``: how often an intervention acted on the example, over its rows and the
        draws. ``change_norm``: ``||a' - a||`` of the activation over the example's rows, averaged over the draws.
        """
        value, margin = (self._signed(each) for each in (self.value, self.margin))
        correct = np.where(np.isnan(margin), np.nan, margin > 0)
        means = {"value": correct if metric == "accuracy" else value, "correct": correct}
        means["change_norm"] = np.sqrt(self._sums(self.squares))
        wanted, n = self._wanted[..., None], np.maximum(self.draws, 1)[:, None]
        found = {name: np.where(wanted, each, 0.0).sum(axis=1) / n for name, each in means.items()}
        return {**found, "fired": self._sums(self.fired).sum(axis=1)}

    def _signed(self, rows: Num[np.ndarray, "cell draw row"]) -> Num[np.ndarray, "cell draw example"]:
        """Over the sets of each example: right minus wrong. Probabilities of a set of sentences add up."""
        together, moved = np.full((len(self._sign_of), *rows.shape[:2]), -np.inf), np.moveaxis(rows, 2, 0)
        if len(together) == len(moved):
            together[self._set] = moved
        else:
            with np.errstate(invalid="ignore"):  # what is not measured is NaN
                np.logaddexp.at(together, self._set, moved)
        total = np.zeros((1 + int(self._example.max()), *rows.shape[:2]))
        np.add.at(total, self._example_of, self._sign_of[:, None, None] * together)
        return np.moveaxis(total, 0, 2)

    def _sums(self, rows: Num[np.ndarray, "cell draw row"]) -> Num[np.ndarray, "cell draw example"]:
        """Over the rows of each example."""
        total = np.zeros((1 + int(self._example.max()), *rows.shape[:2]), dtype=rows.dtype)
        np.add.at(total, self._example, np.moveaxis(rows, 2, 0))
        return np.moveaxis(total, 0, 2)


def as_numbers(values: Tensor) -> Float[np.ndarray, " row"]:
    """Scores as 64-bit floats.

    Refuses one that is not finite: in the statistics NaN means "not measured", which a failed measurement is not.
    """
    numbers: np.ndarray = values.double().cpu().numpy()
    failed = int((~np.isfinite(numbers)).sum())
    if failed:
        raise InputError(
            f"the metric is NaN or infinite on {failed} of {len(numbers)} prompts or sentences: the weights, or a "
            "hook's result, are not finite numbers, or overflow in the model's dtype",
            "give dtype='float32' where that is less (of interp.load_model)",
            "take weights that are finite",
        )
    return numbers
