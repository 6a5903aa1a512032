"""A job's result without the work: a tracker, a loud head and an idle one."""

from dataclasses import asdict

import pandas as pd

from interp.calibration.controls import NULLS

SINGLE = {"agreement": "tracks", "coreference": "tracks", "induction": "none"}
FOUND = {"tracker": "tracks", "loud": "general", "idle": "none"}


def fake_job(job):
    """Half the examples leave all but trackers undecided; nulls claim nothing."""
    if job.kind == "single head":
        rows = [
            {"layer": 0, "head": 0, "role": job.kind, "task": task, "truth": truth, "verdict": truth}
            for task, truth in SINGLE.items()
        ]
        return _filled(pd.DataFrame(rows), job)
    rows = []
    for head, (role, verdict) in enumerate(FOUND.items()):
        found = job.kind not in NULLS and (job.difficulty.n >= 80 or role == "tracker")
        said = verdict if found else "undecided"
        rows.append({"layer": 0, "head": head, "role": role, "truth": verdict, "verdict": said})
    frame = pd.DataFrame(rows).assign(task="agreement")
    if job.kind in NULLS:
        frame["truth"] = "none"
    return _filled(frame, job)


def _filled(frame, job):
    """What is the same of every row."""
    frame = frame.assign(partners="", share=job.difficulty.share, reason="", undecidable="", accuracy_base=1.0)
    states = dict.fromkeys(("attention_state", "effect_state", "representation"), "none")
    asked = {**asdict(job.difficulty), "kind": job.kind, "seed": job.seed, "seconds": 1.0}
    asked["tracker_share"] = asked.pop("share")
    numbers = {"effect": -1.0, "mean_effect": -2.0, "min_effect": 0.5, "exchange": -1.0, "min_exchange": 0.5}
    return frame.assign(**states, **numbers, **asked)
