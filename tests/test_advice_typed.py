"""What a command advises can be typed in the state that says so, and the next command that it names does its work."""

import os
import re
import shlex
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from foreign_models import random_foreign
from kept_sweeps import stop_after
from tiny_models import random_model
from transformers import BertForMaskedLM, BertTokenizer
from typer.testing import CliRunner

import interp
from interp.cli import app
from interp.errors import TaskError
from interp.methods.ablation import ablate
from interp.model.loading import save_model
from interp.model.presets import PRESETS
from interp.runs.executors import Local
from interp.tasks import catalogue
from recipes.tokenizer import build_tokenizer

pytestmark = pytest.mark.unchecked

BLIMP = '{{"sentence_good": "{good}", "sentence_bad": "{bad}", "UID": "made_up", "pairID": "{pair}", '
BLIMP += '"simple_LM_method": true, "one_prefix_method": false, "two_prefix_method": false, '
BLIMP += '"lexically_identical": false, "field": "syntax", "linguistics_term": "made up"}}\n'
NOUNS = ("cat", "dog", "teacher", "senator", "house", "captain")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with models and data, of small sizes."""
    folder = tmp_path_factory.mktemp("here")
    words = [each[1:] for each in interp.load_model().tokenizer.get_vocab() if each[0] == "Ġ" and len(each) > 1]
    size = {"n_layers": 1, "n_heads": 2, "n_ctx": 96, "dtype": torch.float32}
    split = build_tokenizer(each for each in words if each not in ("himself", "herself"))
    save_model(random_model(**size, tokenizer=split), folder / "split")
    save_model(random_model(**size, tokenizer=build_tokenizer(["The"])), folder / "bytes")
    encoder = random_foreign("bert", vocab_size=300)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({each.lower() for each in words})[:295]]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    assert isinstance(encoder, BertForMaskedLM)
    encoder.save_pretrained(folder / "encoder")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "encoder")
    pairs = [
        BLIMP.format(good=f"The {noun} {verb}s .", bad=f"The {noun} {verb} .", pair=at)
        for at, (noun, verb) in enumerate((noun, verb) for noun in NOUNS for verb in ("run", "see"))
    ]
    (folder / "pairs.jsonl").write_text("".join(pairs))
    (folder / "bank.conllu").write_text("".join(map(_sentence, range(12))))
    return folder


def _sentence(number):
    noun, number_of = NOUNS[number % len(NOUNS)], "Sing" if number % 2 else "Plur"
    rows = [
        ("The", "the", "DET", "_", 2, "det"),
        (noun, noun, "NOUN", f"Number={number_of}", 3, "nsubj"),
        ("ran", "run", "VERB" if number else "INTJ", "_", 0, "root"),
    ]
    text = "".join(
        f"{at}\t{form}\t{lemma}\t{upos}\t_\t{feats}\t{head}\t{label}\t_\t_\n"
        for at, (form, lemma, upos, feats, head, label) in enumerate(rows, 1)
    )
    return f"# newdoc id = d{number}\n# sent_id = s{number}\n# text = The {noun} ran\n{text}\n"


@pytest.fixture(autouse=True)
def _few(monkeypatch, here, tmp_path):
    """Few units, and a folder of one's own."""
    monkeypatch.setattr(catalogue, "GENERATED_PAIRS", 6)
    monkeypatch.setattr(catalogue, "REFERENCES", 40)
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    for each in here.iterdir():
        os.symlink(each, tmp_path / each.name)


def typed(line):
    """What a command says; of so few units no verdict can come, so heads are judged ``--anyway``."""
    words = shlex.split(line, comments=True)
    return CliRunner().invoke(app, words + ["--anyway"] * (words[0] == "heads"))


def hint_of(result):
    assert result.exit_code == 0, result.output
    (line,) = [each for each in result.stderr.splitlines() if each.startswith("next: ")]
    return line.removeprefix("next: interp ")


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("ablate --task reflexive --model split", "--metric sentence_log_probability"),
        ("patch --task reflexive --model split --by layer", "--metric sentence_log_probability"),
        ("ablate --task blimp:pairs.jsonl --metric logit_difference", "--metric sentence_log_probability"),
        ("ablate --task blimp:pairs.jsonl --metric probability", "--metric sentence_log_probability"),
        ("ablate --task blimp:pairs.jsonl --replacement positional_mean", "--replacement mean"),
        (
            "ablate --task blimp:pairs.jsonl --site pattern --by layer --replacement positional_mean",
            "--replacement zero",
        ),
        ("ablate --task blimp:pairs.jsonl --n 1", "--replacement zero"),
        pytest.param("probe --feature upos --data bank.conllu", "--min-examples 2", marks=pytest.mark.slow),
        ("heads --task blimp:pairs.jsonl --n 1 --no-cards --out o", "take more units"),
    ],
)
def test_the_advice_of_an_error_can_be_typed(line, advice):
    refused = typed(line)
    assert refused.exit_code == 2, refused.output
    _, _, ways = refused.stderr.rpartition("; ")
    assert advice in ways, refused.stderr
    assert not re.search(r"interp\.\w|\w+='", ways), "as one types it in Python"
    option = "--n 12" if advice == "take more units" else advice
    done = typed(f"{_without(line, option.split()[0])} {option}")
    assert done.exit_code == 0, done.output


