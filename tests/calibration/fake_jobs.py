"""A job's result without the work: a tracker, a loud head and an idle one."""

from dataclasses import asdict

import pandas as pd

FOUND = {"tracker": "tracks", "loud": "general", "idle": "none"}


def fake_job(job):
    """Half the examples leave all but trackers undecided; nulls claim nothing."""
    rows = []
    for head, (role, verdict) in enumerate(FOUND.items()):
        found = job.kind == "planted" and (job.difficulty.n >= 60 or role == "tracker")
        said = verdict if found else "undecided"
        rows.append({"layer": 0, "head": head, "role": role, "truth": verdict, "verdict": said, "ungated": said})
    frame = pd.DataFrame(rows).assign(
        task="agreement", share=job.difficulty.share, twin="", partners="", undecidable=""
    )
    if job.kind != "planted":
        frame["truth"] = "none"
    states = dict.fromkeys(("attention_state", "effect_state", "representation"), "none")
    p = {"effect_p": 0.3, "attention_p": 0.5, "probe_p": 0.7, "effect": -1.0}
    asked = {**asdict(job.difficulty), "kind": job.kind, "seed": job.seed, "alpha": job.alpha, "seconds": 1.0}
    asked["tracker_share"] = asked.pop("share")
    return frame.assign(**states, **p, **asked)
