"""Minimal pairs from treebanks: hand-made ones with every reason to leave a word out, and published ones."""

import subprocess
from collections import Counter

import datasets
import pytest

import interp
from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.treebank_tasks import like

AGREEMENT = [
    # the subject, an attractor in between, the other form elsewhere
    "The/DT/2/det keys/NNS/6/nsubj/Number=Plur to/IN/5/case the/DT/5/det door/NN/2/nmod are/VBP/0/root/be",
    # an auxiliary: its verb's subject
    "It/PRP/3/nsubj/Number=Sing|Person=3 is/VBZ/3/aux/be going/VBG/0/root",
    # first person; subject after the verb; subject of another number; only form; contracted
    "We/PRP/2/nsubj/Number=Plur|Person=1 are/VBP/0/root/be",
    "Here/RB/2/advmod is/VBZ/0/root/be Mary/NNP/2/nsubj/Number=Sing",
    "Mary/NNP/2/nsubj/Number=Sing are/VBP/0/root/be",
    "Mary/NNP/2/nsubj/Number=Sing yodels/VBZ/0/root/yodel",
]


def bank(*sentences, entities=()):
    """Words are form/xpos/head/relation[/lemma or features]; entities are {(sentence, word): brackets}."""
    lines = ["# newdoc id = d"]
    brackets = dict(entities)
    for number, text in enumerate(sentences):
        for at, word in enumerate(text.split(), start=1):
            form, xpos, head, relation, *more = word.split("/")
            feats = next((each for each in more if "=" in each), "_")
            lemma = next((each for each in more if "=" not in each), form.lower())
            upos = {"NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "PRP": "PRON", "PRP$": "PRON"}.get(xpos, "X")
            entity = brackets.get((number, at), "")
            misc = f"Entity={entity}" if entity else "_"
            lines.append(f"{at}\t{form}\t{lemma}\t{upos}\t{xpos}\t{feats}\t{head}\t{relation}\t_\t{misc}")
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture
def load(tmp_path):
    def load(kind, content, **options):
        path = tmp_path / "bank.conllu"
        path.write_text(content)
        tokenizer = interp.load_model("books").tokenizer
        return interp.load_task(f"{kind}:{path}", tokenizer=tokenizer, n_ctx=256, **options)

    return load


def said(task):
    return [
        (each.prompt, each.right, each.wrong, each.relation.related.of(each.text), each.template)
        for each in (unit.item.example for unit in task.units)
    ]


def test_agreement(load):
    task = load("agreement", bank(*AGREEMENT))
    assert said(task) == [
        ("The keys to the door", " are", " is", "keys", "plural"),
        ("It", " is", " are", "It", "singular"),
    ]
    first, second = (unit.item.example for unit in task.units)
    assert first.relation.query.of(first.text) == "door"
    assert {role: span.of(first.text) for role, span in first.relation.distractors.items()} == {"attractor": "door"}
    assert second.relation.distractors == {}
    assert {unit.cluster for unit in task.units} == {"d"}
    assert all(unit.counterfactual is None for unit in task.units)
    assert task.metric == "logit_difference"
    sixth = pytest.approx(100 / 6)
    assert task.coverage == {
        "used": pytest.approx(200 / 6),
        "first or second person": sixth,
        "no subject before it": sixth,
        "not the number of its subject": sixth,
        "its other form is not in the treebank": sixth,
    }


def test_a_contracted_verb_cannot_be_predicted_by_itself(load):
    contracted = "1-2\tIt's\t_\t_\t_\t_\t_\t_\t_\t_\n1\tIt\tit\tPRON\tPRP\tNumber=Sing|Person=3\t2\tnsubj\t_\t_\n"
    contracted += "2\t's\tbe\tAUX\tVBZ\t_\t0\troot\t_\t_\n\n"
    task = load("agreement", bank(*AGREEMENT[1:3]) + contracted)
    assert [each[0] for each in said(task)] == ["It"]
    assert task.coverage["cannot be predicted by itself"] == pytest.approx(100 / 3)


STORY = [
    "Mary/NNP/2/nsubj met/VBD/0/root John/NNP/2/obj",
    "Then/RB/3/advmod she/PRP/3/nsubj saw/VBD/0/root herself/PRP/3/obj",
    "And/CC/3/cc he/PRP/3/nsubj lost/VBD/0/root her/PRP$/5/nmod hat/NN/3/obj",
]
WHO = {
    (0, 1): "(1-person)", (0, 3): "(2-person)", (1, 2): "(1-person)", (1, 4): "(1-person)", (2, 2): "(2-person)",
    (2, 4): "(3-object(1-person)", (2, 5): "3)",
}  # fmt: skip


HE = {(0, 1): "(1-person)", (0, 3): "(1-person)"}


def test_coreference(load):
    task = load("coreference", bank(*STORY, entities=WHO))
    assert said(task) == [
        ("Mary met John Then", " she", " he", "Mary", "feminine"),
        ("Mary met John Then she saw herself And", " he", " she", "John", "masculine"),
    ]
    others = [
        {role: span.of(each.text) for role, span in each.relation.distractors.items()}
        for each in (unit.item.example for unit in task.units)
    ]
    assert others == [{"other person": "John"}, {"other person": "herself"}]
    assert task.coverage["the nearest antecedent is not a name"] == pytest.approx(100 / 3), "her: herself is nearer"


def test_anaphora(load):
    task = load("anaphora", bank(*STORY, entities=WHO))
    assert said(task) == [("Then she saw", " herself", " themselves", "she", "singular")]


def test_the_plural_s_other_number_is_the_entity_s(load):
    people = "They/PRP/2/nsubj saw/VBD/0/root themselves/PRP/2/obj"
    for kind, wrong in (("person", " himself"), ("animal", " itself")):
        found = load("anaphora", bank(people, entities={(0, 1): f"(1-{kind})", (0, 3): f"(1-{kind})"}))
        assert said(found) == [("They saw", " themselves", wrong, "They", "plural")]


def test_case_is_kept():
    assert [like(form, "she") for form in ("he", "He", "HE", "I")] == ["she", "She", "SHE", "She"]


def test_nothing_to_use(load):
    with pytest.raises(TaskError, match=r"expected present-tense verbs.*got none that can be used \(1 first or second"):
        load("agreement", bank(AGREEMENT[2]))
    with pytest.raises(TaskError, match=r"expected pronouns of a gender.*got none \(words need tags"):
        load("coreference", bank(AGREEMENT[2]))


HEADS = ("tokens", "lemmas", "upos", "xpos", "feats", "head", "deprel")


def on_the_hub(content, folder):
    """The same words as a data set of one split: a row a sentence, without a text."""
    rows = []
    for block in content.split("\n\n"):
        words = [line.split("\t") for line in block.splitlines() if line and line[0] != "#"]
        if words:
            columns = {name: [word[at] for word in words] for at, name in enumerate(HEADS, start=1)}
            misc = ["None" if word[9] == "_" else word[9] for word in words]
            rows.append({"idx": f"s{len(rows)}", **columns, "misc": misc})
    datasets.Dataset.from_list(rows).to_parquet(folder / "test.parquet")
    return f"hub:{folder}::test"


@pytest.mark.parametrize(("kind", "clusters"), [("agreement", ["s0", "s1"]), ("anaphora", ["s1"])])
def test_a_row_of_the_hub_is_a_document(load, tmp_path, kind, clusters):
    content = bank(*AGREEMENT) if kind == "agreement" else bank(*STORY, entities=WHO)
    found = load(kind, content)
    source = f"{kind}:{on_the_hub(content, tmp_path)}"
    task = interp.load_task(source, tokenizer=interp.load_model("books").tokenizer, n_ctx=256)
    assert said(task) == said(found)
    assert [unit.cluster for unit in task.units] == clusters


def test_coreference_in_one_row_of_the_hub(tmp_path):
    one = "Mary/NNP/2/nsubj met/VBD/0/root John/NNP/2/obj when/WRB/6/advmod she/PRP/6/nsubj left/VBD/2/advcl"
    content = bank(one, entities={(0, 1): "(1-person)", (0, 3): "(2-person)", (0, 5): "(1-person)"})
    he = bank("John/NNP/2/nsubj said/VBD/0/root he/PRP/4/nsubj left/VBD/2/ccomp", entities=HE)
    source = f"coreference:{on_the_hub(content + he, tmp_path)}"
    task = interp.load_task(source, tokenizer=interp.load_model("books").tokenizer, n_ctx=256)
    assert [each[:4] for each in said(task)] == [
        ("Mary met John when", " she", " he", "Mary"),
        ("John said", " he", " she", "John"),
    ]


def count(path, *forms):
    """Words of these forms, counted by awk."""
    condition = " || ".join(f'tolower($2) == "{form}"' for form in forms)
    program = f"$1 ~ /^[0-9]+$/ && $5 ~ /^PRP/ && ({condition}) {{n++}} END {{print n + 0}}"
    return int(subprocess.run(["awk", "-F\t", program, path], capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_published_treebanks(data_dir):
    """Every used word stands in the file as often as awk says, or less; each pair differs in one word."""
    path = data_dir / "gum" / "en_gum-ud-train.conllu"
    tokenizer = interp.load_model("books").tokenizer
    found = {
        kind: interp.load_task(f"{kind}:{path}", tokenizer=tokenizer, n_ctx=256)
        for kind in ("agreement", "coreference", "anaphora")
    }
    reflexives = ("himself", "herself", "itself", "themselves")
    assert 30 <= len(found["anaphora"].units) <= count(path, *reflexives)
    assert 300 <= len(found["coreference"].units) <= count(path, "he", "she", "him", "her", "his", "hers")
    for kind, least in (("agreement", 100), ("coreference", 20), ("anaphora", 20)):
        task = found[kind]
        assert len({unit.cluster for unit in task.units}) >= least
        templates = Counter(unit.item.example.template for unit in task.units)
        assert len(templates) == 2
        for unit in task.units:
            example = unit.item.example
            assert example.right != example.wrong
            assert isinstance(example.relation.related, Span)
            assert example.relation.related.stop <= len(example.prompt)