def _without(line, option):
    return re.sub(rf"{option} \S+", "", line)


@pytest.mark.parametrize(
    "line", ["heads --out o --task reflexive", "head 0.0 --task reflexive", "probe --task reflexive --feature gender"]
)
def test_what_a_command_has_no_option_for_it_does_not_advise(line):
    refused = typed(f"{line} --model split")
    assert refused.exit_code == 2
    assert "metric" not in refused.stderr
    assert refused.stderr.endswith("; take another task, or a model with another tokenizer\n")


def test_in_python_the_metric_is_one_of_load_task_and_of_who_measures(here):
    model = interp.load_model(str(here / "split"))
    with pytest.raises(TaskError, match=r"give metric='sentence_log_probability' \(of interp\.load_task\), or take"):
        interp.load_task("reflexive", tokenizer=model.tokenizer)
    given = interp.load_task("reflexive", tokenizer=model.tokenizer, metric="sentence_log_probability")
    assert given.metric == "sentence_log_probability"
    assert len(ablate(model, "reflexive", metric="sentence_log_probability").examples)


def test_an_encoder_is_led_to_attend():
    refused = typed("heads --out o --model bridge:encoder")
    assert refused.stderr.endswith("; score its attention with interp attend\n")
    assert typed("attend --data bank.conllu --model bridge:encoder").exit_code == 0


@pytest.mark.parametrize(
    "line",
    [
        "ablate --task reflexive --model split --metric sentence_log_probability",
        "ablate --task agreement --model split --components mlps",
        "ablate --task blimp:pairs.jsonl --components mlps",
        "patch --task agreement --model split --site resid_pre --by layer,pos",
        "head 0.0 --task reflexive --task agreement --model split",
        "head 0.0 --task blimp:pairs.jsonl --out card --no-probes",
        "attend --data bank.conllu --relation nsubj --model bridge:encoder",
        "attend --data bank.conllu --relation nsubj --model split",
        "attend --data bank.conllu --relation nsubj --model bytes",
        "model info --model bytes",
        "model info --model bridge:encoder",
        "probe --task agreement --feature number --model split --no-description-lengths",
        "probe --feature feats:Number --data bank.conllu --model bridge:encoder --no-description-lengths",
        "activations collect --data bank.conllu --site z --model split --out store",
        "activations collect --task induction --site z --model split --out store",
        "heads --task agreement --task reflexive --model split --no-cards --out report",
    ],
)
def test_the_next_command_does_its_work(line):
    following = hint_of(typed(line))
    done = typed(following)
    assert done.exit_code == 0, f"{following}: {done.output}"


def test_of_a_run_from_python_the_next_command_does_its_work(here, monkeypatch):
    model = interp.load_model(str(here / "split"))
    task = interp.load_task("agreement", n=4, tokenizer=model.tokenizer)
    with monkeypatch.context() as stopped:
        stopped.setattr(Local, "stream", stop_after(0))
        with suppress(KeyboardInterrupt), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ablate(model, task, run=os.environ["INTERP_RUNS"])
    (run,) = [each for each in Path(os.environ["INTERP_RUNS"]).iterdir() if each.is_dir()]
    for line in ("runs ls", f"runs show {run.name}", f"runs verify {run.name}"):
        following = hint_of(typed(line))
        assert "resume" not in following
        assert typed(following).exit_code == 0


def test_after_a_plan():
    """Whatever was planned, the next command is the same; it is typed once."""
    large = " --device h100 --devices 16 --dtype bfloat16 --prompts 2"
    lines = [f"model plan {name}{large * (name != 'gpt')}" for name in PRESETS if not name.startswith("gpt2")]
    (following,) = {hint_of(typed(line)) for line in lines}
    done = typed(following)
    assert done.exit_code == 0, done.output
