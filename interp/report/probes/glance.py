"""What does a notebook show of probes? The page's headline for each site, and the cells that reach most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.glance import MOST_DRAWN, Glance, numbers
from interp.report.probes.figures import probes
from interp.report.probes.frames import ProbeFrames, measure_of
from interp.report.probes.leading import ranked
from interp.report.probes.sentences import summarise
from interp.report.probes.words import CONTROLS, cell_name


@dataclass(frozen=True)
class _Site:
    """What was found at one of several sites."""

    frame: pd.DataFrame
    examples: pd.DataFrame
    provenance: Mapping[str, Any]


def probes_glance(result: ProbeFrames) -> Glance:
    """What a notebook shows of ``interp.probe``."""
    sites = list(dict.fromkeys(result.frame["site"]))
    found = [summarise(_at(result, site)) for site in sites]
    said = [text for each in found for text in (each.headline, *each.notes, *each.findings)]
    if len(sites) > 1:
        said = [f"{site}: {each.headline}" for site, each in zip(sites, found, strict=True)]
    rows, how = ranked(result.frame), measure_of(result)

    def within(value: str, low: str, high: str) -> list[str]:
        each = rows[[value, low, high]].itertuples(index=False, name=None)
        return [f"{how.plain(number)} {how.interval(*ends)}" for number, *ends in each]

    columns = {"site": rows["site"]} if len(sites) > 1 else {}
    toughest = rows[["baseline", "score_baseline"]].itertuples(index=False, name=None)
    unit = " (%)" if how.in_points else ""
    columns |= {
        "cell": [cell_name(row) for _, row in rows.iterrows()],
        f"{how.title}{unit}": within("score", "low", "high"),
        "toughest control": [f"{CONTROLS[name]} {how.plain(score)}" for name, score in toughest],
        "excess": within("excess", "excess_low", "excess_high"),
        "selectivity": within("selectivity", "selectivity_low", "selectivity_high"),
        "adjusted p": numbers(rows["p_adjusted"], 4),
        "verdict": rows["verdict"],
    }
    alone = len(sites) == 1
    return Glance(
        f"Probes for {result.provenance['feature']} in {', '.join(sites)}",
        said,
        pd.DataFrame(columns),
        len(rows),
        ".frame",
        result.provenance,
        f"interp.plots.probes(result{'' if alone else f'.at({sites[0]!r})'})",
        (lambda: probes(result)) if alone and len(rows) <= MOST_DRAWN else None,
    )


def _at(result: ProbeFrames, site: str) -> ProbeFrames:
    rows = result.frame[result.frame["site"] == site]
    absent = [name for name in ("layer", "head") if name in rows and rows[name].isna().all()]
    rows = rows.drop(columns=absent)
    return _Site(rows, result.examples, {**result.provenance, "site": site})
