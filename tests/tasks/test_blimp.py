import re
from functools import lru_cache

import pytest

from interp.errors import TaskError
from interp.tasks.blimp_task import blimp_coverage, blimp_pair
from interp.tasks.grammar.lexicon import english
from interp.tasks.readers.blimp import BlimpItem, read_blimp
from interp.tasks.tagging import verb_number

ONE_PREFIX = (
    "regular_plural_subject_verb_agreement_1",
    "irregular_plural_subject_verb_agreement_1",
    "distractor_agreement_relational_noun",
    "distractor_agreement_relative_clause",
    "determiner_noun_agreement_1",
    "anaphor_gender_agreement",
    "anaphor_number_agreement",
)
TWO_PREFIX = ("regular_plural_subject_verb_agreement_2", "irregular_plural_subject_verb_agreement_2")
FLIPPABLE = ONE_PREFIX[:-1]
DEMONSTRATIVES = [{"this", "these"}, {"that", "those"}]


@pytest.fixture(scope="module")
def items_of(data_dir):
    """Half of a paradigm: run-time type checks make tagging slow here."""
    return lru_cache(lambda paradigm: list(read_blimp(data_dir / "blimp" / f"{paradigm}.jsonl"))[::2])


@pytest.fixture(scope="module")
def pairs_of(items_of):
    return lru_cache(lambda paradigm: [blimp_pair(item) for item in items_of(paradigm)])


def one_prefix(prefix, good, bad, rest=".", phenomenon="subject_verb_agreement"):
    both = f"{prefix} {good}{rest}", f"{prefix} {bad}{rest}"
    return BlimpItem("made_up", "3", phenomenon, *both, prefix, good, bad)


def related(example):
    return example.relation.related.of(example.text)


def query(example):
    return example.relation.query.of(example.text)


def distractors(example):
    return [span.of(example.text) for span in example.relation.distractors.values()]


@pytest.mark.parametrize("paradigm", ONE_PREFIX + TWO_PREFIX)
def test_the_continuations_complete_both_published_sentences(items_of, pairs_of, paradigm):
    for item, pair in zip(items_of(paradigm), pairs_of(paradigm), strict=True):
        example = pair.item
        assert example.prompt + example.right == item.good
        assert example.prompt + example.wrong == item.bad
        assert example.prompt == "" or example.right[0] == example.wrong[0] == " "


def designed_related_word(item):
    """Where BLiMP's templates put the related word; None where a template leaves it open."""
    if item.phenomenon == "anaphor_agreement":
        return None
    if item.uid == "distractor_agreement_relational_noun":
        return re.match(r".*?(\S+) (of|about) ", item.prefix).group(1)
    if item.uid == "distractor_agreement_relative_clause":
        return re.match(r"(?:\S+ )*?(\S+) (that|who|which) ", item.prefix).group(1)
    return item.prefix.split()[-1]


@pytest.mark.parametrize("paradigm", ONE_PREFIX + TWO_PREFIX)
def test_what_is_tagged_is_what_the_paradigm_is_about(items_of, pairs_of, paradigm):
    items, pairs = items_of(paradigm), pairs_of(paradigm)
    coverage = blimp_coverage(items, pairs)
    tagged = [(item, pair.item) for item, pair in zip(items, pairs, strict=True) if pair.item.relation]
    assert coverage["related word tagged"] == pytest.approx(100 * len(tagged) / len(items))
    assert coverage["related word tagged"] >= 99
    assert coverage["known words"] >= 80
    for item, example in tagged:
        assert example.relation.query.stop == len(item.prefix)
        assert example.relation.name in paradigm or example.relation.name in ("subject", "antecedent")
        assert related(example) == (designed_related_word(item) or related(example))


ASKED = {"himself": ("singular", "male"), "herself": ("singular", "female"), "itself": ("singular", "")}


@pytest.mark.parametrize("paradigm", ["anaphor_gender_agreement", "anaphor_number_agreement"])
def test_the_antecedent_s_features_are_those_of_the_right_reflexive(items_of, pairs_of, paradigm):
    for item, pair in zip(items_of(paradigm), pairs_of(paradigm), strict=True):
        number, gender = ASKED.get(item.word_good, ("plural", None))
        features = pair.item.features
        assert features.get("number", number) == number
        assert features.get("gender", "") in ("", gender) or gender is None


