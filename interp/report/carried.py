"""What do probes say of a head, in plain words?"""

import pandas as pd

from interp.report.amounts import listed


def unused_sentence(heads: pd.DataFrame) -> list[str]:
    """One sentence of all heads that carry the feature and are not shown to do anything with it."""
    found = heads[heads["verdict"] == "encodes, unused"].sort_values("probe", ascending=False)
    if found.empty:
        return []
    names = [f"{layer}.{head}" for layer, head in zip(found["layer"], found["head"], strict=True)]
    best = found.iloc[0]
    who = f"Head {names[0]} carries" if len(names) == 1 else f"Heads {listed(names)} carry"
    whose = "it" if len(names) == 1 else "any one of them"
    return [
        f"{who} {best['feature']} ({'' if len(names) == 1 else 'the first: '}{_readings(best)}), unused: "
        f"ablating {whose} costs {best['task']} less than the minimum."
    ]


def carried_sentence(row: pd.Series) -> str:
    """What a probe reads there; empty where it is not carried."""
    return f" A probe reads {row['feature']} there ({_readings(row)})." if row["representation"] == "carried" else ""


def _readings(row: pd.Series) -> str:
    return (
        f"accuracy {row['probe']:.2f} on unseen words; {row['probe_baseline']} {row['probe_baseline_score']:.2f}, "
        f"control task {row['probe_control']:.2f}"
    )
