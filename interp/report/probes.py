"""The page of probes: every head in its place, the findings in sentences, and cells beside their controls."""

from functools import partial
from typing import Any

from interp.report.heatmap import Heatmap
from interp.report.notebook import MOST_DRAWN
from interp.report.probes_figures import MARKS, TOUGHEST, beside, controls_grid, figures, map_of_heads, probes
from interp.report.probes_sentences import cautions, how_to_read, summarise
from interp.report.probes_words import (
    CONTROL_NAMES,
    VERDICTS,
    asked,
    cell_kind,
    cell_name,
    counts,
    has_heads,
    measure_of,
    ranked,
    scale_of,
    sites_of,
    title,
)
from interp.report.sections import MOST_ROWS, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column, columns_of
from interp.report.words import about, counted

_DENSE = 12
"""From more heads a layer on, a heatmap's cells are small."""
_NUMBERS = (
    *("score_seen", "control", "compression", "compression_control", "majority", "embedding", "position"),
    *("untrained", "permuted", "bits", "n_words", "n_documents", "n_lemmas"),
)


def page_of(result: Any) -> Page:
    """The sections of what ``interp.probe`` found; of several sites, the headline and the maps of each."""
    sites = sites_of(result)
    alone = len(sites) == 1
    by_site = {site: result if alone else result.at(site) for site in sites}
    draws = {(site, name): draw for site, each in by_site.items() for name, draw in figures(each).items()}
    return Page(
        title=title(result),
        kind="probes",
        sections=tuple(_sections(result, by_site)),
        provenance=result.provenance,
        about=about(result.provenance, f"{counted(len(result.words), 'word')}, {counts(result)}"),
        cautions=tuple(dict.fromkeys(text for each in by_site.values() for text in cautions(each))),
        call=f"interp.plots.probes(result{'' if alone else f'.at({sites[0]!r})'})",
        frames={"probes": result.cells, "words": result.words},
        draws={name if alone else f"{site}_{name}": draw for (site, name), draw in draws.items()},
    )


def _sections(result: Any, by_site: dict[str, Any]) -> list[Section]:
    found: list[Section] = []
    alone, there = len(by_site) == 1, set(result.cells["verdict"])
    legend = " ".join(f"{each.symbol} {each.name}: {each.meaning}." for name, each in VERDICTS.items() if name in there)
    dense = "dense" if has_heads(result) and result.cells["head"].nunique() > _DENSE else ""
    maps = [("" if alone else f"{site}: ", *each) for site, own in by_site.items() for each in _maps(own)]
    if maps:
        found.append(Heatmaps("Heatmap", [(f"{site}{text}", map) for site, text, map in maps], legend, dense))
    if alone and len(result.cells) <= MOST_DRAWN:
        found.append(Picture("", "probes", partial(probes, result), title(result)))
    found.append(_findings(by_site))
    for site, each in by_site.items():
        toughest = f"{MARKS[TOUGHEST].symbol} {MARKS[TOUGHEST].meaning}."
        note = toughest if maps else f"{toughest} {legend}"
        heading = "Controls" if alone else f"Controls at {site}"
        found.append(Heatmaps(heading, [(_controls_caption(each), controls_grid(each).heatmap())], note))
    found += _tables(result, alone)
    found.append(Facts("What was asked", asked(result)))
    found.append(Facts("How to read this", how_to_read(result)))
    return found


def _findings(by_site: dict[str, Any]) -> Sentences:
    summaries = {site: summarise(each) for site, each in by_site.items()}
    if len(summaries) > 1:
        return Sentences("Findings", [f"{site}: {each.headline}" for site, each in summaries.items()])
    (summary,) = summaries.values()
    return Sentences("Findings", [summary.headline, *summary.findings], (), " ".join(summary.notes))


def _maps(result: Any) -> list[tuple[str, Heatmap]]:
    """Every head, with captions; none where cells are no heads, or there is one alone."""
    if not has_heads(result) or len(result.cells) == 1:
        return []
    name, (low, _) = measure_of(result).title, scale_of(result, "score")
    captions = {
        "score": f"Score ({name}); no colour up to the majority's {low:.2f}",
        "selectivity": f"Selectivity (difference of {name}); no colour up to 0",
    }
    return [(caption, map_of_heads(result, column).heatmap()) for column, caption in captions.items()]


def _controls_caption(result: Any) -> str:
    kind, shown, n_cells = cell_kind(result), len(beside(result)), len(result.cells)
    which = f"The best {shown} of {n_cells:,} {kind}s" if shown < n_cells else f"Every {kind}"
    return f"{f'The {kind}' if n_cells == 1 else which} beside the controls ({measure_of(result).title})"


def _tables(result: Any, alone: bool) -> list[Table]:
    """The scores with their intervals and verdicts; then every other number."""
    kind, order = cell_kind(result), ranked(result.cells) if has_heads(result) else result.cells
    shown = order.head(MOST_ROWS).rename(columns={"n": "n_words"})
    names = [cell_name(row) for _, row in shown.iterrows()]
    shown = shown.assign(name=names, toughest=shown["baseline"].map(CONTROL_NAMES))
    caption = f"Every {kind}" + (": those that encode the feature, then by their excess" if kind == "head" else "")
    if len(order) > MOST_ROWS:
        first_of = f"The first {MOST_ROWS} of {len(order):,} {kind}s"
        caption = f"{first_of}, by verdict and excess; all of them are in probes.csv"
    cell = [*columns_of(*(() if alone else ("site",))), Column("name", kind)]
    first = [
        *cell,
        Column("verdict"),
        Column("score", "", "low", "high"),
        Column("toughest"),
        Column("score_baseline", "its score"),
        Column("excess", "", "excess_low", "excess_high"),
        Column("p_adjusted"),
        Column("selectivity", "", "selectivity_low", "selectivity_high"),
    ]
    return [
        Table("Cells", caption, shown, first, "probes.csv", len(order)),
        Table("", f"{caption}: controls and counts", shown, [*cell, *columns_of(*_NUMBERS)], "probes.csv", len(order)),
    ]