@pytest.mark.parametrize("paradigm", ONE_PREFIX[:4] + TWO_PREFIX)
def test_the_subject_s_number_is_that_of_the_right_verb(items_of, pairs_of, paradigm):
    """But for the few items that BLiMP labels the wrong way round, which have no counterfactual."""
    same = []
    for item, pair in zip(items_of(paradigm), pairs_of(paradigm), strict=True):
        subject, verb = pair.item.features.get("number"), verb_number(item.word_good.split()[0])
        if subject and verb:
            same.append(subject == verb)
            assert subject == verb or pair.counterfactual is None
    assert len(same) >= 450
    assert sum(same) / len(same) >= 0.98


@pytest.mark.parametrize("paradigm", FLIPPABLE)
def test_a_counterfactual_differs_only_in_the_feature(pairs_of, paradigm):
    pairs = [pair for pair in pairs_of(paradigm) if pair.counterfactual]
    assert len(pairs) >= 75
    for pair in pairs:
        item, flipped = pair.examples
        assert (flipped.right, flipped.wrong) == (item.wrong, item.right)
        assert related(item) != related(flipped)
        assert item.features != flipped.features
        assert query(flipped) == query(item) or related(flipped) == query(flipped)
        assert distractors(item) == distractors(flipped)
        ours, theirs = item.prompt.split(), flipped.prompt.split()
        changed = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
        assert 1 <= len(changed) <= 2
        words = related(item), related(flipped)
        assert all({a.lower(), b.lower()} in DEMONSTRATIVES or (a, b) == words for a, b in changed)


@pytest.mark.parametrize("paradigm", FLIPPABLE)
def test_flipping_twice_gives_the_feature_back(items_of, pairs_of, paradigm):
    both = zip(items_of(paradigm), pairs_of(paradigm), strict=True)
    for item, pair in [each for each in both if each[1].counterfactual][::10]:
        flipped = pair.counterfactual
        stem, good, bad = flipped.prompt, item.word_bad, item.word_good
        rest = flipped.right[1 + len(good) :]
        again = blimp_pair(one_prefix(stem, good, bad, rest, item.phenomenon)).counterfactual
        assert again is not None
        assert again.features == pair.item.features
        if "anaphor" not in paradigm:
            assert again.prompt == item.prefix


@pytest.mark.parametrize("paradigm", [*TWO_PREFIX, "anaphor_number_agreement"])
def test_where_nothing_can_be_flipped_there_is_no_counterfactual(items_of, pairs_of, paradigm):
    items, pairs = items_of(paradigm), pairs_of(paradigm)
    assert {pair.counterfactual for pair in pairs} == {None}
    assert blimp_coverage(items, pairs)["counterfactual"] == 0


@pytest.mark.parametrize("paradigm", ONE_PREFIX + TWO_PREFIX)
def test_clusters_are_lexical_draws(pairs_of, paradigm):
    assert len({pair.cluster for pair in pairs_of(paradigm)}) >= 20


@pytest.mark.parametrize(
    ("item", "counterfactual"),
    [
        (one_prefix("The sketch of those trucks", "hasn't", "haven't"), "The sketches of those trucks haven't."),
        (one_prefix("Those radii", "have", "has", " upset Kim."), "That radius has upset Kim."),
        (one_prefix("Some organization", "was", "weren't"), "Some organizations weren't."),
        (one_prefix("The grocery store", "closes", "close"), "The grocery stores close."),
        (one_prefix("The boy that had seen Susan", "runs", "run"), "The boys that had seen Susan run."),
        # Something else would have to change, or the answers would not swap.
        (one_prefix("A niece of most senators", "hasn't", "haven't"), None),
        (one_prefix("Every boy", "hasn't", "haven't"), None),
        (one_prefix("Boys", "haven't", "hasn't"), None),
        (one_prefix("Susan", "hasn't", "haven't"), None),
        (one_prefix("The Borgias", "haven't", "hasn't"), None),
        (one_prefix("The boy that isn't here", "runs", "run"), None),
        (one_prefix("The boy that sees Susan", "runs", "run"), None),
        (one_prefix("The boy", "hasn't", "haven't", " hurt himself."), None),
        (one_prefix("The boys", "run", "running"), None),
        (one_prefix("The boys", "runs", "run"), None),  # BLiMP has such labels
        (one_prefix("The zork", "hasn't", "haven't"), None),
    ],
    ids=lambda value: value.prefix if isinstance(value, BlimpItem) else "",
)
def test_the_subject_s_number_is_flipped_where_it_can_be(item, counterfactual):
    flipped = blimp_pair(item).counterfactual
    assert (flipped and flipped.text) == counterfactual


