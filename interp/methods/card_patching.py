"""One head on one task: direct paths into it and out of it, words, what it holds at one place, and its circuits.

1. **Paths**: every component before the head into its queries, keys and values (``feeds``), and the head into every
   later head, MLP and the logits (``readers``). Each is denoised by itself with MLPs frozen, so that a path is one
   edge; effects of single edges need not add up. On few units: there are up to three times as many paths as heads. Of
   many paths those are patched whose gradient estimates are the largest.
2. **Positions**: the head's clean ``z`` put into the corrupted run at one kind of word after the other.
3. **Feature**: its values at the related word replaced by their mean over all positions of the reference examples
   (not testable where heads share their values); and, where a probe reads the task's feature, LEACE beside erasing as
   many random directions. They describe: a verdict rests on exchanging the word (``word_exchange.py``) and on ablation.
4. **Circuits** of the weights alone (``residual/circuits.py`` says what these leave out): to which of the task's tokens
   the commonest queries give the largest scores (QK), and which of their logits the commonest related words raise and
   lower (OV). Among the whole vocabulary, tokens that training hardly ever showed would come first.

Goldowsky-Dill et al. (2023), "Localizing model behavior with path patching"; Geva et al. (2023), "Dissecting recall of
factual associations", who block the attention instead: then what is left of it grows; Belrose et al. (2023), "LEACE".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from interp.errors import InputError
from interp.interventions.intervention import Cell, Intervention, has_values_by_head, heads_at
from interp.interventions.replacement import Patch, Replacement
from interp.interventions.sweep import Progress, Sweep, SweepResult
from interp.methods.ablation import head_name
from interp.methods.attention_baselines import is_in_the_prompt
from interp.methods.erasure.erase import erase
from interp.methods.erasure.readings import task_positions
from interp.methods.grid import role_positions, run_examples
from interp.methods.patching import PatchResult
from interp.methods.path_patching import path_estimates, path_patch
from interp.methods.paths import paths_from, paths_to
from interp.methods.progress import complete
from interp.methods.task_arguments import as_pairs
from interp.model.loading.bridge import require_ours
from interp.model.sites import Site
from interp.options import Head
from interp.residual.circuits import ov_circuit, qk_circuit
from interp.residual.readout import token_texts
from interp.runs.run import Run
from interp.tasks.task import Task

PATHS = (
    *("sender", "receiver", "reads", "normalised", "normalised_low", "normalised_high", "effect", "low", "high"),
    *("n_units", "n_clusters", "n_paths"),
)
POSITIONS = (
    *("position", "normalised", "normalised_low", "normalised_high", "effect", "low", "high"),
    *("n_changed", "n_examples", "n_units", "n_clusters"),
)
FEATURE = ("what", "effect", "low", "high", "n_units", "n_clusters")
CIRCUITS = ("word", "role", "n_examples", "circuit", "place", "token", "text", "score")
FRAMES = {"positions": POSITIONS, "feeds": PATHS, "readers": PATHS, "feature": FEATURE, "circuits": CIRCUITS}
"""The columns of what each function measures."""
MANY_PATHS, MOST_PATHS = 40, 16
"""Of more direct paths into a head, or from it, than the one, as many as the other are patched."""
_Path = tuple[str, ...]


def direct_paths(
    model: Any,
    heads: Sequence[Head],
    task: Task,
    *,
    max_units: int,
    seed: int,
    memory_budget: int | None = None,
    run: Run | None = None,
    progress: Progress | None = None,
) -> dict[Head, dict[str, pd.DataFrame]]:
    """Patch every direct path into each head (``feeds``) and from it (``readers``), all in one sweep.

    One row a path, the largest effect first, columns ``PATHS``. ``reads`` is what the receiver reads there: ``q``,
    ``k``, ``v``, ``mlp`` or ``logits``; ``normalised`` is 0 in the corrupted and 1 in the clean run. Where several
    heads share keys and values, a path into them is one into those of all of these heads. ``n_paths`` is how many there
    are; of more than ``MANY_PATHS`` the ``MOST_PATHS`` with the largest gradient estimates are patched.
    """
    require_ours(model, "direct paths")
    into: dict[Head, Sequence[_Path]] = {}
    out: dict[Head, Sequence[_Path]] = {}
    for head in heads:
        shared = f"{head[0]}.{head[1] * heads_at('k_input', model) // model.cfg.n_heads}"
        receivers = (f"{head_name(head)}.q", f"{shared}.k", f"{shared}.v")
        into[head] = [tuple(path) for receiver in receivers for path in paths_to(model, receiver)]
        out[head] = [tuple(path) for path in paths_from(model, head_name(head))]
    paths = list(dict.fromkeys(path for own in (*into.values(), *out.values()) for path in own))
    given = some_units(as_pairs(task, model, n=None, seed=seed), max_units, seed)
    counts = {head: {"feeds": len(into[head]), "readers": len(out[head])} for head in heads}
    if any(n > MANY_PATHS for each in counts.values() for n in each.values()):
        size = dict(zip(paths, np.abs(path_estimates(model, given, paths, memory_budget=memory_budget)), strict=True))
        for own in (into, out):
            own |= {head: _largest(every, size) for head, every in own.items()}
        paths = list(dict.fromkeys(path for own in (*into.values(), *out.values()) for path in own))
    how: Any = {"seed": seed, "memory_budget": memory_budget, "progress": progress, "run": run}
    result = complete(path_patch(model, given, paths, mlps="frozen", **how))
    found = result.estimates().merge(result.normalised(), on=list(result.labels))
    last = found["receiver"].str.split(".").str[-1]
    found["reads"] = last.where(~found["receiver"].str.startswith("mlp"), "mlp")
    found = found.set_index(pd.MultiIndex.from_frame(found[["sender", "receiver"]]))
    tables = {}
    for head in heads:
        ordered = {"feeds": _ordered(found, into[head]), "readers": _ordered(found, out[head])}
        tables[head] = {name: rows.assign(n_paths=counts[head][name])[list(PATHS)] for name, rows in ordered.items()}
    return tables


def _largest(paths: Sequence[_Path], size: Mapping[_Path, float]) -> Sequence[_Path]:
    """The paths with the largest estimates, in the order that they have; all, where they are few."""
    if len(paths) <= MANY_PATHS:
        return paths
    kept = set(sorted(paths, key=lambda path: -size[path])[:MOST_PATHS])
    return [path for path in paths if path in kept]


def _ordered(found: pd.DataFrame, paths: Sequence[_Path]) -> pd.DataFrame:
    rows = found.loc[list(paths)]
    return rows.sort_values("effect", key=abs, ascending=False, kind="stable", ignore_index=True)


def some_units(task: Task, most: int, seed: int) -> Task:
    """The task with at most `most` of its units, drawn from its templates in turn."""
    if len(task.units) <= most:
        return task
    drawn = np.random.default_rng(seed).permutation(len(task.units))
    templates = pd.Series([task.units[number].item.example.template for number in drawn])
    turn, place = templates.groupby(templates).cumcount(), pd.factorize(templates)[0]
    return replace(task, units=tuple(task.units[number] for number in drawn[np.lexsort((place, turn))[:most]]))


def positions(
    model: Any,
    heads: Sequence[Head],
    task: Task,
    *,
    seed: int,
    memory_budget: int | None = None,
    run: Run | None = None,
    progress: Progress | None = None,
) -> dict[Head, pd.DataFrame]:
    """Patch each head's ``z`` by what the task calls the positions: one row a name, columns ``POSITIONS``.

    The names are those of ``role_positions``, and ``all`` positions together; ``query`` is the last token where all
    queries are. ``n_changed`` of ``n_examples`` changed anything: what cannot reach the answer, or is the same in both
    runs, changes in none.
    """
    given = as_pairs(task, model, n=None, seed=seed)
    runs = (run_examples(given, "denoise"), run_examples(given, "noise"))
    named = [*role_positions(*runs), ("all", None)]
    sites = {layer: Site("z", layer) for layer, _ in heads}
    patch = Patch(model, tuple(sites.values()))
    cells = [
        Cell({"of": head_name(head), "position": name}, (Intervention(sites[head[0]], patch, (head[1],), where),))
        for head in heads
        for name, where in named
    ]
    how: Any = {"seed": seed, "memory_budget": memory_budget, "progress": progress, "run": run}
    swept = complete(Sweep(cells).run(model, given, direction="denoise", **how))
    result = PatchResult(swept.examples, {**swept.provenance, "direction": "denoise"}, swept.labels)
    found = result.estimates().merge(result.normalised(), on=["of", "position"])
    changed = (result.examples["status"] == "changed").groupby([result.examples["of"], result.examples["position"]])
    found = found.merge(pd.DataFrame({"n_changed": changed.sum(), "n_examples": changed.size()}).reset_index())
    found = found.set_index(["of", "position"], drop=False)
    queries = {each.query == each.critical for each in given.examples}
    found["position"] = found["position"].replace({"last": "query"} if queries == {True} else {})
    rows = {head: [(head_name(head), name) for name, _ in named] for head in heads}
    return {head: found.loc[own, list(POSITIONS)].reset_index(drop=True) for head, own in rows.items()}


def feature_there(
    model: Any,
    heads: Sequence[Head],
    task: Task,
    means: Replacement | None,
    *,
    reads: Sequence[Head],
    seed: int,
    memory_budget: int | None = None,
    run: Run | None = None,
) -> dict[Head, pd.DataFrame]:
    """The effect of taking out each head's values at the related word, and the feature where a probe `reads` it.

    One row each, columns ``FEATURE``: ``what`` is ``values at the related word`` (``means`` take their place),
    ``feature`` or ``random directions``. A head without any is left out.
    """
    rows: dict[Head, list[pd.DataFrame]] = {}
    how = {"seed": seed, "memory_budget": memory_budget, "run": run}
    for what, result in _taken_out(model, heads, task, means, reads, how):
        found = complete(result).estimates().assign(what=what)
        for head, own in found.groupby(["layer", "head"]):
            rows.setdefault((int(head[0]), int(head[1])), []).append(own[list(FEATURE)])
    return {head: pd.concat(own, ignore_index=True) for head, own in rows.items()}


def _taken_out(
    model: Any, heads: Sequence[Head], task: Task, means: Replacement | None, reads: Sequence[Head], how: Any
) -> Iterator[tuple[str, SweepResult]]:
    there = replace(task, units=tuple(unit for unit in task.units if all(map(is_in_the_prompt, unit.examples))))
    if means is not None and there.units and has_values_by_head(model):
        where = task_positions("related", there)
        cells = [
            Cell({"layer": layer, "head": head}, (Intervention(Site("v", layer), means, (head,), where),))
            for layer, head in heads
        ]
        yield "values at the related word", Sweep(cells).run(model, there, **how)
    if reads and task.feature is not None:
        found = erase(model, task, task.feature, heads=reads, methods=("leace", "random"), probes=False, **how)
        for method, name in (("leace", "feature"), ("random", "random directions")):
            yield name, SweepResult(found.examples[found.examples["method"] == method], found.provenance, found.labels)


def circuits(model: Any, head: Head, task: Task, *, most_words: int = 3, top: int = 5) -> pd.DataFrame:
    """What a head looks for from the commonest queries, and what it writes of the commonest related words.

    One row a word and listed token, the strongest first, columns ``CIRCUITS``: the ``word`` (``#id`` without a
    tokenizer), its ``role`` (``query`` or ``related``), in how many examples it has it, the ``circuit`` (``looks for``,
    ``raises``, ``lowers``), ``place`` (from 0), ``token``, ``text``, and ``score``: the attention score less its mean
    over the task's tokens, or the logit less its mean over the vocabulary (times the last norm's scale).
    """
    require_ours(model, "circuits")
    rows = [(each, sum((*each.rights, *each.wrongs), each.prompt)) for each in task.examples]
    queries = Counter(tokens[each.query] for each, tokens in rows if each.query is not None)
    related = Counter(tokens[each.related[-1]] for each, tokens in rows if each.related)
    if not queries:
        raise InputError(f"circuits: {task.name!r} has no tagged relation, so nothing says which word looks for which")
    words = torch.tensor(sorted({token for _, tokens in rows for token in tokens}))
    text_of = dict(zip(words.tolist(), token_texts(model, words), strict=True))
    texts = {token: f"#{token}" if text is None else text for token, text in text_of.items()}
    qk, ov, parts = qk_circuit(model, *head), ov_circuit(model, *head), []
    for role, counts in (("query", queries), ("related", related)):
        for word, n in counts.most_common(most_words):
            if role == "query":
                scores = (qk.A[word] @ qk.B).cpu()[words]
                signs = {"looks for": 1.0}
                scores = scores - scores.mean()
            else:
                logits, signs = (ov.A[word] @ ov.B).cpu(), {"raises": 1.0, "lowers": -1.0}
                scores = (logits - logits.mean())[words]
            for circuit, sign in signs.items():
                best = (sign * scores).topk(min(top, len(words))).indices
                listed = pd.DataFrame({"token": words[best].numpy(), "score": scores[best].numpy()})
                labels = {"word": texts[word], "role": role, "n_examples": n, "circuit": circuit}
                parts.append(listed.assign(**labels, place=range(len(best)), text=listed["token"].map(texts)))
    return pd.concat(parts, ignore_index=True)[list(CIRCUITS)]
