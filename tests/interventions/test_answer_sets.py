"""Right and wrong answers that are sets: what each metric makes of them, by hand and on models."""

import dataclasses
import math
import random

import numpy as np
import pytest
import torch
from hand_model import ARE, BOS, BY, IS, KEY, NEAR, THERE, HandModel, encode, hand_weights, task_of
from random_tasks import assert_equal, change, differences, every_replacement, random_task
from tiny_models import random_model

import interp
from interp.errors import InputError
from interp.interventions.engine.base_run import BaseRun
from interp.interventions.metrics import Answers, Measured, score
from interp.interventions.replacement import Zero
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Cell, Sweep
from interp.methods.attribution import attribute
from interp.methods.self_repair import self_repair
from interp.methods.word_exchange import against_other_words
from interp.model.sites import Site
from interp.tasks.task import Unit, task_of_units
from interp.tasks.token_ids import example_of_ids

METRICS = ("logit_difference", "probability_difference", "best_logit_difference", "probability")


def expected(metric, logits, right, wrong):
    """The metric in plain numbers."""
    total = sum(math.exp(each) for each in logits)
    p_right, p_wrong = (sum(math.exp(logits[each]) for each in answers) / total for answers in (right, wrong))
    return {
        "logit_difference": math.log(p_right) - math.log(p_wrong),
        "probability_difference": p_right - p_wrong,
        "best_logit_difference": max(logits[each] for each in right) - max(logits[each] for each in wrong),
        "probability": p_right,
    }[metric]


def with_sets(task, rng, most=4, d_vocab=40):
    """The task with sets of answers of different sizes, no answer in two of them."""

    def unit(each):
        n_right, n_wrong = rng.randint(1, most), rng.randint(1, most)
        ids = [(token,) for token in rng.sample(range(d_vocab), n_right + n_wrong)]
        right, wrong = ids[:n_right], ids[n_right:]
        return dataclasses.replace(
            each,
            item=each.item.with_answers(right, wrong),
            counterfactual=each.counterfactual.with_answers(wrong, right),
        )

    return dataclasses.replace(task, units=tuple(map(unit, task.units)))


@pytest.mark.parametrize("metric", METRICS)
def test_greater_than_by_hand(metric):
    """The hand model's logits are known: 1 for the last word, 0.75 and 0.95 from the noun, 1 for head 1's filler."""
    item = encode([BOS, KEY, BY, THERE], right=IS, wrong=ARE)
    item = item.with_answers([(IS,), (THERE,)], [(ARE,), (BY,), (NEAR,)])
    found = Sweep(cell_of_zero(0, 1)).run(HandModel(), task_of([Unit(item, None, "c")], []), metric=metric)
    logits = [0.0, 0, 0, 1, 0, 1, 0.95, 0]  # head 0 gives the noun 9 of 12
    assert found.examples["base"].item() == pytest.approx(expected(metric, logits, (IS, THERE), (ARE, BY, NEAR)))
    logits[BY] = 0.0  # head 1 is gone
    assert found.examples["value"].item() == pytest.approx(expected(metric, logits, (IS, THERE), (ARE, BY, NEAR)))


def cell_of_zero(layer, head):
    return [Cell({"layer": layer, "head": head}, (change("z", layer, Zero(), heads=(head,)),))]


