import re

import datasets
import pytest
from winobias_rows import hub_row

from interp.errors import TaskError
from interp.tasks.catalogue import load_task
from interp.tasks.grammar.lexicon import english
from recipes.tokenizer import build_tokenizer

PRO = (
    "1 The cook met [the nurse] and thanked [her].",
    "2 The nurse met [the cook] and thanked [him].",
    "3 [The construction worker] met the nurse and then [he] ate [his] lunch.",
    "4 The construction worker met [the nurse] and took [her] lunch.",
    "5 The nurse met [the construction worker] and thanked [him].",
    "6 [The cook] met the driver and the nurse because [he] could.",
    "7 [The nurse] met the dancer because [she] could not cook like a cook.",
    "8 The nurse saw that a nurse met [the cook] and [his] nurse.",
)
SWAPS = {"her": "him", "him": "her", "he": "she", "his": "her", "she": "he"}
ANTI = tuple(re.sub(r"\[(\w+)\]", lambda m: f"[{SWAPS[m[1]]}]", line) for line in PRO)
ANTI = (*ANTI[:3], ANTI[3].replace("[him]", "[his]"), *ANTI[4:])
PUBLISHED = [f"pro_stereotyped_type{kind}.txt.{part}" for kind in "12" for part in ("dev", "test")]
PRONOUN = r"(?:he|she|him|her|his|himself|herself)"


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(english().words())


@pytest.fixture
def write(tmp_path):
    def write(pro=PRO, anti=ANTI, name="pro_made_up.txt"):
        (tmp_path / name).write_text("\n".join(pro) + "\n")
        if anti is not None:
            (tmp_path / name.replace("pro_", "anti_", 1)).write_text("\n".join(anti) + "\n")
        return f"winobias:{tmp_path / name}"

    return write


def words(example):
    """The words that the relation's spans cover: query, related, distractors by role."""
    relation, text = example.relation, example.text
    others = {role: span.of(text) for role, span in relation.distractors.items()}
    return relation.query.of(text), relation.related.of(text), others


def test_an_item_is_the_stereotype_s_pronoun_against_the_other(write, tokenizer):
    task = load_task(write(), tokenizer=tokenizer)
    examples = [unit.item.example for unit in task.units]
    assert [(each.prompt, each.right, each.wrong) for each in examples] == [
        ("The cook met the nurse and thanked", " her.", " him."),
        ("The construction worker met the nurse and then", " he ate his lunch.", " she ate her lunch."),
        ("The construction worker met the nurse and took", " her lunch.", " his lunch."),
        ("The nurse met the construction worker and thanked", " him.", " her."),
        ("The cook met the driver and the nurse because", " he could.", " she could."),
        ("The nurse met the dancer because", " she could not cook like a cook.", " he could not cook like a cook."),
        ("The nurse saw that a nurse met the cook and", " his nurse.", " her nurse."),
    ]
    assert [words(each) for each in examples] == [
        ("her", "nurse", {"other person": "cook"}),
        ("he", "worker", {"other person": "nurse"}),
        ("her", "nurse", {"other person": "worker"}),
        ("him", "worker", {"other person": "nurse"}),
        ("he", "cook", {"other person": "nurse"}),  # nobody is referred to as a driver
        ("she", "nurse", {}),  # nor as a dancer, and the cook stands after the pronoun
        ("his", "cook", {"other person": "nurse"}),
    ]
    assert examples[-1].relation.distractors["other person"].start == 4
    assert [unit.cluster for unit in task.units] == [
        "cook + nurse",
        *["construction worker + nurse"] * 3,
        "cook + nurse",
        "nurse",
        "cook + nurse",
    ]
    assert [each.template for each in examples] == [
        *("feminine", "masculine", "feminine", "masculine", "masculine", "feminine", "masculine")
    ]
    assert examples[1].features == {"gender": "masculine", "antecedent": "worker"}
    assert (task.metric, task.query) == ("sentence_log_probability", "later word")
    assert "a preference of the model, not a right answer" in task.description


def test_of_two_other_occupations_neither_is_the_other_person(write, tokenizer):
    more = "9 The cook met [the driver] because of [him]."
    task = load_task(write((*PRO, more), (*ANTI, more.replace("him", "her"))), tokenizer=tokenizer)
    both = next(unit for unit in task.units if "driver and the nurse" in unit.item.example.prompt)
    assert words(both.item.example) == ("he", "cook", {})
    assert both.cluster == "cook"


def test_twins_are_one_unit(write, tokenizer):
    """Lines 1 and 2; 4 and 5 are no twins by number, nor 7 and 8 by words."""
    task = load_task(write(), tokenizer=tokenizer)
    first, *others = task.units
    assert first.counterfactual.example.prompt == "The nurse met the cook and thanked"
    assert (first.counterfactual.example.right, first.counterfactual.example.wrong) == (" him.", " her.")
    assert words(first.counterfactual.example) == ("him", "cook", {"other person": "nurse"})
    assert first.counterfactual.related == first.item.related
    assert {unit.counterfactual for unit in others} == {None}
    assert task.dropped == {}


