"""How much memory does a sweep take? No more than it is given; and where memory runs out, it goes on with less."""

import gc
import json
import os
import re
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from random_tasks import change, random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.engine.base_run import OFFLOADED_TO
from interp.interventions.engine.layers import Wavefront
from interp.interventions.engine.plan import DEFAULT_BUDGET, NoRoomError, budget_of
from interp.interventions.engine.run import Engine
from interp.interventions.replacement import Patch, Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site

MEGABYTE = 1_000_000
MEASURED = [  # site, replacement, metric, units, megabytes
    ("z", "zero", "logit_difference", 16, 25),
    ("z", "zero", "logit_difference", 16, 50),
    ("z", "zero", "logit_difference", 16, 100),
    ("resid_pre", "patch", "logit_difference", 8, 50),
    ("pattern", "patch", "logit_difference", 8, 50),
    ("result", "patch", "logit_difference", 8, 50),
    ("q_input", "patch", "logit_difference", 8, 50),
    ("z", "zero", "kl_divergence", 8, 50),
    ("mlp_post", "mean", "logit_difference", 8, 50),
    ("resid_pre", "positional_mean", "logit_difference", 8, 50),
    ("resid_pre", "erase", "logit_difference", 8, 50),
]
SCRIPT = """
import ctypes, gc, json, sys, warnings
import torch
from random_tasks import change, random_task
from interp.model import provenance
from interp.interventions.engine import plan
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Erase, Eraser, Patch
from interp.interventions.sweep import Cell, Sweep
from interp.model.config import TransformerConfig
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer

torch.set_num_threads(1)
warnings.simplefilter("ignore")
plan.TOKENS_AT_ONCE["cpu"] = 10**6  # so that it is the budget that binds
shape = {"n_layers": 4, "n_heads": 12, "d_model": 768, "d_head": 64, "d_mlp": 3072, "d_vocab": 10_000, "n_ctx": 32}
model = HookedTransformer(TransformerConfig(**shape, init_std=0.2))


def made(kind, task, sites, budget):
    if kind == "patch":
        return Patch(model, sites)
    if kind == "erase":
        rows = torch.randn(17, 768, dtype=torch.float64) / 768**0.5
        return Erase.of(model, dict.fromkeys([(0, site) for site in sites], [[Eraser(rows[0], rows[1:9], rows[9:])]]))
    return make_replacement(kind, model, task, sites=sites, memory_budget=budget)


def sweep(name, kind, metric, units, megabytes):
    budget, sites = megabytes * 10**6, (Site(name, 2), Site(name, 0))
    task = random_task(0, lengths=(24,) * units, d_vocab=1000, n_references=128)
    replacement = made(kind, task, sites, budget)
    places = [(2, None), (2, (1, 2)), (2, (1,)), (2, (2,)), (0, (20,))]
    cells = [
        Cell({"cell": number}, (change(name, layer, replacement, positions=positions),))
        for number, (layer, positions) in enumerate(places)
    ]
    direction = "denoise" if kind == "patch" else None
    return Sweep(cells).run(model, task, metric=metric, direction=direction, memory_budget=budget)


def resident(field):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def measured(*case):
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # the peak begins anew
    before = resident("VmRSS")
    result = sweep(*case)
    return {
        "peak": resident("VmHWM") - before,
        "values": result.examples["value"].tolist(),
        "batches": result.provenance["batches"],
        "audit": result.provenance["audit"]["largest_difference"],
    }


hash_of_weights, provenance.weights_hash = provenance.weights_hash, lambda model: "not of interest"
cases = json.loads(sys.argv[1])
for case in cases:
    sweep(*case)  # from here on the libraries hold what they keep: oneDNN, code for each shape of a product
found = [measured(*case) for case in cases]
provenance.weights_hash = hash_of_weights
found.append(measured(*cases[0][:3], 1, 50))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def measured():
    """Peaks of resident memory above what the model takes, in a process of its own."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not say how much memory a process has held at most")
    # Freed memory goes back to the system at once: what is measured is what is held, not the allocator's leftovers.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, "-c", SCRIPT, json.dumps(MEASURED)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    *cases, with_hash = json.loads(run.stdout.splitlines()[-1])
    return dict(zip(MEASURED, cases, strict=True)) | {"with hash": with_hash}


