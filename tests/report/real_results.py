"""One of every result that a public call returns: measured on the embedded model, or made up where that takes long."""

import numpy as np
import pandas as pd
from fake_jobs import fake_job
from made_up_card import made_up_card
from synthetic_heads import synthetic_report
from synthetic_probes import probing
from synthetic_relations import scoring

import interp
from interp.calibration.calibrate import Job, Size, calibrate
from interp.methods.attribution import attribute
from interp.methods.development import Development
from interp.methods.dossier import HeadsReport
from interp.methods.erasure.erase import erase
from interp.methods.gap import GapResult
from interp.methods.head_sets import greedy, pairwise
from interp.methods.parse import ParseResult
from interp.methods.replacements_compared import compare_replacements
from interp.methods.self_repair import self_repair
from interp.methods.spanning_tree import CHAINS
from interp.methods.task_attention import task_attention
from interp.residual.logit_lens import logit_lens

HEADS = [(0, 0), (2, 1), (2, 2)]
PROMPT = "The keys to the cabinet"


def real_results(monkeypatch):
    """By a name for each, a result; every class of results is among them."""
    model = interp.load_model()
    task = interp.load_task("agreement", n=24, seed=0, tokenizer=model.tokenizer)
    screened = interp.patch(model, task, screen=True, top=3, audit=3)
    return {
        "heads": dossier(),
        "ablate": interp.ablate(model, task, kind="zero"),
        "mlps": interp.ablate(model, task, components="mlps", kind="zero"),
        "sets": interp.ablate(model, task, sets=[HEADS[:1], HEADS[1:]], kind="zero"),
        "patch": interp.patch(model, task, site="resid_pre", by=("layer", "pos")),
        "noised": interp.patch(model, task, direction="noise"),
        "screened": screened,
        "screen": screened.screen,
        "paths": interp.path_patch(model, task, [["0.1", "2.2.k"], ["2.2", "logits"]]),
        "attend": scoring(),
        "probe": probing(),
        "layers": probing(heads=False),
        "stream": interp.residual_stream(model, PROMPT),
        "lens": logit_lens(model, PROMPT),
        "card": made_up_card(),
        "calibration": calibration(monkeypatch),
        "development": development(),
        "attention": task_attention(model, task),
        "attribute": attribute(model, task),
        "pairs": pairwise(model, task, heads=HEADS, kind="zero"),
        "greedy": greedy(model, task, k=2, heads=HEADS, kind="zero"),
        "repair": self_repair(model, task, heads=HEADS, kind="zero"),
        "replacements": compare_replacements(model, task, kinds=("zero", "mean"), heads=HEADS),
        "erase": erase(model, task, "number", heads=HEADS[2:], methods=("leace", "random"), draws=1),
        "gap": gap_result(),
        "parse": parse_result(),
    }


def dossier(**how):
    """A made-up dossier, as ``interp.heads`` returns one."""
    return HeadsReport(**vars(synthetic_report(**how)))


def development():
    """A dossier at three steps."""
    report = dossier(tasks=("agreement",))
    frames = [pd.concat([each.assign(step=step) for step in (0, 100, 200)]) for each in (report.frame, report.tasks)]
    return Development(*frames, report, unjudged=(300,))


def calibration(monkeypatch):
    """Verdicts on jobs that are not done."""
    with monkeypatch.context() as faked:
        faked.setattr(Job, "run", fake_job)
        return calibrate(Size(planted=3, special=1, groups=1, single=2, trained=2, nulls=2, halves=2, curve=1))


def gap_result():
    """Two rules and three heads."""
    f1 = np.array([0.4, 0.35, 0.3, 0.62, 0.5])
    frame = pd.DataFrame({"name": ["nearest", "first", "0.0", "0.1", "1.0"], "f1": f1, "chosen": f1 == f1.max()})
    frame["layer"] = pd.array([None, None, 0, 0, 1], dtype="Int64")
    frame = frame.assign(head=0, f1_masculine=f1 + 0.02, f1_feminine=f1 - 0.02, bias=0.94, accuracy=f1, f1_choosing=f1)
    best = {"name": "0.1", "f1": 0.62, "low": 0.55, "high": 0.68, "baseline": "nearest", "f1_baseline": 0.4}
    best |= {"accuracy": 0.6, "accuracy_baseline": 0.41, "excess": 0.19, "excess_low": 0.1, "excess_high": 0.28}
    return GapResult(frame, best | {"p": 1e-4, "n": 200, "n_pages": 190}, {"ahead": 12}, {"model": "m", "seed": 0})


def parse_result():
    """Five documents of two sentences."""
    rows = [(f"d{at}", number, 6, 3 + number, 2, 1, 2) for at in range(5) for number in (0, 1)]
    frame = pd.DataFrame(rows, columns=["document", "sentence", "n", "right", *CHAINS])
    heads = pd.DataFrame({"layer": [0], "head": [1], "looks": ["dependent to head"], "accuracy": [0.6]})
    return ParseResult(frame, heads, {"n_unaligned": 0, "too_long": {}})
