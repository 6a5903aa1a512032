"""``interp runs``: what is kept of what was measured; to look at, check, go on with, export and remove."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli.dataclass_options import Fields
from interp.cli.hints import Next, after_looking, say_next
from interp.cli.messages import say
from interp.cli.options import OUTPUT
from interp.cli.running import Work, seconds_since
from interp.errors import InputError, LoadError

if TYPE_CHECKING:
    from interp.runs.catalogue import KnownRun

KeyArgument = Annotated[
    str, typer.Argument(help="The run's key, or its first digits, as `interp runs ls` shows it.", metavar="KEY")
]

Where = Annotated[Work, Fields(only=("runs", "as_json"))]
RESUMABLE = ("ablate", "patch", "heads", "head", "attend", "probe", "calibrate")


def ls(work: Where) -> None:
    """What has been measured? Lists the kept runs, the latest first."""
    from interp.cli.terminal import print_json, print_table
    from interp.runs.catalogue import runs_in
    from interp.runs.root import root_of

    root = root_of(work.runs)
    known = runs_in(root)
    rows = [_facts(each) for each in known]
    if work.as_json:
        print_json({"folder": str(root), "runs": rows})
        return
    if not rows:
        say(f"no runs in {root}")
        return
    lines = []
    for row in rows:
        asked = row["asked"] or f"see `interp runs verify {row['key']}{_where(work.runs)}`"
        lines.append((row["key"], asked, row["state"], _parts(row), f"{row['bytes'] / 1e6:.1f}", row["begun"]))
    print_table(("key", "asked", "state", "parts", "MB", "begun"), lines)
    say_next(after_runs(known, work.runs))


def show(key: KeyArgument, work: Where) -> None:
    """What was this run asked? Also shows the program's version and the progress."""
    from interp.cli.terminal import print_json

    run = _found(key, work.runs)
    record = run.opened().record
    facts = _facts(run)
    more = {"asked_of": dict(record.asked), "about": dict(record.about)}
    if work.as_json:
        print_json({**facts, "folder": str(run.folder), **more})
        return
    command = _command_of(record.about)
    facts |= {"parts": _parts(facts), "folder": run.folder}
    facts |= {"command": shlex.join(["interp", *command])} if command else {}
    for name, value in facts.items():
        if name not in ("planned", "problem"):
            say(f"{name}: {value}")
    more["about"].pop("command", None)
    for name, value in more.items():
        say(f"{name}:")
        _say_inner(value, 1)
    say_next(after_run(run, work.runs))


def _say_inner(given: dict[str, Any], depth: int) -> None:
    """Say what a manifest holds, a line each."""
    for name, value in given.items():
        if isinstance(value, dict) and value:
            say(f"{'  ' * depth}{name}:")
            _say_inner(value, depth + 1)
        else:
            said = ", ".join(map(str, value)) if isinstance(value, list) else value
            say(f"{'  ' * depth}{name}: {said}")


def verify(
    work: Where,
    key: Annotated[
        str | None, typer.Argument(help="Key of one run; without it, all runs are checked.", metavar="KEY")
    ] = None,
) -> None:
    """Are kept runs as they were written? Compares every byte of one run, or of all."""
    from interp.cli.terminal import print_json
    from interp.runs.catalogue import runs_in
    from interp.runs.root import root_of

    chosen = runs_in(root_of(work.runs)) if key is None else [_found(key, work.runs)]
    damage = {each.key: each.damage() for each in chosen}
    hurt = {name: found for name, found in damage.items() if found}
    others = [each for each in chosen if each.state == "other version"]
    if work.as_json:
        told = {"damaged": hurt, "other_version": [each.key for each in others]}
        print_json({"runs": len(chosen), **told})
    else:
        for each in chosen:
            said = each.problem if each in others else "; ".join(damage[each.key]) or _as_written(each.n_parts)
            say(f"{each.key}: {said}")
    if hurt:
        raise LoadError(
            f"{len(hurt)} of {len(chosen)} runs are damaged: {', '.join([*hurt][:5])}; `interp runs resume "
            f"KEY{_where(work.runs)}` makes it again; where a manifest.json is damaged, give the command again"
        )
    if others:
        raise LoadError(
            f"{len(others)} of {len(chosen)} runs are in the format of another version of interp, which can check "
            f"them: {', '.join(each.key for each in others[:5])}; `interp runs rm KEY{_where(work.runs)}` removes one"
        )
    if not work.as_json:
        say_next(after_runs(chosen, work.runs))


