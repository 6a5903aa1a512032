"""Synthetic dossiers: frames as the report takes them, with invented numbers and hostile text."""

from typing import Any

import numpy as np
import pandas as pd

from interp.methods.dossier import HeadsReport

TASKS = ("agreement", "coreference", "blimp:données/naïve_accord.jsonl")
VERDICTS = (
    *("tracks", "attends and causal", "attends, not causal", "causal, by another route", "causal", "redundant"),
    *("general", "encodes, unused", "opposes", "none", "undecided"),
)
EFFECTS = {
    **{"tracks": -4.4, "attends and causal": -4.2, "attends, not causal": -0.02, "causal, by another route": -1.3},
    **{"causal": -1.1, "general": -2.0, "opposes": 0.8},
}
SENTENCE = ("<|endoftext|>", " The", " café", "<script>alert(1)</script>", " to", " the", " Zoë", " are")


def synthetic_report(
    seed: int = 0, *, n_layers: int = 3, n_heads: int = 4, tasks: tuple[str, ...] = TASKS
) -> HeadsReport:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        [_head(rng, layer, head, task) for task in tasks for layer in range(n_layers) for head in range(n_heads)]
    )
    return HeadsReport(
        cells=frame,
        examples=_examples(rng, frame),
        tasks=pd.DataFrame([_task(task) for task in tasks]),
        groups=pd.DataFrame({"task": tasks[:1], "heads": "0.1+2.3", "head": "2.3", "member": "yes"}),
        replication=pd.DataFrame(columns=["task", "verdict", "model", "heads", "n_heads"]),
        attention_maps=_attention_maps(rng, tasks),
        provenance={
            "seed": seed,
            "correction": "max-T",
            "tolerance": np.float64(1e-5),
            "unknown": float("nan"),
            "tasks": [
                {
                    "model": "<b>tiny</b> modèle",
                    "model_hash": "0123456789abcdef" * 4,
                    "device": "cpu",
                    "versions": {"torch": "2.10", "numpy": np.str_("2.4")},
                    "task": task,
                    "data_hash": f"{number}abc",
                }
                for number, task in enumerate(tasks)
            ],
        },
    )


def _head(rng: np.random.Generator, layer: int, head: int, task: str) -> dict[str, Any]:
    chances = (*(0.05, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.1, 0.05), 0.2, 0.15)
    first = layer == 1 and head == 3
    verdict = "attends and causal" if first else str(rng.choice(VERDICTS, p=chances))
    probed = task == "agreement"
    if not probed:
        verdict = {"tracks": "attends and causal", "encodes, unused": "none"}.get(verdict, verdict)
    effect = EFFECTS.get(verdict, 0.0) + 0.05 * rng.standard_normal()
    testable = verdict != "causal"
    attends = verdict.startswith(("attends", "tracks"))
    carried = verdict in ("tracks", "encodes, unused")
    probe = (0.9 if carried else rng.uniform(0.5, 0.6)) if probed else np.nan
    attention = (rng.uniform(0.6, 0.9) if attends else rng.uniform(0.0, 0.3)) if testable else np.nan
    return {
        "layer": layer,
        "head": head,
        "task": task,
        "query": "predicting position",
        "attention": attention,
        "attention_baseline": 0.12 if testable else np.nan,
        "excess_p_adjusted": (1e-4 if attends else 0.7) if testable else np.nan,
        "effect": effect,
        "effect_low": effect - 0.3,
        "effect_high": effect + 0.3,
        "effect_p_adjusted": 0.001 if abs(effect) > 0.5 else 0.6,
        "mean_replacement": "positional_mean" if probed else "template_mean",
        "mean_effect": 0.9 * effect,
        "mean_effect_low": 0.9 * effect - 0.2,
        "mean_effect_high": 0.9 * effect + 0.2,
        "mean_effect_p_adjusted": 0.002 if abs(effect) > 0.5 else 0.7,
        "accuracy_base": 1.0,
        "accuracy_ablated": 0.62 if effect < -0.5 else 1.0,
        "verdict": verdict,
        "reason": "the effect is undecided" if verdict == "undecided" else "",
        "baseline": "offset -3" if testable else None,
        "excess": attention - 0.12,
        "baseline_overlap": 0.0 if testable else np.nan,
        "attention_value": "singular" if probed else "",
        "attention_values": "plural, singular" if probed and attends else "",
        "n_attention_values": 2 if probed else 1,
        "attention_self": 0.08 if testable else np.nan,
        "attention_first": 0.61 if testable and not attends else np.nan,
        "n_to_decide": float(rng.integers(300, 900)) if verdict == "undecided" else np.nan,
        "min_attention": 0.1,
        "min_effect": 0.2,
        "metric": "logit_difference",
        "relation": "subject",
        "n_units": 200,
        "n_clusters": 90,
        "n_effective": 200.0,
        "n_attention_clusters": 90 if testable else 0,
        "n_excluded": 0,
        "n_templates": 3,
        "n_templates_attended": 3,
        **_exchange(effect, attends and effect < -0.5),
        "attention_state": ("shown" if attends else "none") if testable else "not testable",
        "effect_state": "drop" if effect < -0.5 else "rise" if effect > 0.5 else "none",
        "specificity": "general" if verdict == "general" else "specific",
        "partners": "2.3 0.1" if verdict == "redundant" else "",
        "group": f"0.1+{layer}.{head}+2.3" if verdict == "redundant" else "",
        "group_effect": -3.1 if verdict == "redundant" else np.nan,
        "group_low": -3.4 if verdict == "redundant" else np.nan,
        "group_high": -2.8 if verdict == "redundant" else np.nan,
        "group_share": -2.1 if verdict == "redundant" else np.nan,
        "group_share_low": -2.4 if verdict == "redundant" else np.nan,
        "group_share_high": -1.8 if verdict == "redundant" else np.nan,
        "feature": "number" if probed else None,
        "representation": ("carried" if carried else "none") if probed else "not testable",
        "probe": probe,
        "probe_low": probe - 0.05,
        "probe_high": probe + 0.05,
        "probe_baseline": "majority" if probed else None,
        "probe_baseline_score": 0.5 if probed else np.nan,
        "probe_excess": probe - 0.5,
        "probe_control": 0.52 if probed else np.nan,
        "selectivity": probe - 0.52,
        "probe_excess_p_adjusted": 0.001 if carried else np.nan,
        "min_probe": 0.1,
    }


