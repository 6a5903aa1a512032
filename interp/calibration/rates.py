"""How often is the dossier right, and how often wrong? Counts over jobs, with exact intervals.

Every rate is a share of models, which are independent, or of their heads, which are not: of these the interval is too
narrow. Intervals are exact binomial ones, 95 % (Clopper & Pearson 1934).

Examples:
    >>> import pandas as pd
    >>> from interp.calibration.rates import outcomes, recall
    >>> said = ["tracks", "tracks", "undecided"]
    >>> truth = {"task": "ioi", "role": "tracker", "truth": "tracks"}
    >>> planted = pd.DataFrame({"job": ["a", "a", "b"], **truth, "verdict": said})
    >>> outcomes(planted).tolist()
    ['right', 'right', 'undecided']
    >>> recall(planted)[["per", "rate"]].round(2).values.tolist()
    [['model', 0.5], ['head and task', 0.67]]
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from interp.calibration.roles import DECOYS, TRUTH
from interp.claims.rules import FINDINGS

RATE = ("rate", "low", "high", "count", "of")
"""Columns of a rate: its estimate, its interval, and what it is a share of."""
ATTENTION_VERDICTS = ("tracks", "attends and causal", "attends, not causal")
EFFECT_VERDICTS = tuple(each for each in FINDINGS if each != "attends, not causal")
FALSE_VERDICTS: Mapping[str, tuple[str, ...]] = {
    "trained": ("tracks", "attends and causal"),
    "permuted labels": (*EFFECT_VERDICTS, "encodes, unused"),
    "permuted pairs": ATTENTION_VERDICTS,
    "untrained": (*FINDINGS, "encodes, unused"),
}
"""By kind of null, the verdicts that it makes false. A trained head may look where it likes, and may matter; but what
stands at the related word has no part in its task."""
FALSE_EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "trained": (),
    "permuted labels": ("effect", "representation"),
    "permuted pairs": ("attention",),
    "untrained": ("attention", "effect", "representation"),
}
"""The kinds of evidence that it makes false, each by itself."""
OUTCOMES = ("right", "weaker", "undecided", "wrong")
"""What a verdict can be, beside the truth."""
WEAKER = {
    "tracks": ("attends and causal", "needed"),
    **dict.fromkeys(("attends and causal", "causal, by another route", "causal", "general"), ("needed",)),
}
"""By truth, the verdicts that say less, and nothing wrong."""


def rate(count: int, of: int) -> dict[str, float | int]:
    """A share with its interval; NaN of nothing.

    Args:
        count: How many it is true of.
        of: How many there are.

    Returns:
        The columns of ``RATE``: the share from 0 to 1, its exact 95 % interval, and both numbers.
    """
    if not of:
        return dict(zip(RATE, (np.nan, np.nan, np.nan, 0, 0), strict=True))
    interval = binomtest(count, of).proportion_ci(0.95)
    return dict(zip(RATE, (count / of, interval.low, interval.high, count, of), strict=True))


def _rate(hits: pd.Series) -> dict[str, float | int]:
    """How often it is so."""
    return rate(int(hits.sum()), len(hits))


def false_discoveries(nulls: pd.DataFrame) -> pd.DataFrame:
    """In how many models of each kind of null some head gets a claim that is false there.

    Returns:
        One row per ``kind`` of null (``all`` for all of them, ``able`` for those that are shown to do some task, so
        that verdicts are given at all) and ``claim``, with ``RATE``, and ``able``: how many of the models are. Verdicts
        of a kind are counted of these only, kinds of evidence of all.
    """
    by_kind, said = nulls["kind"], nulls["verdict"]
    claims = {
        "tracks": said == "tracks",
        "any false verdict": [verdict in FALSE_VERDICTS[kind] for verdict, kind in zip(said, by_kind, strict=True)],
        "attention": nulls["attention_state"] == "shown",
        "effect": nulls["effect_state"].isin(["drop", "rise"]),
        "representation": nulls["representation"] == "carried",
        "able": nulls["undecidable"] == "",
    }
    made = pd.DataFrame(claims, index=nulls.index).groupby([by_kind, nulls["job"]]).any()
    able = made[made["able"]]
    counted = [("all", "tracks", made), ("able", "tracks", able)]
    for name in sorted(by_kind.unique()):
        own, all_able = (each[each.index.get_level_values("kind") == name] for each in (made, able))
        counted += [(name, claim, all_able) for claim in ("tracks", "any false verdict")]
        counted += [(name, claim, own) for claim in FALSE_EVIDENCE[name]]
    rows = [
        {"kind": kind, "claim": claim, **_rate(jobs[claim]), "able": int(jobs["able"].sum())}
        for kind, claim, jobs in counted
    ]
    return pd.DataFrame(rows)


def recall(planted: pd.DataFrame) -> pd.DataFrame:
    """In how many models all heads that track (some by value) are found to; and how many are, counted one by one.

    Args:
        planted: One row per head and task of planted models: ``job``, ``truth``, ``verdict``.

    Returns:
        Two rows, ``per``: ``model``, ``head and task``, with ``RATE``. Heads of one model are not independent, models
        are.
    """
    trackers = planted[planted["truth"] == "tracks"]
    found = trackers["verdict"] == "tracks"
    return _per(found, found.groupby(trackers["job"]).all())


def false_tracks(planted: pd.DataFrame) -> pd.DataFrame:
    """Of the planted models, how many have a head that is said to track and does not; and of the heads.

    Args:
        planted: As of ``recall``.

    Returns:
        Two rows, as of ``recall``.
    """
    others = planted[planted["truth"] != "tracks"]
    said = others["verdict"] == "tracks"
    return _per(said, said.groupby(others["job"]).any())


def _per(heads: pd.Series, models: pd.Series) -> pd.DataFrame:
    return pd.DataFrame([{"per": "model", **_rate(models)}, {"per": "head and task", **_rate(heads)}])


def single_heads(trained: pd.DataFrame) -> pd.DataFrame:
    """How often a trained model's only head gets the right verdict on what it can do, and none on what it cannot.

    One row per ``task``: its ``truth``, ``RATE`` of that verdict (of what it cannot do: of no finding at all), and the
    median ``accuracy`` of the models.
    """
    silent = (trained["truth"] == "none") & (trained["verdict"] == "undecided")
    right = trained.assign(right=silent | (trained["verdict"] == trained["truth"]))
    rows = [
        {"task": task, "truth": truth, **_rate(own["right"]), "accuracy": own["accuracy_base"].median()}
        for (task, truth), own in right.groupby(["task", "truth"], sort=False)
    ]
    return pd.DataFrame(rows, columns=["task", "truth", *RATE, "accuracy"])


def special(found: pd.DataFrame) -> pd.DataFrame:
    """What is claimed, and missed, in models with something that the others lack.

    One row per ``kind`` and ``claim``, with ``RATE``: of heads and tasks, of groups of models; and ``in_models``, how
    many models have a head of which it is so, ``of_models``. Contradicted is a head that tracks and of which a verdict
    says that it does not.
    """
    rows = []
    for kind, own in found.groupby("kind", sort=False):
        said, right, jobs = own["verdict"], _right(own), own["job"]
        asked = {
            "a head that tracks is found": ("one that sees", said == "tracks"),
            "and is contradicted": ("one that sees", ~said.isin(["tracks", *WEAKER["tracks"], "undecided"])),
            "a blind head is said to track": ("blind", said == "tracks"),
            "a wrongly tagged word is said to be tracked": ("wrong tag", said == "tracks"),
            "a head that copies gets its verdict": ("copier", right),
            "a head that reads a copy gets its verdict": ("copy reader", right),
        }
        counts = {claim: hits[own["role"] == role] for claim, (role, hits) in asked.items()}
        if str(kind).startswith("group"):
            together = (own["role"] == "stand-in") & (own["task"] == "agreement")
            named = right[together].groupby(jobs).transform("all")
            counts["a group is named as that set"] = named[~jobs[together].duplicated()]
        for claim, hits in counts.items():
            if len(hits):
                models = {"in_models": jobs[hits.index][hits].nunique(), "of_models": jobs[hits.index].nunique()}
                rows.append({"kind": kind, "claim": claim, **_rate(hits), **models})
    return pd.DataFrame(rows, columns=["kind", "claim", *RATE, "in_models", "of_models"]).astype({"rate": float})


def decoys(planted: pd.DataFrame) -> pd.DataFrame:
    """How often each decoy gets its own verdict: heads on all tasks that they are about.

    A loud head is about all tasks, and judged on them together; heads that stand in for each other are judged together,
    by how many they are: all have to be named as that set.

    Args:
        planted: As of ``recall``, with ``layer``, ``head``, ``role`` and ``partners``.

    Returns:
        One row per ``role``, with its ``truth`` and ``RATE``.
    """
    judged = planted.assign(right=_right(planted))
    found: list[tuple[str, str, pd.Series]] = []
    for role in (*DECOYS, "previous word"):
        own = judged[judged["role"] == role]
        if role != "stand-in":
            found.append((role, TRUTH[role], own.groupby(["job", "layer", "head"])["right"].all()))
            continue
        sets = own.groupby(["job", "task"])["right"].agg(["all", "size"])
        found += [(f"{n} that stand in", TRUTH[role], each["all"]) for n, each in sets.groupby("size")]
    return pd.DataFrame([{"role": role, "truth": truth, **_rate(right)} for role, truth, right in found])


def confusion(planted: pd.DataFrame) -> pd.DataFrame:
    """How many heads of every role (idle ones on the tasks that they are not about) get which verdict."""
    order = [role for role in TRUTH if role in set(planted["role"])]
    return pd.crosstab(planted["role"], planted["verdict"]).reindex(order)


def outcomes(planted: pd.DataFrame) -> pd.Series:
    """What each verdict is, beside the truth. A bystander may hold the feature, or not.

    Args:
        planted: As of ``decoys``.

    Returns:
        Row by row ``right``, ``weaker`` (nothing wrong, and less than could be said), ``undecided`` or ``wrong``.
    """
    said = planted["verdict"]
    right = _right(planted) | (planted["role"] == "bystander") & said.isin([TRUTH["bystander"], TRUTH["carrier"]])
    weaker = pd.Series(False, index=planted.index)
    for truth, verdicts in WEAKER.items():
        weaker |= (planted["truth"] == truth) & said.isin(verdicts)
    found = np.select([right, weaker, said == "undecided"], ["right", "weaker", "undecided"], "wrong")
    return pd.Series(found, index=planted.index, dtype=object)


def _right(planted: pd.DataFrame) -> pd.Series:
    """Row by row, whether the verdict is the truth; of heads that stand in for each other, with just the others."""
    right = planted["verdict"] == planted["truth"]
    groups = planted[planted["role"] == "stand-in"]
    for _, own in groups.groupby(["job", "task"]):
        names = {f"{layer}.{head}" for layer, head in zip(own["layer"], own["head"], strict=True)}
        found = zip(own.index, own["partners"], own["layer"], own["head"], strict=True)
        for at, partners, layer, head in found:
            right[at] &= set(str(partners).split()) == names - {f"{layer}.{head}"}
    return right


def curve(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """How often a head of planted jobs is said to track, and what else is said of it, by what makes that hard to tell.

    This is ``n``, ``sharpness``, ``noise``, or ``share`` (of the answer, that a tracker writes), all of trackers; or
    ``glance`` (of the related word, that a glancer reads), of glancers.

    Returns:
        One row per value of `by`: ``RATE`` of ``tracks``, the shares ``weaker``, ``undecided`` and ``wrong``, and
        ``minima``: how many times the minimum ablating such a head costs, by the replacement that costs less; for
        glancers, how many times the minimum exchanging the related word for it turns the answer.
    """
    glances = by == "glance"
    asked = frame[frame["role"] == ("glancer" if glances else "tracker")]
    if glances:
        minima = -asked["exchange"] / asked["min_exchange"]
    else:
        minima = -asked[["effect", "mean_effect"]].max(axis=1) / asked["min_effect"]
    tracks = asked["verdict"].eq("tracks").groupby(asked[by])
    shares = pd.crosstab(asked[by], outcomes(asked), normalize="index").reindex(columns=OUTCOMES[1:], fill_value=0.0)
    found = pd.DataFrame([{by: value, **_rate(own)} for value, own in tracks], columns=[by, *RATE]).set_index(by)
    return found.join(shares).assign(minima=minima.groupby(asked[by]).mean()).reset_index()


def transitions(whole: pd.DataFrame, half: pd.DataFrame) -> pd.DataFrame:
    """What becomes of each verdict on planted models when there are half the examples.

    One row per ``heads`` (``with a purpose`` or ``idle``) and outcome on all examples (``on all``): how many such
    verdicts there are (``of``), and how many are ``right``, ``weaker``, ``undecided`` and ``wrong`` on half.
    """
    cell = ["seed", "layer", "head", "task"]
    both = whole.assign(before=outcomes(whole)).merge(half.assign(after=outcomes(half))[[*cell, "after"]], on=cell)
    both["heads"] = np.where(both["role"].isin(["idle", "bystander"]), "idle", "with a purpose")
    after = pd.crosstab([both["heads"], both["before"].rename("on all")], both["after"])
    counts = after.reindex(columns=OUTCOMES, fill_value=0)
    counts.insert(0, "of", counts.sum(axis=1))
    return counts.rename_axis(columns=None).reset_index()
