"""Where does a card go? One folder, as the dossier's: written whole or not at all."""

from functools import partial
from pathlib import Path

from interp.report.cards.frames import COLUMNS, CardFrames, Shown, shown
from interp.report.cards.page import render_card
from interp.report.cards.plots import paths_figure, shares_figure
from interp.report.figure import ordinary_style, write_pictures
from interp.report.folder import check_output, in_place_of
from interp.report.manifest import CARD, write_manifest
from interp.report.names import file_names


@ordinary_style()
def save_card(card: CardFrames, out: str | Path, *, command: str | None = None) -> Path:
    """Write a card's frames, figures, page and manifest into the folder `out`.

    These are a CSV for every frame of the card, ``figures``, ``report.html`` and ``manifest.json``.

    Args:
        card: The frames.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not a card's.
    """
    folder = check_output(out)
    page = render_card(card, command=command)
    with in_place_of(folder) as draft:
        for name in ("verdicts", "tasks", *COLUMNS):
            getattr(card, name).to_csv(draft / f"{name}.csv", index=False)
        _write_figures(card, draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, {**card.provenance, "copying": card.copying}, command, kind=CARD)
    return folder


def _write_figures(card: CardFrames, folder: Path) -> None:
    found = shown(card)
    draws = {} if found.replacements.empty else {"shares": partial(shares_figure, found)}
    names = file_names([str(task) for task in card.tasks["task"]])
    for task, name in zip(found.tasks["task"], names, strict=True):
        if not _without_paths(found.of(task)):
            draws[f"paths_{name}"] = partial(paths_figure, found.of(task))
    write_pictures(draws, folder)


def _without_paths(card: Shown) -> bool:
    return card.feeds.empty and card.readers.empty
