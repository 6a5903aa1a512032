"""Does it compute what it should? One head of the embedded model is ablated, by the engine and by the plain way.

1. The engine's numbers are held against one hooked forward pass: the audit that every sweep has.
2. They are held against those of the machine that this version was made on. Processors differ in the last bits, so
   these are compared with a tolerance, which what is broken does not keep.
"""

from collections.abc import Iterator

from interp.doctor.finding import Finding

TASK, UNITS, HEAD = "agreement", 20, (2, 2)
BASE, EFFECT = 5.85906, -6.02483
"""Means over the examples, in units of the logit difference: without ablation, and what zero ablation changes."""
TOLERANCE = 1e-3


def small_run() -> Iterator[Finding]:
    """Load the embedded model, ablate a head, and compare.

    Raises:
        InterpError: As the methods.
    """
    from interp.methods.ablation import ablate
    from interp.model.loading import load_model
    from interp.tasks.catalogue import load_task

    model = load_model()
    task = load_task(TASK, n=UNITS, seed=0, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    result = ablate(model, task, heads=[HEAD], kind="zero")
    audit = result.provenance["audit"]
    name = f"head {HEAD[0]}.{HEAD[1]} ablated"
    difference, allowed = audit["largest_difference"], audit["tolerance"]
    yield Finding(name, "well", f"engine and plain way differ by {difference:.1e} (at most {allowed:.0e})")
    found = {"base": float(result.frame["base"].mean()), "effect": float(result.frame["effect"].mean())}
    expected = {"base": BASE, "effect": EFFECT}
    far = {each: found[each] for each in found if abs(found[each] - expected[each]) > TOLERANCE * abs(expected[each])}
    says = ", ".join(f"{each} {value:.5f} (expected {expected[each]:.5f})" for each, value in found.items())
    if far:
        yield Finding("its numbers", "wrong", says, "torch computes wrongly here: install it again, in another version")
    else:
        yield Finding("its numbers", "well", says)
