"""Whatever numbers follow from is in a run's key, or the run is refused: no question finds another one's answer."""

import dataclasses
import warnings
from contextlib import suppress
from functools import partial
from types import MethodType

import pandas as pd
import pytest
import torch
from kept_sweeps import events, in_small_parts, sweep, total
from planted_trees import trees
from random_tasks import random_task
from tiny_models import random_gpt2, random_model, word_tokenizer
from torch.nn.attention import SDPBackend, sdpa_kernel

import interp
from interp import source_files
from interp.errors import AuditError, InputError
from interp.interventions import sweep_run
from interp.interventions.intervention import Intervention
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Patch, Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.model.weights import tokenizer_hash
from interp.runs.executors import Processes
from interp.runs.pickling import pack
from interp.runs.run import Run
from interp.tasks.corpus import Corpus
from interp.tasks.example import Relation, Span
from interp.tasks.task import digest

pytestmark = pytest.mark.unchecked
Z = Site("z", 0)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    in_small_parts(monkeypatch)


def keys_of(folder):
    return {path.name for path in folder.iterdir()}


def swept(run, replacement, *, model=None, **options):
    model = model or random_model()
    cell = Cell({"layer": 0}, (Intervention(Z, replacement, heads=(0,)),))
    return Sweep([cell]).run(model, random_task(lengths=(6,) * 8), run=run, **options)


class TestPrograms:
    def test_an_edited_source_is_refused(self, tmp_path, monkeypatch):
        sweep(Run(tmp_path))
        monkeypatch.setattr(source_files, "_FIRST", source_files._FIRST | {f"{source_files.PACKAGE}/errors.py": (0, 0)})
        with pytest.raises(InputError, match=r"got one that was changed since, .*restart the kernel"):
            sweep(Run(tmp_path))
        with pytest.raises(InputError, match="got one that was changed since"):
            sweep(Run(None, Processes(2)))
        assert sweep().provenance["complete"]

    def test_what_numbers_depend_on_is_looked_at(self):
        names = {path.relative_to(source_files.PACKAGE).as_posix() for path in source_files.modules()}
        assert {"__init__.py", "model/attention.py", "runs/key.py"} <= names
        assert not [name for name in names if name.startswith(("report/", "cli/"))]
        assert not source_files.changed()


class Scaled(torch.nn.Module):
    def __init__(self, inner, by):
        super().__init__()
        self.inner, self.by = inner, by

    def forward(self, x):
        return self.by * self.inner(x)


class Another(HookedTransformer):
    """Whose numbers may be any."""


def wrapped(model):
    model.blocks[0].mlp = Scaled(model.blocks[0].mlp, 0.5)


def replaced(model):
    model.blocks[0].mlp.forward = lambda x: 2 * x


def bound(model):
    model.blocks[0].mlp.forward = MethodType(lambda _self, x: 2 * x, model.blocks[0].mlp)


def subclassed(model):
    model.__class__ = Another


class Tripled(torch.nn.Module):
    def __init__(self, func):
        super().__init__()
        self.func, self.args, self.keywords = func, (), {"approximate": "tanh"}

    def forward(self, x):
        return 3 * self.func(x, **self.keywords)


def activated(model):
    model.blocks[0].mlp.act = lambda x: x


