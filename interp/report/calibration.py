"""How does a reader see a calibration? One self-contained page: findings, figures, tables, how to read them.

Where does a calibration go? One folder, as the dossier's: written whole or not at all.

What does a notebook show of a calibration? The page's findings, and false claims with their intervals.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from interp.report.calibration_figures import calibration, figures
from interp.report.calibration_findings import CalibrationFrames, findings, share
from interp.report.drawing import inline, ordinary_style, pictures, write_pictures
from interp.report.folder import CALIBRATION, check_output, in_place_of, write_manifest
from interp.report.glance import Glance
from interp.report.html import flatten, render
from interp.report.sortable import Table, sortable

CAPTIONS = {
    "confusion": "Verdicts on the heads of planted models, by what they are",
    "false_claims": "False claims where nothing is to be found",
    "recall": "How often a head is said to track, by what makes that hard to tell",
}
READING = (
    (
        "Planted",
        "models whose weights were written by hand, so that heads at random places do a known thing: a tracker looks "
        "at the related word, reads its feature and writes the answer; idle heads look at random and write what "
        "nothing reads, with a little noise on the answers.",
    ),
    (
        "Decoys",
        "stand-in: one of two to four loud trackers, each of which hides that the others are gone; one in a later "
        "layer is a backup, which hardly looks while an earlier one is there. All have to be named as that set. "
        "Looker: looks at the related word, "
        "holds its feature and writes nothing that is read. Carrier: holds the feature, and nothing reads it. Other "
        "route: answers by attractors, which are mostly as the related word is. Glancer: does so, and looks at the "
        "related word, too, even more. Amplifier: looks at the query itself, behind the tracker, and writes the answer "
        "once more. By value: a tracker that looks at the related word where that has one of its two values, and else "
        "at the query itself. Loud: one of two heads that cancel each other, each of which would drown all else. "
        "Loud tracker: one of these that does all that a tracker does, too, and so lacks nothing but specificity. "
        "Previous word: what induction's tracker needs.",
    ),
    (
        "One that sees",
        "trained models with LayerNorm, an MLP and four heads, of which one can find words by their class and the "
        "others are blind to it; grouped: two heads each share keys and values. What the model can do, that head does. "
        "Crossed: the answer depends on a noun's number and a person's gender; a wrong tag says that the number is "
        "read at the person, or the gender at the noun; exchanging that word leaves the feature as it is, so by rule "
        "no head can track there.",
    ),
    (
        "Copied",
        "planted models in which a head copies the feature from the related word to an attractor, and another one "
        "answers by what stands there; a wrong tag says that the attractor is the related word, and that its other "
        "form has the other answer.",
    ),
    (
        "Trained models of one head",
        "attention alone, one layer of one head, trained to do agreement and coreference: what such a model can do, "
        "that head does. It cannot do induction, which takes two layers; right of that is no finding.",
    ),
    (
        "Nulls",
        "trained: models that were trained to do a task without fail in which the related word has no part, for a key "
        "among the words tells the answer; their heads look there, carry its value and are needed. Permuted "
        "labels: right and wrong, and the feature's values, change places in half of the clusters; the model cannot do "
        "that. Permuted pairs: the related word and an attractor change their tags at random; the model does the task "
        "as before. Untrained: random weights.",
    ),
    (
        "Able",
        "a verdict needs a model that is shown to do the task: verdicts on nulls are counted of those that are, kinds "
        "of evidence by themselves of all.",
    ),
    (
        "Sharpness, noise, share, glance, n",
        "what makes heads hard to find: how far a planted head's score for what it looks at is above the others', as a "
        "share of 8 nats; what idle heads write on the answers, where a tracker writes 1; the share of a task's answer "
        "that a tracker writes, where another writes the rest (up to .131 ablating it costs no more than the minimum: "
        "“tracks” would be wrong); what a glancer reads of the related word, where it reads 1 of the attractors; the "
        "units of a task. Minima: how many times the minimum ablating a tracker costs, or exchanging the related word "
        "for a glancer turns the answer (up to 1, “tracks” would be wrong).",
    ),
    (
        "Where heads stand",
        "anywhere, but: induction's tracker behind its previous word; loud heads in the last layer of models without "
        "stand-ins; lookers no later than the first stand-in of their task.",
    ),
    (
        "[low, high]",
        "the exact 95 % interval of a share (Clopper & Pearson). Models are independent; heads of one model are "
        "not, so an interval of heads is too narrow.",
    ),
)


def render_calibration(frames: CalibrationFrames, *, command: str | None = None) -> str:
    """The report as one HTML document.

    Args:
        frames: Of the calibration.
        command: The command line that asked for it.
    """
    shown = {
        "False claims on nulls": frames.false_discoveries,
        "Trackers found": frames.recall,
        "Others said to track": frames.false_tracks,
        "Decoys": frames.decoys,
        "Models with something that the others lack": frames.special,
        "Trained models of one head": frames.single_heads,
        "Fewer examples": frames.halves,
        **{f"Heads by {name}": table for name, table in frames.curves.items()},
    }
    return render(
        "calibration.html",
        title="How often are verdicts right?",
        findings=findings(frames),
        pictures=[(CAPTIONS[name], inline(png)) for name, png in pictures(figures(frames)).items()],
        tables=[(_table(table), caption) for caption, table in shown.items()],
        reading=READING,
        command=command,
        provenance=flatten(_plain(frames.provenance)),
    )


def _table(frame: pd.DataFrame) -> Table:
    named = frame.rename(columns={"low": "from", "high": "to"})
    return sortable(named, tuple(named.columns))


def _plain(provenance: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in provenance.items() if value is not None}


_TABLES = ("false_discoveries", "recall", "false_tracks", "decoys", "special", "single_heads", "confusion", "halves")


@ordinary_style()
def save_calibration(frames: CalibrationFrames, out: str | Path, *, command: str | None = None) -> Path:
    """Write tables, figures, page and manifest into the folder `out`.

    Args:
        frames: Of the calibration.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: `out` cannot be used; see ``check_output``.
    """
    folder = check_output(out)
    page = render_calibration(frames, command=command)
    with in_place_of(folder) as draft:
        frames.frame.to_parquet(draft / "verdicts.parquet", index=False)
        for name in _TABLES:
            getattr(frames, name).to_csv(draft / f"{name}.csv", index=name == "confusion")
        for name, table in frames.curves.items():
            table.to_csv(draft / f"recall_by_{name}.csv", index=False)
        write_pictures(figures(frames), draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=CALIBRATION)
    return folder


def calibration_glance(result: CalibrationFrames) -> Glance:
    """What a notebook shows of ``calibrate``."""
    table = result.false_discoveries
    shown = pd.DataFrame(
        {
            "nulls": table["kind"],
            "claim": table["claim"],
            "models with a false one": [share(row) for row in table.to_dict("records")],
        }
    )
    return Glance(
        "How often are verdicts right?",
        findings(result),
        shown,
        len(table),
        ".false_discoveries",
        {name: result.provenance[name] for name in ("seed",) if name in result.provenance},
        "interp.plots.calibration(result)",
        lambda: calibration(result),
    )
