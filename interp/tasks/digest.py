"""Are these the same data? A hash of units, the same on every machine."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

from interp.tasks.example import Relation, Span
from interp.tasks.task import EncodedExample, Unit


def digest(unit_sets: Iterable[Sequence[Unit]]) -> str:
    """SHA-256 of the units' text, token ids, positions and relations, the same on every machine."""
    rows = [[_row(unit) for unit in units] for units in unit_sets]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _row(unit: Unit) -> list[object]:
    return [unit.cluster, [list(_fields(each)) for each in unit.examples]]


def _fields(encoded: EncodedExample) -> Iterator[object]:
    example = encoded.example
    yield from (example.prompt, example.right, example.wrong, example.template, example.layout)
    yield from (dict(example.features), encoded.prompt, encoded.right, encoded.wrong)
    yield from (encoded.query, encoded.related, dict(encoded.distractors))
    yield None if example.relation is None else _related(example.relation)
    if (encoded.n_before, encoded.after) != (1, ()):
        yield [encoded.n_before, encoded.after]
    if encoded.word_counterfactual is not None:
        yield list(_fields(encoded.word_counterfactual))


def _related(relation: Relation) -> list[object]:
    distractors = {name: _at(span) for name, span in relation.distractors.items()}
    return [relation.name, _at(relation.query), _at(relation.related), distractors]


def _at(span: Span) -> list[int]:
    return [span.start, span.stop]
