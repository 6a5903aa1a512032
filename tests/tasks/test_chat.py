"""A prompt in a chat template: the ids are the template's, and what the task names stands where it stood."""

import json
from dataclasses import replace

import pytest
from tiny_models import random_model, word_tokenizer
from transformers import AutoTokenizer
from typer.testing import CliRunner

import interp
from interp.cli import app
from interp.errors import InputError, TaskError
from interp.report.html import as_page
from interp.report.sweep import page_of
from interp.tasks import agreement
from interp.tasks.blimp_task import BLIMP
from interp.tasks.catalogue import load_task
from interp.tasks.chat import REQUEST, in_chat
from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair, Relation, Span

SLOW = pytest.mark.slow
TASKS = ["ioi", *(pytest.param(name, marks=SLOW) for name in ("agreement", "coreference", "reflexive", "induction"))]
PLAIN = "{% for turn in messages %}{{ turn.role }}: {{ turn.content }}\n{% endfor %}"
WITH_BOS = "{{ bos_token }}" + PLAIN
ABOUT = {"name": "keys", "description": "Subject and verb agree.", "metric": "logit_difference"}


@pytest.fixture(scope="module")
def smollm2(data_dir):
    return AutoTokenizer.from_pretrained(data_dir / "tokenizers" / "smollm2")


@pytest.fixture
def words():
    tokenizer = word_tokenizer()
    tokenizer.chat_template = WITH_BOS
    return tokenizer


def pair():
    """The subject, a distractor, and a word counterfactual."""

    def made(subject, right, wrong, *others):
        prompt = f"The {subject} to the cabinet"
        spans = [Span.find(word, prompt) for word in ("cabinet", subject)]
        relation = Relation("subject", spans[0], spans[1], {"attractor": spans[0]})
        return Example(prompt, right, wrong, relation, "simple", "simple", {"number": subject}, tuple(others))

    return MinimalPair(made("keys", " are", " is", made("key", " is", " are")), made("key", " is", " are"), "key")


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def turns(prompt):
    return [{"role": "user", "content": REQUEST}, {"role": "assistant", "content": prompt}]


class TestSmolLM2:
    @pytest.mark.parametrize("name", TASKS)
    def test_ids_are_those_of_the_template_and_spans_follow(self, smollm2, name):
        task, plain = (load_task(name, tokenizer=smollm2, n=12, chat=chat) for chat in (True, False))
        assert all(each.example.chat for each in task.examples)
        assert not any(each.example.chat for each in plain.examples)
        assert task.hash != plain.hash
        assert len(task.units) == len(plain.units) > 3
        for chatted, by_itself in zip(task.examples, plain.examples, strict=True):
            prompt = by_itself.example.prompt
            expected = smollm2.apply_chat_template(turns(prompt), continue_final_message=True, return_dict=False)
            assert list(chatted.prompt) == expected, "special tokens are those of the template, once"
            assert (chatted.right, chatted.wrong, chatted.n_before) == (by_itself.right, by_itself.wrong, 1)
            moved = len(chatted.prompt) - len(by_itself.prompt)
            assert chatted.prompt[moved + 1 :] == by_itself.prompt[1:]
            assert chatted.query == by_itself.query + moved
            assert chatted.related == tuple(at + moved for at in by_itself.related)
            shifted = {role: tuple(at + moved for at in found) for role, found in by_itself.distractors.items()}
            assert chatted.distractors == shifted
            assert (chatted.word_counterfactual is None) == (by_itself.word_counterfactual is None)

    def test_references_stand_in_it_too(self, smollm2):
        task = load_task("agreement", tokenizer=smollm2, n=4, chat=True)
        assert all(each.example.chat for unit in task.references[0] for each in unit.examples)

    def test_a_task_of_a_file_whose_prompts_are_empty(self, smollm2, data_dir):
        """Whole sentences are then all of the answer."""
        path = data_dir / "blimp" / "anaphor_gender_agreement.jsonl"
        task = load_task(f"{BLIMP.name.partition(':')[0]}:{path}", tokenizer=smollm2, n=8, chat=True)
        asked = smollm2.apply_chat_template(turns("")[:1], add_generation_prompt=True, return_dict=False)
        assert all(list(each.prompt[: len(asked)]) == asked for each in task.examples)
        assert {smollm2.decode(each.right[:1]) for each in task.examples if len(each.prompt) == len(asked)} != {""}

    def test_it_is_measured_kept_and_named(self, smollm2, tmp_path):
        model = random_model(tokenizer=smollm2, n_ctx=96)
        pairs = list(agreement.pairs(12, seed=0))
        chatted, plain, again = (
            encode_task(each, tokenizer=smollm2, **ABOUT)
            for each in (in_chat(pairs, smollm2), pairs, in_chat(pairs, smollm2))
        )
        found, other, same = (interp.ablate(model, each, run=tmp_path) for each in (chatted, plain, again))
        assert found.provenance["chat"] is True
        assert "chat" not in other.provenance
        pages = [as_page(page_of(each)) for each in (found, other)]
        assert ["<span>prompts in the chat template</span>" in page for page in pages] == [True, False]
        assert found.provenance["run"] == same.provenance["run"] != other.provenance["run"]


