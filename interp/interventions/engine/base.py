"""What does the batch do without interventions? Run once; every cell starts from it."""

from collections.abc import Iterable

from jaxtyping import Float
from torch import Tensor

from interp.interventions.activations import read
from interp.interventions.engine.readout import Readout
from interp.interventions.metrics import Answers, MetricName, Scores
from interp.interventions.rows import Batch
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer

ALWAYS = ("resid_pre", "q", "k", "v")


class BaseRun:
    """Activations of a batch from some layer on, and its scores.

    Attributes:
        model: What is run.
        batch: On what.
        answers: What the metric reads.
        scores: Without interventions.
    """

    def __init__(
        self, model: HookedTransformer, batch: Batch, metric: MetricName, first_layer: int, extra: Iterable[Site]
    ):
        """Run the batch and keep what cells start from.

        Args:
            model: What is run.
            batch: On what.
            metric: What is measured.
            first_layer: The first layer that a cell changes.
            extra: Activations to keep besides those in ``ALWAYS``.
        """
        self.model, self.batch = model, batch
        n_layers = model.config.n_layers
        sites = {Site(name, layer) for name in ALWAYS for layer in range(first_layer, n_layers)}
        last = Site("resid_post", n_layers - 1)
        self._kept = read(model, batch.tokens, [each.hook_name for each in {*sites, *extra, last}])
        self.answers = Answers.of(metric, batch)
        positions = self.answers.positions
        self.final: Float[Tensor, "batch answer_pos d_model"] = self.at("resid_post", n_layers - 1)[
            :, positions.start : positions.stop
        ]
        self.readout = Readout(model, metric)
        self.scores: Scores = self.readout.keep_base(self.final, self.answers)

    def at(self, name: str, layer: int) -> Float[Tensor, "batch pos ..."]:
        """The activation at a site."""
        return self._kept[Site(name, layer).hook_name]

    def tokens_of(self, name: str, layer: int, rows: Tensor, positions: Tensor) -> Float[Tensor, "token ..."]:
        """The activation at a site, token by token."""
        return self.at(name, layer)[rows, positions]
