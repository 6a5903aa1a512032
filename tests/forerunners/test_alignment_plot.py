import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from forerunners.alignment import alignment_heatmap
from interp.errors import InputError

SOURCE, TARGET, GOLD = ("the", "red", "$house$"), ("la", "maison", "la"), (0, 2, 1)
WEIGHTS = np.array([[0.8, 0.15, 0.05], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25]])


def frame():
    return pd.DataFrame(
        [
            {
                "query_pos": i,
                "target": TARGET[i],
                "key_pos": j,
                "source": SOURCE[j],
                "weight": WEIGHTS[i, j],
                "gold": GOLD[i] == j,
            }
            for i in range(3)
            for j in range(3)
        ]
    )


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_words_weights_and_truth_are_in_their_places(order):
    figure = alignment_heatmap(frame().iloc[order])
    ax = figure.axes[0]
    figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == list(SOURCE)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(TARGET)
    assert ax.collections[0].get_array().reshape(3, 3).tolist() == WEIGHTS.tolist()
    assert ax.collections[0].get_clim() == (0, 1)
    framed = {patch.get_xy() for patch in ax.patches if isinstance(patch, Rectangle) and not patch.get_fill()}
    assert framed == {(column, row) for row, column in enumerate(GOLD)}


def test_a_frame_of_another_shape_raises():
    with pytest.raises(InputError, match=r"got none called gold; make it with .*alignment_frame"):
        alignment_heatmap(frame().drop(columns="gold"))
    with pytest.raises(InputError, match="expected the rows of one sentence, got several rows of the same two words"):
        alignment_heatmap(pd.concat([frame(), frame()]))
    with pytest.raises(InputError, match="expected a row at least, got an empty frame"):
        alignment_heatmap(frame().iloc[:0])
