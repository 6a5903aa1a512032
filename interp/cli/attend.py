"""``interp attend``: which heads look from word to related word in treebanks, more than position explains."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from interp.cli.dataclass_options import Fields
from interp.cli.hints import Next, after_attend
from interp.cli.options import names_in
from interp.cli.running import Work, measuring
from interp.errors import InputError, TaskError
from interp.options import AttendOptions, Excluded

if TYPE_CHECKING:
    from interp.methods.relations.relation_scores import RelationResult
    from interp.tasks.corpus import Corpus

_COUNTED = ("data", "n_documents", "n_clusters", "n_sentences", "n_words", "attention_dir")


@dataclass(frozen=True, kw_only=True)
class Treebanks:
    """What is counted in which treebanks.

    Attributes:
        data: A treebank in CoNLL-U, or hub:NAME:CONFIG:SPLIT; repeat it for several.
        relation: Relations, separated by commas: labels such as nsubj, coref, coref:pronoun, pos:NOUN, entity:person;
            None for every label without its subtypes, and coref.
        choose_on: Another treebank, on which one head of each relation and direction is chosen, and its baseline; only
            these are tested; None for all heads, where halves of the documents choose baselines.
        include_special: Count tokens of no word, such as BOS, among what a head can look at.
        include_self: Count the word itself among what a head can look at from there.
    """

    data: list[str]
    relation: list[str] | None = None
    choose_on: list[str] | None = None
    include_special: bool = False
    include_self: bool = False


def attend(of: Treebanks, asked: Annotated[AttendOptions, Fields(without=("exclude",))], work: Work) -> None:
    """Which heads look along which relation of real text? Each is compared with the best rule without attention."""
    run = work.run()
    names = names_in(of.relation)
    corpus, chooser = _read(of.data, of.choose_on or [], names)
    from interp.cli.loading import can_be_asked
    from interp.methods.relations.attend import attend as measure
    from interp.methods.relations.examples import relation_maps

    loaded = work.load()
    kept_out: list[Excluded] = [] if of.include_special else ["special"]
    kept_out += [] if of.include_self else ["self"]
    with measuring("attend") as progress:
        options = replace(asked, exclude=kept_out)
        result = measure(loaded, corpus, names, options, choose_on=chooser, progress=progress, run=run)
    files = {"data": of.data, **({"choose_on": of.choose_on} if of.choose_on else {})}
    result = replace(result, provenance={**result.provenance, **files})
    if work.out is not None:
        result = replace(result, maps=relation_maps(loaded, corpus, result))

    def hint() -> Next:
        found = result.leading()
        first = "" if found.empty else str(found["relation"].iloc[0])
        return after_attend(_pairs_of(of.data[0], first, loaded), work.model, can_be_asked(loaded))

    work.answer(result, lambda: _numbers(result), hint)


def _numbers(result: "RelationResult") -> dict[str, Any]:
    from interp.cli.terminal import records

    return {
        **{name: result.provenance[name] for name in _COUNTED},
        "verdicts": {str(name): int(n) for name, n in result.cells["verdict"].value_counts().items()},
        "relations": records(result.relations),
        "best": records(result.leading()),
    }


def _read(data: list[str], choose_on: list[str], names: list[str] | None) -> "tuple[Corpus, Corpus | None]":
    """Count what is in the treebanks before a model is loaded, so that what is wrong with them is told at once."""
    from interp.cli.loading import corpus_of
    from interp.tasks.relations import directions

    named = [*data, *choose_on]
    corpora = [corpus_of(each, named, "--data and --choose-on") for each in (data, choose_on) if each]
    for each in corpora:
        there = each.contents.relations  # read before a model is loaded, also without names
        if names is not None:
            directions(names, there)
    return corpora[0], corpora[1] if choose_on else None


def _pairs_of(file: str, relation: str, model: Any) -> str | None:
    """The task of a treebank's minimal pairs that a relation is about; None where the model cannot be asked it."""
    from interp.methods.task_arguments import as_predicted

    task = f"{'coreference' if relation.startswith('coref') else 'agreement'}:{file}"
    try:
        return as_predicted(task, model, n=None, seed=0).name
    except (InputError, TaskError):
        return None
