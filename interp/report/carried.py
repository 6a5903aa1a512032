"""What do probes and erasure say of a head, in plain words?"""

import pandas as pd

from interp.report.amounts import change, listed, size
from interp.report.metrics import UNITS
from interp.report.verdicts import READABLE


def unused_sentence(heads: pd.DataFrame) -> list[str]:
    """One sentence of all heads that carry the feature and are not shown to do anything with it."""
    found = heads[heads["verdict"] == "encodes, unused"].sort_values("probe", ascending=False)
    if found.empty:
        return []
    names = [f"{layer}.{head}" for layer, head in zip(found["layer"], found["head"], strict=True)]
    best, unit = found.iloc[0], UNITS.get(found["metric"].iloc[0], found["metric"].iloc[0])
    who = f"Head {names[0]} carries" if len(names) == 1 else f"Heads {listed(names)} carry"
    whose = "it" if len(names) == 1 else "any one of them"
    return [
        f"{who} {best['feature']} ({'' if len(names) == 1 else 'the first: '}{_readings(best)}), unused: "
        f"{best['task']} can do without {whose}, and erasing {best['feature']} there moves the metric by "
        f"{size(found['erasure_effect'].abs().max())} {unit} where it moves it most."
    ]


def carried_sentence(row: pd.Series) -> str:
    """What a probe reads there, and what erasing it costs; empty where it is not carried."""
    if row["representation"] not in READABLE:
        return ""
    unit = UNITS.get(row["metric"], row["metric"])
    does = change(row["erasure_effect"], row["erasure_low"], row["erasure_high"], unit)
    return (
        f" A probe reads {row['feature']} there ({_readings(row)}); erasing it {does} (the effect of erasing random "
        f"directions is {size(row['erasure_random'])})."
    )


def _readings(row: pd.Series) -> str:
    return (
        f"accuracy {row['probe']:.2f} on unseen words; {row['probe_baseline']} {row['probe_baseline_score']:.2f}, "
        f"control task {row['probe_control']:.2f}"
    )
