"""A run finds its answer, goes on where it ended, and computes nothing twice; what is damaged is made again."""

import dataclasses
import json
import os
import socket
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
import torch
from kept_sweeps import cells, events, stop_after, sweep, the_run, total, whole_files
from random_tasks import random_task, something_to_add
from tiny_models import random_gpt2, random_model, word_tokenizer

import interp
from interp.errors import InputError, LoadError, OutputError
from interp.interventions.engine.run import Engine
from interp.interventions.intervention import Intervention
from interp.interventions.sweep import Cell, Sweep
from interp.interventions.sweep_parts import SweepWork
from interp.model.devices import arithmetic, set_arithmetic
from interp.model.sites import Site
from interp.runs import key as record
from interp.runs.catalogue import runs_in
from interp.runs.executors import Local, Processes
from interp.runs.files import signed
from interp.runs.run import Run, answered, as_run
from interp.runs.run_folder import RunFolder

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("small_parts")]


def test_what_is_kept_is_what_is_measured_without_a_run(tmp_path):
    plain, kept = sweep(), sweep(Run(tmp_path))
    pd.testing.assert_frame_equal(plain.examples, kept.examples, check_exact=True)
    pd.testing.assert_frame_equal(plain.summary(), kept.summary(), check_exact=True)
    assert kept.provenance == {**plain.provenance, "run": the_run(tmp_path).name}


def test_the_same_question_finds_its_answer(tmp_path, measured, monkeypatch):
    first = sweep(Run(tmp_path))
    n = len(measured)
    assert n > 5
    monkeypatch.setattr(Engine, "base", lambda *_: pytest.fail("the model was run"))
    again = sweep(Run(tmp_path))
    assert len(measured) == n
    pd.testing.assert_frame_equal(first.examples, again.examples, check_exact=True)
    assert again.provenance == first.provenance


