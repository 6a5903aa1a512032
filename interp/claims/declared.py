"""Which heads may be shown: those that were declared before anything was measured, or chosen on other items.

Fewer hypotheses need less correction. **Chosen**: the evidence is gathered on choosing tasks first, the same tasks of
other items. For each kind of evidence, a head and task is chosen if its raw p is at most alpha there; the exchange of
the related word is tested if both attention and effect are chosen. On the items in question only chosen rows can be
shown, and only these are corrected for. Absence is tested of every head; heads are ablated together as they always are.

**Declared**: a file says which head is expected to get which verdict, and here is what became of each claim.

.. code-block:: toml

    min_effect = 0.1     # optional, as are min_attention, min_probe and alpha: as of interp.heads

    [[claim]]
    head = "2.2"
    task = "agreement"
    verdict = "tracks"

Only declared rows can be shown, and they are corrected for among themselves. Absence is tested of the declared heads,
on every task. So ``general`` has to be declared on all tasks, and ``redundant`` of all heads of the set. A claim is
*confirmed* where the head gets its verdict, or one that says more; *open* where it could still get it if everything
undecided or not testable were known; *refuted* where it could not.
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.arguments import check_share
from interp.claims.rules import ORDER, States, Verdict, completions, judge
from interp.claims.verdicts import states_of
from interp.errors import InputError, among, suggest

CELL = ["task", "layer", "head"]
Chosen = Mapping[str, pd.Series]
"""By kind of evidence (``effect``, ``excess``, ``probe``, ``exchange``), which cells (task, layer, head) may be shown;
under ``absent``, which may be absent. A key that is missing stands for all cells."""
Outcome = Literal["confirmed", "refuted", "open"]
THRESHOLDS = ("alpha", "min_attention", "min_effect", "min_probe")
EXPECTED: tuple[Verdict, ...] = tuple(each for each in ORDER if each != "undecided")
IMPLIED: Mapping[str, tuple[str, ...]] = {
    "attends and causal": ("tracks",),
    "causal": ("tracks", "attends and causal", "causal, by another route", "general"),
    "needed": ("tracks", "attends and causal", "causal, by another route", "causal", "general"),
}
"""By expected verdict, the verdicts that say more."""
_EXAMPLE = {"head": "2.1", "task": "agreement", "verdict": "tracks"}
_KEYS = ", ".join(_EXAMPLE)


@dataclass(frozen=True)
class DeclaredClaim:
    """The `verdict` that a head, given by layer and index, is expected to get on a task."""

    head: tuple[int, int]
    task: str
    verdict: str

    @property
    def name(self) -> str:
        """Of the head, such as ``2.1``."""
        return f"{self.head[0]}.{self.head[1]}"


@dataclass(frozen=True)
class Declared:
    """A file of claims."""

    claims: tuple[DeclaredClaim, ...]  # in the file's order
    thresholds: Mapping[str, float]  # minimums and alpha that the file sets
    file: str  # its name
    sha256: str  # of its bytes
    written: str  # when it was last written, in UTC

    def require_measured(self, left_out: Mapping[str, str]) -> None:
        """Refuse claims on tasks that are left out, given with the reasons, by an ``InputError``."""
        for each in self.claims:
            if each.task in left_out:
                raise InputError(
                    f"{self.file}: expected claims of tasks that can be measured, got one on {each.task!r}, which is "
                    f"left out: {left_out[each.task]}; take it out of the file, or take another model"
                )

    def check(self, tasks: Sequence[str], shape: tuple[int, int]) -> None:
        """Refuse tasks that are not measured, and heads beyond the model's `shape`: layers, and heads of each."""
        for each in self.claims:
            if each.task not in tasks:
                raise InputError(
                    f"{self.file}: expected claims of tasks that are measured ({', '.join(tasks)}), got one of head "
                    f"{each.name} on {each.task!r}; measure that task, too, if there is one; "
                    f"{suggest(each.task, tasks)}"
                )
            if each.head[0] >= shape[0] or each.head[1] >= shape[1]:
                raise InputError(
                    f"{self.file}: expected heads of the model (0.0 to {shape[0] - 1}.{shape[1] - 1}), got {each.name}"
                )

    def hypotheses(self, frame: pd.DataFrame) -> Chosen:
        """Cells of `frame` that are declared; of their heads, absence on any task says whether they are specific."""
        cells = pd.MultiIndex.from_frame(frame[CELL])
        declared = pd.Series(cells.isin([(each.task, *each.head) for each in self.claims]), cells)
        absent = pd.Series(cells.droplevel("task").isin([each.head for each in self.claims]), cells)
        return {**dict.fromkeys(("effect", "excess", "probe", "exchange"), declared), "absent": absent}

    def outcomes(self, frame: pd.DataFrame) -> list[dict[str, str]]:
        """By claim ``head``, ``task``, ``expected``, ``verdict``, ``outcome`` and ``reason``, in the file's order.

        The `frame` has one row per layer, head and task, as of ``verdicts``, with ``verdict`` and ``reason``.
        """
        rows = frame.set_index(["layer", "head", "task"])
        return [
            {
                "head": each.name,
                "task": each.task,
                "expected": each.verdict,
                "verdict": str(row["verdict"]),
                "outcome": "open" if row["undecidable"] else outcome(each.verdict, states_of(row)),
                "reason": str(row["reason"]),
            }
            for each, row in ((each, rows.loc[(*each.head, each.task)]) for each in self.claims)
        ]

    def described(self, frame: pd.DataFrame, measured: datetime) -> dict[str, Any]:
        """File, times, thresholds and ``outcomes`` of `frame`, for a manifest; `measured` is when measuring began."""
        times = {"written": self.written, "measured": _in_utc(measured)}
        about = {"file": self.file, "sha256": self.sha256, **times, "thresholds": dict(self.thresholds)}
        return {**about, "claims": self.outcomes(frame)}


