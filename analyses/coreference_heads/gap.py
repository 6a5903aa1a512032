"""Does a head find whom an ambiguous pronoun stands for? GAP, by its official measure.

1. A head's answer is the one of the two names that it attends to more from the pronoun: attention to a name is the sum
   over its tokens, attention from the pronoun the mean over its tokens.
2. **F1** over both names of all passages, for masculine and feminine pronouns, and **bias**, the ratio of feminine to
   masculine F1. A passage in which the pronoun stands for neither costs precision.
3. The head is chosen on one file (the development set) and scored on another. **Baselines**: the nearer name and the
   first name, the better of which is chosen there too; and a random other head of the same layer.
4. A causal model can only look back: passages with a name after the pronoun are counted, not scored. So are those whose
   names do not fit into the context with the pronoun. Its numbers are no measure of a model that sees both.
5. A passage is read with as much before the pronoun as fits into the context (a model that looks both ways also reads
   what follows).

Webster et al. (2018), "Mind the GAP", https://aclanthology.org/Q18-1042.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from analyses.coreference_heads.gap_reader import GapItem, read_gap
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.units import ClusterTable
from interp.errors import InputError
from interp.interventions.sweep import Progress
from interp.methods.relations.words import ReadingRow, WordAttention, read_words, with_offsets
from interp.model.devices import documented
from interp.model.positions import looks_back_only
from interp.model.provenance import model_provenance
from interp.residual.collecting import batched
from interp.result import Result
from interp.special_tokens import special_around
from interp.tasks.alignment import NONE, Window, align_words, require_fast, without_special

RULES = ("nearer name", "first name")
_READ = 256
"""Passages that are tokenized together."""


@dataclass(frozen=True)
class Answers:
    """The answers of rules and heads (``answerer``) to a file's passages, beside what is right.

    Attributes:
        says_a: Whether each answers A; else B.
        right_a: Whether A is right, repeated for every answerer; as ``right_b``.
        feminine: Whether the pronoun is.
        pages: Where each passage is from.
        left_out: How many were not scored, by reason.
    """

    says_a: Bool[np.ndarray, "passage answerer"]
    right_a: Bool[np.ndarray, "passage answerer"]
    right_b: Bool[np.ndarray, "passage answerer"]
    feminine: Bool[np.ndarray, " passage"]
    pages: Sequence[str]
    left_out: Counter[str]

    @property
    def decidable(self) -> Bool[np.ndarray, " passage"]:
        """Whether one of the names is right."""
        return self.right_a[:, 0] | self.right_b[:, 0]

    @property
    def hits(self) -> Float[np.ndarray, "passage answerer"]:
        """True positives: 0 or 1."""
        return np.where(self.says_a, self.right_a, self.right_b).astype(float)

    @property
    def named(self) -> Float[np.ndarray, "passage answerer"]:
        """Half of what is answered and what is right: F1 is hits by these."""
        return (1 + self.right_a + self.right_b) / 2


def answers_of(model: Any, path: str | Path, tell: Callable[[], None]) -> Answers:
    """Read a file and let every rule and head answer.

    Args:
        model: Follows TransformerLens' protocol, with a fast tokenizer.
        path: A GAP file.
        tell: Called for every passage.

    Raises:
        InputError: No passage can be scored.
        TaskError: The file cannot be read.
    """
    left_out: Counter[str] = Counter()
    says, items = [], []
    for batch in batched(_rows(model, read_gap(path), left_out, tell)):
        margins = np.zeros((len(batch), model.cfg.n_layers, model.cfg.n_heads))
        read_words(model, batch, _margins_into(batch, margins))
        for row, own in zip(batch, margins, strict=True):
            says.append(np.concatenate([_rules(row.item), own.ravel() > 0]))
            items.append(row.item)
    if not items:
        reasons = ", ".join(f"{count} {why}" for why, count in left_out.items())
        raise InputError(f"{path}: expected passages that the model can read, got none ({reasons})")
    right_a, right_b = (
        np.array([[getattr(item, each).coreferent] for item in items]).repeat(len(says[0]), 1) for each in "ab"
    )
    feminine = np.array([item.gender == "feminine" for item in items])
    return Answers(np.array(says, dtype=bool), right_a, right_b, feminine, [item.url for item in items], left_out)


@dataclass(frozen=True)
class _GapRow(ReadingRow):
    """A passage as a row of tokens, whose units are the two names and the pronoun."""

    item: GapItem
    names: tuple[int, int]


def _rows(model: Any, items: Iterator[GapItem], left_out: Counter[str], tell: Callable[[], None]) -> Iterator[_GapRow]:
    causal = looks_back_only(model)
    tokenizer = require_fast(model.tokenizer)
    around = special_around(tokenizer, both_sides=not causal)
    while some := list(islice(items, _READ)):
        for item, tokens in zip(some, without_special(tokenizer, [each.text for each in some]), strict=True):
            tell()
            found = _row(item, *tokens, around, model.cfg.n_ctx, causal)
            if isinstance(found, str):
                left_out[found] += 1
            else:
                yield found


def _row(
    item: GapItem,
    ids: tuple[int, ...],
    offsets: tuple[tuple[int, int], ...],
    around: tuple[tuple[int, ...], tuple[int, ...]],
    n_ctx: int,
    causal: bool,
) -> _GapRow | str:
    """A passage with as much before the pronoun as fits, or why it cannot be scored."""
    spans = sorted([item.a.span, item.b.span, item.pronoun_span], key=lambda span: span.start)
    pronoun = spans.index(item.pronoun_span)
    if causal and pronoun != 2:
        return "a name after the pronoun"
    last = sum(start < spans[-1].stop for start, _ in offsets)
    room = n_ctx - sum(map(len, around))
    first = max(0, (last if causal or len(ids) > room else len(ids)) - room)
    stop = last if causal else min(len(ids), first + room)
    # A token whose beginning is cut off is none of a name's.
    if first and offsets[first][0] > spans[0].start:
        return "longer than the context"
    tokens = align_words(item.text, spans, ids[first:stop], offsets[first:stop], around)
    units = tokens.unit_of_word
    if (units == NONE).any():
        return "a name or the pronoun has no tokens of its own"
    names = tuple(int(units[spans.index(each.span)]) for each in (item.a, item.b))
    return _GapRow(Window(item.id, (), tokens), (int(units[pronoun]),), item, (names[0], names[1]))


def _margins_into(rows: Sequence[_GapRow], into: np.ndarray) -> Callable[[int, WordAttention], None]:
    def take(layer: int, words: WordAttention) -> None:
        found = words[:, :, 0].double().cpu().numpy()
        for number, row in enumerate(rows):
            a, b = row.names
            into[number, layer] = found[number, :, a] - found[number, :, b]

    return take


def _rules(item: GapItem) -> Bool[np.ndarray, " rule"]:
    """Whether each of ``RULES`` answers A."""
    at = item.pronoun_span.start
    distance = [abs(each.span.start - at) for each in (item.a, item.b)]
    return np.array([distance[0] < distance[1], item.a.span.start < item.b.span.start])


def f1_of(answers: Answers, at: int, chosen: Bool[np.ndarray, " passage"] | None = None) -> float:
    """F1 of one answerer on some passages, or on all; NaN of none."""
    rows = np.ones(len(answers.pages), dtype=bool) if chosen is None else chosen
    named = answers.named[rows, at].sum()
    return float(answers.hits[rows, at].sum() / named) if named else float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class GapResult(Result):
    """How well heads and rules resolve GAP's pronouns.

    Attributes:
        examples: One row per head or rule and passage: ``name``, ``example``, ``page``, ``hit`` (whether its answer is
            right) and ``named`` (half of what is answered and what is right: F1 is hits by these).
        provenance: How the numbers were made.
        cells: What ``summary()`` gives.
        best: Of the chosen head: ``f1`` with its interval ``low``, ``high`` (95 %, pages resampled), ``baseline`` and
            ``f1_baseline``, ``accuracy``, ``accuracy_baseline`` and their difference ``excess`` with ``excess_low``,
            ``excess_high`` and ``p`` (one-sided, pages resampled), ``f1_random_head``, ``n`` and ``n_pages``.
        left_out: Passages that were not scored, by reason.
    """

    cells: pd.DataFrame
    best: Mapping[str, Any]
    left_out: Mapping[str, int]

    shown_by: ClassVar[str] = "analyses.coreference_heads.gap_figure"

    def summary(self) -> pd.DataFrame:
        """One row per head and rule.

        Columns: ``name`` (``L.H`` or the rule's), ``layer``, ``head``, ``f1``, ``f1_masculine``, ``f1_feminine``,
        ``bias``, ``accuracy`` (share of the passages with an antecedent whose answer is right), ``f1_choosing`` (on the
        file that chose), ``chosen``.
        """
        return self.cells


@documented
def gap(
    model: Any, path: str | Path, *, choose_on: str | Path, seed: int = 0, progress: Progress | None = None
) -> GapResult:
    """Score every head on GAP.

    Args:
        model: Follows TransformerLens' protocol, with a fast tokenizer.
        path: The file that is scored, such as ``gap-test.tsv``.
        choose_on: The file that chooses head and baseline, such as ``gap-development.tsv``.
        seed: Of the resampling.
        progress: Called with (passages read, passages to read).

    Raises:
        InputError: The model has no tokenizer, the files are one, or no passage can be scored.
        TaskError: A file cannot be read.
    """
    with_offsets(model, "gap")
    if Path(path).expanduser().resolve() == Path(choose_on).expanduser().resolve():
        raise InputError(
            f"gap: {choose_on} is the file that is scored; expected another to choose head and baseline on"
        )
    counted = [sum(1 for _ in read_gap(each)) for each in (choose_on, path)]
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, sum(counted))

    choosing, scored = (answers_of(model, each, tell) for each in (choose_on, path))
    n_rules = len(RULES)
    before = [f1_of(choosing, at) for at in range(choosing.right_a.shape[1])]
    rule = int(np.argmax(before[:n_rules]))
    head = n_rules + int(np.argmax(before[n_rules:]))
    shape = (model.cfg.n_layers, model.cfg.n_heads)
    frame = _frame(scored, before, head, shape)
    how = {
        **model_provenance(model),
        "attention_dir": "causal" if looks_back_only(model) else "bidirectional",
        "files": [str(choose_on), str(path)],
        "seed": seed,
    }
    best = _best(scored, frame, head, rule, shape, seed)
    return GapResult(_examples(scored, frame["name"]), how, frame, best, dict(scored.left_out))


def _examples(answers: Answers, names: pd.Series) -> pd.DataFrame:
    n_passages, n_names = answers.hits.shape
    passages = {"example": np.arange(n_passages).repeat(n_names), "page": np.repeat(answers.pages, n_names)}
    columns = {"name": np.tile(names, n_passages), **passages}
    return pd.DataFrame({**columns, "hit": answers.hits.ravel() == 1, "named": answers.named.ravel()})


def _frame(answers: Answers, before: Sequence[float], chosen: int, shape: tuple[int, int]) -> pd.DataFrame:
    rows = []
    decidable = answers.decidable
    for at, f1_choosing in enumerate(before):
        is_rule, cell = at < len(RULES), at - len(RULES)
        layer, head = (None, None) if is_rule else divmod(cell, shape[1])
        masculine, feminine = (f1_of(answers, at, answers.feminine == each) for each in (False, True))
        rows.append(
            {
                "name": RULES[at] if is_rule else f"{layer}.{head}",
                "layer": layer,
                "head": head,
                "f1": f1_of(answers, at),
                "f1_masculine": masculine,
                "f1_feminine": feminine,
                "bias": feminine / masculine if masculine else float("nan"),
                "accuracy": float(answers.hits[decidable, at].mean()) if decidable.any() else float("nan"),
                "f1_choosing": f1_choosing,
                "chosen": at == chosen,
            }
        )
    return pd.DataFrame(rows).astype({"layer": "Int64", "head": "Int64"})


def _best(
    answers: Answers, frame: pd.DataFrame, head: int, rule: int, shape: tuple[int, int], seed: int
) -> dict[str, Any]:
    pages = pd.Index(answers.pages)
    page = pages.factorize()[0]
    n_pages = page.max() + 1

    def summed(values: np.ndarray) -> Float[np.ndarray, "page cell"]:
        found = np.zeros((n_pages, 1))
        np.add.at(found, (page, 0), values)
        return found

    ones, cells = summed(np.ones(len(page))), pd.Index(["f1"])
    hits = ClusterTable(summed(answers.hits[:, head]), ones, cells)
    interval = cluster_bootstrap(hits, per=ClusterTable(summed(answers.named[:, head]), ones, cells), seed=seed)
    known = answers.decidable
    gained = np.where(known, answers.hits[:, head] - answers.hits[:, rule], 0.0)
    better = ClusterTable(summed(gained), summed(known.astype(float)), cells)
    excess = cluster_bootstrap(better, seed=seed)
    (test,) = claim([Measured(better, counted=True)], alternative="greater", seed=seed)
    layer = (head - len(RULES)) // shape[1]
    others = frame[(frame["layer"] == layer) & ~frame["chosen"]]
    return {
        "name": frame.loc[head, "name"],
        "f1": float(interval.estimate[0]),
        "low": float(interval.low[0]),
        "high": float(interval.high[0]),
        "f1_masculine": float(frame.loc[head, "f1_masculine"]),
        "f1_feminine": float(frame.loc[head, "f1_feminine"]),
        "bias": float(frame.loc[head, "bias"]),
        "baseline": RULES[rule],
        "f1_baseline": float(frame.loc[rule, "f1"]),
        "accuracy": float(frame.loc[head, "accuracy"]),
        "accuracy_baseline": float(frame.loc[rule, "accuracy"]),
        "excess": float(excess.estimate[0]),
        "excess_low": float(excess.low[0]),
        "excess_high": float(excess.high[0]),
        "p": float(test.p[0]),
        "f1_random_head": float(others["f1"].mean()) if len(others) else float("nan"),
        "n": len(page),
        "n_pages": int(n_pages),
    }
