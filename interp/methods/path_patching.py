"""Which component tells which? Patch what one writes into what another one reads, and nowhere else.

1. A path is a list of nodes: a sender (``2.1``, a head; ``mlp.1``; ``embed``, the embeddings), receivers that it
   passes through, and a last receiver (``2.3.q``, ``2.3.k``, ``2.3.v``: what a head's queries, keys or values are made
   from; ``mlp.2``; ``logits``).
2. The sender writes what it writes in the source, all other heads what they write in the run. What the receiver reads
   then is kept (``path_changes.py``): with the MLPs between **recomputed** (Wang et al. 2022), so that what these make
   of the sender's change belongs to the path; or with all MLPs **frozen** as well, so that a path is one edge
   (Goldowsky-Dill et al. 2023). A receiver on the way passes the change of its output on in the same way.
3. The last receiver reads what was kept, all else is as in the run up to there, and from there the model runs on.

A direct path is one of two nodes. With frozen MLPs, all direct paths from a sender together are its activation patch.

Wang et al. (2022), "Interpretability in the wild: a circuit for indirect object identification in GPT-2 small";
Goldowsky-Dill et al. (2023), "Localizing model behavior with path patching".
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, get_args

from interp.errors import InputError, suggest
from interp.interventions.given_numbers import as_list
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import MetricName
from interp.interventions.rows import Direction
from interp.interventions.sweep import Cell, Progress, Sweep
from interp.methods.given_task import as_pairs
from interp.methods.patching import PatchResult
from interp.methods.path_changes import Arriving, Mlps, Runs
from interp.methods.path_nodes import Node, Path, parse_path
from interp.model.given_model import require_ours
from interp.model.modes import documented
from interp.residual.stream import require_additive
from interp.runs.run import Run, as_run
from interp.tasks.task import Task


@documented
def path_patch(
    model: Any,
    task: Task | str,
    paths: Sequence[Sequence[str]],
    *,
    mlps: Mlps = "recomputed",
    together: bool = False,
    direction: Direction = "denoise",
    metric: MetricName | None = None,
    n: int | None = None,
    seed: int = 0,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> PatchResult:
    """Patch along paths, one after the other or all at once.

    Args:
        model: One of ours.
        task: A task, or the name of one.
        paths: Lists of nodes; ``paths_to`` and ``paths_from`` give the direct ones.
        mlps: What the MLPs between the nodes of a path do. ``recomputed``: they hear the sender, and what they make of
            it arrives, too; heads are frozen, layer norms are not (Wang et al. 2022). ``frozen``: they write what they
            write in the run, so that a path is a single edge (Goldowsky-Dill et al. 2023). Of a single receiver,
            without MLPs between, both are the same.
        together: Whether all paths are patched in one cell; otherwise each is a cell. Of several receivers, each reads
            what it reads in the frozen pass of its own paths' senders, whatever the others do to it (Wang et al. 2022).
            With frozen MLPs, an edge's change comes on top of what earlier receivers have changed: a set of paths
            (Goldowsky-Dill et al. 2023).
        direction: ``denoise`` runs the corrupted prompt with the clean run's change along the path, ``noise`` the
            clean prompt with the corrupted run's.
        metric: What is measured; None for the task's own.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the statistics and the audit.
        memory_budget: Bytes beside the model's weights; None for the device's default.
        progress: Called with (cells done, cells in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.

    Returns:
        One row per path (``sender``, ``via``, ``receiver``) and example, as ``patch`` gives them; the provenance has
        `mlps`.

    Raises:
        InputError: A node that the model does not have, a path that no information can take, no unit with a
            counterfactual of its length, a model that is not ours or whose stream is no sum, logits beside other
            receivers in one cell with recomputed MLPs, or a budget too small for one cell.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.
    """
    for name, given, known in (("direction", direction, Direction), ("mlps", mlps, Mlps)):
        if given not in get_args(known):
            raise InputError(f"{name}: {given!r} is unknown; {suggest(str(given), get_args(known))}")
    require_ours(model, "path patching")  # its attention is repeated
    require_additive(model)
    listed = as_list(paths)
    if listed is None:
        raise InputError(f"paths: expected a list of paths such as [['0.1', '2.3.k']], got {paths!r}")
    parsed = [parse_path(path, model) for path in listed]
    if not parsed or len(set(parsed)) < len(parsed):
        raise InputError(f"paths: expected different paths, at least one, got {[list(path) for path in listed]}")
    if together and mlps == "recomputed":
        _require_heard(parsed)
    runs = Runs(model, parsed, mlps)
    groups = [parsed] if together else [[path] for path in parsed]
    cells = [Cell(_labels(group, together), tuple(_changes(group, runs))) for group in groups]
    pairs = as_pairs(task, model, n=n, seed=seed, metric=metric)
    how: Any = {"metric": metric, "direction": direction, "memory_budget": memory_budget}
    result = Sweep(cells).run(model, pairs, seed=seed, progress=progress, run=as_run(run), **how)
    return PatchResult(result.frame, {**result.provenance, "direction": direction, "mlps": mlps}, result.labels)


def _require_heard(paths: Sequence[Path]) -> None:
    """Refuse receivers that nobody would hear: what the logits are made from is set last."""
    receivers = list(dict.fromkeys(path[-1].name for path in paths))
    if "logits" in receivers and len(receivers) > 1:
        raise InputError(
            "paths: together, with recomputed MLPs, every receiver is set to what it reads in the frozen pass, and the "
            "logits last, so that the others would do nothing; expected the logits alone or not at all, got "
            f"{', '.join(receivers)}; leave the logits out, or give mlps='frozen', where changes add up"
        )


def _changes(paths: Sequence[Path], runs: Runs) -> list[Intervention]:
    """What is changed at each receiver."""
    ending: dict[Node, list[Path]] = {}
    for path in paths:
        ending.setdefault(path[-1], []).append(path)
    return [Intervention(end.site, Arriving(tuple(own), runs), heads=_heads(end)) for end, own in ending.items()]


def _labels(paths: Sequence[Path], together: bool) -> dict[str, str]:
    if together:
        return {"sender": " + ".join(dict.fromkeys(path[0].name for path in paths)), "via": "", "receiver": "all"}
    (path,) = paths
    return {
        "sender": path[0].name,
        "via": " > ".join(node.name for node in path[1:-1]),
        "receiver": path[-1].name,
    }


def _heads(node: Node) -> tuple[int, ...] | None:
    return None if node.head is None else (node.head,)
