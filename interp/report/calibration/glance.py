"""What does a notebook show of a calibration? The page's findings, and false claims with their intervals."""

import pandas as pd

from interp.report.calibration.figures import calibration
from interp.report.calibration.frames import CalibrationFrames
from interp.report.calibration.sentences import findings, share
from interp.report.glance import Glance


def calibration_glance(result: CalibrationFrames) -> Glance:
    """What a notebook shows of ``calibrate``."""
    table = result.false_discoveries
    shown = pd.DataFrame(
        {
            "nulls": table["kind"],
            "claim": table["claim"],
            "models with a false one": [share(row) for row in table.to_dict("records")],
        }
    )
    return Glance(
        "How often are verdicts right?",
        findings(result),
        shown,
        len(table),
        ".false_discoveries",
        {name: result.provenance[name] for name in ("seed",) if name in result.provenance},
        "interp.plots.calibration(result)",
        lambda: calibration(result),
    )