@pytest.mark.slow
class TestPeak:
    @pytest.mark.parametrize("case", MEASURED, ids=lambda case: " ".join(map(str, case)))
    def test_it_stays_within_the_budget(self, measured, case):
        assert measured[case]["peak"] <= 1.1 * case[-1] * MEGABYTE

    def test_it_is_the_budget_that_binds(self, measured):
        """Otherwise the test above could not fail."""
        peaks = [measured[case]["peak"] / MEGABYTE for case in MEASURED[:3]]
        assert peaks[0] > 15
        assert peaks[1] > 1.5 * peaks[0]
        assert peaks[2] > 1.5 * peaks[1]

    def test_whatever_the_budget_the_results_are_the_same(self, measured):
        one, *others = (measured[case] for case in MEASURED[:3])
        assert len({each["batches"] for each in (one, *others)}) > 1
        for other in others:
            largest = np.abs(one["values"]).max()
            np.testing.assert_allclose(other["values"], one["values"], rtol=0, atol=1e-5 * largest)
            assert 0 <= other["audit"] <= 1e-5

    def test_naming_the_model_by_its_hash_takes_no_more(self, measured):
        assert measured["with hash"]["peak"] <= 1.1 * 50 * MEGABYTE


@pytest.fixture(scope="module")
def model():
    return random_model(n_layers=3)


def cells(name="z", layers=(0, 1, 2), positions=((1,), (3,), None)):
    return [
        Cell(
            {"layer": layer, "at": number},
            (change(name, layer, Zero(), positions=some),),
        )
        for layer in layers
        for number, some in enumerate(positions)
    ]


def needed(model, task, budget=1, name="z", **options):
    """The bytes that the refusal of a budget of 1 names."""
    with pytest.raises(
        InputError, match=r"memory budget: one cell on one row of \d+ tokens takes [\d,]+ bytes"
    ) as told:
        Sweep(cells(name)).run(model, task, memory_budget=budget, **options)
    assert f"got a budget of {budget:,}; give at least the former" in str(told.value)
    return int(re.search(r"takes ([\d,]+) bytes", str(told.value))[1].replace(",", ""))


@pytest.mark.parametrize("asked", ["1GB", "100", 1e8, True, 0, -1, np.float32(9), np.int64(0)], ids=repr)
def test_what_is_no_number_of_bytes_is_refused(asked):
    with pytest.raises(InputError, match="memory budget: expected a number of bytes from 1, got"):
        budget_of(torch.device("cpu"), asked)


def test_a_budget_is_pythons_number_or_the_devices():
    assert (budget_of(torch.device("cpu"), None), budget_of(torch.device("cuda"), None)) == (
        DEFAULT_BUDGET["cpu"],
        DEFAULT_BUDGET["cuda"],
    )
    found = budget_of(torch.device("cpu"), np.int64(10**8))
    assert (found, type(found)) == (10**8, int)


@pytest.mark.gpu
def test_of_a_gpu_with_little_memory_half_of_what_is_free_is_taken(monkeypatch):
    held = torch.zeros(2**26, device="cuda")  # of PyTorch, who may hold more than its tensors take
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (3 * 2**30, 4 * 2**30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device=None: torch.cuda.memory_allocated() + 2**29)
    assert budget_of(held.device, None) == 7 * 2**28
    assert budget_of(held.device, 5) == 5
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (2**36, 2**36))
    assert budget_of(held.device, None) == DEFAULT_BUDGET["cuda"]


