"""One head on one task: direct paths into it and out of it, words, what it holds at one place, and its circuits.

1. **Paths**: every component before the head into its queries, keys and values (``feeds``), and the head into every
   later head, MLP and the logits (``readers``). Each is denoised by itself with MLPs frozen, so that a path is one
   edge; effects of single edges need not add up. On few units: there are up to three times as many paths as heads.
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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from interp.errors import InputError
from interp.interventions.intervention import Cell, Intervention, heads_at
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Patch
from interp.interventions.sweep import Progress, Sweep, SweepResult
from interp.methods.ablation import head_name
from interp.methods.attention_baselines import is_in_the_prompt
from interp.methods.erasure.erase import erase
from interp.methods.erasure.readings import task_positions
from interp.methods.grid import role_positions, run_examples
from interp.methods.patching import PatchResult
from interp.methods.path_patching import path_patch
from interp.methods.paths import paths_from, paths_to
from interp.methods.progress import complete
from interp.methods.task_arguments import as_pairs
from interp.model.loading.bridge import require_ours
from interp.model.sites import Site
from interp.options import Head
from interp.residual.circuits import ov_circuit, qk_circuit
from interp.residual.readout import token_texts
from interp.tasks.task import Task

PATHS = (
    *("sender", "receiver", "reads", "normalised", "normalised_low", "normalised_high", "effect", "low", "high"),
    *("n_units", "n_clusters"),
)
POSITIONS = (
    *("position", "normalised", "normalised_low", "normalised_high", "effect", "low", "high"),
    *("n_changed", "n_examples", "n_units", "n_clusters"),
)
FEATURE = ("what", "effect", "low", "high", "n_units", "n_clusters")
CIRCUITS = ("word", "role", "n_examples", "circuit", "place", "token", "text", "score")
FRAMES = {"positions": POSITIONS, "feeds": PATHS, "readers": PATHS, "feature": FEATURE, "circuits": CIRCUITS}
"""The columns of what each function measures."""


def feeds(
    model: Any, head: Head, task: Task, *, max_units: int, seed: int, progress: Progress | None = None
) -> pd.DataFrame:
    """Patch every direct path into a head: one row a path, the largest effect first, columns ``PATHS``.

    ``reads`` is what the receiver reads there (``q``, ``k``, ``v``), ``normalised`` 0 in the corrupted and 1 in the
    clean run. Where several heads share keys and values, a path into them is one into those of all of these heads.
    """
    require_ours(model, "direct paths")
    shared = head[1] * heads_at("k_input", model) // model.cfg.n_heads
    receivers = (f"{head_name(head)}.q", f"{head[0]}.{shared}.k", f"{head[0]}.{shared}.v")
    paths = [path for receiver in receivers for path in paths_to(model, receiver)]
    return _measured_paths(model, task, paths, max_units, seed, progress)


def readers(
    model: Any, head: Head, task: Task, *, max_units: int, seed: int, progress: Progress | None = None
) -> pd.DataFrame:
    """Patch every direct path from a head; as ``feeds``. ``reads`` is ``q``, ``k``, ``v``, ``mlp`` or ``logits``."""
    require_ours(model, "direct paths")
    return _measured_paths(model, task, paths_from(model, head_name(head)), max_units, seed, progress)


def some_units(task: Task, most: int, seed: int) -> Task:
    """The task with at most `most` of its units, drawn from its templates in turn."""
    if len(task.units) <= most:
        return task
    drawn = np.random.default_rng(seed).permutation(len(task.units))
    templates = pd.Series([task.units[number].item.example.template for number in drawn])
    turn, place = templates.groupby(templates).cumcount(), pd.factorize(templates)[0]
    return replace(task, units=tuple(task.units[number] for number in drawn[np.lexsort((place, turn))[:most]]))


def _measured_paths(
    model: Any, task: Task, paths: Sequence[Sequence[str]], max_units: int, seed: int, progress: Progress | None
) -> pd.DataFrame:
    given = some_units(as_pairs(task, model, n=None, seed=seed), max_units, seed)
    result = complete(path_patch(model, given, paths, mlps="frozen", seed=seed, progress=progress))
    found = result.estimates().merge(result.normalised(), on=list(result.labels))
    last = found["receiver"].str.split(".").str[-1]
    found["reads"] = last.where(~found["receiver"].str.startswith("mlp"), "mlp")
    return found.sort_values("effect", key=abs, ascending=False, kind="stable", ignore_index=True)[list(PATHS)]


def positions(model: Any, head: Head, task: Task, *, seed: int, progress: Progress | None = None) -> pd.DataFrame:
    """Patch a head's ``z`` by what the task calls the positions: one row a name, columns ``POSITIONS``.

    The names are those of ``role_positions``, and ``all`` positions together; ``query`` is the last token where all
    queries are. ``n_changed`` of ``n_examples`` changed anything: what cannot reach the answer, or is the same in both
    runs, changes in none.
    """
    given = as_pairs(task, model, n=None, seed=seed)
    site, runs = Site("z", head[0]), (run_examples(given, "denoise"), run_examples(given, "noise"))
    replacement = Patch(model, (site,))
    cells = [
        Cell({"position": name}, (Intervention(site, replacement, heads=(head[1],), positions=where),))
        for name, where in (*role_positions(*runs), ("all", None))
    ]
    swept = complete(Sweep(cells).run(model, given, direction="denoise", seed=seed, progress=progress))
    result = PatchResult(swept.examples, {**swept.provenance, "direction": "denoise"}, swept.labels)
    found = pd.DataFrame({"position": [each.labels["position"] for each in cells]})
    found = found.merge(result.estimates(), on="position").merge(result.normalised(), on="position")
    changed = (result.examples["status"] == "changed").groupby(result.examples["position"])
    found = found.merge(pd.DataFrame({"n_changed": changed.sum(), "n_examples": changed.size()}).reset_index())
    queries = {each.query == each.critical for each in given.examples}
    found["position"] = found["position"].replace({"last": "query"} if queries == {True} else {})
    return found[list(POSITIONS)]


def feature_there(model: Any, head: Head, task: Task, *, reads: bool, seed: int) -> pd.DataFrame:
    """The effect of taking out its values at the related word, and the feature where a probe `reads` it.

    One row each, columns ``FEATURE``: ``what`` is ``values at the related word``, ``feature`` or ``random directions``.
    """
    found = [
        complete(result).estimates()[["effect", "low", "high", "n_units", "n_clusters"]].assign(what=what)
        for what, result in _taken_out(model, head, task, reads, seed)
    ]
    if not found:
        raise InputError(
            "values at the related word: heads of this model share theirs, or no related word stands before the query; "
            "and no feature is read there that could be erased"
        )
    return pd.concat(found, ignore_index=True)[list(FEATURE)]


def _taken_out(model: Any, head: Head, task: Task, reads: bool, seed: int) -> Iterator[tuple[str, SweepResult]]:
    there = replace(task, units=tuple(unit for unit in task.units if all(map(is_in_the_prompt, unit.examples))))
    if there.units and _has_values_by_head(model):
        site = Site("v", head[0])
        means = make_replacement("mean", model, there, sites=[site])
        change = Intervention(site, means, heads=(head[1],), positions=task_positions("related", there))
        cell = Cell({"layer": head[0], "head": head[1]}, (change,))
        yield "values at the related word", Sweep([cell]).run(model, there, seed=seed)
    if reads and task.feature is not None:
        found = erase(model, task, task.feature, heads=[head], methods=("leace", "random"), probes=False, seed=seed)
        for method, name in (("leace", "feature"), ("random", "random directions")):
            yield name, SweepResult(found.examples[found.examples["method"] == method], found.provenance, found.labels)


def _has_values_by_head(model: Any) -> bool:
    """Whether the model shows each head's own values."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    return heads_at("v", model) == model.cfg.n_heads and (known is None or Site("v", 0).hook_name in known)


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
