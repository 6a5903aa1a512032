"""What the faked methods answer: one task with two heads."""

import numpy as np
import pandas as pd

from interp.methods.dossier import HeadsReport
from interp.report.heads_frames import ATTENTION_COLUMNS, FURTHER_HEAD_COLUMNS

TASK = "blimp:data/made_up.jsonl"


def head(number: int, verdict: str, effect: float) -> dict[str, object]:
    return {
        "layer": 0,
        "head": number,
        "task": TASK,
        "query": "predicting position",
        "attention": 0.8 if verdict == "attends and causal" else np.nan,
        "attention_baseline": 0.1 if verdict == "attends and causal" else np.nan,
        "excess_p_adjusted": 0.001,
        "effect": effect,
        "effect_low": effect - 0.2,
        "effect_high": effect + 0.2,
        "effect_p_adjusted": 0.001,
        "mean_replacement": "template_mean",
        "mean_effect": effect,
        "mean_effect_low": effect - 0.1,
        "mean_effect_high": effect + 0.1,
        "mean_effect_p_adjusted": 0.001,
        "accuracy_base": 0.97,
        "accuracy_ablated": 0.55,
        "verdict": verdict,
        "reason": "",
        "baseline": "offset -3",
        "excess": 0.7 if verdict == "attends and causal" else np.nan,
        "baseline_overlap": np.nan,
        "attention_value": "",
        "attention_values": "",
        "n_attention_values": 1,
        "attention_self": 0.1,
        "attention_first": 0.2,
        "n_to_decide": np.nan,
        "min_attention": 0.1,
        "min_effect": 0.2,
        "metric": "sentence_log_probability",
        "relation": "subject",
        "n_units": 50,
        "n_clusters": 40,
        "n_effective": 50.0,
        "n_attention_clusters": 40,
        "n_excluded": 12,
        "n_templates": 3,
        "n_templates_attended": 3,
        **dict.fromkeys(FURTHER_HEAD_COLUMNS[FURTHER_HEAD_COLUMNS.index("feature") :], np.nan),
        **dict.fromkeys(("probe", "probe_control", "selectivity", "probe_excess_p_adjusted"), np.nan),
        **dict.fromkeys(("exchange", "exchange_low", "exchange_high", "exchange_p_adjusted"), np.nan),
    }


REPORT = HeadsReport(
    cells=pd.DataFrame([head(0, "attends and causal", -3.0), head(1, "none", 0.01)]),
    examples=pd.DataFrame({"task": [TASK], "layer": [0], "head": [0], "effect": [-3.0]}),
    replication=pd.DataFrame(columns=["task", "verdict", "model", "heads", "n_heads"]),
    groups=pd.DataFrame(columns=["task", "heads", "head", "member"]),
    tasks=pd.DataFrame(
        [
            {
                "task": TASK,
                "description": "Is the good sentence likelier?",
                "n_units": 50,
                "n_examples": 62,
                "n_clusters": 40,
                "base": 6.0,
                "base_low": 5.5,
                "base_high": 6.5,
                "accuracy_base": 0.97,
                "accuracy_items": 0.968,
                "query": "predicting position",
                "metric": "sentence_log_probability",
                "n_excluded": 12,
                "n_untagged": 0,
                "dropped": "unequal lengths: 3",
                "coverage": "known words: 84 %",
            }
        ]
    ),
    attention_maps=pd.DataFrame(columns=list(ATTENTION_COLUMNS)),
    provenance={"model": "tiny", "seed": 0, "left_out": {}},
)