def _exchange(effect: float, needed: bool) -> dict[str, Any]:
    """Of heads that look and are needed: the answer turns, which is twice what is lost without it."""
    turned = 2 * effect if needed else np.nan
    return {
        "exchange": turned,
        "exchange_low": turned - 0.3,
        "exchange_high": turned + 0.3,
        "min_exchange": 0.25,
        "exchange_p_adjusted": 0.001 if needed else np.nan,
        "exchange_p_absent": 1.0 if needed else np.nan,
        "exchange_state": "drop" if needed else "not testable",
    }


def _examples(rng: np.random.Generator, frame: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    cells = frame[["task", "layer", "head", "effect"]].loc[frame.index.repeat(n)].reset_index(drop=True)
    effect = cells["effect"] + 0.1 * rng.standard_normal(len(cells))
    return cells.assign(example=np.arange(len(cells)) % n, base=5.0, value=5.0 + effect, effect=effect)


def _task(task: str) -> dict[str, Any]:
    return {
        "task": task,
        "description": "Does the verb agree with its subject? <b>bold</b>",
        "n_units": 200,
        "n_examples": 400,
        "n_clusters": 90,
        "base": 5.1,
        "base_low": 4.9,
        "base_high": 5.3,
        "accuracy_base": 1.0,
        "accuracy_items": 0.981,
        "query": "predicting position",
        "metric": "logit_difference",
        "relation": "subject",
        "n_excluded": 0,
        "n_untagged": 0,
        "dropped": "12 answers longer than one token" if task.startswith("blimp") else "",
        "coverage": "84 % of items in the lexicon" if task.startswith("blimp") else "",
    }


def _attention_maps(rng: np.random.Generator, tasks: tuple[str, ...]) -> pd.DataFrame:
    heads = [(task, rank, *place) for task in tasks for rank, place in enumerate([(1, 3), (0, 2)])]
    return pd.DataFrame([row for head in heads for example in range(2) for row in _pattern(rng, *head, example)])


def _pattern(rng: np.random.Generator, task: str, rank: int, layer: int, head: int, example: int) -> list[dict]:
    last = len(SENTENCE) - 1
    rows = []
    for query in range(last + 1):
        weights = rng.dirichlet(np.where(np.arange(query + 1) == 3, 6.0, 0.4))
        rows += [
            {
                "task": task,
                "rank": rank,
                "layer": layer,
                "head": head,
                "verdict": "tracks",
                "example": example,
                "query_pos": query,
                "key_pos": key,
                "weight": weight,
                "token": SENTENCE[key],
                "is_query": key == last,
                "is_related": key == 3,
                "is_distractor": key == 6,
            }
            for key, weight in enumerate(weights)
        ]
    return rows
