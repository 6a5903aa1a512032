"""Which notebooks take too long for ``make test``? Those above some 15 seconds on a quiet machine are marked slow."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
SLOW = {
    "03_ablate_heads",
    "04_patch_activations",
    "05_probe_control_erase",
    "06_head_dossier",
    "08_your_own_model",
    "09_from_transformerlens",
}


def pytest_collection_modifyitems(items):
    """Hand the mark to what ``nbmake`` has collected here; ``make test-all`` runs all of them."""
    for item in items:
        if item.path.parent == HERE and item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)
