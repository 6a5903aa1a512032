"""What can be asked of each method: one frozen object a method.

Every field is a keyword of the call (``interp.ablate(model, task, replacement="zero")``), an attribute of the object
(``AblateOptions(replacement="zero")``), a part of a kept run's key, and an option of the command (``--replacement``),
whose help is the field's line under ``Attributes``. Nothing here imports torch, so the command line can.

Examples:
    >>> from interp.options import AblateOptions
    >>> asked = AblateOptions(replacement="zero", heads=[(2, 2)], n=24)
    >>> interp.ablate(interp.load_model(), "agreement", asked).labels
    ('layer', 'head')
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from interp.arguments import Options as Options
from interp.arguments import as_names
from interp.errors import InputError

ReplacementName = Literal["zero", "mean", "positional_mean", "template_mean", "resample"]
_Compared = Literal["logit_difference", "sentence_log_probability", "probability_difference", "best_logit_difference"]
MetricName = Literal[_Compared, "probability", "kl_divergence", "accuracy"]
AskedMetric = MetricName | Callable[..., Any]
Components = Literal["heads", "mlps", "neurons"]
Axis = Literal["layer", "head", "pos", "key", "neuron"]
Direction = Literal["denoise", "noise"]
Mlps = Literal["recomputed", "frozen"]
GradientMethod = Literal["attribution", "integrated_gradients"]
Correction = Literal["max-T", "fdr"]
Excluded = Literal["special", "self"]
ProbeKind = Literal["logistic", "ridge", "lda", "mlp"]
At = Literal["query", "related"]
ErasedAt = Literal["query", "related", "all"]
EraseMethod = Literal["leace", "random", "inlp", "mean", "steer"]
Context = Literal["document", "sentence"]
Pooling = Literal["first", "last", "mean"]
Head = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(Options):
    """What every measurement on a task is asked.

    Attributes:
        n: Units to draw of a task that is given by its name; None for the task's own number: a file is used whole.
        seed: Seed of every random draw: the task's, the replacements' and the statistics'.
        memory_budget: Bytes that may be used beside the model's weights and the results; None for the device's
            default, 1 GiB on a CPU; on a GPU 4 GiB, or half of what is free.
    """

    n: int | None = None
    seed: int = 0
    memory_budget: int | None = None


@dataclass(frozen=True, kw_only=True)
class SweepOptions(MeasureOptions):
    """What every sweep is asked.

    Attributes:
        metric: What is measured: ``logit_difference``, ``sentence_log_probability``, ``probability_difference``,
            ``best_logit_difference``, ``probability``, ``kl_divergence``, which rises where all others fall, or
            ``accuracy``; in Python also a function ``(logits, example) -> number``; None for the task's own.
    """

    metric: AskedMetric | None = None


@dataclass(frozen=True, kw_only=True)
class ComponentOptions(SweepOptions):
    """Which components are ablated, one by one.

    Attributes:
        components: ``heads`` (their ``z``), ``mlps`` (all that they write) or ``neurons`` (after the activation).
        heads: Heads that are ablated one by one; in Python ``(layer, head)`` pairs; None for all.
        sets: Sets of such pairs; the heads of a set are ablated together.
        layers: Layers whose heads, MLPs or neurons are ablated; None for all. Neurons have one cell each, so name the
            layers where the model is large.
        draws: How many resamples an effect is averaged over.
    """

    components: Components = "heads"
    heads: Sequence[Head] | None = None
    sets: Sequence[Sequence[Head]] | None = None
    layers: Sequence[int] | None = None
    draws: int = 4


@dataclass(frozen=True, kw_only=True)
class AblateOptions(ComponentOptions):
    """What ``interp.ablate`` is asked.

    Attributes:
        replacement: What takes a component's place: ``zero``, ``mean``, ``positional_mean``, ``template_mean`` or
            ``resample``; in Python also what ``make_replacement`` has made.
        site: In place of components, a site that ``patch`` knows, such as ``attn_out``; None for ``z`` where ``by=`` is
            given.
        by: The axes of a cell at this site: ``layer``, ``head``, ``pos``, ``key`` or ``neuron``. Along the others it is
            ablated all at once; None for one cell a layer, or a head where the site has heads.
    """

    replacement: ReplacementName | Any = "mean"
    site: str | None = None
    by: Sequence[Axis] | None = None


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ComponentOptions):
    """What ``compare_replacements`` is asked.

    Attributes:
        replacements: The replacements that are compared, at least two; None for all.
        min_effect: The smallest effect that counts, as a share of the base run's mean metric.
        alpha: The chance of any false claim over all components, under each replacement.
    """

    replacements: Sequence[ReplacementName] | None = None
    min_effect: float = 0.1
    alpha: float = 0.05


@dataclass(frozen=True, kw_only=True)
class GridOptions(SweepOptions):
    """Which cells are patched, and from which run.

    Attributes:
        site: What is patched: ``resid_pre``, ``resid_mid``, ``resid_post``, ``attn_out``, ``mlp_out``, ``mlp_in``,
            ``mlp_pre``, ``mlp_post``; or, of each head, ``q_input``, ``k_input``, ``v_input``, ``q``, ``k``, ``v``,
            ``z``, ``result`` or ``pattern``.
        by: What makes a cell: ``layer``, ``pos``, ``head``, ``key`` (of ``pattern``) or ``neuron`` (of ``mlp_pre`` and
            ``mlp_post``). What is left out is patched all at once.
        direction: ``denoise`` puts the clean run's activation into the corrupted run: what suffices? ``noise`` puts the
            corrupted run's into the clean run: what is needed?
        layers: Layers that are patched; None for all.
    """

    site: str = "z"
    by: Sequence[Axis] = ("layer", "head")
    direction: Direction = "denoise"
    layers: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True)
class PatchOptions(GridOptions):
    """What ``interp.patch`` is asked.

    Attributes:
        screen: Whether all cells are estimated by gradients first, and only the ``top=`` ones and an ``audit=`` of the
            others measured; in Python also ``"integrated_gradients"``, which is nearer where the metric is curved.
        top: How many of the largest estimates a screen measures: a whole number, or a share of all cells.
        audit: How many of the other cells a screen draws at random, to say what it missed: a number, or a share.
    """

    screen: bool | GradientMethod = False
    top: int | float = 0.1
    audit: int | float = 0.1


@dataclass(frozen=True, kw_only=True)
class AttributeOptions(GridOptions):
    """What ``attribute`` is asked: which effects of patching are estimated.

    Attributes:
        method: ``attribution`` (the gradient at the run) or ``integrated_gradients`` (its average between the
            embeddings of the run and its source: ``steps`` times the work).
        steps: Points of that average.
    """

    method: GradientMethod = "attribution"
    steps: int = 8


@dataclass(frozen=True, kw_only=True)
class PathPatchOptions(SweepOptions):
    """What ``interp.path_patch`` is asked.

    Attributes:
        direction: ``denoise`` runs the corrupted prompt with the clean run's change along the path; ``noise`` the other
            way round.
        mlps: What MLPs between the nodes of a path do: ``recomputed``, they read the sender's change and pass on what
            they make of it (Wang et al. 2022); ``frozen``, they write what they write in the run, so that a path is
            a single edge (Goldowsky-Dill et al. 2023).
        together: Whether all paths are patched in one cell; otherwise each path is a cell.
    """

    direction: Direction = "denoise"
    mlps: Mlps = "recomputed"
    together: bool = False


@dataclass(frozen=True, kw_only=True)
class ExchangeOptions(MeasureOptions):
    """What ``exchange_word`` is asked.

    Attributes:
        heads: ``(layer, head)`` pairs; None for all heads of the model.
    """

    heads: Sequence[Head] | None = None


@dataclass(frozen=True, kw_only=True)
class AblatedHeadsOptions(MeasureOptions):
    """Which heads are ablated, and how.

    Attributes:
        heads: ``(layer, head)`` pairs; None for all heads of the model.
        replacement: What takes their place, as of ``AblateOptions``.
        draws: How many resamples an effect is averaged over.
    """

    heads: Sequence[Head] | None = None
    replacement: ReplacementName | Any = "mean"
    draws: int = 4


@dataclass(frozen=True, kw_only=True)
class SelfRepairOptions(AblatedHeadsOptions):
    """What ``self_repair`` is asked.

    Attributes:
        min_effect: The smallest direct effect whose repaired share is told, as a share of the base run's mean metric.
    """

    min_effect: float = 0.1


@dataclass(frozen=True, kw_only=True)
class GreedyOptions(AblatedHeadsOptions, SweepOptions):
    """What ``greedy`` is asked: the heads are those to choose among.

    Attributes:
        n_heads: Steps: how many heads the largest set has.
    """

    n_heads: int = 5


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions(AblatedHeadsOptions, SweepOptions):
    """What ``pairwise`` is asked: all pairs of the heads are taken, which are at least two.

    Attributes:
        min_effect: The smallest interaction that counts, as a share of the base run's mean metric.
        alpha: The chance of any false claim of redundancy or series, over all pairs.
    """

    min_effect: float = 0.1
    alpha: float = 0.05


@dataclass(frozen=True, kw_only=True)
class VerdictOptions(Options):
    """By what a verdict is reached.

    Attributes:
        min_effect: The smallest excess that counts.
        alpha: The error rate of the verdicts.
        correction: ``max-T`` bounds the chance of any false claim; ``fdr`` (Benjamini & Hochberg) is for exploring.
        seed: Seed of every random draw: folds, control labels and resampling.
    """

    min_effect: float = 0.1
    alpha: float = 0.05
    correction: Correction = "max-T"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class AttendOptions(VerdictOptions):
    """What ``interp.attend`` is asked.

    Attributes:
        exclude: What a head's most attended word is not chosen among: ``special`` tokens, the word ``self``.
        max_window: The most tokens of a document that are read at once, if the model's context is not shorter.
        min_effect: The smallest excess over the best rule that counts, as a share of the pairs.
        seed: Seed of the resampling.
    """

    exclude: Sequence[Excluded] | Excluded = ("special", "self")
    max_window: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "exclude", tuple(as_names("exclude", self.exclude)))
        if self.max_window < 2:
            raise InputError(f"max_window: expected 2 tokens at least, got {self.max_window}")


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(VerdictOptions, MeasureOptions):
    """What ``interp.probe`` is asked.

    Attributes:
        site: What is read: a site that ``patch`` knows, such as ``z``, but not ``pattern``; or ``embed`` or
            ``pos_embed``. Several are read in one run and corrected together.
        layers: Only these layers; None for all.
        heads: Only these heads; in Python ``(layer, head)`` pairs; None for all.
        kind: The probe: ``logistic``, ``ridge``, ``lda`` or ``mlp``. A feature that is a number takes ``ridge``.
        penalties: Strengths of the penalty, one of which is chosen in every fold; None for the kind's own.
        cv: Number of folds of documents (or templates), and of lemmas.
        min_examples: Classes with fewer examples are left out.
        at: Where a task is read: ``query``, the position that predicts the answer, or ``related``, the related word.
        context: What is read at once of a corpus: as much of a ``document`` as fits, or a ``sentence``.
        pooling: Which of a word's tokens is read: the ``first``, the ``last``, or their ``mean``.
        n: Units to draw of a task that is given by its name, or words of a corpus or a store; None for the task's own
            number, or all words.
        description_lengths: Whether minimum description lengths are measured, too; they take about half of the time.
        permuted_labels: Whether probes of permuted labels are fitted, too. No verdict rests on them.
        min_effect: The smallest excess over the toughest control that counts: a share of the words, or of a number's
            variance.
    """

    site: str | Sequence[str] = "z"
    layers: Sequence[int] | None = None
    heads: Sequence[Head] | None = None
    kind: ProbeKind = "logistic"
    penalties: Sequence[float] | None = None
    cv: int = 5
    min_examples: int = 1
    at: At = "query"
    context: Context = "document"
    pooling: Pooling = "last"
    description_lengths: bool = True
    permuted_labels: bool = True


@dataclass(frozen=True, kw_only=True)
class EraseOptions(SweepOptions):
    """What ``erase`` is asked.

    Attributes:
        site: ``z``, head by head; or by layer: ``resid_pre``, ``resid_mid``, ``resid_post``, ``attn_out``, ``mlp_out``.
        heads: ``(layer, head)`` pairs, at ``z``; None for all heads.
        layers: Layers; None for all.
        at: Where it is fitted and erased: at the ``query``, which looks back; the ``related`` word; or ``all`` tokens.
        methods: What is done, each by itself: ``leace``, ``random`` directions, ``inlp``, the ``mean``, or ``steer``.
        draws: How many random subspaces the effects of ``random`` are averaged over.
        strength: How many differences of the classes' means ``steer`` adds.
        probes: Whether it is measured, too, how well the feature can be read before and after.
    """

    site: str = "z"
    heads: Sequence[Head] | None = None
    layers: Sequence[int] | None = None
    at: ErasedAt = "query"
    methods: Sequence[EraseMethod] = ("leace", "random", "mean")
    draws: int = 8
    strength: float = 1.0
    probes: bool = True


@dataclass(frozen=True, kw_only=True)
class HeadsOptions(MeasureOptions):
    """What ``interp.heads`` is asked.

    Attributes:
        draws: How many resamples an effect is averaged over.
        alpha: The chance of any false claim, above the minimum or below it, over heads and tasks, by kind of evidence.
        min_attention: The smallest excess attention that counts, as a share of all attention.
        min_effect: The smallest effect that counts, as a share of the base run's mean metric.
        min_probe: The smallest excess of a probe over its toughest control that counts, as a share of the examples.
        probes: Whether each task's feature is probed for. Without probes, no head tracks a task that names a feature.
        max_group: How many heads of a task are ablated together at most: 2 or more, or 0 to leave that out.
        first_look: Clusters of the first look, after which heads whose effect is settled leave. Each look that follows
            has twice as many, the last one all; 0 for a single look.
        max_clusters: Clusters of a task on which heads are ablated at most; None for all. All else has all units.
        correction: ``max-T`` bounds the chance of any false claim; ``fdr``, for exploring, their expected share.
        claims: A TOML file of claims that were declared before measuring: only these can be shown.
        anyway: Measure a task that the model is not shown to do, or, on the command line, one of too few clusters.
    """

    ends = True
    draws: int = 1
    alpha: float = 0.05
    min_attention: float = 0.1
    min_effect: float = 0.1
    min_probe: float = 0.1
    probes: bool = True
    max_group: int = 24
    first_look: int = 30
    max_clusters: int | None = None
    correction: Correction = "max-T"
    claims: Any = None
    anyway: bool = False


@dataclass(frozen=True, kw_only=True)
class CardOptions(HeadsOptions):
    """What ``head_card`` is asked: as ``HeadsOptions``, of the dossier that it makes where none is given.

    Attributes:
        max_units: Units of a task on which a card measures what its dossier does not.
        anyway: As there, but on: a card has more than verdicts.
    """

    max_units: int = 40
    anyway: bool = True
