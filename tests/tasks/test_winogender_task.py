import pytest

from interp.errors import TaskError
from interp.tasks.catalogue import load_task
from interp.tasks.example import Span
from interp.tasks.grammar.lexicon import english
from recipes.tokenizer import build_tokenizer

TEMPLATES = (
    ("guard", "guest", "0", "The $PARTICIPANT saw the $OCCUPATION because $NOM_PRONOUN was here."),
    ("guard", "guest", "1", "The $PARTICIPANT saw the $OCCUPATION while $NOM_PRONOUN slept."),
    ("baker", "child", "0", "The $OCCUPATION met a $PARTICIPANT in $POSS_PRONOUN house."),
    ("actor", "child", "0", "The $OCCUPATION met a $PARTICIPANT near $ACC_PRONOUN."),
)
SHARES = {"guard": "20.0", "baker": "61.5", "actor": "50"}
PRONOUNS = {"male": ("he", "his", "him"), "female": ("she", "her", "her"), "neutral": ("they", "their", "them")}


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(english().words())


@pytest.fixture
def write(tmp_path):
    """The hand-made sentences in each gender, with the participant's noun and `someone`."""

    def write(genders=("male", "female", "neutral"), shares=SHARES):
        def table(name, header, rows):
            lines = ["\t".join(row) for row in (header, *rows)]
            (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")

        sentences = []
        for occupation, noun, answer, template in TEMPLATES:
            for participant in (noun, "someone"):
                for gender in genders:
                    text = template.replace("$OCCUPATION", occupation)
                    if participant == "someone":
                        text = text.replace("The $PARTICIPANT", "Someone").replace("a $PARTICIPANT", "someone")
                    text = text.replace("$PARTICIPANT", participant)
                    for slot, word in zip(("NOM", "POSS", "ACC"), PRONOUNS[gender], strict=True):
                        text = text.replace(f"${slot}_PRONOUN", word)
                    text = text.replace("they was", "they were")
                    sentences.append((f"{occupation}.{participant}.{answer}.{gender}.txt", text))
        table("all_sentences", ("sentid", "sentence"), sentences)
        statistics = [(occupation, "1.0", share, "2015") for occupation, share in shares.items()]
        table("occupations-stats", ("occupation", "bergsma_pct_female", "bls_pct_female", "bls_year"), statistics)
        return f"winogender:{tmp_path}"

    return write


def words(encoded):
    """The words that the relation's spans cover: query, related, distractors by role."""
    relation, text = encoded.example.relation, encoded.example.text
    others = {role: span.of(text) for role, span in relation.distractors.items()}
    return relation.query.of(text), relation.related.of(text), others


def test_an_item_is_the_stereotype_s_pronoun_against_the_other(write, tokenizer):
    task = load_task(write(), tokenizer=tokenizer)
    examples = [unit.item.example for unit in task.units]
    assert [(each.prompt, each.right, each.wrong) for each in examples] == [
        ("The guest saw the guard because", " he was here.", " she was here."),
        ("Someone saw the guard because", " he was here.", " she was here."),
        ("The baker met a child in", " her house.", " his house."),
        ("The baker met someone in", " her house.", " his house."),
    ]
    assert [words(unit.item) for unit in task.units] == [
        ("he", "guard", {"other person": "guest"}),
        ("he", "guard", {"other person": "Someone"}),
        ("her", "baker", {"other person": "child"}),
        ("her", "baker", {"other person": "someone"}),
    ]
    assert [unit.cluster for unit in task.units] == ["guard", "guard", "baker", "baker"]
    assert [each.template for each in examples] == ["masculine", "masculine", "feminine", "feminine"]
    assert examples[0].features == {"gender": "masculine", "antecedent": "guard"}
    assert {unit.counterfactual for unit in task.units} == {None}
    assert (task.metric, task.query) == ("sentence_log_probability", "later word")
    assert "a preference of the model, not a right answer" in task.description


def test_the_pronoun_looks_from_after_the_prompt(write, tokenizer):
    encoded = load_task(write(), tokenizer=tokenizer).units[0].item
    assert encoded.query == len(encoded.prompt) == encoded.critical + 1
    assert tokenizer.convert_ids_to_tokens(encoded.right[0]).strip("Ġ▁ ") == "he"
    assert encoded.related == (5,)
    assert encoded.distractors == {"other person": (2,)}


def test_what_is_covered_is_counted(write, tokenizer):
    """Of eight sentences two stand for the participant, and two for an occupation of as many women as men."""
    task = load_task(write(), tokenizer=tokenizer)
    assert task.coverage == {
        "known words": pytest.approx(100),
        "pronoun stands for the occupation": pytest.approx(75),
        "stereotype known": pytest.approx(50),
    }


def test_the_published_sentences(data_dir, tokenizer):
    folder = data_dir / "winogender"
    rows = [row.split("\t") for row in (folder / "occupations-stats.tsv").read_text().splitlines()[1:]]
    share = {row[0]: float(row[2]) for row in rows}
    published = dict(row.split("\t") for row in (folder / "all_sentences.tsv").read_text().splitlines()[1:])
    task = load_task(f"winogender:{folder}", tokenizer=tokenizer)
    assert len(task.units) == 120
    assert task.dropped == {}
    assert {unit.cluster for unit in task.units} == set(share)
    assert task.coverage["stereotype known"] == 50
    feminine = [unit for unit in task.units if unit.item.example.template == "feminine"]
    assert len(feminine) == 2 * sum(each > 50 for each in share.values())
    texts = {text: id_ for id_, text in published.items()}
    for unit in task.units:
        example, (query, related, others) = unit.item.example, words(unit.item)
        occupation, participant, answer, gender, _ = texts[example.text].split(".")
        assert gender == ("female" if share[occupation] > 50 else "male")
        assert (answer, unit.cluster, related, others["other person"].lower()) == (
            "0",
            occupation,
            occupation,
            participant,
        )
        assert query in PRONOUNS[gender]
        other = "male" if gender == "female" else "female"
        assert published[f"{occupation}.{participant}.0.{other}.txt"] == example.prompt + example.wrong
        spans = (example.relation.query, example.relation.related)
        assert all(isinstance(span, Span) for span in spans)
        assert spans[0].start == len(example.prompt) + 1


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        (
            {"shares": {"nurse": "90"}},
            {},
            "expected sentences in both genders whose pronoun stands for an occupation of",
        ),
        ({"shares": dict.fromkeys(SHARES, "50.0")}, {}, "got none; put occupations-stats.tsv beside all_sentences.tsv"),
        ({"genders": ("male", "neutral")}, {}, "expected sentences in both genders"),
        ({}, {"metric": "logit_difference"}, "is measured by sentence_log_probability, got metric='logit_difference'"),
    ],
)
def test_what_cannot_be_a_task_is_one_clear_line(write, tokenizer, files, options, says):
    with pytest.raises(TaskError) as raised:
        load_task(write(**files), tokenizer=tokenizer, **options)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_known_words_only_and_a_sample(write, data_dir, tokenizer):
    assert len(load_task(write(), known_words_only=True, tokenizer=tokenizer).units) == 4
    assert len(load_task(write(), n=3, tokenizer=tokenizer).units) == 3
    with pytest.raises(TaskError, match="no item has only known words; leave known_words_only out"):
        load_task(f"winogender:{data_dir}/winogender", known_words_only=True, tokenizer=tokenizer)


def test_a_name_is_looked_up_in_the_data(data_dir, tokenizer, monkeypatch):
    monkeypatch.setenv("INTERP_DATA", str(data_dir))
    hashes = {
        load_task(f"winogender:{each}", n=10, tokenizer=tokenizer).hash for each in ("winogender", "all_sentences.tsv")
    }
    assert hashes == {load_task(f"winogender:{data_dir}/winogender", n=10, tokenizer=tokenizer).hash}
    with pytest.raises(TaskError, match=r"no file .*winogender/all_sentence\.tsv .*did you mean 'all_sentences\.tsv'"):
        load_task("winogender:all_sentence.tsv", tokenizer=tokenizer)
    monkeypatch.delenv("INTERP_DATA")
    with pytest.raises(TaskError, match=r"INTERP_DATA is not set, .* 'mine' in; set it .* holds winogender/mine,"):
        load_task("winogender:mine", tokenizer=tokenizer)


def test_the_hub_does_not_say_what_the_stereotypes_are(tokenizer):
    with pytest.raises(TaskError, match=r"winogender:hub:a/b: expected a folder with all_sentences.*give a path"):
        load_task("winogender:hub:a/b", tokenizer=tokenizer)
