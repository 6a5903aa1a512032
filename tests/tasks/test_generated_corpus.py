import pytest
from generated_items import TASKS

from interp.tasks.generated_corpus import linked_documents


@pytest.mark.parametrize("name", TASKS)
def test_every_example_is_a_sentence_with_its_link(name, drawn):
    documents = list(linked_documents(drawn[name]))
    examples = {each.text: each for pair in drawn[name] for each in pair.examples}
    assert {document.id for document in documents} == {pair.cluster for pair in drawn[name]}
    assert sum(len(document.sentences) for document in documents) == sum(len(pair.examples) for pair in drawn[name])
    for sentence in (each for document in documents for each in document.sentences):
        example = examples[sentence.text]
        assert all(word.span.of(sentence.text) == word.form for word in sentence.words)
        (link,) = sentence.links
        query, related = sentence.words[link.query].form, sentence.words[link.related].form
        assert example.relation.query.of(example.text).endswith(query)
        assert example.relation.related.of(example.text).endswith(related)
        assert link.name == example.relation.name
