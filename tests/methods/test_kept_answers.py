"""What was asked once is found: the same tables and the same page, without running the model again."""

import dataclasses
import json
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from banks import word_level
from kept_sweeps import events, total
from noun_model import noun_model, noun_task
from planted_trees import FORMS, N_DOCUMENTS, trees
from tiny_models import random_model

import interp
from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.errors import InputError
from interp.interventions.engine.plan import NoRoomError
from interp.methods import dossier
from interp.methods.dossier import heads
from interp.methods.head_card import head_card, head_cards
from interp.methods.probes.probe import probe
from interp.methods.relations import counts as reader
from interp.methods.relations.attend import attend
from interp.model.transformer import HookedTransformer
from interp.runs.executors import Processes
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked


N_PARTS = N_DOCUMENTS // 2


def words():
    """A model of no training, whose attention is what it is."""
    return random_model(tokenizer=word_level(FORMS, both_sides=False), dtype=torch.float32)


def attended(run=None, **options):
    return attend(words(), list(trees()), ["dep"], run=run, **options)


def nouns():
    return noun_task(n_clusters=FEWEST_CLUSTERS)


def judged(run=None, **options):
    return heads(noun_model(), [nouns()], probes=False, run=run, **options)


def sibling():
    """A model of other weights."""
    model = noun_model()
    with torch.no_grad():
        model.blocks[0].attn.W_O.mul_(1.1)
    return model


def carded(run=None, **options):
    how = {"probes": False, "max_units": 4, **options}
    return head_card(noun_model(), "0.0", [nouns()], run=run, **how)


def probed(run=None, **options):
    how = {"description_lengths": False, "penalties": [0.1], "cv": 2, **options}
    return probe(noun_model(), nouns(), "number", **how, run=run)


ALL = pytest.mark.parametrize("asked", [attended, judged, carded, probed])


@pytest.fixture
def deaf(monkeypatch):
    """From when it is called on, no model of ours runs."""

    def refuse(*_args, **_options):
        raise AssertionError("the model was run")

    return lambda: monkeypatch.setattr(HookedTransformer, "run_blocks", refuse)


def without_runs(provenance):
    """Without the names of the runs that it was kept in."""
    if isinstance(provenance, dict):
        return {name: without_runs(each) for name, each in provenance.items() if name != "run"}
    return [without_runs(each) for each in provenance] if isinstance(provenance, list) else provenance


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory):
    """What is asked, without a folder and with one: both results and the folder."""

    def results(asked):
        folder = tmp_path_factory.mktemp("runs")
        return asked(), asked(folder), folder

    return cache(results)


@ALL
def test_it_is_the_same_as_what_is_not_kept_and_found_without_running_the_model(asked, asked_once, deaf):
    plain, first, folder = asked_once(asked)
    deaf()
    found = asked(folder)
    for each in dataclasses.fields(plain):
        expected, kept, again = (getattr(result, each.name) for result in (plain, first, found))
        if isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(kept, again, check_exact=True)
            pd.testing.assert_frame_equal(expected.reset_index(drop=True), kept, check_exact=True, check_dtype=False)
        elif each.name != "provenance":
            assert expected == kept == again or all(np.isnan([expected, kept, again]))
    assert first.provenance == found.provenance
    expected = json.loads(json.dumps(plain.provenance), parse_constant=lambda _: None)
    assert without_runs(first.provenance) == expected
    assert (folder / found.provenance["run"] / "result.json").exists()


def page_of(result, out):
    """The page without what says where, and by which run, it was made."""
    text = (result.save(out) / "report.html").read_text()
    return [line for line in text.splitlines() if ">run<" not in line.replace(".run<", ">run<")]


@ALL
def test_the_page_is_the_same(asked, asked_once, tmp_path):
    plain, kept, _ = asked_once(asked)
    assert page_of(kept, tmp_path / "kept") == page_of(plain, tmp_path / "plain")


