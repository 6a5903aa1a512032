"""What do heads against relations look like? The figures that take a result itself; ``plots.py`` draws them."""

from interp.report.figure import Figure
from interp.report.given import require
from interp.report.relations.frames import RelationFrames, check_relations
from interp.report.relations.plots import baselines_figure, relations_figure


def relations(result: RelationFrames) -> Figure:
    """How much more often than the best rule each head finds each relation, with a dot where a head attends to it.

    Args:
        result: What ``interp.attend`` returns.

    Raises:
        InputError: It is something else, or lacks a column.
    """
    return relations_figure(_checked(result, "relations"))


def relation_baselines(result: RelationFrames) -> Figure:
    """How often each relation's best head is right, with the 95 % interval of its lead, beside all baselines.

    Args:
        result: What ``interp.attend`` returns.

    Raises:
        InputError: It is something else, or lacks a column.
    """
    return baselines_figure(_checked(result, "relation_baselines"))


def _checked(result: RelationFrames, what: str) -> RelationFrames:
    require(result, ("frame", "relations", "provenance"), what, "interp.attend")
    check_relations(result, None)
    return result
