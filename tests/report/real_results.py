"""One of every result that a public call returns: measured on the embedded model, or made up where that takes long."""

from fake_jobs import fake_job
from made_up_card import made_up_card
from synthetic_heads import synthetic_report
from synthetic_probes import probing
from synthetic_relations import scoring

import interp
from interp.calibration.calibrate import Job, Size, calibrate
from interp.methods.attribution import attribute
from interp.methods.erasure.erase import erase
from interp.methods.function_heads import function_heads
from interp.methods.head_sets import greedy, pairwise
from interp.methods.replacements_compared import compare_replacements
from interp.methods.self_repair import self_repair
from interp.methods.task_attention import task_attention
from interp.residual.circuits import copying_scores
from interp.residual.logit_lens import logit_lens
from interp.residual.tuned_lens import TunedLensFitter, compare_lenses

HEADS = [(0, 0), (2, 1), (2, 2)]
PROMPT = "The keys to the cabinet"


def real_results(monkeypatch):
    """By a name for each, a result; every class of results is among them."""
    model = interp.load_model()
    task = interp.load_task("agreement", n=12, seed=0, tokenizer=model.tokenizer)
    screened = interp.patch(model, task, screen=True, top=3, audit=3)
    stream, tokens = interp.residual_stream(model, PROMPT), model.to_tokens(PROMPT)
    return {
        "heads": dossier(),
        "ablate": interp.ablate(model, task, replacement="zero"),
        "mlps": interp.ablate(model, task, components="mlps", replacement="zero"),
        "sets": interp.ablate(model, task, sets=[HEADS[:1], HEADS[1:]], replacement="zero"),
        "patch": interp.patch(model, task, site="resid_pre", by=("layer", "pos")),
        "noised": interp.patch(model, task, direction="noise"),
        "screened": screened,
        "screen": screened.screen,
        "paths": interp.path_patch(model, task, [["0.1", "2.2.k"], ["2.2", "logits"]]),
        "attend": scoring(),
        "probe": probing(),
        "layers": probing(heads=False),
        "stream": stream,
        "attributed": interp.direct_logit_attribution(model, stream, " are", " is"),
        "lens": logit_lens(model, PROMPT),
        "lenses": compare_lenses(model, tokens, TunedLensFitter(model).update(tokens).lens),
        "circuits": copying_scores(model),
        "card": made_up_card(),
        "calibration": calibration(monkeypatch),
        "attention": task_attention(model, task),
        "functions": function_heads(model, n_rows=4),
        "attribute": attribute(model, task),
        "pairs": pairwise(model, task, heads=HEADS, replacement="zero"),
        "greedy": greedy(model, task, n_heads=2, heads=HEADS, replacement="zero"),
        "repair": self_repair(model, task, heads=HEADS, replacement="zero"),
        "replacements": compare_replacements(model, task, replacements=("zero", "mean"), heads=HEADS),
        "erase": erase(model, task, "number", heads=HEADS[2:], methods=("leace", "random"), draws=1),
    }


def dossier(**how):
    """A made-up dossier, as ``interp.heads`` returns one."""
    return synthetic_report(**how)


def calibration(monkeypatch):
    """Verdicts on jobs that are not done."""
    with monkeypatch.context() as faked:
        faked.setattr(Job, "run", fake_job)
        return calibrate(Size(planted=3, special=1, groups=1, single=2, trained=2, nulls=2, halves=2, curve=1))