def outcome(expected: str, found: States) -> Outcome:
    """What the states of the evidence say of a claim."""
    confirming = (expected, *IMPLIED.get(expected, ()))
    if judge(found)[0] in confirming:
        return "confirmed"
    return "open" if any(judge(each)[0] in confirming for each in completions(found)) else "refuted"


def read_claims(path: str | PathLike[str]) -> Declared:
    """Read a TOML file of claims, as in the module's docstring; raises InputError for what is none."""
    try:
        file = Path(path).expanduser()
        content, written = file.read_bytes(), file.stat().st_mtime
        found = tomllib.loads(content.decode())
    except (OSError, TypeError, ValueError, RuntimeError) as error:  # a path with a NUL, of a user that there is not
        raise InputError(f"claims: expected a TOML file that can be read, got {str(path)!r}: {error}") from None
    _check_keys(file.name, found, ("claim", *THRESHOLDS))
    claims, thresholds = found.get("claim", []), {each: found[each] for each in THRESHOLDS if each in found}
    for key, value in thresholds.items():
        check_share(f"{file.name}: {key}", value)
    if not isinstance(claims, list) or not claims:
        got = "none" if claims == [] else f"claim = {claims!r:.40}"
        if isinstance(claims, dict):
            got = "[claim]; write it in double brackets"
        raise InputError(f"{file.name}: expected at least one [[claim]] with {_KEYS}; got {got}")
    read: dict[tuple[Any, str], DeclaredClaim] = {}
    for number, found_claim in enumerate(claims, start=1):
        each = _claim(f"{file.name}: claim {number}", found_claim)
        if read.setdefault((each.head, each.task), each) is not each:
            raise InputError(
                f"{file.name}: expected one claim a head and task, got several of {each.name} on {each.task!r}"
            )
    at = _in_utc(datetime.fromtimestamp(written, UTC))
    return Declared(tuple(read.values()), thresholds, file.name, hashlib.sha256(content).hexdigest(), at)


def _in_utc(time: datetime) -> str:
    """To the second; the order of the texts is that of the times."""
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _claim(where: str, found: Any) -> DeclaredClaim:
    if not isinstance(found, dict):
        raise InputError(f"{where}: expected a table [[claim]] with {_KEYS}, got {found!r}")
    _check_keys(where, found, tuple(_EXAMPLE))
    for key, example in _EXAMPLE.items():
        if not isinstance(found.get(key), str):
            raise InputError(f"{where}: {key}: expected a text, such as {example!r}, got {found.get(key)!r}")
    layer, dot, head = found["head"].partition(".")
    if not (dot and layer.isdecimal() and head.isdecimal() and len(found["head"]) < 20):
        raise InputError(f"{where}: head: expected layer and head such as '2.1', both from 0, got {found['head']!r}")
    if found["verdict"] not in EXPECTED:
        raise InputError(f"{where}: verdict {found['verdict']!r} is unknown{among(found['verdict'], EXPECTED)}")
    return DeclaredClaim((int(layer), int(head)), found["task"], found["verdict"])


def _check_keys(where: str, found: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{where}: key {key!r} is unknown; {suggest(key, known)}")


def choose(frame: pd.DataFrame, alpha: float) -> Chosen:
    """The cells of the choosing tasks' frame, with raw p, that are worth a test at `alpha`, by kind of evidence.

    An effect has to be chosen under both replacements.
    """
    kinds = ("effect", "mean_effect", "excess", "probe_excess")
    by_cell = frame.set_index(CELL)
    resample, mean, excess, probe = (by_cell[f"{kind}_p"] <= alpha for kind in kinds)
    return {"effect": resample & mean, "excess": excess, "exchange": resample & mean & excess, "probe": probe}


def holm(p: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
    """Family-wise corrected p-values: the k-th smallest of m times ``m - k + 1``, made monotone."""
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
