import pandas as pd
import pytest

from interp.errors import OutputError
from interp.report.table import check_table, save_table

FRAME = pd.DataFrame({"layer": [0, 1], "effect": [-0.5, None], "word": ["café", "a,b"]})


def test_a_table_comes_back_as_it_went(tmp_path):
    file = save_table(FRAME, tmp_path / "effects.csv")
    pd.testing.assert_frame_equal(pd.read_csv(file), FRAME)
    assert [path.name for path in tmp_path.iterdir()] == ["effects.csv"]


def test_an_older_table_is_replaced(tmp_path):
    save_table(FRAME, tmp_path / "effects.csv")
    save_table(FRAME.head(1), tmp_path / "effects.csv")
    assert len(pd.read_csv(tmp_path / "effects.csv")) == 1


@pytest.mark.parametrize("name", ["effects.txt", "folder.csv", "missing/effects.csv"])
def test_a_place_that_cannot_take_a_table_is_refused(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match="name another with --out"):
        check_table(tmp_path / name)


def test_checking_leaves_no_trace_and_an_older_table_alone(tmp_path):
    save_table(FRAME, tmp_path / "effects.csv")
    before = (tmp_path / "effects.csv").read_bytes()
    check_table(tmp_path / "effects.csv")
    assert (tmp_path / "effects.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["effects.csv"]


def test_what_fails_at_the_last_step_is_an_output_error_and_leaves_nothing(tmp_path, monkeypatch):
    save_table(FRAME, tmp_path / "effects.csv")
    before = (tmp_path / "effects.csv").read_bytes()

    def busy(*_arguments):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr("interp.report.table.os.replace", busy)
    with pytest.raises(OutputError, match="got 'Device or resource busy'; name another with --out"):
        save_table(FRAME.head(1), tmp_path / "effects.csv")
    assert (tmp_path / "effects.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["effects.csv"]
