"""Does the package compute what it computed before it was rebuilt? Tables of version 0.1.0, on the embedded model.

``python tests/test_same_numbers.py`` writes them anew. They go when the rebuilding is done.
"""

from pathlib import Path

import pandas as pd
import pytest
import torch

import interp

pytestmark = pytest.mark.unchecked

FOLDER = Path(__file__).parent / "same_numbers"


def heads(model):
    found = interp.heads(model, ["agreement"], n=48)
    cells = found.summary().rename(columns={"min_exchange": "exchange_minimum"})
    cells = cells.rename(columns=lambda name: name.replace("min_", "minimum_"))
    # Version 0.1.0 called a head undecided whose effect is shown, and whose attention or exchange is not decided.
    needed = cells["verdict"] == "needed"
    assert (cells.loc[needed, "effect_state"] == "drop").all()
    reason = cells["reason"].replace(
        "where it looks is undecided", "the task needs the head, and its attention is undecided"
    )
    cells = cells.assign(verdict=cells["verdict"].replace("needed", "undecided"), reason=reason)
    return {"heads": cells, "heads_examples": found.examples.query("layer == 1")}


def ablate(model):
    return {
        f"ablate_{kind}": interp.ablate(model, "agreement", replacement=kind, n=48).summary()
        for kind in ("zero", "mean", "positional_mean", "resample")
    }


def patch(model):
    return {"patch": interp.patch(model, "agreement", by=("layer", "head", "pos"), n=48).summary()}


def path_patch(model):
    from interp.methods.paths import paths_to

    return {"path_patch": interp.path_patch(model, "agreement", paths_to(model, "2.2.v"), n=48).summary()}


def attend(model):
    from interp.tasks import agreement
    from interp.tasks.generated_corpus import linked_documents

    found = interp.attend(model, list(linked_documents(agreement.pairs(60, seed=0))), ["subject"])
    return {"attend": found.summary(), "attend_relations": found.relations}


def probe(model):
    return {
        "probe": interp.probe(model, "agreement", "number", n=60).summary(),
        "probe_stream": interp.probe(model, "agreement", "number", site="resid_post", n=60).summary(),
    }


def erase(model):
    from interp.methods.erasure.erase import erase

    return {"erase": erase(model, "agreement", "number", layers=[1, 2], n=60).summary()}


CALLS = [heads, ablate, patch, path_patch, attend, probe, erase]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_numbers_are_those_of_version_0_1_0(call):
    for name, found in call(interp.load_model(dtype="float64")).items():
        expected = pd.read_parquet(FOLDER / f"{name}.parquet")
        assert list(found.columns) == list(expected.columns)
        pd.testing.assert_frame_equal(
            found.reset_index(drop=True), expected, check_dtype=False, rtol=1e-6, atol=1e-6, obj=name
        )


if __name__ == "__main__":
    torch.set_num_threads(1)  # as under pytest
    FOLDER.mkdir(exist_ok=True)
    for call in CALLS:
        for name, table in call(interp.load_model(dtype="float64")).items():
            table.reset_index(drop=True).to_parquet(FOLDER / f"{name}.parquet", index=False)
            print(name, table.shape)
