"""How does a template become a document? The same for every page: no network, no model, no server.

1. Jinja2 escapes everything that comes from data: a token such as ``<script>`` stays text, and a character that would
   act or turn round the text beside it is shown (``legible.py``).
2. One style sheet and one script (``templates/scripts``, joined) stand in the page. A content security policy
   (``layout.html``) names both by their hashes and forbids all else: other scripts, the network, forms.
3. Provenance is flattened: whoever made the numbers may nest it as deep as they like.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from interp.report.citation import citation
from interp.report.embedded import as_json
from interp.report.legible import isolated

_SCRIPTS = ("data", "keys", "boxes", "buttons", "tables", "attention", "heads")
"""In the order in which they run."""


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
        finalize=_shown,
    )
    environment.globals.update(styles=_own("page.css"), script=_script(), hash_of=_hash_of, citation=citation())
    environment.filters["json"] = as_json
    return environment.get_template(template).render(**shown)


def _shown(value: Any) -> Any:
    """What a template shows of a value; what is markup already is made of such."""
    return isolated(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _script() -> str:
    """The script of every page, in strict mode."""
    return "\n".join(('"use strict";', *(_own(f"scripts/{name}.js") for name in _SCRIPTS)))


def _own(name: str) -> str:
    """A file of ``templates``, as it is."""
    return (files("interp.report") / "templates" / name).read_text(encoding="utf-8")


def _hash_of(source: str) -> str:
    """How a content security policy names what stands between a page's tags."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


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
