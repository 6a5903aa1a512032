"""Which cell speaks for all? Those that encode the feature come first, then those with the largest excess."""

import pandas as pd

from interp.report.probes.verdicts import ENCODES


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells in this order; of equal excess, the more selective first."""
    order = frame.assign(_encodes=frame["verdict"] == ENCODES)
    order = order.sort_values(["_encodes", "excess", "selectivity"], ascending=False, kind="stable")
    return order.drop(columns="_encodes")
