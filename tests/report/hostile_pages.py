"""Every page of the package, with hostile text wherever text comes from data."""

from dataclasses import replace
from functools import cache
from itertools import cycle, islice

import pandas as pd
from hostile import HOSTILE, SAVED, TEXTS
from made_up_card import made_up_card
from synthetic_heads import synthetic_report
from synthetic_probes import probing
from synthetic_relations import TO_DEPENDENT, maps_of, scoring
from synthetic_sweeps import sweep

from interp.calibration.calibrate import Calibration
from interp.report.heads import page_of as page_of_heads
from interp.report.html import as_page
from interp.report.sections import page_of

COMMAND = f"interp {' '.join(TEXTS)}"
FACTS = {"model": "".join(TEXTS), "model_hash": TEXTS[0] * 2, "device": TEXTS[1], TEXTS[2]: TEXTS[3]}
RATE = {"rate": 0.5, "low": 0.2, "high": 0.8, "count": 1.0, "of": 2}


def with_texts(frame, *columns, texts=SAVED):
    """The frame with hostile texts in these columns, one after the other."""
    return frame.assign(**{column: list(islice(cycle(texts), len(frame))) for column in columns})


def heads_report(texts=SAVED):
    report = synthetic_report(n_layers=1, n_heads=2, tasks=texts)
    spoken = ("description", "query", "metric", "dropped", "coverage")
    tokens = report.attention_maps[report.attention_maps["query_pos"] == 0]
    others = pd.DataFrame({"task": texts, "verdict": "tracks", "model": texts[0], "heads": "0.1", "n_heads": 2})
    others = pd.concat([others, others.assign(model=texts[1])]).assign(n_undecided=0, judged=True)
    return replace(
        report,
        cells=with_texts(report.cells, "reason", "relation", "baseline", "feature", "query", texts=texts),
        tasks=with_texts(report.tasks, *spoken, texts=texts),
        replication=others,
        attention_maps=with_texts(tokens, "token", texts=texts).assign(is_query=False),
        provenance=report.provenance | {"model": "".join(texts), "model_hash": texts[0] * 2},
    )


def card(texts=SAVED):
    """A card whose task, words, tokens and reasons are hostile."""
    known = made_up_card()
    first = texts[0]

    def renamed(frame, *columns):
        own = frame[frame["task"] == "agreement"].assign(task=first)
        return with_texts(own, *columns, texts=texts)

    maps = pd.concat([known.attention_maps] * len(texts), ignore_index=True).assign(key_pos=range(3 * len(texts)))
    circuits = pd.concat([known.circuits] * len(texts), ignore_index=True)
    frames = {name: renamed(getattr(known, name)) for name in ("shares", "halves", "agreement", "positions", "groups")}
    tasks = with_texts(pd.DataFrame([dict(known.tasks.iloc[0], task=each) for each in texts]), "description")
    verdicts = [dict(known.verdicts.iloc[0], task=each, reason=each, relation=each) for each in texts]
    left_out = pd.DataFrame([{"task": each, "part": "feeds", "reason": each} for each in texts])
    return made_up_card(
        **frames,
        tasks=tasks,
        verdicts=pd.DataFrame(verdicts),
        replacements=renamed(known.replacements, "reason"),
        feeds=renamed(known.feeds),
        readers=renamed(known.readers),
        circuits=renamed(circuits, "word", "text"),
        attention_maps=renamed(maps, "token"),
        left_out=left_out,
        provenance=dict(known.provenance) | FACTS,
    )


def patching(texts=SAVED):
    """A patching of positions that are called by hostile tokens."""
    tokens = [(number, text, 1.0) for number, text in enumerate(texts)]
    asked = {"question": " ".join(texts), "dropped": {texts[4]: 1}, "task": " ".join(texts[5:])}
    axes = {"layer": range(2), "pos": range(len(texts))}
    return sweep(axes, direction="denoise", tokens=tokens, complete=False, how=FACTS | asked)


def relations(texts=SAVED):
    result = scoring({(text, TO_DEPENDENT): "attends" for text in texts}, shape=(1, 2))
    maps = maps_of(result, tokens=texts, is_right=False)
    cells = with_texts(result.cells, "baseline", texts=texts)
    model = f"{texts[1]} {texts[0]}"
    return replace(result, cells=cells, maps=maps, provenance=result.provenance | FACTS | {"model": model})


def probes(texts=SAVED):
    result = probing(feature=texts[1], classes=list(texts))
    words = with_texts(result.words, "value", "template", "form", "lemma", "carrier", texts=texts)
    cells = with_texts(result.cells, "baseline", texts=["untrained"])
    return replace(result, cells=cells, words=words, provenance=result.provenance | FACTS | {"task": texts[1]})


def calibration(texts=SAVED):
    """A calibration of two heads; its claims are its own words, its roles and tasks are hostile."""
    claims = ("tracks", "any false verdict")
    kinds = [("all", claim) for claim in claims] + [("able", "tracks")] + [(text, "tracks") for text in texts]
    rates = pd.DataFrame([{"kind": kind, "claim": claim, **RATE} for kind, claim in kinds])
    halves = {"heads": texts, "on all": "right", "of": 2, "right": 1, "weaker": 1, "undecided": 0, "wrong": 0}
    roles = pd.Index(texts, name="role")
    return Calibration(
        examples=pd.DataFrame({"role": texts, "job": texts}),
        false_discoveries=rates,
        recall=pd.DataFrame([{"per": per, **RATE} for per in ("model", "head and task")]),
        false_tracks=pd.DataFrame([{"per": per, **RATE} for per in ("model", "head and task")]),
        decoys=pd.DataFrame([{"role": text, **RATE} for text in texts]),
        special=pd.DataFrame([{"kind": text, "claim": "a blind head is said to track", **RATE} for text in texts]),
        single_heads=pd.DataFrame([{"task": text, "truth": "tracks", **RATE} for text in texts]),
        confusion=pd.DataFrame({"tracks": 1, "none": 2}, index=roles),
        halves=pd.DataFrame(halves),
        curves={},
        provenance=FACTS | {"alpha": 0.05},
    )


def _heads_page():
    report = heads_report()
    return as_page(page_of_heads(report, {"0.1": "card"}), COMMAND)


PAGES = {
    "heads": _heads_page,
    "head": lambda: as_page(page_of(card()), COMMAND),
    "sweep": lambda: as_page(page_of(patching()), COMMAND),
    "attend": lambda: as_page(page_of(relations()), COMMAND),
    "probe": lambda: as_page(page_of(probes()), COMMAND),
    "calibration": lambda: as_page(page_of(calibration()), COMMAND),
}
PAGES = {name: cache(page) for name, page in PAGES.items()}
SEEN = tuple(HOSTILE.values())
