"""What does a result look like? The table of contents of figures, one a kind of result.

Each function takes what a public call returned and returns a ``matplotlib.figure.Figure``: nothing is shown, written or
set for other figures, and ``figure.savefig("figure.png")`` keeps it. Estimates come with their 95 % intervals wherever
there is one axis; colours that diverge are centred on 0 (or on the run that is changed) and reach as far above as
below; what was not measured is hatched, never 0. Colours are safe for colour-blind readers, and whatever a colour tells
of verdicts or series, a shape tells, too.

What a call returned, and its figures:

- ``interp.heads``: ``overview``, ``heads``
- ``interp.ablate``, ``interp.patch``, ``interp.path_patch``: ``sweep``, ``strongest``; of a screen ``screen``
- ``interp.attend``: ``relations``, ``relation_baselines``
- ``interp.probe``: ``probes``, ``probe_map``
- ``interp.residual_stream``: ``stream``
- ``interp.direct_logit_attribution``: ``logit_attribution``
- ``model.run_with_cache``: ``attention_pattern``, ``attention_arcs``; in a notebook ``attention_words``, which is HTML
- ``logit_lens``, ``compare_lenses``: ``logit_lens``, ``lenses``
- ``head_card``: ``card``, ``card_paths``
- ``calibrate``: ``calibration``
- ``task_attention``, ``attribute``: ``task_attention``, ``estimates``
- ``pairwise``, ``greedy``: ``pairs``, ``greedy``
- ``compare_replacements``: ``replacements``
- ``self_repair``, ``erase``: ``self_repair``, ``erasure``
- any frame with a number for each head: ``head_map``

Returns:
    Of every function: a ``matplotlib.figure.Figure``, which a notebook shows and ``.savefig(path)`` writes. Only
    ``attention_words`` returns ``ShadedWords``, which a notebook shows as HTML.

Raises:
    InputError: What is given is no result of the call that the list names, or has nothing to draw.

Examples:
    >>> result = interp.ablate(interp.load_model(), "agreement", n=24)
    >>> interp.plots.sweep(result).savefig("sweep.png")
"""

from interp.report.attention import task_attention
from interp.report.attention_patterns import attention_pattern
from interp.report.attention_words import attention_arcs
from interp.report.calibration import calibration
from interp.report.card_figures import card, card_paths
from interp.report.erasure import erasure
from interp.report.heads_figures import head_map, heads, overview
from interp.report.notebook import attention_words
from interp.report.probes_figures import probe_map, probes
from interp.report.relations_figures import relation_baselines, relations
from interp.report.results.effects import estimates, pairs, replacements, screen, self_repair
from interp.report.results.stream import lenses, logit_attribution, logit_lens, stream
from interp.report.sweep_figures import greedy, strongest, sweep

__all__ = [
    "attention_arcs",
    "attention_pattern",
    "attention_words",
    "calibration",
    "card",
    "card_paths",
    "erasure",
    "estimates",
    "greedy",
    "head_map",
    "heads",
    "lenses",
    "logit_attribution",
    "logit_lens",
    "overview",
    "pairs",
    "probe_map",
    "probes",
    "relation_baselines",
    "relations",
    "replacements",
    "screen",
    "self_repair",
    "stream",
    "strongest",
    "sweep",
    "task_attention",
]
