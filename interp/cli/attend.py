"""``interp attend``: which heads look from word to related word in treebanks, more than position explains."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli.hints import after_attend, say_next
from interp.cli.options import (
    AddressOption,
    CorrectionOption,
    DeviceOption,
    DtypeOption,
    ExecutorOption,
    FreshOption,
    GpusOption,
    JsonOption,
    ModelOption,
    OutOption,
    ProcessesOption,
    RunsOption,
    SeedOption,
    ThreadsOption,
    names_in,
    share,
)
from interp.errors import InputError, TaskError
from interp.options import AttendOptions

if TYPE_CHECKING:
    from interp.tasks.corpus import Corpus


def attend(
    data: Annotated[
        list[str],
        typer.Option(
            help="A treebank in CoNLL-U, or hub:NAME:CONFIG:SPLIT; repeat it for several.",
            show_default=False,
            metavar="FILE",
        ),
    ],
    relation: Annotated[
        list[str] | None,
        typer.Option(
            help="Relations, separated by commas: labels such as nsubj, coref, coref:pronoun, pos:NOUN, entity:person.",
            show_default="every label without its subtypes, and coref",
            metavar="NAMES",
        ),
    ] = None,
    model: ModelOption = None,
    choose_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Another treebank, on which one head of each relation and direction is chosen, and its baseline; only "
            "these are tested.",
            show_default="every head is tested, halves of the documents choose baselines",
            metavar="FILE",
        ),
    ] = None,
    min_effect: Annotated[
        float, typer.Option(help="Smallest excess that counts, as a share of the pairs.", callback=share, metavar="X")
    ] = 0.1,
    alpha: Annotated[float, typer.Option(help="Error rate of the verdicts.", callback=share, metavar="X")] = 0.05,
    correction: CorrectionOption = "max-T",
    include_special: Annotated[
        bool,
        typer.Option("--include-special", help="Tokens of no word, such as BOS, may be what a head looks at most."),
    ] = False,
    include_self: Annotated[
        bool, typer.Option("--include-self", help="The word that looks may be what it looks at most.")
    ] = False,
    max_window: Annotated[
        int, typer.Option(help="Most tokens of a document that are read at once, for coref.", min=2, metavar="N")
    ] = 512,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    processes: ProcessesOption = 1,
    executor: ExecutorOption = None,
    address: AddressOption = None,
    gpus: GpusOption = None,
    runs: RunsOption = None,
    fresh: FreshOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Which heads look along which relation of real text? Against the best rule without attention, both ways."""
    started = time.perf_counter()
    from interp.cli.terminal import progress_bar, warnings_as_lines
    from interp.report.folder import check_output

    if out is not None:
        check_output(out)
    from interp.cli.running import run_of

    where: Any = {"executor": executor, "processes": processes, "address": address, "gpus": gpus}
    run = run_of(runs, fresh, **where, device=device)
    names = names_in(relation)
    corpus, chooser = _read(data, choose_on or [], names)
    from interp.cli import relations
    from interp.cli.loading import can_be_asked, load_for_tasks
    from interp.methods.relations import attend as attention
    from interp.methods.relations.examples import relation_maps

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    asked = AttendOptions(
        exclude=[name for name, kept in (("special", include_special), ("self", include_self)) if not kept],
        max_window=max_window,
        min_effect=min_effect,
        alpha=alpha,
        correction=correction,
        seed=seed,
    )
    with warnings_as_lines(), progress_bar("attend") as progress:
        result = attention.attend(loaded, corpus, names, asked, choose_on=chooser, progress=progress, run=run)
    files = {"data": data, **({"choose_on": choose_on} if choose_on else {})}
    maps = None if out is None else relation_maps(loaded, corpus, result)
    result = replace(result, provenance={**result.provenance, **files}, maps=maps)
    folder = relations.save(result, out)
    (relations.print_json_object if as_json else relations.print_text)(result, folder, started)
    if not as_json:
        say_next(after_attend(_pairs_of(data[0], relations.first(result), loaded), model, can_be_asked(loaded)))


def _read(data: list[str], choose_on: list[str], names: list[str] | None) -> "tuple[Corpus, Corpus | None]":
    """Count what is in the treebanks before a model is loaded, so that what is wrong with them is told at once."""
    from interp.cli.treebanks import require_different
    from interp.tasks.corpus import Corpus
    from interp.tasks.relations import directions

    require_different([*data, *choose_on], "--data and --choose-on")
    corpora = [Corpus.of(each) for each in (data, choose_on) if each]
    for each in corpora:
        there = each.contents.relations
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
