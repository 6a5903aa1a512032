import itertools
import json

import pytest

from interp.tasks.grammar.training_text import documents
from recipes.text import published_hashes, sentence_hash, without_published


def test_a_document_with_a_published_sentence_is_left_out(data_dir):
    line = (data_dir / "blimp" / "anaphor_number_agreement.jsonl").read_text().splitlines()[0]
    published = json.loads(line)["sentence_good"]
    clean = ["It was new. The dog slept.", "The cat slept."]
    assert list(without_published([clean[0], f"It was new. {published}", published, clean[1]])) == clean


def test_hashes_are_those_of_the_files(data_dir):
    for name in ("determiner_noun_agreement_1", "irregular_plural_subject_verb_agreement_2"):
        for line in (data_dir / "blimp" / f"{name}.jsonl").read_text().splitlines():
            assert sentence_hash(json.loads(line)["sentence_good"]) in published_hashes()


@pytest.mark.slow
def test_the_bare_corpus_does_meet_published_sentences_by_chance():
    bare = list(itertools.islice(documents(0), 60_000))
    kept = list(without_published(bare))
    assert 0 < len(bare) - len(kept) < 60