@pytest.mark.parametrize(
    ("item", "counterfactual"),
    [
        (("Susan saw this", "child", "children"), "Susan saw these children."),
        (("Boys think of that old", "grocery store", "grocery stores"), "Boys think of those old grocery stores."),
        (("The boy bought those", "keys", "key"), "The boy bought that key."),
        (("Susan saw this", "zork", "zorks"), None),
        (("Susan saw this", "child", "women"), None),
        (("Susan lost those", "keys", "key", " of hers."), None),
    ],
)
def test_the_demonstrative_is_flipped_where_it_can_be(item, counterfactual):
    prefix, good, bad, *rest = item
    pair = blimp_pair(one_prefix(prefix, good, bad, *rest, phenomenon="determiner_noun_agreement"))
    assert (pair.counterfactual and pair.counterfactual.text) == counterfactual


@pytest.mark.parametrize("prefix", ["Susan can't help", "Every woman saw", "An actress will know"])
def test_the_antecedent_gives_way_to_one_of_the_other_gender(prefix):
    pair = blimp_pair(one_prefix(prefix, "herself", "himself", phenomenon="anaphor_agreement"))
    item, flipped = pair.examples
    assert flipped.features == {**item.features, "gender": "male"}
    assert (item.features["gender"], item.features["number"]) == ("female", "singular")
    assert flipped.prompt.replace(related(flipped), related(item)) == item.prompt
    assert (english().name_of(related(flipped)) is None) == (english().name_of(related(item)) is None)
    assert (related(flipped)[0] in "aeiou") == (related(item)[0] in "aeiou")


@pytest.mark.parametrize(
    ("prefix", "good", "bad"),
    [
        ("Susan saw", "herself", "itself"),
        ("Susan saw", "herself", "themselves"),
        ("Every dancer saw", "herself", "himself"),
        ("Every story bores", "itself", "himself"),
        ("Susan and her boss saw", "herself", "himself"),
    ],
)
def test_no_counterfactual_without_two_genders(prefix, good, bad):
    item = one_prefix(prefix, good, bad, phenomenon="anaphor_agreement")
    assert blimp_pair(item).counterfactual is None


def test_the_relation_of_a_sentence_with_attractors():
    example = blimp_pair(one_prefix("The niece of some boys that Susan knows", "has", "have")).item
    assert (related(example), query(example)) == ("niece", "knows")
    assert distractors(example) == ["boys", "Susan"]
    assert example.features == {"number": "singular", "gender": "female"}


def test_the_relation_of_a_two_prefix_item_lies_in_the_continuation():
    both = "Susan saw these old keys.", "Susan saw this old keys."
    item = BlimpItem("made_up", "3", "determiner_noun_agreement", *both, "Susan saw these old", "keys")
    pair = blimp_pair(item)
    assert (pair.item.prompt, pair.item.right, pair.item.wrong) == ("Susan saw", " these old keys.", " this old keys.")
    assert (related(pair.item), query(pair.item), pair.cluster) == ("these", "old", "key")
    with pytest.raises(TaskError, match="made_up, pair 3: logit_difference needs a critical word after a shared"):
        blimp_pair(item, "logit_difference")


@pytest.mark.parametrize(
    ("good", "bad", "prompt"),
    [
        ("The cat sat.", "The cats sat.", "The"),
        ("The cats sat.", "The cat sat.", "The"),
        ("The cat", "The cat sat", "The"),
        ("Cats sat.", "Dogs sat.", ""),
        ("Cats sat.", "Cats sit.", "Cats"),
        ("The cat sat.", "The cat sat.", "The cat"),
    ],
)
def test_sentences_without_a_critical_word_share_what_words_they_can(good, bad, prompt):
    pair = blimp_pair(BlimpItem("made_up", "3", "binding", good, bad))
    example = pair.item
    assert example.prompt == prompt
    assert (prompt + example.right, prompt + example.wrong) == (good, bad)
    assert example.right
    assert example.wrong
    assert (example.relation, pair.counterfactual, pair.cluster) == (None, None, "3")


def test_the_logit_difference_compares_the_critical_words(items_of):
    for item in items_of("distractor_agreement_relational_noun")[::10]:
        example, *flipped = blimp_pair(item, "logit_difference").examples
        answers = example.right, example.wrong
        assert (example.prompt, *answers) == (item.prefix, f" {item.word_good}", f" {item.word_bad}")
        assert [(each.right, each.wrong) for each in flipped] in ([], [(example.wrong, example.right)])
        assert related(example) == designed_related_word(item)


def test_examples_have_no_common_meaning_by_position(pairs_of):
    paradigm = "anaphor_gender_agreement"
    assert {(each.layout, each.template) for pair in pairs_of(paradigm) for each in pair.examples} == {("", paradigm)}
