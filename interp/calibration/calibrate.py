"""How often is a verdict wrong? The dossier on hundreds of models whose truth is known.

1. **Planted**: models with trackers and decoys at random places: recall, false ``tracks``, each decoy's verdict.
2. **Special**: trained models of which one head sees, some with wrong tags; planted ones in which the feature is
   copied, and groups that stand in for each other.
3. **Single heads**: trained models of one head: what such a model can do, that head must do.
4. **Nulls**: four kinds of models on which nothing tracks: false claims.
5. **Half**: the planted models again with half the examples: what is lost must be undecided, not wrong.
6. **Curves**: planted models that are harder in one respect: how recall falls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from interp.calibration import rates
from interp.calibration.drawing import STANDARD, Difficulty, check_shape
from interp.calibration.nulls import NULLS
from interp.calibration.planted import Shape
from interp.calibration.runs import ALPHA, SPECIAL, Job, null_jobs, planted_jobs, run_jobs, single_jobs, special_jobs
from interp.errors import InputError
from interp.interventions.given_numbers import whole_number
from interp.interventions.sweep import Progress
from interp.model.devices import documented
from interp.runs.code import code_hash
from interp.runs.run import Run, as_run

CURVES: Mapping[str, Sequence[int | float]] = {
    "sharpness": (0.15, 0.4),
    "noise": (2.0,),
    "share": (0.075, 0.108, 0.131, 0.188, 0.24),
    "glance": (0.038, 0.061, 0.115, 0.154),
    "n": (50, 70),
}
"""By what makes heads hard to find, the values that are tried beside the standard one, on the first of the planted
models; shares whose ablation costs .5, .8, 1, 1.5 and 2 times the minimum, and glances of which the exchange turns the
answer by .5, .8, 1.5 and 2 times the minimum (from model to model a fifth more or less)."""


@dataclass(frozen=True)
class Size:
    """How many models.

    Attributes:
        planted: Planted ones.
        special: Of each kind in ``runs.SPECIAL`` but groups.
        groups: Of each size of a group that stands in for each other.
        single: Trained ones of a single head.
        trained: Nulls that are trained.
        nulls: Of each other kind of null.
        halves: Planted ones that are judged again with half the examples.
        curve: For each value of ``CURVES``.
    """

    planted: int
    special: int
    groups: int
    single: int
    trained: int
    nulls: int
    halves: int
    curve: int


FULL = Size(planted=200, special=30, groups=100, single=30, trained=160, nulls=80, halves=50, curve=30)
QUICK = Size(planted=12, special=1, groups=2, single=4, trained=8, nulls=4, halves=6, curve=0)


@dataclass(frozen=True, repr=False)
class Calibration:
    """Verdicts beside the truth, and what they come to.

    Attributes:
        frame: Of every job, layer, head and task, as of ``Job.run``, with ``part``: ``planted``, ``special``,
            ``single head``, ``null``, ``half`` or ``curve NAME``.
        false_discoveries: As of ``rates.false_discoveries``.
        recall: As of ``rates.recall``.
        false_tracks: As of ``rates.false_tracks``.
        decoys: As of ``rates.decoys``.
        special: As of ``rates.special``.
        single_heads: As of ``rates.single_heads``.
        confusion: As of ``rates.confusion``.
        halves: As of ``rates.transitions``.
        curves: By what is harder, as of ``rates.curve``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    false_discoveries: pd.DataFrame
    recall: pd.DataFrame
    false_tracks: pd.DataFrame
    decoys: pd.DataFrame
    special: pd.DataFrame
    single_heads: pd.DataFrame
    confusion: pd.DataFrame
    halves: pd.DataFrame
    curves: Mapping[str, pd.DataFrame]
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        found, wrong = self.recall.iloc[1], self.false_discoveries.iloc[0]
        return (
            f"Calibration(recall {found['count']} of {found['of']}, false tracks in {wrong['count']} of {wrong['of']} "
            "nulls)"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.calibration import calibration_glance
        from interp.report.glance import as_html

        return as_html(calibration_glance(self))

    def save(self, out: str | Path, *, command: str | None = None) -> Path:
        """Write tables, figures, manifest and page into the folder `out`; returns its absolute path.

        Args:
            out: Made, or that of an earlier calibration.
            command: The command line that asked for it, for the page and the manifest.

        Raises:
            OutputError: `out` exists and is no such folder, or cannot be written.
        """
        from interp.report.calibration import save_calibration

        return save_calibration(self, out, command=command)


@documented
def calibrate(
    size: Size = FULL,
    *,
    n: int = STANDARD.n,
    shape: Shape | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> Calibration:
    """Measure how often the dossier's verdicts are right.

    Args:
        size: How many models.
        n: Units of a task.
        shape: Of the models; None for one at random for each.
        seed: Of the first model of each kind.
        progress: Called with (models done, models in all).
        run: Where what is done is kept, and looked for: a folder of runs; or an ``interp.Run``, whose executor judges
            several models at the same time. None for nowhere.

    Raises:
        InputError: Numbers that are none, or a shape too small for what is planted.
        OutputError: What is done cannot be kept.
        KeyboardInterrupt: Interrupted; the models that are done are kept.
    """
    if not isinstance(size, Size) or not isinstance(shape, Shape | None):
        raise InputError(f"expected a Size, and a Shape or None, got size={size!r:.40} and shape={shape!r:.40}")
    standard = replace(STANDARD, n=whole_number("n", n, least=2, expected="a whole number of units, at least 2"))
    if min(size.planted, size.special, size.groups, size.single, size.trained, size.nulls) < 1:
        raise InputError(f"size: expected a model of each kind, at least, got {size}")
    if shape is not None:
        check_shape(shape)
    jobs = _jobs(size, standard, shape, seed)
    every = [job for own in jobs.values() for job in own]
    frame = run_jobs(every, run=as_run(run), progress=progress)
    parts = {part: frame[frame["job"].isin([job.name for job in own])] for part, own in jobs.items()}
    planted, nulls = parts["planted"], parts["null"]
    curves = {name: parts[f"curve {name}"] for name in CURVES if f"curve {name}" in parts}
    return Calibration(
        frame=pd.concat([own.assign(part=part) for part, own in parts.items()], ignore_index=True),
        false_discoveries=rates.false_discoveries(nulls),
        recall=rates.recall(planted),
        false_tracks=rates.false_tracks(planted),
        decoys=rates.decoys(planted),
        special=rates.special(parts["special"]),
        single_heads=rates.single_heads(parts["single head"]),
        confusion=rates.confusion(planted),
        halves=rates.transitions(planted, parts["half"]),
        curves={
            name: rates.curve(pd.concat([planted, own[~own["job"].isin(planted["job"])]]), name)
            for name, own in curves.items()
        },
        provenance={
            **{"size": vars(size), "n": n, "shape": None if shape is None else vars(shape), "seed": seed},
            **{"source": code_hash(), "alpha": ALPHA, "standard": vars(standard)},
        },
    )


def _jobs(size: Size, standard: Difficulty, shape: Shape | None, seed: int) -> dict[str, list[Job]]:
    """By part."""
    found = {
        "planted": planted_jobs(size.planted, seed=seed, difficulty=standard, shape=shape),
        "special": [
            job
            for kind in SPECIAL
            for job in special_jobs(
                kind,
                size.groups if kind.startswith("group") else size.special,
                seed=seed,
                difficulty=standard,
                shape=shape,
            )
        ],
        "single head": single_jobs(size.single, seed=seed, difficulty=standard),
        "null": null_jobs(
            {kind: size.trained if kind == "trained" else size.nulls for kind in NULLS},
            seed=seed,
            difficulty=standard,
            shape=shape,
        ),
        "half": planted_jobs(size.halves, seed=seed, difficulty=replace(standard, n=standard.n // 2), shape=shape),
    }
    for name, values in CURVES.items() if size.curve else ():
        found[f"curve {name}"] = [
            job
            for value in values
            for job in planted_jobs(size.curve, seed=seed, difficulty=_with(standard, name, value), shape=shape)
        ]
    return found


def _with(standard: Difficulty, name: str, value: int | float) -> Difficulty:
    changes: dict[str, Any] = {name: value}
    return replace(standard, **changes)