def run_begun(asked, folder, **options):
    """The run that a question begins, named before a model that is deaf is run."""
    with pytest.raises(AssertionError, match="the model was run"):
        asked(folder, **options)
    return min(folder.glob("*/manifest.json"), key=lambda each: each.stat().st_mtime_ns).parent.name


@pytest.mark.parametrize(
    ("asked", "others"),
    [
        (attended, {"min_effect": 0.2}),
        (attended, {"exclude": ["special"]}),
        (attended, {"max_window": 8}),
        (attended, {"choose_on": list(trees(seed=1))}),
        (attended, {"correction": "fdr"}),
        (judged, {"draws": 5}),
        (judged, {"alpha": 0.04}),
        (judged, {"draws": 2}),
        (judged, {"siblings": [sibling()]}),
        (judged, {"max_group": 2}),
        (carded, {"alpha": 0.04}),
        (carded, {"draws": 5}),
        (probed, {"kind": "ridge"}),
        (probed, {"penalties": [1e-3]}),
        (probed, {"at": "related"}),
        (probed, {"pooling": "mean"}),
        (probed, {"heads": [(0, 1)]}),
        (probed, {"min_examples": 2}),
        (judged, {"seed": 1}),
        (judged, {"min_effect": 0.2}),
        (carded, {"max_units": 7}),
        (probed, {"permuted_labels": False}),
        (probed, {"site": "q"}),
    ],
)
def test_another_question_is_another_run(asked, others, tmp_path, asked_once, deaf):
    before = asked_once(asked)[1].provenance["run"]
    deaf()
    assert run_begun(asked, tmp_path, **others) != before


@ALL
def test_the_same_question_is_the_same_run(asked, tmp_path, asked_once, deaf):
    before = asked_once(asked)[1].provenance["run"]
    deaf()
    assert run_begun(asked, tmp_path) == before


def test_cards_of_a_report_are_found(tmp_path, asked_once, deaf):
    tasks, report = [nouns()], asked_once(judged)[1]
    other_report = dataclasses.replace(report, provenance={**report.provenance, "seed": 1})
    plain, first = (head_cards(noun_model(), tasks, report, max_units=4, run=run) for run in (None, tmp_path))
    assert [each.name for each in plain] == [each.name for each in first] != []
    deaf()
    found = head_cards(noun_model(), tasks, report, max_units=4, run=tmp_path)
    for one, other in zip(plain, found, strict=True):
        pd.testing.assert_frame_equal(one.positions, other.positions, check_exact=True, check_dtype=False)
        pd.testing.assert_frame_equal(one.feeds, other.feeds, check_exact=True, check_dtype=False)
    with pytest.raises(AssertionError, match="the model was run"):
        head_cards(noun_model(), tasks, other_report, max_units=4, run=tmp_path)


@pytest.fixture
def warned(monkeypatch):
    """Judging heads warns of these."""
    judge, said = dossier.judge_models, []

    def doubtful(*args, **options):
        for category, text in said:
            warnings.warn(text, category, stacklevel=1)
        return judge(*args, **options)

    monkeypatch.setattr(dossier, "judge_models", doubtful)
    return said


def test_what_was_warned_of_is_warned_of_again(tmp_path, warned):
    warned += [(RuntimeWarning, "heads 0.0 and 0.1 look alike"), (DeprecationWarning, "of no interest later")]
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=r"heads 0\.0 and 0\.1 look alike") as told:
            judged(tmp_path)
    assert not [each for each in told if each.category is DeprecationWarning]