def test_a_question_that_is_refused_leaves_nothing(tmp_path, monkeypatch):
    def refusing(_self, _part):
        raise InputError("a cell: expected another")

    monkeypatch.setattr(SweepWork, "run", refusing)
    with pytest.raises(InputError, match="expected another"):
        sweep(Run(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_fails_later_keeps_what_is_complete(tmp_path, monkeypatch):
    left, run = iter(range(3)), SweepWork.run

    def refusing(self, part):
        if next(left, None) is None:
            raise InputError("a cell: expected another")
        return run(self, part)

    monkeypatch.setattr(SweepWork, "run", refusing)
    with pytest.raises(InputError, match="expected another"):
        sweep(Run(tmp_path))
    assert len(list((the_run(tmp_path) / "parts").iterdir())) == 3
    (known,) = runs_in(tmp_path)
    assert (known.n_parts, known.state) == (3, "begun")
    assert known.n_planned > 3


@pytest.mark.parametrize(
    "other",
    [
        {"model": {"seed": 1}},
        {"model": {"dtype": torch.float32}},
        {"n": 9},
        {"seed": 1},
        {"metric": "probability"},
        {"memory_budget": 10**8},
        {"plainly": True},
    ],
    ids=str,
)
def test_another_question_is_another_run(tmp_path, other):
    sweep(Run(tmp_path))
    sweep(Run(tmp_path), **other | {"model": random_model(n_layers=3, **other.get("model", {}))})
    assert len(list(tmp_path.iterdir())) == 2


def test_other_cells_threads_or_programs_are_another_run(tmp_path, monkeypatch):
    model = random_model(n_layers=3)
    sweep(Run(tmp_path))
    Sweep(cells(model)[:-1]).run(model, random_task(lengths=(6,) * 8), run=Run(tmp_path))
    torch.set_num_threads(2)
    sweep(Run(tmp_path))
    torch.set_num_threads(1)
    monkeypatch.setattr(record, "code_hash", lambda: "another")
    sweep(Run(tmp_path))
    assert len(list(tmp_path.iterdir())) == 4


def test_an_interrupted_run_goes_on(tmp_path, measured, monkeypatch):
    whole = sweep(Run(tmp_path / "whole"))
    parts = list(measured)
    measured.clear()
    with monkeypatch.context() as patched:
        patched.setattr("interp.runs.executors.Local.stream", stop_after(len(parts) * 3 // 4))
        with pytest.warns(RuntimeWarning, match="interrupted: the result holds the examples that were complete"):
            cut = sweep(Run(tmp_path / "cut"))
    assert not cut.provenance["complete"]
    assert 0 < len(cut.examples) < len(whole.examples)
    found = sweep(Run(tmp_path / "cut"))
    assert measured == parts, "none twice"
    pd.testing.assert_frame_equal(found.examples, whole.examples, check_exact=True)
    assert whole_files(tmp_path / "cut") == whole_files(tmp_path / "whole")


def test_processes_keep_the_same_bytes(tmp_path):
    sweep(Run(tmp_path / "here"))
    sweep(Run(tmp_path / "there", Processes(2)))
    assert whole_files(tmp_path / "here") == whole_files(tmp_path / "there")
    assert events(tmp_path / "there")["finished", ""] == 1


@pytest.mark.slow
def test_processes_without_a_folder_measure_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.testing.assert_frame_equal(sweep(Run(None, Processes(2))).examples, sweep().examples, check_exact=True)
    assert list(tmp_path.iterdir()) == []


class TestRefused:
    def test_two_writers(self, tmp_path):
        said = []

        def second(_done, _total):
            if not said:
                with pytest.raises(OutputError) as error:
                    sweep(Run(tmp_path))
                said.append(str(error.value))
                child = get_context("fork").Process(target=_second, args=(tmp_path,))
                child.start()
                child.join()
                said.append(child.exitcode)

        sweep(Run(tmp_path), progress=second)
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        run = the_run(tmp_path)
        told = f"run {run}: another process ({holder}) works on it; wait for it, or name another folder"
        assert said == [told, 7]
        assert total(events(tmp_path), "kept") == len(list((run / "parts").iterdir()))

    def test_a_folder_that_cannot_be_written(self):
        with pytest.raises(OutputError, match="expected a place that can be written, got"):
            sweep(Run("/proc/runs"))

    def test_a_file_in_the_place_of_the_folder(self, tmp_path):
        (tmp_path / "runs").write_text("")
        with pytest.raises(OutputError, match="Not a directory"):
            sweep(Run(tmp_path / "runs"))

    def test_a_full_disk_keeps_what_is_complete(self, tmp_path, monkeypatch, measured):
        whole = sweep(Run(tmp_path / "whole"))
        n_parts = len(measured)
        replace, calls = os.replace, iter(range(99))

        def full(*arguments):
            if next(calls) == 5:
                raise OSError(28, "No space left on device")
            return replace(*arguments)

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OutputError, match="got 'No space left on device'; name another, or make room and go on"):
            sweep(Run(tmp_path / "full"))
        monkeypatch.setattr(os, "replace", replace)
        kept = total(events(tmp_path / "full"), "kept")
        assert kept > 2
        measured.clear()
        pd.testing.assert_frame_equal(sweep(Run(tmp_path / "full")).examples, whole.examples, check_exact=True)
        assert len(measured) == n_parts - kept

    def test_hooks_that_no_hash_can_tell(self, tmp_path):
        model = random_model(n_layers=3)
        refused = pytest.raises(InputError, match="run: somebody's hooks are on the model")
        with model.hooks(fwd_hooks=[("blocks.0.attn.hook_z", lambda z, hook: 0 * z)]), refused:
            sweep(Run(tmp_path), model=model)
        assert list(tmp_path.iterdir()) == []

    def test_torchs_own_hooks(self, tmp_path):
        model = random_model(n_layers=3)
        model.blocks[0].attn.register_forward_hook(lambda _module, _inputs, output: 0 * output)
        with pytest.raises(InputError, match="somebody's hooks are on the model"):
            sweep(Run(tmp_path), model=model)

    @pytest.mark.parametrize(("labels", "said"), [([(0, 1), (0, 2)], "tuple"), ([0, "mlp"], "int, str")])
    def test_labels_that_no_table_holds(self, tmp_path, labels, said, measured):
        model = random_model(n_layers=3)
        own = [Cell({"which": label}, each.interventions) for label, each in zip(labels, cells(model), strict=False)]
        with pytest.raises(InputError, match=f"label 'which': expected numbers alone, or texts alone.*got {said}"):
            Sweep(own).run(model, random_task(), run=Run(tmp_path))
        assert measured == []

    def test_a_replacement_that_does_not_say_what_it_is(self, tmp_path):
        model = random_model(n_layers=3)
        cell = Cell({"layer": 0}, (Intervention(Site("z", 0), something_to_add(model)),))
        with pytest.raises(InputError, match="run: replacement 'add' has no identity, which tells it from others"):
            Sweep([cell]).run(model, random_task(), run=Run(tmp_path))
        Sweep([cell]).run(model, random_task(), run=Run(None))

    @pytest.mark.parametrize("given", [3, b"runs", ["runs"]])
    def test_what_is_no_run(self, given):
        with pytest.raises(InputError, match=r"run: expected a folder or an interp\.Run, got"):
            as_run(given)


def _second(folder):
    try:
        sweep(Run(folder))
    except OutputError as error:
        os._exit(7 if "another process" in str(error) else 1)
    os._exit(0)


@pytest.mark.parametrize("kind", ["mean", "positional_mean", "resample"])
def test_a_known_answer_needs_no_reference_run(tmp_path, kind, monkeypatch):
    model, task = random_model(), random_task(lengths=(6,) * 8)
    first = interp.ablate(model, task, replacement=kind, run=tmp_path)
    monkeypatch.setattr("interp.interventions.reference_set.activations_of", lambda *_: pytest.fail("it was run"))
    again = interp.ablate(model, task, replacement=kind, run=tmp_path)
    pd.testing.assert_frame_equal(first.examples, again.examples, check_exact=True)
    assert again.provenance == first.provenance


def test_resamples_of_other_draws_are_another_run(tmp_path):
    model, task = random_model(), random_task(lengths=(6,) * 8)
    found = [interp.ablate(model, task, replacement="resample", run=tmp_path, seed=seed) for seed in (0, 1)]
    assert len(list(tmp_path.iterdir())) == 2
    assert not np.array_equal(*(each.examples["value"] for each in found))


@pytest.mark.parametrize("executor", [Local(), pytest.param(Processes(2), marks=pytest.mark.slow)])
def test_patches_and_paths_are_kept(tmp_path, executor):
    model, task = random_model(), random_task(lengths=(6,) * 8)
    calls = [
        lambda run: interp.patch(model, task, by=("layer", "head", "pos"), run=run),
        lambda run: interp.path_patch(model, task, [["0.1", "1.2.q"], ["0.0", "logits"]], run=run),
    ]
    for call in calls:
        plain, first, again, elsewhere = (call(run).examples for run in (None, tmp_path, tmp_path, Run(None, executor)))
        for each in (first, again, elsewhere):
            pd.testing.assert_frame_equal(plain, each, check_exact=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_bridges_of_the_same_weights_are_told_apart(tmp_path):
    tokenizer, found = word_tokenizer(), []
    for activation in ("relu", "gelu_new"):
        folder = tmp_path / activation
        random_gpt2(vocab_size=len(tokenizer), activation_function=activation).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        found.append(sweep(Run(tmp_path / "runs"), model=interp.load_model(f"bridge:{folder}")))
    assert found[0].provenance["model_hash"] == found[1].provenance["model_hash"]
    assert found[0].provenance["run"] != found[1].provenance["run"]
    assert (found[0].examples["base"] != found[1].examples["base"]).all()


def test_other_arithmetic_is_another_run(tmp_path):
    keys = {sweep(Run(tmp_path)).provenance["run"]}
    before = arithmetic()
    try:
        set_arithmetic({**before, "mkldnn.enabled": not before["mkldnn.enabled"]})
        keys.add(sweep(Run(tmp_path)).provenance["run"])
    finally:
        set_arithmetic(before)
    assert len(keys) == 2


def test_numpys_numbers_are_numbers(tmp_path):
    one, other = (sweep(Run(tmp_path), seed=seed) for seed in (np.int64(3), 3))
    assert one.provenance["run"] == other.provenance["run"]


def test_who_asks_gets_the_name_that_the_model_has_now(tmp_path):
    first, second = random_model(n_layers=3), random_model(n_layers=3)
    second.name = "second"
    one, other = (sweep(Run(tmp_path), model=model) for model in (first, second))
    assert one.provenance["run"] == other.provenance["run"]
    assert (one.provenance["model"], other.provenance["model"]) == ("random", "second")


def test_what_somebody_finished_meanwhile_is_not_measured_again(tmp_path, monkeypatch, measured):
    held, others = RunFolder.held, []

    def meanwhile(self):
        if not others:
            others.append(self)
            sweep(Run(tmp_path))
        return held(self)

    monkeypatch.setattr(RunFolder, "held", meanwhile)
    result = sweep(Run(tmp_path))
    assert len(measured) == len(set(measured)) > 3
    assert result.provenance["run"] == the_run(tmp_path).name


def test_facts_of_something_else_are_told(tmp_path):
    @dataclasses.dataclass
    class Found:
        frame: pd.DataFrame
        provenance: dict

    def ask():
        return answered(
            Run(tmp_path), lambda: {"kind": "found"}, {}, Found, lambda: Found(pd.DataFrame({"x": [1]}), {"y": 2})
        )

    assert ask().provenance["y"] == 2
    path = the_run(tmp_path) / "result.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    for facts in ({"run": "1"}, {"run": "1", "answers": [{}]}, {"run": "1", "answers": [{"provenance": {}, "z": 1}]}):
        path.write_text(signed(content | {"facts": facts}))
        with pytest.raises(LoadError, match="run 1: expected the tables and facts of a Found, got others"):
            ask()


def test_where_nothing_is_kept_nobody_asks_what_is_asked():
    @dataclasses.dataclass(frozen=True)
    class Found:
        n: int

    for run in (None, Run(None), Run(None, Processes(2))):
        assert answered(run, lambda: pytest.fail("hashes are asked for"), {}, Found, lambda: Found(3)) == Found(3)