def twins(number, verb, swapped=False):
    feminine = f"The cook {verb} [the nurse] and thanked [her]."
    masculine = f"The nurse {verb} [the cook] and thanked [him]."
    pair = (masculine, feminine) if swapped else (feminine, masculine)
    return [f"{number + i} {sentence}" for i, sentence in enumerate(pair)]


def exchanged(lines):
    return [re.sub(r"\[(her|him)\]", lambda m: f"[{SWAPS[m[1]]}]", line) for line in lines]


def test_either_gender_comes_first_in_turn(write, tokenizer):
    lines = [*twins(1, "met"), *twins(3, "saw"), *twins(5, "knew", swapped=True), *twins(7, "liked", swapped=True)]
    units = load_task(write(lines, exchanged(lines)), tokenizer=tokenizer).units
    assert [unit.item.example.template for unit in units] == ["feminine", "masculine"] * 2
    assert [unit.counterfactual.example.template for unit in units] == ["masculine", "feminine"] * 2


@pytest.mark.parametrize(
    "second",
    [
        "2 The nurse met [the cook] and praised [him].",
        "2 The nurse met [the cook] and thanked [him] again.",
        "2 [The nurse] met the cook and thanked [her].",
        "2 [The nurse] met the cook and thanked [him].",
        "2 [The cook] met the nurse and thanked [him].",
        "2 The nurse met [the driver] and thanked [him].",
        "3 The nurse met [the cook] and thanked [him].",
    ],
)
def test_lines_that_are_not_each_other_s_exchange_are_two_units(write, tokenizer, second):
    rest = "5 The driver met [the cook] and thanked [him]."
    lines = [*twins(1, "met")[:1], second, rest]
    units = load_task(write(lines, exchanged(lines)), tokenizer=tokenizer).units
    assert [unit.counterfactual for unit in units] == [None] * 3


def test_twins_are_lines_2k_minus_1_and_2k(write, tokenizer):
    lines = twins(2, "met")
    units = load_task(write(lines, exchanged(lines)), tokenizer=tokenizer).units
    assert [unit.counterfactual for unit in units] == [None] * 2


def test_of_two_occupations_that_begin_alike_the_longer_is_meant(write, tokenizer):
    lines = [
        "1 [The cook] met the baker boy because [he] could.",
        "2 The cook met [the baker boy] and thanked [him].",
        "3 The cook met [the baker] and thanked [her].",
    ]
    first = load_task(
        write(lines, [lines[0].replace("he]", "she]"), *exchanged(lines[1:])]), tokenizer=tokenizer
    ).units[0]
    assert words(first.item.example) == ("he", "cook", {"other person": "boy"})
    assert first.cluster == "baker boy + cook"


def test_lines_with_other_words_are_left_out_and_counted(write, tokenizer):
    anti = [ANTI[0], ANTI[1].replace("thanked", "saw"), *ANTI[2:5], PRO[5], *ANTI[6:]]
    task = load_task(write(anti=anti), tokenizer=tokenizer)
    assert [unit.counterfactual for unit in task.units] == [None] * 6
    assert task.coverage["same words in both files"] == pytest.approx(75)
    assert not any("driver" in unit.item.example.text for unit in task.units)


def test_what_is_covered_is_counted(write, tokenizer):
    """The grammar knows no construction, which three lines are about; the dancer's line has no other person."""
    assert load_task(write(), tokenizer=tokenizer).coverage == {
        "known words": pytest.approx(100 * 5 / 8),
        "same words in both files": pytest.approx(100),
        "other person found": pytest.approx(100 * 7 / 8),
        "counterfactual": pytest.approx(25),
    }


def test_known_words_only_and_a_sample(write, tokenizer):
    """A unit of twins is kept or drawn as one, and what is drawn is in the file's order."""
    every, known, drawn = (
        [unit.item.example.text for unit in load_task(write(), tokenizer=tokenizer, **options).units]
        for options in ({}, {"known_words_only": True}, {"n": 3, "seed": 1})
    )
    assert known == [text for text in every if "construction" not in text]
    assert (len(every), len(known), len(drawn)) == (7, 4, 3)
    assert [text for text in every if text in drawn] == drawn


def plain(line):
    """A published line without its number, brackets and slips: by itself, without this project's reader."""
    line = re.sub(r"(?i)\b(the|an?) \[\s*\1 ", r"\1 [", line)
    return " ".join(line.replace("[", "").replace("]", "").split()[1:])


