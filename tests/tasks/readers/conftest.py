import datasets
import pytest


@pytest.fixture
def save(tmp_path):
    """Write a data set with one split a list of rows; give its name."""

    def save(*, features=None, **splits):
        for split, rows in splits.items():
            datasets.Dataset.from_list(rows, features=features).to_parquet(tmp_path / f"{split}.parquet")
        return f"hub:{tmp_path}"

    return save
