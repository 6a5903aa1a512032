"""What does a calibration look like? One of its figures by name; ``plots.py`` draws them."""

from typing import Literal, get_args

from matplotlib.figure import Figure

from interp.errors import InputError
from interp.report.calibration.frames import CalibrationFrames
from interp.report.calibration.plots import confusion, false_claims, recall_curves
from interp.report.given import chosen, require

Shown = Literal["confusion", "false claims", "recall"]


def calibration(result: CalibrationFrames, show: Shown = "confusion") -> Figure:
    """How often verdicts are right.

    Args:
        result: What ``interp.calibration.calibrate.calibrate`` returns.
        show: ``confusion`` (verdicts by what heads are), ``false claims`` (where nothing is to be found, with 95 %
            intervals) or ``recall`` (by what makes heads hard to find).

    Raises:
        InputError: It is something else, an unknown figure, or recall of a calibration without curves.
    """
    made_by = "interp.calibration.calibrate.calibrate"
    require(result, ("confusion", "false_discoveries", "curves", "provenance"), "calibration", made_by)
    which = chosen("show", show, get_args(Shown))
    if which == "confusion":
        return confusion(result.confusion)
    if which == "false claims":
        return false_claims(result.false_discoveries, result.provenance["alpha"])
    if not result.curves:
        raise InputError("show: a quick calibration has no curves of recall; run the full one, or show 'confusion'")
    return recall_curves(result)
