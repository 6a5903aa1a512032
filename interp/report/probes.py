"""The page of probes: every head in its place, the findings in sentences, and cells beside their controls."""

from functools import partial

from interp.report.heatmap import Heatmap
from interp.report.notebook import MOST_DRAWN
from interp.report.probes_figures import TOUGHEST, beside, controls_heatmap, figures, head_heatmap, probes
from interp.report.probes_sentences import asked, cautions, how_to_read, summarise, title
from interp.report.probes_words import (
    CONTROL_NAMES,
    VERDICTS,
    Probed,
    cell_kind,
    cell_name,
    counts,
    has_heads,
    measure_of,
    ranked,
    scale_of,
    sites_of,
)
from interp.report.sections import MOST_ROWS, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted

_DENSE = 12
"""From more heads a layer on, a heatmap's cells are small."""
_NUMBERS = (
    *("score_seen", "control", "compression", "compression_control", "majority", "embedding", "position"),
    *("untrained", "permuted", "bits", "n_words", "n_documents", "n_lemmas"),
)


def page_of(result: Probed) -> Page:
    """The sections of what ``interp.probe`` found; of several sites, the headline and the maps of each."""
    sites = sites_of(result)
    alone = len(sites) == 1
    by_site = {site: result if alone else result.at(site) for site in sites}
    evidence = f"{counted(len(result.words), 'word')}, {counts(result)}"
    return Page(
        title=title(result),
        kind="probes",
        sections=tuple(_sections(result, by_site)),
        provenance=result.provenance,
        about=about(result.provenance, evidence),
        cautions=tuple(dict.fromkeys(text for each in by_site.values() for text in cautions(each))),
        call=f"interp.plots.probes(result{'' if alone else f'.at({sites[0]!r})'})",
        frames={"probes": result.cells, "words": result.words},
        draws={
            name if alone else f"{site}_{name}": draw
            for site, each in by_site.items()
            for name, draw in figures(each).items()
        },
    )


def _sections(result: Probed, by_site: dict[str, Probed]) -> list[Section]:
    found: list[Section] = []
    alone, legend = len(by_site) == 1, _legend(result)
    dense = "dense" if has_heads(result) and result.cells["head"].nunique() > _DENSE else ""
    maps = [
        (f"{'' if alone else f'{site}: '}{text}", map) for site, each in by_site.items() for text, map in _maps(each)
    ]
    if maps:
        found.append(Heatmaps("Heatmap", maps, legend, dense))
    if alone and len(result.cells) <= MOST_DRAWN:
        found.append(Picture("", "probes", partial(probes, result), title(result)))
    found.append(_findings(by_site))
    for site, each in by_site.items():
        heading = "Controls" if alone else f"Controls at {site}"
        note = f"{TOUGHEST} toughest control: what the excess is over{'' if maps else f'. {legend}'}"
        found.append(Heatmaps(heading, [(_controls_caption(each), controls_heatmap(each))], note))
    found += _tables(result, alone)
    found.append(Facts("What was asked", asked(result)))
    found.append(Facts("How to read this", how_to_read(result)))
    return found


def _findings(by_site: dict[str, Probed]) -> Sentences:
    summaries = {site: summarise(each) for site, each in by_site.items()}
    if len(summaries) > 1:
        return Sentences("Findings", [f"{site}: {each.headline}" for site, each in summaries.items()])
    (summary,) = summaries.values()
    return Sentences("Findings", [summary.headline, *summary.findings], (), " ".join(summary.notes))


def _legend(result: Probed) -> str:
    """What the symbols of the verdicts that occur mean."""
    there = set(result.cells["verdict"])
    return ". ".join(f"{each.symbol} {each.name}: {each.meaning}" for each in VERDICTS.values() if each.name in there)


def _maps(result: Probed) -> list[tuple[str, Heatmap]]:
    """Every head, with captions; none where cells are no heads, or there is one alone."""
    if not has_heads(result) or len(result.cells) == 1:
        return []
    name, (low, _) = measure_of(result).title, scale_of(result, "score")
    captions = {
        "score": f"Score ({name}); no colour up to the majority's {low:.2f}",
        "selectivity": f"Selectivity (difference of {name}); no colour up to 0",
    }
    return [(caption, head_heatmap(result, column)) for column, caption in captions.items()]


def _controls_caption(result: Probed) -> str:
    kind, shown, n_cells = cell_kind(result), len(beside(result)), len(result.cells)
    if n_cells == 1:
        which = f"The {kind}"
    elif not has_heads(result) or shown == n_cells:
        which = f"Every {kind}"
    else:
        which = f"The best {shown} of {n_cells:,} {kind}s"
    return f"{which} beside the controls ({measure_of(result).title})"


def _tables(result: Probed, alone: bool) -> list[Table]:
    """The scores with their intervals and verdicts; then every other number."""
    kind, order = cell_kind(result), ranked(result.cells) if has_heads(result) else result.cells
    shown = order.head(MOST_ROWS).rename(columns={"n": "n_words"})
    names = [cell_name(row) for _, row in shown.iterrows()]
    shown = shown.assign(name=names, toughest=shown["baseline"].map(CONTROL_NAMES))
    caption = f"Every {kind}" + (": those that encode the feature, then by their excess" if kind == "head" else "")
    if len(order) > MOST_ROWS:
        caption = (
            f"The first {MOST_ROWS} of {len(order):,} {kind}s, by verdict and excess; all of them are in probes.csv"
        )
    cell = [Column("name", kind)] if alone else [Column("site"), Column("name", kind)]
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
    rest = [*cell, *map(Column, _NUMBERS)]
    return [
        Table("Cells", caption, shown, first, "probes.csv", len(order)),
        Table("", f"{caption}: controls and counts", shown, rest, "probes.csv", len(order)),
    ]