class TestModels:
    @pytest.mark.parametrize("change", [wrapped, replaced, bound, subclassed, activated])
    def test_somebodys_code_is_refused(self, tmp_path, change):
        model = random_model(n_layers=3)
        change(model)
        with pytest.raises(InputError, match=r"run: somebody's code is in the model .*; measure without run"):
            sweep(Run(tmp_path), model=model, plainly=True)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("first", [False, True], ids=["edited second", "edited first"])
    def test_an_edited_attribute_is_another_run(self, tmp_path, first):
        plain, edited = random_model(n_layers=3), random_model(n_layers=3)
        edited.blocks[0].ln1.eps = 1.0
        order = (edited, plain) if first else (plain, edited)
        found = {id(model): sweep(Run(tmp_path), model=model) for model in order}
        assert len(keys_of(tmp_path)) == 2
        for model in order:
            pd.testing.assert_frame_equal(found[id(model)].examples, sweep(model=model).examples, check_exact=True)
        assert not found[id(plain)].examples["value"].equals(found[id(edited)].examples["value"])

    @pytest.mark.parametrize(
        "act", [torch.relu, partial(torch.nn.functional.gelu, approximate="none")], ids=["relu", "gelu"]
    )
    def test_another_of_torchs_functions_is_another_run(self, tmp_path, act):
        model = random_model(n_layers=3)
        first = sweep(Run(tmp_path), model=model)
        model.blocks[0].mlp.act = act
        second = sweep(Run(tmp_path), model=model)
        assert first.provenance["run"] != second.provenance["run"]
        assert not first.examples["value"].equals(second.examples["value"])
        plain = sweep(model=model, plainly=True).examples["value"]
        pd.testing.assert_series_equal(second.examples["value"], plain, rtol=1e-4, atol=1e-4)

    def test_an_activation_that_calls_the_models_own_is_no_copy_of_it(self):
        model = random_model(n_layers=3)
        model.blocks[0].mlp.act = Tripled(model.blocks[0].mlp.act.func)
        found, plain = (sweep(model=model, plainly=plainly).examples["value"] for plainly in (False, True))
        pd.testing.assert_series_equal(found, plain, rtol=1e-4, atol=1e-4)
        assert not found.equals(sweep().examples["value"])

    def test_the_same_bridge_is_the_same_run(self, tmp_path):
        tokenizer = word_tokenizer()
        random_gpt2(vocab_size=len(tokenizer)).save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
        for _ in range(2):
            bridge = interp.load_model(f"bridge:{tmp_path / 'model'}")
            for _ in range(2):
                sweep(Run(tmp_path / "runs"), model=bridge)
        assert len(keys_of(tmp_path / "runs")) == 1

    def test_a_bridge_that_drops_out_is_refused(self, tmp_path):
        tokenizer = word_tokenizer()
        random_gpt2(vocab_size=len(tokenizer)).save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
        bridge = interp.load_model(f"bridge:{tmp_path / 'model'}")
        sweep(Run(tmp_path / "runs"), model=bridge)
        with pytest.raises(InputError, match=r"run: the bridge is in training mode, .*call model.eval\(\)"):
            sweep(Run(tmp_path / "runs"), model=bridge.train())

    def test_special_tokens_are_part_of_a_tokenizer(self):
        tokenizer = word_tokenizer()
        before = tokenizer_hash(tokenizer)
        tokenizer.bos_token = "the"
        assert tokenizer_hash(tokenizer) != before


class TestArithmetic:
    @pytest.mark.slow
    def test_autocast_is_no_other_run_and_changes_nothing(self, tmp_path):
        model = random_model(n_layers=3, dtype=torch.float32)
        expected = sweep(Run(tmp_path), model=model)
        with torch.autocast("cpu", torch.bfloat16):
            found = [sweep(how, model=model) for how in (Run(tmp_path), None, Run(None, Processes(2)))]
        assert len(keys_of(tmp_path)) == 1
        for each in found:
            pd.testing.assert_frame_equal(each.examples, expected.examples, check_exact=True)

    def test_another_way_to_compute_attention_is_another_run(self, tmp_path):
        sweep(Run(tmp_path))
        with sdpa_kernel(SDPBackend.MATH):
            sweep(Run(tmp_path))
        assert len(keys_of(tmp_path)) == 2


class Twice(Zero):
    """Somebody's own, of which nobody knows what it does."""