def export(
    key: KeyArgument,
    out: Annotated[
        Path, typer.Option(help="The CSV file; an existing one is replaced.", metavar="FILE", rich_help_panel=OUTPUT)
    ],
    work: Where,
    table: Annotated[
        str | None,
        typer.Option(help="Name of the table.", show_default="the one with a row for each effect", metavar="NAME"),
    ] = None,
) -> None:
    """What are the numbers? Writes a table of a finished run as CSV."""
    from interp.cli.terminal import print_json
    from interp.report.folder import absolute, os_errors_of

    path = absolute(out, "output file")
    if path.is_dir():
        raise InputError(f"output file {path}: expected a file, got a folder; name a file in it")
    frame = _found(key, work.runs).table(table)
    draft = path.with_name(f".{path.name}.partial")
    with os_errors_of(path, "output file"):
        try:
            frame.to_csv(draft, index=False)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    if work.as_json:
        print_json({"file": str(path), "rows": len(frame), "seconds": seconds_since(work.started)})
    else:
        say(f"{path}  ({len(frame):,} rows)")
        say_next(after_looking(None))


def resume(ctx: typer.Context, key: KeyArgument, work: Where) -> None:
    """What of a run is still to measure? Resumes it where it stopped."""
    from interp.runs.fresh import asked_together

    run = _found(key, work.runs)
    command, folder = _begun_by(run)
    run.opened().mend()
    say(f"{shlex.join(['interp', *command])}  (in {folder})", err=True)
    os.chdir(folder)
    root, generation = run.folder.parent, run.opened().record.generation
    command = [command[0], "--fresh", *command[1:]] if generation else command
    os.environ["INTERP_RUNS"] = str(root)
    if work.as_json and "--json" not in command:
        command = [*command, "--json"]
    sys.argv[1:] = command  # what runs that it begins are said to be begun by
    with asked_together(root, generation):
        try:
            ctx.find_root().command.main(command, prog_name="interp")
        except SystemExit as done:  # within the block, which a command that has ended well completes
            if done.code:
                raise
    if run.state != "finished":
        raise InputError(
            f"run {run.key}: its command asks another question by now, which was answered: what it names (a model, a "
            f"file of data) has changed; `interp runs rm {run.key}{_where(run.folder.parent)}` removes its rest"
        )


def _begun_by(run: "KnownRun") -> tuple[list[str], str]:
    """The command that began a run, and the folder in which that was.

    Raises:
        InputError: It cannot be given again here.
        LoadError: The run cannot be read.
    """
    about = run.opened().record.about
    command, folder = _command_of(about), about.get("folder")
    _require_this_program(run)
    if not command or not isinstance(folder, str):
        raise InputError(
            f"run {run.key}: expected one that a command of interp has begun, got one from Python; ask again there, "
            "with the same run="
        )
    if not Path(folder).is_dir():
        raise InputError(f"run {run.key}: it was begun in {folder}, which is gone; make it, or ask again elsewhere")
    return command, folder


def resumable(run: "KnownRun") -> bool:
    """Whether ``interp runs resume`` would go on with it."""
    with suppress(InputError, LoadError):
        return bool(_begun_by(run))
    return False


def after_runs(known: "Iterable[KnownRun]", runs: Path | None) -> Next:
    """The latest run that is not finished and can be, else the latest that can be shown; without, the main job."""
    listed = [each for each in known if each.state in ("begun", "finished")]
    begun = next((each for each in listed if each.state == "begun" and resumable(each)), None)
    if begun is not None:
        return after_run(begun, runs)
    if listed:
        return Next(("runs", "show", listed[0].key, *_of_folder(runs)), "what was the latest asked?")
    return after_looking(None)


def after_run(run: "KnownRun", runs: Path | None) -> Next:
    """Its numbers, or the rest of them; of one that nobody here can go on with, which others there are."""
    if run.state == "finished":
        return Next(("runs", "export", run.key, *_of_folder(runs), "--out", "effects.csv"), "its numbers")
    if not resumable(run):
        return Next(("runs", "ls", *_of_folder(runs)), "which others are there?")
    return Next(("runs", "resume", run.key, *_of_folder(runs)), "it is not finished")


def _of_folder(runs: Path | None) -> tuple[str, ...]:
    """The option that names a folder of runs."""
    return () if runs is None else ("--runs", str(runs))


def _where(runs: Path | None) -> str:
    """The same behind a command in a sentence."""
    return "".join(f" {shlex.quote(each)}" for each in _of_folder(runs))


