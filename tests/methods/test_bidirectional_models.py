"""What can be asked of an encoder: what stands at a masked place, and no next token."""

import dataclasses

import numpy as np
import pytest
import torch
from bridges import booted
from foreign_models import random_foreign
from random_tasks import random_task
from tiny_models import random_model, word_tokenizer
from transformers import BertForMaskedLM, BertTokenizer
from typer.testing import CliRunner

from interp.cli import app
from interp.errors import InputError
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Sweep
from interp.methods.ablation import ablate, choose_components
from interp.methods.attribution import attribute
from interp.methods.behaviour import behaviour
from interp.methods.dossier import heads
from interp.methods.head_sets import greedy, pairwise
from interp.methods.patching import patch
from interp.methods.replacements_compared import compare_replacements
from interp.methods.self_repair import self_repair
from interp.methods.task_arguments import as_task
from interp.model.loading import load_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(36))]
MASK = 4
NO_PREDICTION = (
    "task 'random' asks for the next token, which an encoder does not predict: it reads both sides of a word; "
    r"score its attention with interp\.attend, or measure a Task of your own whose prompts end in \[MASK\]"
)
METHODS = [ablate, patch, attribute, heads, greedy, pairwise, compare_replacements]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT in 32 bits, with its tokenizer."""
    path = tmp_path_factory.mktemp("bert")
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    booted(random_foreign("bert"), path, tokenizer=BertTokenizer(vocab=str(path / "vocab.txt")))
    return path


@pytest.fixture(scope="module", params=["", "bridge:"], ids=["ours", "bridge"])
def encoder(request, folder):
    return load_model(f"{request.param}{folder}")


def masked(task):
    """`task` with prompts that end in the mask token."""

    def ended(unit):
        pair = (None if each is None else dataclasses.replace(each, prompt=(*each.prompt[:-1], MASK)) for each in unit)
        return dict(zip(("item", "counterfactual"), pair, strict=True))

    units, *references = (
        tuple(dataclasses.replace(unit, **ended((unit.item, unit.counterfactual))) for unit in units)
        for units in (task.units, *task.references)
    )
    return dataclasses.replace(task, units=units, references=tuple(references))


TASK = random_task(2, lengths=(6, 6, 5, 5))
MASKED = masked(TASK)


class TestANextToken:
    @pytest.mark.parametrize("method", METHODS, ids=lambda each: each.__name__)
    def test_is_refused(self, encoder, method):
        with pytest.raises(InputError, match=NO_PREDICTION):
            method(encoder, [TASK] if method is heads else TASK)

    def test_is_refused_by_name_before_the_task_is_encoded(self, encoder):
        with pytest.raises(InputError, match="task 'agreement' asks for the next token, which an encoder"):
            ablate(encoder, "agreement")

    def test_is_refused_where_only_what_the_model_does_is_asked(self, encoder):
        with pytest.raises(InputError, match=NO_PREDICTION):
            behaviour(encoder, TASK)

    def test_is_refused_of_ours(self, folder):
        with pytest.raises(InputError, match=NO_PREDICTION):
            self_repair(load_model(folder), TASK)

    def test_is_refused_where_one_prompt_has_no_mask(self, encoder):
        units = (*MASKED.units[1:], TASK.units[0])
        with pytest.raises(InputError, match=NO_PREDICTION):
            ablate(encoder, dataclasses.replace(MASKED, units=units))

    def test_attention_does_not_ask_for_one(self, encoder):
        assert as_task(TASK, encoder, n=None, seed=0) is TASK

    def test_without_a_mask_token_none_is_named(self):
        tokenizer = word_tokenizer()
        model = random_model(causal=False, tokenizer=tokenizer)
        with pytest.raises(InputError, match=r"score its attention with interp\.attend$"):
            ablate(model, TASK)

    def test_without_a_tokenizer_the_task_is_the_users(self):
        assert len(ablate(random_model(causal=False), TASK, replacement="zero").summary()) == 6

    def test_a_sweep_asks_nothing(self, encoder):
        cells = [each.cell(Zero()) for each in choose_components(encoder)]
        assert (Sweep(cells).run(encoder, TASK).examples["status"] == "changed").any()

    def test_causal_models_are_asked(self):
        assert len(ablate(random_model(tokenizer=word_tokenizer()), TASK, replacement="zero").summary()) == 6


class TestAMaskedToken:
    @pytest.mark.parametrize("metric", ["logit_difference", "probability", "kl_divergence", "accuracy"])
    def test_ablation(self, encoder, folder, metric):
        """The base run is what transformers says of the mask; bridge and engine agree."""
        found = ablate(encoder, MASKED, metric=metric)
        assert found.provenance["engine"] == "incremental"
        assert (found.examples["status"] == "changed").all()
        ours = ablate(load_model(folder), MASKED, metric=metric)
        np.testing.assert_allclose(found.examples["value"], ours.examples["value"], rtol=1e-4, atol=1e-6)

    def test_the_base_run_is_that_of_transformers(self, encoder, folder):
        theirs = BertForMaskedLM.from_pretrained(folder).eval()
        found = ablate(encoder, MASKED, replacement="zero").examples
        base = found[(found["layer"] == 0) & (found["head"] == 0)]["base"]
        for value, each in zip(base, MASKED.examples, strict=True):
            with torch.no_grad():
                logits = theirs(torch.tensor([each.prompt])).logits[0, -1]
            assert value == pytest.approx(float(logits[each.right[0]] - logits[each.wrong[0]]), rel=1e-4, abs=1e-6)

    def test_patching(self, encoder):
        found = patch(encoder, MASKED, by=("layer",), site="resid_pre", layers=[0])
        assert found.provenance["engine"] == "incremental"
        assert (found.examples["status"] == "changed").any()

    def test_a_sentence_is_refused(self, encoder):
        message = "task 'random' would score words that the encoder has read.*give metric='logit_difference'"
        for metric in ("sentence_log_probability", "accuracy"):
            task = dataclasses.replace(MASKED, metric="sentence_log_probability")
            with pytest.raises(InputError, match=message):
                ablate(encoder, task, metric=metric)
        with pytest.raises(InputError, match=message):
            patch(encoder, MASKED, metric="sentence_log_probability")


@pytest.mark.parametrize("command", ["heads", "ablate", "patch"])
@pytest.mark.parametrize("prefix", ["", "bridge:"])
def test_the_command_line_says_so_in_one_line(folder, tmp_path, command, prefix):
    options = ["--model", f"{prefix}{folder}", "--task", "agreement", "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(app, [command, *options])
    assert result.exit_code == 2
    (line,) = [each for each in result.stderr.splitlines() if "Loading weights" not in each and each]
    assert line.startswith("error: task 'agreement' asks for the next token, which an encoder does not predict")
    assert line.endswith("; score its attention with interp attend")
    assert not (tmp_path / "report").exists()
