"""What is shown of a sweep's cells: names, numbers, findings, and why a cell may have none of these."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic_sweeps import screened, shown_of, sweep

from interp.errors import InputError
from interp.report.sweep_cells import cell_name, headings, statuses, strongest_first, swept

TOKENS = {0: ("BOS", 1.0), 1: (" the", 0.5), 2: ("\n", 1.0)}


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"layer": 2, "head": 1}, "head 2.1"),
        ({"head": 1, "pos": "related", "layer": 2}, "head 2.1, related"),
        ({"layer": 2, "pos": 0}, "layer 2, position 0 (BOS)"),
        ({"layer": 2, "pos": 1}, "layer 2, position 1"),
        ({"layer": 0, "neuron": 17}, "neuron 0.17"),
        ({"layer": 0, "head": 1, "key": 2}, "head 0.1, attention to position 2 (␣)"),
        ({"heads": "1.1+2.2"}, "1.1+2.2"),
        ({"sender": "0.1", "receiver": "logits"}, "sender 0.1, receiver logits"),
    ],
)
def test_every_kind_of_cell_has_a_name(labels, name):
    assert cell_name(labels, TOKENS) == name


def test_a_position_is_called_by_its_token_where_all_prompts_have_it():
    assert headings("pos", [0, 1, 2, 3], TOKENS) == ["BOS", "1: the…", "␣", "3"]
    assert headings("pos", ["BOS", "related"], {}) == ["BOS", "related"]
    assert headings("head", [0, 1], TOKENS) == ["0", "1"]


def test_cells_stand_in_the_order_of_the_sweep():
    result = sweep(direction="denoise")
    shuffled = replace(result, cells=result.cells.iloc[::-1])
    assert list(swept(shuffled).cells["pos"].unique()) == ["BOS", "related", "last"]


def test_large_findings_are_told_from_small_ones_and_from_none():
    p = [1e-4, 1e-4, 0.5, *[np.nan] * 9]
    cells = shown_of(p_adjusted=p).cells
    assert list(cells["found"].head(4)) == ["large", "small", "", ""]
    assert shown_of().minimum == pytest.approx(0.5)


def test_what_changed_nothing_has_no_number_and_is_no_finding():
    states = {0: "identical input", 1: "unreachable", 2: "no-op"}
    cells = shown_of(direction="denoise", p_adjusted=1e-4, state=states).cells
    assert list(cells["state"].head(4)) == ["identical input", "unreachable", "no-op", ""]
    assert cells["shown"].head(3).isna().all()
    assert cells[["effect", "p_adjusted"]].head(3).isna().all(axis=None)
    assert list(cells["found"].head(3)) == ["", "", ""]
    assert strongest_first(cells)["state"].head(3).eq("").all()


def test_a_cell_that_changed_some_examples_says_how_many():
    examples = pd.DataFrame({"layer": [0, 0, 0, 1, 1], "status": ["changed", *["identical input"] * 2, *["no-op"] * 2]})
    found = statuses(examples, ["layer"])
    assert list(found["status"]) == ["changed in 1 of 3", "no-op"]
    assert list(found["state"]) == ["", "no-op"]


def test_effects_count_from_the_run_that_is_patched():
    assert [shown_of(direction=each).origin for each in (None, "denoise", "noise")] == [0.0, 0.0, 1.0]
    cells = shown_of(direction="noise").cells
    assert cells["shown"].iloc[0] == pytest.approx(-0.4)
    assert cells["normalised"].iloc[0] == pytest.approx(0.6)
    assert cells["found"].iloc[0] == "large"


def test_where_the_runs_do_not_differ_there_is_nothing_to_recover():
    cells = shown_of(direction="denoise", normalised=np.nan).cells
    assert set(cells["state"]) == {"nothing to recover"}


def test_a_kl_divergence_has_no_minimum():
    assert shown_of(how={"metric": "kl_divergence"}).minimum == 0.0


def test_after_a_screen_every_cell_is_there():
    cells = swept(screened()).cells
    assert len(cells) == 12
    assert list(cells["state"]) == [""] * 6 + ["not measured"] * 6
    assert list(strongest_first(cells)["estimate"].tail(6)) == sorted(cells["estimate"].tail(6), reverse=True)


def test_what_is_no_sweep_is_refused():
    with pytest.raises(InputError, match=r"expected what interp.ablate or interp.patch returns, got a DataFrame"):
        swept(sweep().cells)
    with pytest.raises(InputError, match="expected a row at least, got an empty frame"):
        swept(replace(sweep(), examples=sweep().examples.head(0)))