def test_what_nobody_wanted_to_see_is_warned_of_who_asks_again(tmp_path, warned):
    warned.append((RuntimeWarning, "heads 0.0 and 0.1 look alike"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("ignore")
        judged(tmp_path)
    assert told == []
    with pytest.warns(RuntimeWarning, match="look alike"):
        judged(tmp_path)


def test_a_report_is_known_by_its_options_as_well(tmp_path, asked_once, deaf):
    report = asked_once(judged)[0]
    other = dataclasses.replace(report, provenance={**report.provenance, "draws": 7})
    deaf()

    def card_of(folder, report):
        return head_card(noun_model(), "0.0", [nouns()], report, run=folder)

    first, again, others = (
        run_begun(card_of, tmp_path / name, report=each)
        for name, each in (("first", report), ("again", report), ("other", other))
    )
    assert first == again != others


def test_memory_that_ran_out_is_no_answer(tmp_path, asked_once, monkeypatch):
    report = asked_once(judged)[0]

    def full(*_args, **_options):
        raise NoRoomError("out of memory")

    monkeypatch.setattr("interp.methods.card_patching.positions", full)
    with pytest.raises(NoRoomError):
        carded(tmp_path, report=report)
    monkeypatch.undo()
    assert "positions" not in set(carded(tmp_path, report=report).left_out["part"])


class TestAttention:
    """Groups of documents are counted by whom it may be, and each once."""

    @pytest.fixture(autouse=True)
    def _small_groups(self, monkeypatch):
        monkeypatch.setattr(reader, "WORDS_AT_ONCE", 48)  # two documents

    @pytest.fixture
    def expected(self):
        return attended()

    @pytest.mark.slow
    def test_processes_come_to_the_same_bits(self, expected, tmp_path):
        found = attended(Run(tmp_path, Processes(2)))
        pd.testing.assert_frame_equal(found.summary(), expected.summary(), check_exact=True)
        assert total(events(tmp_path), "kept") == N_PARTS

    def test_interrupted_it_goes_on(self, expected, tmp_path):
        def stop(done, n_words):
            if done > n_words // 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            attended(tmp_path, progress=stop)
        before = total(events(tmp_path), "kept")
        assert N_PARTS / 3 < before < N_PARTS - 2
        found = attended(tmp_path)
        pd.testing.assert_frame_equal(found.summary(), expected.summary(), check_exact=True)
        assert (total(events(tmp_path), "kept"), total(events(tmp_path), "begun")) == (N_PARTS, N_PARTS)

    def test_damage_is_counted_again(self, expected, tmp_path, caplog):
        attended(tmp_path)
        (part, *_) = sorted(tmp_path.glob("*/parts/000003.*"))
        part.write_bytes(part.read_bytes()[:-9])
        for finished in tmp_path.glob("*/result.json"):
            finished.unlink()
        found = attended(tmp_path)
        assert re.search(r"000003.*damaged or missing, and made again", caplog.text)
        pd.testing.assert_frame_equal(found.summary(), expected.summary(), check_exact=True)
        assert total(events(tmp_path), "kept") == N_PARTS + 1

    def test_what_verdicts_need_is_asked_without_counting_again(self, tmp_path, deaf):
        attended(tmp_path)
        deaf()
        assert (attended(tmp_path, alpha=0.01, min_effect=0.3).summary()["n"] > 0).all()

    def test_a_corpus_that_chooses_is_kept_as_well(self, tmp_path, deaf):
        choosing = list(trees(seed=1))
        first = attended(tmp_path, choose_on=choosing)
        assert total(events(tmp_path), "kept") == 2 * N_PARTS
        deaf()
        again = attended(tmp_path, choose_on=choosing, seed=5)
        assert again.summary()["chosen"].tolist() == first.summary()["chosen"].tolist()


def test_a_model_with_hooks_is_refused(tmp_path):
    model = words()
    model.add_hook("blocks.0.attn.hook_z", lambda z, hook: z)
    with pytest.raises(InputError, match="somebody's hooks are on the model"):
        attend(model, list(trees()), ["dep"], run=tmp_path)


def test_what_is_kept_says_what_was_asked(tmp_path):
    key = attended(interp.Run(tmp_path, about={"note": "mine"})).provenance["run"]
    said = json.loads((tmp_path / key / "manifest.json").read_text())
    assert said["asked"]["kind"] == "attend"
    assert said["asked"]["relations"][0][0] == "dep"
    assert said["about"]["note"] == "mine"
