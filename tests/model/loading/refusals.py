"""How a checkpoint is refused: with our error, in words that a test can match."""

import json

import pytest

from interp.errors import LoadError
from interp.model.loading import load_model


def refused(source, message, kind=LoadError, **options):
    with pytest.raises(kind, match=message):
        load_model(source, **options)


def change_config(folder, **fields):
    config = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v != "leave out"}))
