"""How does a template become a document? The same for every page: no network, no model, no server.

1. Jinja2 escapes everything that comes from data: a token such as ``<script>`` stays text.
2. Styles and scripts stand in the page; a content security policy forbids it the network (``layout.html``).
3. Provenance is flattened: whoever made the numbers may nest it as deep as they like.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **shown: Any) -> str:
    """One self-contained HTML document.

    Args:
        template: Its file's name in ``templates``.
        shown: What the template calls by these names.
    """
    environment = Environment(
        loader=PackageLoader("interp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**shown)


def flatten(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested values as (dotted name, text) pairs, in their order.

    Of a list of mappings, what is the same in all is said once; the rest is named by each one's
    ``task``, or by its number from 0.
    """
    if isinstance(value, Mapping):
        return [pair for key, each in value.items() for pair in flatten(each, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
        return _flatten_mappings(value, name)
    if isinstance(value, list | tuple):
        return [(name, ", ".join(str(each) for each in value))]
    return [(name, str(value))]


def _flatten_mappings(mappings: Sequence[Mapping[str, Any]], name: str) -> list[tuple[str, str]]:
    each_flat = [dict(flatten(each)) for each in mappings]
    shared = [pair for pair in each_flat[0].items() if all(flat.get(pair[0]) == pair[1] for flat in each_flat)]
    pairs = [(f"{name}.{key}", text) for key, text in shared]
    for number, flat in enumerate(each_flat):
        owner = f"{name}.{flat.get('task', number)}"
        pairs += [(f"{owner}.{key}", text) for key, text in flat.items() if (key, text) not in shared]
    return pairs


def model_with_hash(facts: Mapping[str, str]) -> dict[str, str]:
    """The model's name with the beginning of its hash, as the one entry ``model``; nothing where either is unknown."""
    if not {"model", "model_hash"} <= facts.keys():
        return {}
    return {"model": f"{facts['model']} (hash {facts['model_hash'][:12]})"}