class TestMadeUpTemplates:
    def test_spans_in_the_text(self, words):
        (found,) = in_chat([pair()], words)
        for chatted, by_itself in zip(found.examples, pair().examples, strict=True):
            assert chatted.prompt == f"{words.bos_token}user: {REQUEST}\nassistant: {by_itself.prompt}"
            relation, before = chatted.relation, by_itself.relation
            assert relation.related.of(chatted.text) == before.related.of(by_itself.text)
            assert relation.query.of(chatted.text) == "cabinet"
            assert relation.distractors["attractor"].of(chatted.text) == "cabinet"
        (other,) = found.item.word_counterfactuals
        assert other.chat
        assert other.relation.related.of(other.text) == "key"

    @pytest.mark.parametrize(("template", "n_before"), [(WITH_BOS, 1), (PLAIN, 0)])
    def test_special_tokens_are_the_template_s_alone(self, words, template, n_before):
        words.chat_template = template
        task = encode_task(in_chat([pair()], words), tokenizer=words, **ABOUT)
        for each in task.examples:
            assert each.prompt.count(words.bos_token_id) == each.n_before == n_before
            assert words.decode([each.prompt[at] for at in each.related]).strip() in ("keys", "key")

    def test_a_prompt_is_the_same_tomorrow(self, words):
        """Templates such as Llama 3's say what day it is."""
        words.chat_template = """{{ strftime_now("%d %b %Y") if strftime_now is defined }}: """ + PLAIN
        (found,) = in_chat([pair()], words)
        assert found.item.prompt.startswith("26 Jul 2024: ")

    def test_pairs_in_a_template_and_without_are_kept_apart(self, words):
        with pytest.raises(TaskError, match="keys: expected all pairs in a chat template or none, got some"):
            encode_task([pair(), *in_chat([pair()], words)], tokenizer=words, **ABOUT)


class TestRefused:
    def test_without_a_template(self, words):
        words.chat_template = None
        message = (
            "chat: expected a tokenizer with a chat template, got .* without one; take an instruct model, or leave"
        )
        with pytest.raises(TaskError, match=message):
            load_task("agreement", tokenizer=words, chat=True)

    @pytest.mark.parametrize(
        ("template", "message"),
        [
            (
                PLAIN + "{{ raise_exception('no assistant, please') }}",
                r"cannot be filled in with '.*' \(no assistant, please\)",
            ),
            ("{{ messages[0].content }", r"cannot be filled in with '.*' \(.*\)"),
            ("{% for turn in messages %}{{ turn.content | upper }}{% endfor %}", r"chat: .*'The keys to the cabinet'"),
        ],
    )
    def test_a_template_that_does_not_take_the_prompt(self, words, template, message):
        words.chat_template = template
        with pytest.raises(TaskError, match=message):
            list(in_chat([pair()], words))

    def test_a_task_that_another_template_made(self, words):
        """Where its ids are another tokenizer's, a model refuses it as any other task."""
        task = encode_task(in_chat([pair()], words), tokenizer=words, **ABOUT)
        model = random_model(tokenizer=words, n_ctx=48)
        interp.ablate(model, task, replacement="zero")
        swapped = replace(task.units[0].item, prompt=task.units[0].item.prompt[::-1])
        with pytest.raises(InputError, match="was encoded by another tokenizer than the model's"):
            interp.ablate(model, replace(task, units=(replace(task.units[0], item=swapped),)), replacement="zero")


def test_a_model_without_a_template_is_refused_in_one_line():
    refused = run("ablate", "--task", "induction", "--head", "1.0", "--chat")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.rstrip().endswith("without one; take an instruct model, or leave --chat out")


@pytest.mark.slow
def test_what_a_command_measures_stands_in_the_template(monkeypatch, smollm2):
    monkeypatch.setattr("interp.model.loading.load_model", lambda *_, **__: random_model(tokenizer=smollm2, n_ctx=96))
    options = ("--task", "induction", "--head", "1.0", "--n", 4, "--json")
    done = [run("ablate", *options, *more) for more in ((), ("--chat",))]
    assert [each.exit_code for each in done] == [0, 0], done[1].output
    values = [json.loads(each.stdout)["base"] for each in done]
    assert values[0] != values[1]


def test_options_know_what_they_are_not_for():
    assert "--chat: expected --task beside it" in run("model", "plan", "gpt2", "--chat").stderr
    assert "--chat: expected it with --task" in run("probe", "--feature", "upos", "--data", "x", "--chat").stderr
