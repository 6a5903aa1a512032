import dataclasses
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from interp.errors import TaskError
from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.task import check_choice
from recipes.tokenizer import build_tokenizer

WORDS = ["The", "key", "keys", "cabinet", "cabinets", "to", "the", "are", "is", "was", "on", "table"]
LABELS = {"name": "numbers", "description": "A verb agrees.", "metric": "logit_difference"}


def span(text, word):
    start = text.index(word)
    return Span(start, start + len(word))


def example(subject="keys", attractor="cabinet", right=" are", wrong=" is", tail=""):
    prompt = f"The {subject} to the {attractor}"
    relation = Relation(
        "subject",
        span(prompt, attractor),
        span(prompt, subject),
        {"article": span(prompt, "the"), "preposition": span(prompt, "to")},
    )
    return Example(prompt, right + tail, wrong + tail, relation, "prepositional", "p", {"number": "plural"})


def pair(subjects=("keys", "key"), attractor="cabinet", tail="", **other):
    item = example(subjects[0], attractor, tail=tail, **other)
    counterfactual = example(subjects[1], attractor, " is", " are", tail)
    return MinimalPair(item, counterfactual, cluster="key")


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(WORDS)


def whole_words_or_letters(merges):
    """Byte-level BPE that knows single characters and the given merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {entry: i for i, entry in enumerate(["<s>", *alphabet, *("".join(each) for each in merges)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")


SENTENCE = "sentence_log_probability"


def test_token_ids_decode_to_the_text(tokenizer):
    task = encode_task([pair(tail=" on the table.")], tokenizer=tokenizer, **LABELS | {"metric": SENTENCE})
    for encoded in task.examples:
        assert encoded.prompt[0] == tokenizer.bos_token_id
        assert tokenizer.decode(encoded.prompt[1:]) == encoded.example.prompt
        assert tokenizer.decode(encoded.prompt[1:] + encoded.right) == encoded.example.text
        assert tokenizer.decode(encoded.prompt[1:] + encoded.wrong) == encoded.example.prompt + encoded.example.wrong


def test_positions_hold_the_words_of_the_relation(tokenizer):
    task = encode_task([pair()], tokenizer=tokenizer, **LABELS)
    for encoded, subject in zip(task.examples, ("keys", "key"), strict=True):
        row = [tokenizer.decode([token]).strip() for token in encoded.prompt]
        assert [row[pos] for pos in encoded.related] == [subject]
        assert {role: [row[pos] for pos in at] for role, at in encoded.distractors.items()} == {
            "article": ["the"],
            "preposition": ["to"],
        }
        assert row[encoded.query] == "cabinet"
        assert encoded.query == encoded.critical


def test_a_word_of_several_tokens_looks_from_its_last(tokenizer):
    task = encode_task([pair(attractor="zebra")], tokenizer=tokenizer, **LABELS)
    (encoded, _) = task.examples
    assert encoded.query == len(encoded.prompt) - 1
    task = encode_task([pair(("zebras", "zebrum"))], tokenizer=tokenizer, **LABELS)
    (encoded, _) = task.examples
    assert tokenizer.decode([encoded.prompt[pos] for pos in encoded.related]).strip() == "zebras"


def no_relation():
    return MinimalPair(replace(example(), relation=None), None, "key")


def test_without_a_relation_there_are_no_positions(tokenizer):
    (encoded,) = encode_task([no_relation()], tokenizer=tokenizer, **LABELS).examples
    assert (encoded.query, encoded.related, encoded.distractors) == (None, (), {})


CANNOT_BE_CARRIED = {
    "answer of more than one token": pair(right=" abound"),
    "right and wrong are the same token": pair(right=" is"),
    "counterfactual of another length": pair(("keys", "zebra")),
    "longer than the context": pair(attractor="zebra crossing"),
    "related word not aligned": MinimalPair(
        replace(example(), relation=Relation("subject", Span(0, 3), Span(3, 4))), None, "key"
    ),
    "prompt tokens change with the continuation": pair(right="s"),
}


@pytest.mark.parametrize("requirement", CANNOT_BE_CARRIED)
def test_what_cannot_be_carried_is_counted_by_requirement(tokenizer, requirement):
    good, bad = pair(), CANNOT_BE_CARRIED[requirement]
    task = encode_task([good, bad, good, bad, bad], tokenizer=tokenizer, n_ctx=12, **LABELS)
    assert task.dropped == {requirement: 3}
    assert len(task.units) == 2
    with pytest.raises(TaskError, match=f"none of the 2 pairs .{requirement}: 2"):
        encode_task([bad, bad], tokenizer=tokenizer, n_ctx=12, **LABELS)


def test_an_item_falls_with_its_counterfactual(tokenizer):
    bad = replace(pair(), counterfactual=example("key", right=" is", wrong=" abound"))
    task = encode_task([bad, pair()], tokenizer=tokenizer, **LABELS)
    assert task.dropped == {"answer of more than one token": 1}
    assert [unit.cluster for unit in task.units] == ["key"]


def test_the_error_counts_each_requirement(tokenizer):
    bad = [CANNOT_BE_CARRIED[each] for each in ("answer of more than one token", "counterfactual of another length")]
    with pytest.raises(TaskError) as raised:
        encode_task([bad[0], *bad], tokenizer=tokenizer, **LABELS)
    assert "answer of more than one token: 2; counterfactual of another length: 1" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_many_pairs_of_another_length_are_told_of_with_what_keeps_them(tokenizer, caplog):
    longer = CANNOT_BE_CARRIED["counterfactual of another length"]
    encode_task([longer, *(pair(tail="." * n) for n in range(4))], tokenizer=tokenizer, **LABELS)
    assert caplog.messages == []
    encode_task([longer, pair(), pair()], tokenizer=tokenizer, **LABELS)
    (told,) = caplog.messages
    assert told == (
        "numbers: 1 of 3 pairs are left out: counterfactual of another length; unequal_lengths=True keeps them "
        "(--unequal-lengths of heads, head, ablate and patch)"
    )
    caplog.clear()
    assert len(encode_task([longer, pair()], tokenizer=tokenizer, **LABELS, unequal_lengths=True).units) == 2
    assert caplog.messages == []


def test_sentences_may_have_answers_of_several_tokens(tokenizer):
    task = encode_task([pair(right=" abound")], tokenizer=tokenizer, **LABELS | {"metric": SENTENCE})
    assert task.dropped == {}
    assert len(task.units[0].item.right) > 1


def test_the_context_is_long_enough_for_exactly_the_row(tokenizer):
    length = len(tokenizer.encode("The keys to the cabinet are")) + 1
    assert encode_task([pair()], tokenizer=tokenizer, n_ctx=length, **LABELS).dropped == {}
    with pytest.raises(TaskError, match="longer than the context: 1"):
        encode_task([pair()], tokenizer=tokenizer, n_ctx=length - 1, **LABELS)


def test_merges_across_the_boundary_are_noticed():
    plain, merging = whole_words_or_letters([]), whole_words_or_letters([("x", "Ġ")])
    item = MinimalPair(Example("x", " a", " b", None, "t", ""), None, "c")
    sentence = LABELS | {"metric": SENTENCE}
    assert encode_task([item], tokenizer=plain, **sentence).dropped == {}
    with pytest.raises(TaskError, match="prompt tokens change with the continuation: 1"):
        encode_task([item], tokenizer=merging, **sentence)


def test_an_empty_prompt_is_only_bos(tokenizer):
    item = MinimalPair(Example("", "The keys are", "The keys is", None, "t", ""), None, "c")
    (encoded,) = encode_task([item], tokenizer=tokenizer, **LABELS | {"metric": SENTENCE}).examples
    assert encoded.prompt == (tokenizer.bos_token_id,)
    assert tokenizer.decode(encoded.right) == "The keys are"


def many(n):
    return [pair(attractor=attractor, tail=f" {i}") for i in range(n) for attractor in ("cabinet", "cabinets")]


def test_a_file_s_halves_serve_each_other(tokenizer):
    task = encode_task(many(10), tokenizer=tokenizer, **LABELS | {"metric": SENTENCE})
    assert [len(half) for half in task.references] == [10, 10]
    for unit in task.units:
        assert unit not in task.references[unit.fold]
        assert unit in task.references[1 - unit.fold]


@pytest.mark.parametrize("sizes", [(1,) * 9, (3, 3, 3), (5, 1, 1, 1), (2, 2, 1)], ids=str)
def test_a_cluster_is_on_one_side_only(tokenizer, sizes):
    pairs = [
        dataclasses.replace(pair(tail=f" {group}{i}"), cluster=f"lemma {group}")
        for group, size in enumerate(sizes)
        for i in range(size)
    ]
    task = encode_task(pairs, tokenizer=tokenizer, **LABELS | {"metric": SENTENCE})
    halves = [{unit.cluster for unit in half} for half in task.references]
    assert not halves[0] & halves[1]
    assert len(halves[0] | halves[1]) == len(sizes)
    assert abs(len(task.references[0]) - len(task.references[1])) <= max(sizes)


def test_halves_do_not_depend_on_the_order(tokenizer):
    options = {"tokenizer": tokenizer, **LABELS, "metric": SENTENCE}
    task, other_way = encode_task(many(10), **options), encode_task(many(10)[::-1], **options)
    assert [set(map(id_of, half)) for half in task.references] == [
        set(map(id_of, half)) for half in other_way.references
    ]


def id_of(unit):
    return unit.item.example.text


def test_given_references_are_one_set_that_serves_all(tokenizer):
    sentence = LABELS | {"metric": SENTENCE}
    others = [pair(attractor="table", tail=f" {i}") for i in range(4)]
    task = encode_task(many(3), references=others, tokenizer=tokenizer, **sentence)
    assert [len(each) for each in task.references] == [4]
    assert {unit.fold for unit in task.units} == {0}
    with pytest.raises(TaskError, match="expected reference pairs to encode, got none"):
        encode_task(many(3), references=[], tokenizer=tokenizer, **sentence)


def test_what_is_scored_is_no_reference(tokenizer):
    scored, other = pair(), pair(attractor="table")
    half = replace(pair(("table", "key")), cluster="half")  # its counterfactual is scored
    task = encode_task([scored], references=[scored, other, half], tokenizer=tokenizer, **LABELS)
    assert [unit.item.example.prompt for unit in task.references[0]] == ["The keys to the table"]
    with pytest.raises(TaskError, match="every one of the 2 reference pairs has a prompt or sentence that is scored;"):
        encode_task([scored], references=[scored, half], tokenizer=tokenizer, **LABELS)


def test_of_whole_sentences_a_shared_prompt_is_no_harm(tokenizer):
    labels = LABELS | {"metric": SENTENCE}
    others = [pair(tail=" on the table"), pair()]
    task = encode_task([pair()], references=others, tokenizer=tokenizer, **labels)
    assert [unit.item.example.right for unit in task.references[0]] == [" are on the table"]


def test_a_choice_that_does_not_exist_names_those_that_do():
    with pytest.raises(TaskError, match="unknown split 'tset'; did you mean 'test'"):
        check_choice("split", "tset", ("train", "test"))


def test_the_query_is_where_the_task_says(tokenizer):
    from_subject = Relation("article", span("The keys to the cabinet", "keys"), span("The keys to the cabinet", "The"))
    elsewhere = MinimalPair(replace(example(), relation=from_subject), None, "key")
    with pytest.raises(TaskError, match=r"does not look from the prompt's last token; give query='later word'"):
        encode_task([elsewhere], tokenizer=tokenizer, **LABELS)
    assert encode_task([elsewhere], tokenizer=tokenizer, query="later word", **LABELS).examples[0].query == 2


def test_a_cluster_is_text():
    with pytest.raises(TaskError, match="cluster: expected the name of a lexical draw, got 3; give it as text"):
        MinimalPair.__post_init__(SimpleNamespace(cluster=3))


def test_the_hash_says_whether_the_data_are_the_same(tokenizer):
    pairs = [pair(), pair(attractor="cabinets")]
    hashes = [
        encode_task(each, tokenizer=using, references=references, **LABELS).hash
        for each, using, references in (
            (pairs, tokenizer, None),
            (pairs[::-1], tokenizer, None),
            (pairs[:1], tokenizer, None),
            (pairs, build_tokenizer([*WORDS, "aardvark"]), None),
            (pairs, tokenizer, [pair(attractor="table")]),
            ([replace(each, cluster="other") for each in pairs], tokenizer, None),
        )
    ]
    assert len(set(hashes)) == len(hashes)
    assert encode_task(pairs, tokenizer=build_tokenizer(WORDS), **LABELS).hash == hashes[0]


def test_no_pairs_at_all_is_an_error(tokenizer):
    with pytest.raises(TaskError, match="numbers: expected pairs to encode, got none"):
        encode_task([], tokenizer=tokenizer, **LABELS)
