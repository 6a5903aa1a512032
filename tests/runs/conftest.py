"""What tests of kept sweeps and stores need."""

import pytest
from kept_sweeps import in_small_parts
from tiny_models import random_model

from interp.interventions.sweep_parts import SweepWork


@pytest.fixture
def model():
    return random_model()


@pytest.fixture
def out(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def small_parts(monkeypatch):
    """A small sweep has many parts."""
    in_small_parts(monkeypatch)


@pytest.fixture
def measured(monkeypatch):
    """The parts that are measured."""
    noted, run = [], SweepWork.run

    def noting(self, part):
        noted.append(part.number)
        return run(self, part)

    monkeypatch.setattr(SweepWork, "run", noting)
    return noted
