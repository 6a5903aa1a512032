"""The few lines that every number and word on a dossier's page rests on, and what other seeds and declared claims add.

What they say of the statistics is what ``interp.claims.claim`` and ``interp.methods.dossier`` do.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from interp.report.heads_frames import VERDICTS
from interp.report.reading import explained, texts
from interp.report.words import FEWEST_CLUSTERS, MORE_CLUSTERS, counted

CORRECTIONS: Mapping[str, str] = {name: texts()["p"][name] for name in ("max-T", "fdr")}
EVERYTHING: str = texts()["found"]["everything"]
CHOSEN: str = texts()["found"]["chosen"]


def how_to_read(cells: pd.DataFrame, provenance: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    known = {"min_attention": cells["min_attention"].iloc[0], "fewest_clusters": FEWEST_CLUSTERS}
    first, *others = explained("heads", **known, more_clusters=MORE_CLUSTERS).items()
    return (first, ("Adjusted p", what_p_is(provenance)), *others)


def what_p_is(provenance: Mapping[str, Any]) -> str:
    """The test behind a dossier's adjusted p, and over what it is corrected."""
    said, name = texts()["p"], provenance.get("correction", "max-T")
    what, absent, probes = said["all"], "", ""
    if provenance.get("chosen_on"):
        what, absent, probes = said["chosen"], ", for every head", " (probes by Holm)"
    elif provenance.get("declared"):
        what, probes = said["declared"], " (probes by Holm)"
    elif name == "max-T":
        probes = "; probes are one by task, and count as often as there are tasks"
    alpha = provenance.get("alpha", 0.05)
    return str(said["test"].format(what=what, correction=said[name], alpha=alpha, absent=absent, probes=probes))


REPLICATES = "replicates"
_IN_WORDS = {
    "no": "in none",
    "open": "in none, where heads are undecided",
    "not judged": "where no other seed is judged",
}


def replication_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per task and verdict: the heads of each model that get it, and whether it replicates.

    Args:
        frame: One row per task, verdict and model, the model in question first; as of
            ``interp.methods.judging.replication``.

    Returns:
        ``task``, ``verdict``, a column for each model, and ``replicates``: ``yes`` (in all others), ``in 1 of 2``,
        ``in 1 of 1 judged`` where another cannot be judged on the task, ``no``; ``open`` where no other model gets it
        and heads of one are undecided; ``not judged`` where no other model can be; or ``not here`` where only others
        get it. By task, the strongest verdicts first.
    """
    models, tasks, verdicts = (list(dict.fromkeys(frame[name])) for name in ("model", "task", "verdict"))
    verdicts.sort(key=list(VERDICTS).index)
    by_place = frame.set_index(["task", "verdict", "model"])
    rows = []
    for place in sorted(
        set(by_place.index.droplevel("model")), key=lambda at: (tasks.index(at[0]), verdicts.index(at[1]))
    ):
        own = [by_place.loc[(*place, model)] for model in models]
        rows.append((*place, *map(_found, own), _replicates(own)))
    return pd.DataFrame(rows, columns=["task", "verdict", *models, REPLICATES])


def _found(row: pd.Series) -> str | None:
    """One model's heads, or why none is named."""
    if row["heads"]:
        return ", ".join(row["heads"].split())
    if not row["judged"]:
        return "not judged"
    return f"{row['n_undecided']} undecided" if row["n_undecided"] else None


def _replicates(by_model: list[pd.Series]) -> str:
    first, *others = by_model
    judged = [row for row in others if row["judged"]]
    n_found = sum(row["heads"] != "" for row in judged)
    if not first["heads"]:
        return "not here"
    if not judged:
        return "not judged"
    if n_found == len(others):
        return "yes"
    if n_found:
        return f"in {n_found} of {len(judged)}{'' if len(judged) == len(others) else ' judged'}"
    return "open" if any(row["n_undecided"] for row in judged) else "no"


def replication_sentence(table: pd.DataFrame) -> str:
    """How many of the first model's verdicts replicate; `table` is as of ``replication_table``."""
    here = table[table[REPLICATES] != "not here"]
    missing, n_others = here[here[REPLICATES] != "yes"], table.shape[1] - 4
    n_found = len(here) - len(missing)
    rest = [
        f"{task}: “{verdict}” {_IN_WORDS.get(found, found)}"
        for task, verdict, found in missing[["task", "verdict", REPLICATES]].itertuples(index=False)
    ]
    return str(
        texts()["found"]["others"].format(
            verdicts=counted(len(here), "verdict"),
            found=f"{n_found} {'replicates' if n_found == 1 else 'replicate'}",
            whom={1: "the other seed", 2: "both other seeds"}.get(n_others, f"all {n_others} other seeds"),
            rest=f" Not so {'; '.join(rest)}." if rest else "",
        )
    )


def how_found(provenance: Mapping[str, Any]) -> list[str]:
    """Sentences: what was declared and what became of it; or that nothing was.

    Args:
        provenance: Of a dossier; ``declared`` is as of ``interp.claims.declared``.
    """
    declared, said = provenance.get("declared"), texts()["found"]
    if not declared:
        return [CHOSEN if provenance.get("chosen_on") else EVERYTHING]
    when = said["after" if declared["measured"] < declared["written"] else "before"]
    claims = counted(len(declared["claims"]), "claim")
    return [said["declared"].format(**{**declared, "when": when, "claims": claims}), *map(_became, declared["claims"])]


def _became(claim: Mapping[str, str]) -> str:
    unsaid = "a part of it is undecided or was not tested" if claim["outcome"] == "open" else ""
    reason = claim["reason"] or unsaid
    how, because = claim["outcome"].capitalize(), f" ({reason})" if reason else ""
    return str(texts()["found"]["claim"].format(**claim, how=how, because=because))
