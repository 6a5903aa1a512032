"""A card with made-up numbers: one task that the head is needed for, one with a hostile name that it is idle on."""

import numpy as np
import pandas as pd

from interp.methods.head_card import HeadCard
from interp.report.card_evidence import COLUMNS
from interp.report.heads_frames import ATTENTION_COLUMNS, FURTHER_HEAD_COLUMNS, HEAD_COLUMNS

TASK, IDLE = "agreement", "blimp:data/<script>alert(1).jsonl"
NEEDED, NOT_NEEDED = "attends and causal", "none"


def made_up_card(**changes):
    frames = {
        "verdicts": pd.DataFrame([verdict(TASK, NEEDED, -4.0, 0.8), verdict(IDLE, NOT_NEEDED, 0.01, np.nan)]),
        "tasks": pd.DataFrame([described(TASK), described(IDLE)]),
        "shares": table(
            "shares",
            (TASK, "logit_difference", 5.0, -4.0, -0.8, -0.9, -0.7, 0.1),
            (IDLE, "logit_difference", 6.0, 0.01, 0.002, -0.01, 0.01, 0.1),
        ),
        "halves": table(
            "halves",
            (TASK, "attention", 1, 0.7, 0.6, 0.8, 0.1, True),
            (TASK, "attention", 2, 0.05, 0.0, 0.1, 0.1, False),
            (TASK, "effect", 1, -4.1, -4.5, -3.7, 0.5, True),
            (TASK, "effect", 2, -3.9, -4.3, -3.5, 0.5, True),
            (IDLE, "effect", 1, 0.0, -0.1, 0.1, 0.6, False),
            (IDLE, "effect", 2, 0.02, -0.1, 0.1, 0.6, False),
        ),
        "replacements": table(
            "replacements",
            (TASK, "zero", -4.0, -4.4, -3.6, 0.5, "drop", -0.8, -0.88, -0.72, 1, 12, 40, ""),
            (TASK, "mean", -3.9, -4.3, -3.5, 0.5, "drop", -0.78, -0.86, -0.7, 1, 12, 40, ""),
            (TASK, "positional_mean", -0.1, -0.2, 0.0, 0.5, "none", -0.02, -0.04, 0.0, 3, 12, 40, ""),
            (IDLE, "zero", 0.01, -0.05, 0.06, 0.6, "none", 0.002, -0.01, 0.01, 9, 12, 40, ""),
            (IDLE, "mean", 0.0, -0.05, 0.05, 0.6, "none", 0.0, -0.01, 0.01, 8, 12, 40, ""),
            (IDLE, "positional_mean", *11 * [np.nan], "positions mean <b>different</b> things"),
        ),
        "agreement": table("agreement", (TASK, "zero", "positional_mean", 0.25, 0.1, 0.4)),
        "positions": table(
            "positions",
            (TASK, "BOS", 0.0, 0.0, 0.0, 0, 80),
            (TASK, "related", 0.0, 0.0, 0.0, 0, 80),
            (TASK, "query", 0.9, 0.85, 0.95, 80, 80),
            (TASK, "all", 0.91, 0.86, 0.96, 80, 80),
        ),
        "feeds": table(
            "feeds",
            (TASK, "embed", "2.1.v", "v", 0.6, 0.5, 0.7, 3.0, 40, 3),
            (TASK, "mlp.0", "2.1.k", "k", -0.3, -0.4, -0.2, -1.5, 40, 3),
            (TASK, "1.0", "2.1.q", "q", 0.001, 0.0, 0.002, 0.01, 40, 3),
        ),
        "readers": table("readers", (TASK, "2.1", "logits", "logits", 0.02, 0.01, 0.03, 0.1, 40, 1)),
        "feature": table(
            "feature",
            (TASK, "values at the related word", -3.5, -3.8, -3.2, 40, 35),
            (TASK, "feature", -2.5, -2.9, -2.1, 40, 35),
            (TASK, "random directions", -0.2, -0.3, 0.1, 40, 35),
        ),
        "circuits": table(
            "circuits",
            (TASK, " near", "query", 9, "looks for", 0, "\n", 2.5),
            (TASK, " keys", "related", 7, "raises", 0, " are", 3.5),
            (TASK, " keys", "related", 7, "lowers", 0, " is", -3.0),
        ),
        "groups": table("groups", (TASK, "0.3+2.1", "", "2.1", "no", -4.5, -5.0, -4.0, -0.3, -0.5, -0.1, 0.5)),
        "left_out": table(
            "left_out", *((IDLE, part, "no <b>counterfactual</b>") for part in ("feeds", "readers", "feature"))
        ),
    }
    maps = [attention(TASK, key, weight) for key, weight in enumerate((0.1, 0.8, 0.1))]
    examples = pd.DataFrame({"layer": 2, "head": 1, "task": [TASK, IDLE], "example": 0, "effect": [-4.0, 0.01]})
    rest = {
        "examples": examples,
        "attention_maps": pd.DataFrame(maps),
        "copying": 0.63,
        "provenance": {"head": "2.1", "seed": 0, "alpha": 0.05, "min_effect": 0.1, "tasks": [{"task": TASK}]},
    }
    return HeadCard(**{"name": "2.1", **frames, **rest, **changes})


def table(name, *rows):
    return pd.DataFrame(rows, columns=["task", *COLUMNS[name]])


def verdict(task, name, effect, attention):
    blank = dict.fromkeys((*HEAD_COLUMNS, *FURTHER_HEAD_COLUMNS), np.nan)
    known = {"layer": 2, "head": 1, "task": task, "verdict": name, "reason": "", "metric": "logit_difference"}
    known |= {"effect": effect, "effect_low": effect - 0.1, "effect_high": effect + 0.1, "min_effect": 0.5}
    known |= {"mean_replacement": "positional_mean", "mean_effect": effect / 2}
    known |= {"mean_effect_low": effect / 2 - 0.1, "mean_effect_high": effect / 2 + 0.1, "feature": "number"}
    known |= {"attention": attention, "attention_baseline": 0.1, "excess": attention - 0.1, "baseline": "offset -3"}
    known |= {"n_templates": 3, "n_templates_attended": 3, "relation": "subject", "partners": ""}
    known |= {"accuracy_base": 1.0, "accuracy_ablated": 0.5, "min_attention": 0.1, "representation": "none"}
    return blank | known


def described(task):
    numbers = {"n_units": 40, "n_examples": 80, "n_clusters": 35, "base": 5.0, "base_low": 4.8, "base_high": 5.2}
    numbers |= {"accuracy_base": 1.0, "accuracy_items": 1.0, "n_excluded": 0, "n_untagged": 0}
    words = {"description": "Does the verb agree?", "query": "predicting position", "metric": "logit_difference"}
    return {"task": task, **numbers, **words, "dropped": "", "coverage": ""}


def attention(task, key, weight):
    labels = dict.fromkeys(ATTENTION_COLUMNS, 0) | {"task": task, "rank": 1, "layer": 2, "head": 1}
    where = {"query_pos": 2, "key_pos": key, "is_query": key == 2, "is_related": key == 1}
    return labels | where | {"weight": weight, "token": " key"}
