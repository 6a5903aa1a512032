from collections import Counter

import pytest

from interp.calibration.planted import Shape
from interp.calibration.random_models import FEWEST_HEADS, Difficulty, draw
from interp.calibration.roles import DECOYS, LOUD_ROLES, TRUTH
from interp.errors import InputError

PLANS = [draw(seed) for seed in range(120)]


def test_every_role_and_many_places_come_up():
    roles = Counter(each.role for plan in PLANS for each in plan.heads)
    assert all(roles[role] > 20 for role in (*DECOYS, "tracker", "previous word"))
    trackers = [each for plan in PLANS for each in plan.heads if each.role == "tracker"]
    assert {each.layer for each in trackers} == {0, 1, 2, 3}
    assert {each.head for each in trackers} == {*range(8), 8, 10, 12, 14}
    shared = [plan for plan in PLANS if plan.shape.n_kv_heads is not None]
    assert 0.15 < len(shared) / len(PLANS) < 0.45
    assert all(each.head % 2 == 0 for plan in shared for each in plan.heads)


def test_special_models_have_what_the_others_lack():
    for seed in range(20):
        copied = [each for each in draw(seed, special="copied").heads if each.role in ("copier", "copy reader")]
        assert [(each.role, each.task) for each in copied] == [("copier", "agreement"), ("copy reader", "agreement")]
        assert copied[0].layer < copied[1].layer
        for size in (2, 3, 4):
            heads = draw(seed, special=f"group of {size}").heads
            assert sum((each.role, each.task) == ("stand-in", "agreement") for each in heads) == size


def test_heads_stand_where_they_can_work():
    for plan in PLANS:
        places = [(each.layer, each.head) for each in plan.heads]
        assert len(set(places)) == len(places)
        assert all(layer < plan.shape.n_layers and head < plan.shape.n_heads for layer, head in places)
        (before,) = (each for each in plan.heads if each.role == "previous word")
        assert all(
            each.layer > before.layer for each in plan.heads if (each.role, each.task) == ("tracker", "induction")
        )
        standing_in = [each for each in plan.heads if each.role == "stand-in"]
        lookers = [each for each in plan.heads if each.role == "looker"]
        assert all(one.layer <= each.layer for one in lookers for each in standing_in if each.task == one.task)
        assert not (standing_in and any(each.role in LOUD_ROLES for each in plan.heads))


def test_every_task_has_a_head_that_does_it():
    for plan in PLANS:
        doing = Counter(each.task for each in plan.heads if each.role in ("tracker", "by value", "stand-in"))
        assert set(doing) == {"agreement", "coreference", "induction"}


def test_the_truth_covers_every_head_and_task():
    for plan in PLANS[:20]:
        truth = plan.truth()
        assert len(truth) == 3 * plan.shape.n_layers * plan.shape.n_heads
        for planted in plan.heads:
            for task in ("agreement", "coreference", "induction"):
                role, verdict = truth[planted.layer, planted.head, task]
                about = planted.task == task or planted.role in LOUD_ROLES
                if about:
                    assert (role, verdict) == (planted.role, TRUTH[planted.role])
                    continue
                behind = any(
                    each.layer < planted.layer and (each.role, each.task) == ("by value", task) for each in plan.heads
                )
                assert (role, verdict) == ("bystander" if behind else "idle", "none")
        shared = [role for (_, head, _), (role, _) in truth.items() if head % plan.shape.n_queries]
        assert set(shared) <= {"bystander"}


def test_shared_work_adds_up_to_one():
    for seed in range(20):
        plan = draw(seed, difficulty=Difficulty(share=0.3))
        for task in ("agreement", "coreference", "induction"):
            shares = [each.share for each in plan.heads if (each.role, each.task) == ("tracker", task)]
            assert sorted(shares) == [0.3, 0.7]


def test_both_tasks_have_a_glancer_that_reads_so_much_of_the_related_word():
    for glance, truth in ((0.06, "causal, by another route"), (0.112, "tracks")):
        plan = draw(3, difficulty=Difficulty(glance=glance))
        glancers = [each for each in plan.heads if each.role == "glancer"]
        assert [(each.task, each.glance) for each in glancers] == [("agreement", glance), ("coreference", glance)]
        assert {each.truth(each.task) for each in glancers} == {truth}


def test_a_loud_tracker_stands_beside_the_one_that_hides_it():
    pairs = [[each for each in plan.heads if each.role in LOUD_ROLES] for plan in PLANS]
    found = [pair for pair in pairs if any(each.role == "loud tracker" for each in pair)]
    assert len(found) > 10
    for one, other in found:
        assert (one.role, one.share, other.role, other.share) == ("loud tracker", 1.0, "loud", -1.0)
        assert one.task == other.task != "induction"
        assert one.layer == other.layer
    assert all(each.task is None for pair in pairs if pair not in found for each in pair)


def test_a_shape_of_one_s_own_is_kept_and_one_too_small_refused():
    shape = Shape(2, 6, 96, 18)
    assert draw(0, shape=shape).shape == shape
    assert FEWEST_HEADS == 12
    for small in (Shape(2, 5), Shape(1, 12), Shape(3, 6, d_head=16), Shape(3, 6, d_model=64)):
        with pytest.raises(InputError, match="expected 2 layers and 12 heads in all"):
            draw(0, shape=small)