def blank(line):
    return plain(re.sub(rf"\[{PRONOUN}\]", "_", line))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_files(data_dir, tokenizer, name):
    pro, anti = (
        (data_dir / "winobias" / each).read_text().splitlines() for each in (name, name.replace("pro_", "anti_"))
    )
    same = {plain(ours): (ours, theirs) for ours, theirs in zip(pro, anti, strict=True) if blank(ours) == blank(theirs)}
    task = load_task(f"winobias:{data_dir}/winobias/{name}", tokenizer=tokenizer)
    assert task.dropped == {}
    assert sorted(encoded.example.text for encoded in task.examples) == sorted(same)
    assert len(same) >= 388
    assert task.coverage["same words in both files"] == pytest.approx(100 * len(same) / 396)
    assert task.coverage["other person found"] == task.coverage["same words in both files"]
    genders = {}
    for unit in task.units:
        for encoded in unit.examples:
            example, (query, related, others) = encoded.example, words(encoded.example)
            ours, theirs = same[example.text]
            assert example.prompt + example.wrong == plain(theirs)
            brackets = [each.split()[-1] for each in re.findall(r"\[(.*?)\]", ours)]
            assert [related, query] == brackets[:2]
            assert query in (("she", "her") if example.template == "feminine" else ("he", "him", "his"))
            (other,) = others.values()
            assert re.search(rf"\b{other}\b", example.prompt)
            assert other != related
            assert {related.lower(), other.lower()} <= set(unit.cluster.split())
            genders.setdefault(related.lower(), set()).add(example.template)
    assert len(genders) == 40
    assert {len(each) for each in genders.values()} == {1}
    of_units = [unit.item.example.template for unit in task.units]
    assert abs(of_units.count("feminine") - of_units.count("masculine")) <= 6


@pytest.mark.parametrize(("part", "n_units", "n_twins"), [("dev", 349, 39), ("test", 346, 45)])
def test_published_lines_of_type_2_have_twins(data_dir, tokenizer, part, n_units, n_twins):
    """Exchanging two words and the pronoun gives the other line, by plain string replacement."""
    lines = [plain(line) for line in (data_dir / f"winobias/pro_stereotyped_type2.txt.{part}").read_text().splitlines()]
    task = load_task(f"winobias:{data_dir}/winobias/pro_stereotyped_type2.txt.{part}", tokenizer=tokenizer)
    twins = [unit for unit in task.units if unit.counterfactual is not None]
    assert (len(task.units), len(twins)) == (n_units, n_twins)
    for unit in twins:
        item, other = (encoded.example for encoded in unit.examples)
        places = sorted((lines.index(item.text), lines.index(other.text)))
        assert places[0] % 2 == 0
        assert places[1] == places[0] + 1
        assert (item.right, item.wrong) == (other.wrong, other.right)
        assert {item.template, other.template} == {"feminine", "masculine"}
        assert unit.item.query == unit.counterfactual.query
        assert words(item)[1] == words(other)[2]["other person"]
    assert task.coverage["counterfactual"] == pytest.approx(100 * 2 * n_twins / 396)


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        ({"name": "made_up.txt"}, {}, "made_up.txt: expected a file called pro_..., with anti_... beside it"),
        ({"name": "repro_made_up.txt"}, {}, "expected a file called pro_..., with anti_... beside it"),
        ({"anti": None}, {}, "anti_made_up.txt: expected a WinoBias file, got no such file"),
        ({"anti": ANTI[:-1]}, {}, "anti_made_up.txt, sentence 8: expected the number 8, as in its pro twin, got none"),
        ({"pro": PRO[:-1]}, {}, "anti_made_up.txt, sentence 8: expected the number none, as in its pro twin, got 8"),
        ({"anti": (ANTI[1], *ANTI[1:])}, {}, "anti_made_up.txt, sentence 1: expected the number 1, as in its pro twin"),
        ({"anti": PRO}, {}, "expected the same sentences with other pronouns in the anti_ file, got 0 of 8 lines"),
        ({"anti": [*ANTI[:3], *PRO[3:]]}, {}, "got 3 of 8 lines; put the twin of this very file beside it"),
        ({}, {"metric": "logit_difference"}, "is measured by sentence_log_probability, got metric='logit_difference'"),
        (
            {"pro": PRO[2:5], "anti": ANTI[2:5]},
            {"known_words_only": True},
            "no item has only known words; leave known_words_only out",
        ),
    ],
)
def test_what_cannot_be_a_task_is_one_clear_line(write, tokenizer, files, options, says):
    with pytest.raises(TaskError) as raised:
        load_task(write(**files), tokenizer=tokenizer, **options)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_configuration_of_the_hub_has_its_twin_beside_it(tmp_path, tokenizer, write):
    """Rows come in another order there; items are those of the files. Only the configuration's name says ``pro``."""
    tmp_path = tmp_path / "wino_pro"
    tmp_path.mkdir()
    for config, lines in (("type1_pro", PRO), ("type1_anti", ANTI)):
        (tmp_path / config).mkdir()
        rows = sorted((hub_row(line) for line in lines), key=lambda row: row["document_id"], reverse=True)
        datasets.Dataset.from_list(rows).to_parquet(tmp_path / config / "test.parquet")
    configs = "".join(f"- config_name: {each}\n  data_dir: {each}\n" for each in ("type1_pro", "type1_anti"))
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    hub, files = (load_task(name, tokenizer=tokenizer) for name in (f"winobias:hub:{tmp_path}:type1_pro:test", write()))
    assert [unit.item.example for unit in hub.units] == [unit.item.example for unit in files.units]
    with pytest.raises(TaskError, match=r":type1_anti:test: expected a file called pro_.*got another name; give that"):
        load_task(f"winobias:hub:{tmp_path}:type1_anti:test", tokenizer=tokenizer)
