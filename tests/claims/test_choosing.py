import numpy as np
import pandas as pd

from interp.claims.choosing import choose

ROWS = pd.DataFrame(
    {
        "effect_p": [0.01, 0.2, 0.01, np.nan],
        "mean_effect_p": [0.01, 0.01, 0.2, 0.01],
        "excess_p": [0.01, 0.2, 0.05, np.nan],
        "probe_excess_p": [0.01, 0.2, 0.051, np.nan],
    }
)


def test_what_is_beyond_its_minimum_by_its_raw_p_is_chosen():
    found = choose(ROWS, 0.05)
    assert found["effect"].tolist() == [True, False, False, False]  # under both replacements, or not at all
    assert found["excess"].tolist() == [True, False, True, False]
    assert found["probe"].tolist() == [True, False, False, False]
    assert found["exchange"].tolist() == [True, False, False, False]  # of a head that looks and matters
    assert choose(ROWS, 0.2)["effect"].tolist() == [True, True, True, False]
