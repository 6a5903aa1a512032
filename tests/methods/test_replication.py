import pandas as pd
import pytest
from hand_model import HandModel, varied_task
from tiny_models import random_model

import interp
from interp.errors import InputError
from interp.methods.dossier import heads
from interp.methods.judging import check_siblings, names, replication
from interp.report.heads import page_of
from interp.report.html import as_page
from interp.runs.executors import Processes
from interp.runs.run import Run


def frame(*verdicts, task="agreement"):
    rows = {"layer": 0, "head": range(len(verdicts)), "task": task, "verdict": verdicts}
    return pd.DataFrame(rows).assign(undecidable="")


def test_a_verdict_is_any_head_s():
    found = replication({"a": frame("tracks", "none", "general"), "b": frame("undecided", "tracks", "tracks")})
    by = found.set_index(["verdict", "model"])["heads"].to_dict()
    assert by == {("tracks", "a"): "0.0", ("tracks", "b"): "0.1 0.2", ("general", "a"): "0.2", ("general", "b"): ""}
    assert found["n_heads"].tolist() == [1, 2, 1, 0]
    assert found["n_undecided"].tolist() == [0, 1, 0, 1]
    assert found["judged"].all()


def test_a_model_that_cannot_do_the_task_is_not_judged():
    unable = frame("undecided").assign(undecidable="the unablated model is not shown to be above chance on this task")
    found = replication({"a": frame("tracks"), "b": unable})
    assert found["judged"].tolist() == [True, False]


def test_tasks_are_kept_apart():
    one = pd.concat([frame("tracks"), frame("opposes", task="ioi")])
    found = replication({"a": one, "b": frame("tracks", task="ioi")})
    assert set(zip(found["task"], found["verdict"], strict=True)) == {
        ("agreement", "tracks"),
        ("ioi", "opposes"),
        ("ioi", "tracks"),
    }


def test_models_get_names_that_differ():
    assert names([HandModel(), HandModel(), random_model()]) == [
        "HandModel",
        "HandModel (2)",
        names([random_model()])[0],
    ]


def test_siblings_are_judged_on_the_same_examples():
    alone = heads(HandModel(), [varied_task()], probes=False)
    told = []
    report = heads(
        HandModel(),
        [varied_task()],
        probes=False,
        siblings=[HandModel(bias=0.5)],
        progress=lambda *each: told.append(each),
    )
    pd.testing.assert_frame_equal(report.summary(), alone.summary())
    assert alone.replication.empty
    rows = report.replication.set_index("model")["heads"].to_dict()
    assert rows == {"HandModel": "0.0", "HandModel (2)": "0.0"}
    (sibling,) = report.provenance["siblings"]
    assert report.provenance["model_hash"] == alone.provenance["model_hash"] != sibling["model_hash"]
    page = as_page(page_of(report))
    asked = page[page.index(">What was asked</h2>") :].split("</section>")[0]
    assert alone.provenance["model_hash"][:12] in asked
    assert sibling["model_hash"][:12] not in asked
    assert told[-1][0] == told[-1][1]


@pytest.mark.slow
def test_tasks_and_siblings_in_processes_of_their_own_are_judged_the_same():
    how = {"probes": False, "siblings": [HandModel(bias=0.5)]}
    told = []
    tasks = [varied_task(), varied_task(name="another")]
    here = heads(HandModel(), tasks, **how)
    there = heads(HandModel(), tasks, **how, run=Run(None, Processes(2)), progress=lambda *each: told.append(each))
    pd.testing.assert_frame_equal(here.summary(), there.summary())
    pd.testing.assert_frame_equal(here.replication, there.replication)
    assert told == sorted(told)
    assert len(told) > 8  # attention, a look and what follows it, of two models on two tasks
    assert told[-1][0] == told[-1][1]


def test_a_sibling_reads_the_same_tokens():
    one, other = random_model(tokenizer=interp.load_model().tokenizer, n_ctx=64), random_model()
    with pytest.raises(InputError, match="siblings: expected models with the first one's tokenizer"):
        check_siblings(other, [one])


def test_a_model_is_no_sibling_of_its_own():
    with pytest.raises(InputError, match="siblings: expected models that differ, got HandModel with the weights of"):
        heads(HandModel(), [varied_task()], probes=False, siblings=[HandModel()])
    with pytest.raises(InputError, match=r"got HandModel \(2\) with the weights of"):
        check_siblings(HandModel(), [HandModel(bias=0.5), HandModel(bias=0.5)])