class TestSmallBudgets:
    @pytest.mark.parametrize("metric", ["logit_difference", "kl_divergence"])
    def test_a_budget_that_is_too_small_says_what_is_needed(self, model, metric):
        task = random_task(0, lengths=(6, 6, 6))
        enough = needed(model, task, metric=metric)
        assert needed(model, task, enough - 1, metric=metric) == enough
        small = Sweep(cells()).run(model, task, memory_budget=enough, metric=metric)
        large = Sweep(cells()).run(model, task, metric=metric)
        np.testing.assert_allclose(small.examples["value"], large.examples["value"], rtol=1e-10, atol=1e-12)
        assert (small.provenance["batches"], large.provenance["batches"]) == (6, 1)
        assert small.provenance["memory_budget"] == enough

    def test_what_is_needed_is_what_the_longest_prompt_needs(self, model):
        task = random_task(0, lengths=(4, 9, 6))
        Sweep(cells()).run(model, task, memory_budget=needed(model, task))

    def test_what_is_needed_is_what_the_longest_continuation_needs(self, model):
        task = random_task(0, lengths=(5, 6, 7), answers=(3, 1), metric="sentence_log_probability")
        Sweep(cells()).run(model, task, memory_budget=needed(model, task))

    @pytest.mark.parametrize("metric", ["logit_difference", "sentence_log_probability", "probability"])
    def test_three_budgets_give_the_same_results(self, model, metric):
        answers = (2, 1) if metric == "sentence_log_probability" else (1, 1)
        task_metric = metric if answers == (2, 1) else "logit_difference"
        task = random_task(2, lengths=(6, 7, 6, 7), answers=answers, metric=task_metric)
        runs = [
            Sweep(cells("resid_mid")).run(model, task, metric=metric, memory_budget=budget)
            for budget in (36_000, 70_000, 10**9)
        ]
        assert len({each.provenance["batches"] for each in runs}) == 3
        for each in runs[1:]:
            np.testing.assert_allclose(each.examples["value"], runs[0].examples["value"], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(each.examples["change_norm"], runs[0].examples["change_norm"], rtol=1e-10)
            columns = ["unit", "example", "cluster", "template", "fired", "status"]
            assert each.examples[columns].equals(runs[0].examples[columns])


class TestOffloading:
    """Where a device has no room for the base run of one row, its layers wait in the host's memory."""

    @pytest.mark.parametrize("name", ["z", "resid_mid", "resid_pre"])
    def test_less_is_needed_and_the_results_are_the_same(self, monkeypatch, name):
        model, task = random_model(n_layers=8), random_task(0, lengths=(6, 7, 6))
        whole, enough = Sweep(cells(name)).run(model, task), needed(model, task, name=name)
        monkeypatch.setitem(OFFLOADED_TO, "cpu", torch.device("cpu"))
        least = needed(model, task, name=name)
        assert least < 0.6 * enough
        found = Sweep(cells(name)).run(model, task, memory_budget=least)
        assert (found.provenance["offloaded"], whole.provenance["offloaded"]) == (True, False)
        np.testing.assert_allclose(found.examples["value"], whole.examples["value"], rtol=1e-10, atol=1e-12)

    def test_what_has_room_stays(self, model, monkeypatch):
        monkeypatch.setitem(OFFLOADED_TO, "cpu", torch.device("cpu"))
        assert not Sweep(cells()).run(model, random_task(0, lengths=(6, 6))).provenance["offloaded"]

    @pytest.mark.gpu
    def test_a_gpu_holds_no_more_than_its_budget(self):
        shape = {"n_layers": 12, "n_heads": 8, "d_model": 512, "d_head": 64, "d_mlp": 2048, "d_vocab": 1000}
        model = random_model(**shape, n_ctx=512, dtype=torch.float32)
        with torch.no_grad():  # or rounding would grow from layer to layer
            for each in (each for each in model.parameters() if each.ndim > 1):
                each.mul_(0.1)
        model.to("cuda")
        task = random_task(0, lengths=(500,), d_vocab=1000)
        least = needed(model, task)
        with torch.no_grad():
            # cuBLAS takes its workspace with its first product, and keeps it.
            model(torch.zeros(1, 4, dtype=torch.long))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        found = Sweep(cells()).run(model, task, memory_budget=least)
        assert found.provenance["offloaded"]
        assert torch.cuda.max_memory_allocated() - before <= 1.2 * least
        whole = Sweep(cells()).run(model, task)
        assert not whole.provenance["offloaded"]
        largest = whole.examples["value"].abs().max()
        np.testing.assert_allclose(found.examples["value"], whole.examples["value"], rtol=0, atol=1e-5 * largest)


def run_out(monkeypatch, error, most, calls=None):
    """Memory runs out with more than so many trajectories."""
    run = Wavefront.run

    def limited(self):
        n = self._chunk.n
        if calls is not None:
            calls.append(n)
        if n > most:
            raise error
        return run(self)

    monkeypatch.setattr(Wavefront, "run", limited)


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried to"),
    MemoryError(),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("CUDA driver error: out of memory\nCUDA kernel errors might be reported at some other API call"),
]


