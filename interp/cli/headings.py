"""What has every command? Options under the same headings, and errors whose advice can be typed."""

from typing import Any

from typer.core import TyperCommand, TyperOption

from interp.cli.advice import in_options
from interp.errors import InterpError

HEADINGS: dict[str, tuple[str, ...]] = {
    "What is asked": (
        *("task", "data", "store", "relation", "feature", "model", "sibling"),
        *("components", "site", "by", "layer", "layers", "head", "heads", "at", "direction"),
        *("prompts", "tokens", "table"),
    ),
    "How it is measured": (
        *("kind", "metric", "n", "unequal_lengths", "seed", "quick", "choose", "choose_on", "claims", "screen"),
        *("probes", "max_units", "pooling", "context", "window", "include_special", "include_self"),
        *("least", "folds", "description_lengths", "minimum", "alpha", "correction"),
    ),
    "What is left, and where": ("out", "cards", "runs", "fresh", "as_json", "help"),
    "Which machine": (
        *("hardware", "device", "devices", "dtype", "memory", "threads"),
        *("processes", "executor", "address", "gpus"),
    ),
}
_PLACES = {
    name: (order, heading)
    for order, (heading, name) in enumerate((heading, name) for heading, names in HEADINGS.items() for name in names)
}
_OTHERS = (-1, next(iter(HEADINGS)))


class Grouped(TyperCommand):
    """A command whose options stand under headings, each in its place."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        for each in self.params:
            if isinstance(each, TyperOption):
                each.rich_help_panel = _PLACES.get(str(each.name), _OTHERS)[1]
        self.params.sort(key=lambda each: _PLACES.get(str(each.name), _OTHERS)[0])

    def invoke(self, ctx: Any) -> Any:
        """Run it; what it advises can be typed."""
        try:
            return super().invoke(ctx)
        except InterpError as error:
            error.args = (in_options(error, self.params, ctx.find_root().command.commands),)
            raise

    def get_help_option(self, ctx: Any) -> Any:
        """The option --help, too."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.rich_help_panel = _PLACES["help"][1]
        return found