class TestReplacements:
    def test_somebodys_own_kind_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="replacement 'zero' has no identity"):
            swept(Run(tmp_path), Twice())

    def test_a_patch_from_another_model(self, tmp_path):
        model, others = random_model(), [random_model(seed=seed) for seed in (1, 2)]
        for each in (model, *others):
            swept(Run(tmp_path), Patch(each, (Z,)), model=model, direction="denoise", plainly=True)
        assert len(keys_of(tmp_path)) == 3

    @pytest.mark.parametrize("kind", ["mean", "positional_mean"])
    def test_means_of_another_model_budget_or_by_hand(self, tmp_path, kind):
        model, task = random_model(), random_task(lengths=(6,) * 8)
        make = {"sites": [Z], "memory_budget": None}
        own = make_replacement(kind, model, task, **make)
        first = swept(Run(tmp_path), own, model=model).provenance["run"]
        sent = pack(own).unpacked()
        assert swept(Run(tmp_path), sent, model=model).provenance["run"] == first, "sent to another process"
        others = [
            make_replacement(kind, random_model(seed=1), task, **make),
            make_replacement(kind, model, task, **make | {"memory_budget": 10**8}),
            dataclasses.replace(own, means={key: 2 * value for key, value in own.means.items()}),
            dataclasses.replace(own, means={key: 3 * value for key, value in own.means.items()}),
        ]
        others.append(pack(others[0]).unpacked())
        keys = [swept(Run(tmp_path), each, model=model).provenance["run"] for each in others]
        assert len({first, *keys}) == 5
        assert keys[0] == keys[4]
        assert own.name == kind

    def test_references_of_other_layouts(self, tmp_path):
        model, task = random_model(), random_task(lengths=(6,) * 8)
        (references,) = task.references
        units = []
        for number, unit in enumerate(references):
            layout = f"6 tokens{' ' * (number % 2)}"
            items = [
                dataclasses.replace(each, example=dataclasses.replace(each.example, layout=layout))
                for each in (unit.item, unit.counterfactual)
            ]
            units.append(dataclasses.replace(unit, item=items[0], counterfactual=items[1]))
        other = dataclasses.replace(task, references=(tuple(units),))
        one, two = (interp.ablate(model, each, replacement="positional_mean", run=tmp_path) for each in (task, other))
        assert not one.examples["value"].equals(two.examples["value"])
        assert len(keys_of(tmp_path)) == 2


class TestData:
    def test_relations_are_part_of_a_tasks_hash(self):
        (unit, *_) = random_task().units
        spans = [Span(0, 1), Span(2, 3)]
        relations = [None, Relation("a", *spans), Relation("b", *spans), Relation("a", *reversed(spans))]
        relations.append(Relation("a", *spans, {"other": spans[0]}))
        hashes = set()
        for each in relations:
            example = dataclasses.replace(unit.item.example, relation=each)
            item = dataclasses.replace(unit.item, example=example)
            hashes.add(digest([[dataclasses.replace(unit, item=item)]]))
        assert len(hashes) == len(relations)

    def test_every_field_of_a_treebank_is_part_of_its_hash(self):
        (document,) = trees(1)
        before = Corpus.of([document]).contents.hash
        (sentence, *rest) = document.sentences
        word = sentence.words[-1]
        changes = {"xpos": "other", "sense": "other", "span": Span(word.span.start, word.span.stop - 1)}
        for name, value in changes.items():
            words = (*sentence.words[:-1], dataclasses.replace(word, **{name: value}))
            other = dataclasses.replace(document, sentences=(dataclasses.replace(sentence, words=words), *rest))
            assert Corpus.of([other]).contents.hash != before, name
        renamed = dataclasses.replace(document, sentences=(dataclasses.replace(sentence, id="other"), *rest))
        assert Corpus.of([renamed]).contents.hash != before


def test_what_was_measured_wrongly_is_not_gone_on_with(tmp_path, monkeypatch):
    """An audit that fails leaves no part behind."""

    def failing(*_arguments):
        raise AuditError("wrong")

    with monkeypatch.context() as patched:
        patched.setattr(sweep_run, "audit", failing)
        with pytest.raises(AuditError):
            sweep(Run(tmp_path))
    assert total(events(tmp_path), "kept") > 3
    assert not list(tmp_path.glob("*/parts/*.parquet"))
    before = total(events(tmp_path), "begun")
    sweep(Run(tmp_path))
    assert total(events(tmp_path), "begun") == 2 * before


def test_the_kind_of_processor_is_told_of_every_part(tmp_path, monkeypatch):
    (own,) = sweep(Run(tmp_path / "here")).provenance["processors"]

    def stop(done, _total):
        if done > 3:
            raise KeyboardInterrupt

    with warnings.catch_warnings(action="ignore"), suppress(KeyboardInterrupt):
        assert not sweep(Run(tmp_path / "there"), progress=stop).provenance["complete"]
    assert total(events(tmp_path / "there"), "kept") > 0
    monkeypatch.setattr("interp.interventions.sweep_parts.processor_of", lambda _device: "another")
    assert sweep(Run(tmp_path / "there")).provenance["processors"] == sorted(["another", own])