class TestOutOfMemory:
    @pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error!r:.60}")
    def test_less_is_run_at_once_and_the_results_are_the_same(self, model, monkeypatch, error):
        task = random_task(3, lengths=(6, 6))
        whole = Sweep(cells()).run(model, task)
        assert whole.provenance["halvings"] == 0
        calls = []
        run_out(monkeypatch, error, 12, calls)
        found = Sweep(cells()).run(model, task)
        # 9 cells on 4 rows: 36 trajectories, halved to 16 and 20, to 8 and 8, to 8 and 12.
        assert calls == [36, 16, 8, 8, 20, 8, 12]
        assert found.provenance["halvings"] == 3
        np.testing.assert_allclose(found.examples["value"], whole.examples["value"], rtol=1e-12)
        np.testing.assert_allclose(found.examples["change_norm"], whole.examples["change_norm"], rtol=1e-12)

    @pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error!r:.60}")
    def test_with_one_cell_it_is_said_what_to_do(self, model, monkeypatch, error):
        run_out(monkeypatch, error, 0)
        with pytest.raises(
            NoRoomError,
            match=r"out of memory with one cell on 1 row of 6 tokens; give a memory budget below [\d,]+ bytes",
        ):
            Sweep(cells()).run(model, random_task(3, lengths=(6, 6)))

    @pytest.mark.parametrize("patched", [False, True])
    def test_where_one_cell_is_too_much_its_rows_are_halved(self, model, monkeypatch, patched):
        task, of = random_task(3, lengths=(6, 6)), cells()
        options = {}
        if patched:
            patch = Patch(model, tuple({each.interventions[0].site for each in of}))
            of = [Cell(each.labels, (replace(each.interventions[0], replacement=patch),)) for each in of]
            options = {"direction": "denoise"}
        whole = Sweep(of).run(model, task, **options)
        run_out(monkeypatch, ERRORS[0], 1)
        found = Sweep(of).run(model, task, **options)
        assert found.provenance["halvings"] > 3
        assert found.examples["fired"].equals(whole.examples["fired"])
        for name in ("base", "value", "change_norm"):
            np.testing.assert_allclose(found.examples[name], whole.examples[name], rtol=1e-12)

    def test_where_the_unchanged_run_is_too_much_its_rows_are_halved(self, model, monkeypatch):
        task, base = random_task(3, lengths=(6, 6)), Engine.base
        whole = Sweep(cells()).run(model, task)
        tried = []

        def limited(self, batch):
            tried.append(len(batch.rows))
            if len(batch.rows) > 1:
                raise NoRoomError("no room")
            return base(self, batch)

        monkeypatch.setattr(Engine, "base", limited)
        found = Sweep(cells()).run(model, task)
        assert tried == [4, 2, 1, 1, 2, 1, 1]
        assert found.provenance["halvings"] == 3
        np.testing.assert_allclose(found.examples["value"], whole.examples["value"], rtol=1e-12)

    def test_other_errors_go_on(self, model, monkeypatch):
        run_out(monkeypatch, RuntimeError("something else"), 3)
        with pytest.raises(RuntimeError, match="something else"):
            Sweep(cells()).run(model, random_task(3, lengths=(6, 6)))

    @pytest.fixture
    def _collected_quickly(self):
        """What other tests have left is not looked through every time."""
        gc.freeze()
        yield
        gc.unfreeze()

    @pytest.mark.usefixtures("_collected_quickly")
    def test_what_ran_out_of_memory_is_gone_before_less_is_run(self, model, monkeypatch):
        """Otherwise the halves would have to fit in beside it."""
        run, seen, alive = Wavefront.run, [], []

        def limited(self):
            gc.collect()
            alive.append(sum(each() is not None for each in seen))
            seen.append(weakref.ref(self))
            if self._chunk.n > 12:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return run(self)

        monkeypatch.setattr(Wavefront, "run", limited)
        found = Sweep(cells()).run(model, random_task(3, lengths=(6, 6)))
        assert found.provenance["halvings"] == 3
        assert alive == [0] * 7

    @pytest.mark.usefixtures("_collected_quickly")
    def test_the_last_batch_is_gone_before_the_next_is_run(self, model, monkeypatch):
        base, seen, alive = Engine.base, [], []

        def watched(self, batch):
            gc.collect()
            alive.append(sum(each() is not None for each in seen))
            found = base(self, batch)
            seen.append(weakref.ref(found))
            return found

        monkeypatch.setattr(Engine, "base", watched)
        task = random_task(3, lengths=(6, 5, 4))
        patch = Patch(model, (Site("z", 1),))
        Sweep([Cell({"layer": 1}, (change("z", 1, patch),))]).run(model, task, direction="denoise")
        assert alive == [0, 0, 0]
