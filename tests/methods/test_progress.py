"""One progress of several stages, and what is told of each."""

from noun_model import noun_model, noun_task

from interp.methods.dossier import heads
from interp.methods.progress import STEPS, Steps, named, part_of


class Told:
    """Notes what it is told."""

    def __init__(self):
        self.texts, self.steps = [], []

    def about(self, text):
        self.texts.append(text)

    def __call__(self, done, total):
        self.steps.append((done, total))

    def took(self, seconds):
        self.seconds = seconds


def test_parts_go_on_evenly_and_names_pass_through_them():
    told = Told()
    step = named(part_of(part_of(told, 1, 2, 100), 0, 2, 10), "ioi: ablation", "heads")
    step(60, 144)
    assert told.texts == ["ioi: ablation, 60 of 144 heads"]
    assert told.steps == [(100 + 4 * 100 // 20, 200)]


def test_nobody_is_told_where_nobody_asks():
    assert part_of(None, 0, 2) is None
    assert named(None, "ioi", "heads") is None


def test_functions_without_about_are_told_the_steps():
    steps = []
    named(part_of(lambda *step: steps.append(step), 0, 2), "ioi", "heads")(1, 4)
    assert steps == [(1, 8)]


def test_a_dossier_says_which_stage_of_which_task_it_is_at():
    told = Told()
    heads(noun_model(), [noun_task(), noun_task(name="other")], progress=told, max_group=0)
    stages = list(dict.fromkeys(text.partition(",")[0] for text in told.texts))
    every = [f"{task}: {stage}" for stage in ("attention", "ablation", "probes") for task in ("nouns", "other")]
    assert stages == every
    assert "other: ablation, 3 of 3 heads" in told.texts
    assert told.steps == sorted(told.steps)
    assert told.steps[-1][0] == told.steps[-1][1]


def half_done(number, run, progress):
    progress(1, 2)
    return 2 * number


def test_a_job_counts_as_much_as_it_costs():
    told = Told()
    steps = Steps(None, told, 5.0)
    assert steps.made("cheap", half_done, [(1,), (2,)]) == [2, 4]
    assert steps.made("dear", half_done, [(3,)], 3) == [6]
    steps.end()
    assert told.steps == [(round(each * STEPS), 5 * STEPS) for each in (0.5, 1.5, 3.5, 5)]
    assert list(told.seconds) == ["cheap", "dear"]
    assert all(taken >= 0 for taken in told.seconds.values())