@pytest.mark.parametrize("metric", METRICS)
def test_on_a_model_it_is_what_its_logits_say(metric):
    model, rng = random_model(), random.Random(1)
    task = with_sets(random_task(3, lengths=(6, 6, 5, 4)), rng)
    found = interp.ablate(model, task, replacement="zero", metric=metric).examples
    base = found.drop_duplicates("example").set_index("example")["base"]
    assert len(base) == len(task.examples)
    for number, each in enumerate(task.examples):
        logits = model(torch.tensor([each.prompt]))[0, -1].tolist()
        right, wrong = ([token for (token,) in answers] for answers in (each.rights, each.wrongs))
        assert base[number] == pytest.approx(expected(metric, logits, right, wrong), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_the_engine_gives_the_plain_ways_numbers(metric):
    model, task = random_model(), with_sets(random_task(5), random.Random(2))
    sites = [Site("z", layer) for layer in range(2)]
    kinds = every_replacement(model, task, sites, patched=True)
    cells = [[change("z", layer, kinds[kind], heads=(1,))] for layer in range(2) for kind in kinds]
    assert_equal(differences(model, task, cells, direction="noise", metric=metric))


@pytest.mark.parametrize("metric", ["logit_difference", "best_logit_difference"])
def test_the_engine_reads_the_answers_columns_alone(metric, monkeypatch):
    """It never computes the logits of the whole vocabulary."""
    model, task = random_model(), with_sets(random_task(5), random.Random(2))
    (whole, *_), n = batches(model, task_rows(metric, task.units)), []
    monkeypatch.setattr(model.unembed, "forward", lambda stream: n.append(1))
    with torch.inference_mode():
        scores = BaseRun(model, whole, metric, 0, []).row_scores().value
    assert (n, np.isfinite(scores).all()) == ([], True)


@pytest.mark.parametrize("metric", METRICS)
def test_a_set_of_one_is_that_answer_to_the_bit(metric):
    """Beside larger sets in the same batch, too."""
    logits = torch.randn(3, 1, 40, generator=torch.Generator().manual_seed(0))
    single = encode([BOS, KEY, THERE])
    larger = single.with_answers([(3,), (4,), (5,)], [(6,), (7,)])
    model = random_model()
    for rows in ([single] * 3, [single, larger, single]):
        units = [Unit(each, None, "c") for each in rows]
        (batch,) = batches(model, task_rows(metric, units))
        found = score(metric, logits, Answers.of(metric, batch)).value
        last = logits[0, -1]
        alone = {
            "probability": last.log_softmax(-1)[IS].exp(),
            "probability_difference": last.log_softmax(-1)[IS].exp() - last.log_softmax(-1)[ARE].exp(),
        }.get(metric, last[IS] - last[ARE])
        assert found[0].item() == alone.item()


def test_sentences_of_a_set_add_their_probabilities():
    model = random_model()
    item = example_of_ids([0, 5, 6], [[7, 8], [9]], [[10], [11, 12, 13]])
    task = task_of_units([Unit(item, None, "c")], name="sets", description=".", metric="sentence_log_probability")
    found = interp.ablate(model, task, replacement="zero").examples

    def nats(ids):
        row = torch.tensor([[*item.prompt, *ids]])
        log_p = model(row)[0].log_softmax(-1)
        return sum(log_p[len(item.prompt) - 1 + at, token].item() for at, token in enumerate(ids))

    right, wrong = (math.log(sum(math.exp(nats(each)) for each in answers)) for answers in (item.rights, item.wrongs))
    assert found["base"].iloc[0] == pytest.approx(right - wrong, rel=1e-12)
    assert found["base_correct"].iloc[0] == float(right > wrong)


def test_what_is_not_measured_of_a_set_stays_unknown():
    item = example_of_ids([0, 5, 6], [[7, 8], [9]], [[10], [11, 12]])
    rows = task_rows("sentence_log_probability", [Unit(item, None, "c")])
    measured = Measured(rows, [1])
    measured.value[:, 0] = measured.margin[:, 0] = -1.0
    measured.value[0, 0, 1] = measured.margin[0, 0, 1] = np.nan
    found = measured.by_example("sentence_log_probability")
    assert np.isnan(found["value"][0, 0])
    assert found["value"][-1, 0] == 0.0


def test_accuracy_of_the_best_and_of_all_together():
    """Two wrong answers that are each less probable than the right one are together more so."""
    item = encode([BOS, KEY, BY, THERE], right=IS, wrong=ARE).with_answers([(IS,)], [(ARE,), (NEAR,), (KEY,)])
    units = [Unit(item, None, "c")]
    for metric, correct in (("logit_difference", 0.0), ("best_logit_difference", 1.0)):
        task = task_of(units, [], metric=metric)
        for asked in (None, "accuracy"):
            found = Sweep(cell_of_zero(0, 1)).run(HandModel(), task, metric=asked).examples
            assert found["base_correct"].item() == correct


def test_gradients_of_a_set_are_those_of_its_metric():
    """Along the whole way from one run to the other they add up to the change of the metric."""
    model, task = random_model(), with_sets(random_task(5), random.Random(2))
    found = attribute(model, task, by=("layer",), method="integrated_gradients", steps=64)
    gap, change_ = (found.provenance["completeness"][each] for each in ("largest_gap", "largest_change"))
    assert gap < 1e-3 * change_


def test_what_needs_one_direction_refuses_sets():
    task = with_sets(random_task(5), random.Random(2), most=2)
    with pytest.raises(InputError, match=r"self_repair: expected one right and one wrong answer, got \d and \d for"):
        self_repair(random_model(), task, replacement="zero")
    stream = interp.residual_stream(hand_weights(), torch.tensor([[BOS, KEY, THERE]]))
    with pytest.raises(InputError, match="of a set of answers attribute one by one"):
        interp.direct_logit_attribution(hand_weights(), stream, torch.tensor([IS, ARE]))


def test_gradients_of_sets_of_sentences_are_refused():
    item = example_of_ids([0, 5, 6], [[7, 8], [9]], [[10], [11, 12]])
    other = example_of_ids([0, 4, 6], [[10], [11, 12]], [[7, 8], [9]])
    task = task_of_units([Unit(item, other, "c")], name="sets", description=".", metric="sentence_log_probability")
    with pytest.raises(InputError, match="gradients: expected one right and one wrong sentence, got sets of 2 and 2"):
        attribute(random_model(), task)


@pytest.mark.parametrize("pair", [((5, 6, 7), (3, 4)), ((5, 6, 7), (6, 7)), ((6, 7), (5, 6, 7))])
def test_a_word_is_exchanged_against_what_is_right_there_alone(pair):
    """Of nested sets, as the later years of two years are, what is right in both stands for the empty one."""
    here, there = ([(token,) for token in answers] for answers in pair)
    example = example_of_ids([0, 1, 2], 8, 9, related=[1])
    other = example_of_ids([0, 3, 2], 8, 9, related=[1]).with_answers(there, here[:1])
    unit = Unit(example.with_answers(here, [(20,)]), other, "c")
    (found,) = against_other_words(task_of([unit], [])).units
    right, wrong = found.item.rights, found.item.wrongs
    assert {
        ((5, 6, 7), (3, 4)): (((5,), (6,), (7,)), ((3,), (4,))),
        ((5, 6, 7), (6, 7)): (((5,),), ((6,), (7,))),
        ((6, 7), (5, 6, 7)): (((6,), (7,)), ((5,),)),
    }[pair] == (right, wrong)
    assert (found.counterfactual.rights, found.counterfactual.wrongs) == (wrong, right)