def rm(
    keys: Annotated[
        list[str],
        typer.Argument(help="Keys of runs, or their first digits, as `interp runs ls` shows them.", metavar="KEY..."),
    ],
    work: Where,
) -> None:
    """Which runs are no longer needed? Removes runs and their measurements."""
    chosen = {run.key: run for run in [_found(key, work.runs) for key in keys]}
    for run in chosen.values():
        run.remove()
        if not work.as_json:
            say(f"removed {run.folder}")
    if work.as_json:
        from interp.cli.terminal import print_json

        print_json({"removed": [str(run.folder) for run in chosen.values()]})
    else:
        say_next(after_runs([], work.runs))


def _parts(row: dict[str, Any]) -> str:
    """How many parts there are, and of how many, where it is not finished."""
    planned = row["planned"]
    return str(row["parts"]) if planned in (None, row["parts"]) else f"{row['parts']} of {planned}"


def _as_written(n_parts: int) -> str:
    counted = {0: "its tables are", 1: "its part is"}.get(n_parts, f"all {n_parts} parts are")
    return f"{counted} as written"


def _command_of(about: Any) -> list[str]:
    """The arguments of the command that began a run, and no other: a manifest may be anybody's."""
    command = about.get("command")
    if not isinstance(command, list) or not all(isinstance(each, str) for each in command):
        return []
    if not command or command[0] not in RESUMABLE:
        return []
    # Where it was kept, and that it was to be asked again, is of that time.
    kept, following = list[str](), iter(command)
    for each in following:
        if each == "--runs":
            next(following, None)
        elif each != "--fresh" and not each.startswith("--runs="):
            kept.append(each)
    return kept


def _require_this_program(run: "KnownRun") -> None:
    """Refuse what this program would not go on with: it would ask a question of its own."""
    from interp.runs.key import MANIFEST, code_hash, versions

    asked = run.opened().record.asked
    if (run.folder / MANIFEST).stat().st_uid != os.getuid():
        raise InputError(f"run {run.key}: it is another user's, whose command is not run; ask again yourself")
    ours = {"code": code_hash(), **versions()}
    theirs = {"code": asked.get("code"), **asked.get("versions", {})}
    other = [
        f"{name} {str(theirs.get(name))[:12]}, here {each[:12]}"
        for name, each in ours.items()
        if theirs.get(name) != each
    ]
    if other:
        raise InputError(
            f"run {run.key}: computed by another version of the program ({'; '.join(other)}), which can go on with it; "
            "ask again with this one"
        )


def _found(key: str, runs: Path | None) -> "KnownRun":
    from interp.runs.catalogue import find_run
    from interp.runs.root import root_of

    return find_run(root_of(runs), key)


def _facts(run: "KnownRun") -> dict[str, Any]:
    return {
        "key": run.key,
        "asked": in_words(run.record.asked, run.record.about) if run.record else "",
        "problem": str(run.problem or ""),
        "state": run.state,
        "parts": run.n_parts,
        "planned": run.n_planned,
        "bytes": run.n_bytes,
        "begun": run.begun.strftime("%Y-%m-%d %H:%M"),
    }


def in_words(asked: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """What a run was asked, in a line, and the model that it was asked of, as its manifest has it: anybody's, too."""
    with suppress(KeyError, TypeError, AttributeError, IndexError):
        said = _WORDS[asked["kind"]](asked)
        return said if "model" not in about else f"{said}, on {about['model']}"
    return "something else"


def _sweep(asked: Mapping[str, Any]) -> str:
    how = " + ".join({each.split(" ")[0]: 0 for each in asked["replacements"]})
    cells = f"{asked['n_cells']} cell{'' if asked['n_cells'] == 1 else 's'}"
    return f"{asked['task']}: {cells} at {' + '.join(asked['sites'])}, {how}"


def _heads(asked: Mapping[str, Any]) -> str:
    siblings = len(asked["models"]) - 1
    return f"heads: {_tasks(asked)}" + (f", and {siblings} siblings" if siblings else "")


def _head(asked: Mapping[str, Any]) -> str:
    return f"{'cards of heads' if 'head' not in asked else 'head ' + asked['head']}: {_tasks(asked)}"


def _tasks(asked: Mapping[str, Any]) -> str:
    return ", ".join(each["task"] for each in asked["tasks"])


def _relations(asked: Mapping[str, Any]) -> str:
    names = list(dict.fromkeys(each[0] for each in asked["relations"]))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "sweep": _sweep,
    "heads": _heads,
    "head": _head,
    "attend": lambda asked: f"attend: {_relations(asked)}",
    "attention to related words": lambda asked: f"attention counted: {_relations(asked)}",
    "probe": lambda asked: f"probe: {asked['feature']} at {asked['site']}",
    "calibration": lambda asked: f"calibration: {asked['jobs']} jobs",
}
