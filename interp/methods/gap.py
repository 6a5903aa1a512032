"""Does a head find whom an ambiguous pronoun stands for? GAP, by its official measure.

1. A head's answer is the one of the two names that it attends to more from the pronoun: attention to a name is the sum
   over its tokens, attention from the pronoun the mean over its tokens.
2. **F1** over both names of all passages, for masculine and feminine pronouns, and **bias**, the ratio of feminine to
   masculine F1. A passage in which the pronoun stands for neither costs precision.
3. The head is chosen on one file (the development set) and scored on another. **Baselines**: the nearer name and the
   first name, the better of which is chosen there too; and a random other head of the same layer.
4. A causal model can only look back: passages with a name after the pronoun are counted, not scored. So are those whose
   names do not fit into the context with the pronoun. Its numbers are no measure of a model that sees both.

Webster et al. (2018), "Mind the GAP", https://aclanthology.org/Q18-1042.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.units import ClusterTable
from interp.errors import InputError
from interp.interventions.provenance import model_provenance
from interp.interventions.sweep import Progress
from interp.methods.gap_answers import RULES, Answers, answers_of, f1_of
from interp.methods.in_one_line import InOneLine
from interp.methods.relations.words import with_offsets
from interp.model.devices import documented
from interp.model.positions import looks_back_only
from interp.tasks.readers.gap import read_gap


@dataclass(frozen=True, repr=False)
class GapResult(InOneLine):
    """How well heads and rules resolve GAP's pronouns.

    Attributes:
        frame: One row per head and rule: ``name`` (``L.H`` or the rule's), ``layer``, ``head``, ``f1``,
            ``f1_masculine``, ``f1_feminine``, ``bias``, ``accuracy`` (share of the passages with an antecedent whose
            answer is right), ``f1_choosing`` (on the file that chose), ``chosen``.
        best: Of the chosen head: ``f1`` with its interval ``low``, ``high`` (95 %, pages resampled), ``baseline`` and
            ``f1_baseline``, ``accuracy``, ``accuracy_baseline`` and their difference ``excess`` with ``excess_low``,
            ``excess_high`` and ``p`` (one-sided, pages resampled), ``f1_random_head``, ``n`` and ``n_pages``.
        left_out: Passages that were not scored, by reason.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    best: Mapping[str, Any]
    left_out: Mapping[str, int]
    provenance: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.gap import gap_glance

        return as_html(gap_glance(self))


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
    return GapResult(frame, _best(scored, frame, head, rule, shape, seed), dict(scored.left_out), how)


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
