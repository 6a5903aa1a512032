"""How a page becomes one HTML document: no network, no model, no server.

1. Jinja2 escapes everything that comes from data: a token such as ``<script>`` stays text, and a character that would
   act or turn round the text beside it is shown (``words.py``).
2. One style sheet and one script (``templates/scripts``, joined) stand in the page. A content security policy
   (``layout.html``) names both by their hashes and forbids all else: other scripts, the network, forms.
3. What the script reads is JSON: columns, not rows; a text that repeats stands once. What was not measured is ``null``.
4. Provenance is flattened: whoever made the numbers may nest it as deep as they like.
"""

import base64
import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps

from interp.report.heatmap import paint
from interp.report.sections import Page, Picture, Section
from interp.report.tables import heading, kind_of
from interp.report.words import citation, isolated, visible

_SHADES = 21


def as_json(value: Any) -> str:
    """Nested lists, tuples and dictionaries of plain values as JSON for an element of the page."""
    return htmlsafe_json_dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def columnar(frame: pd.DataFrame, shown: Sequence[str]) -> dict[str, Any]:
    """A frame as columns, first those that a reader sees; the others come along for cards and CSV."""
    names = (*shown, *(str(name) for name in frame.columns if name not in shown))
    columns = [
        {"name": name, "caption": heading(name), "shown": name in shown, **_column(name, frame[name])} for name in names
    ]
    return {"n_rows": len(frame), "columns": columns}


def _column(name: str, values: pd.Series) -> dict[str, Any]:
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = [None if pd.isna(each) else int(each) if float(each).is_integer() else float(each) for each in values]
        return {"kind": kind_of(name, whole=pd.api.types.is_integer_dtype(values)), "values": numbers}
    texts = [None if pd.isna(value) else str(value) for value in values]
    distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return {"of": list(distinct), "at": [distinct[text] for text in texts]}


def attention_data(figures: Iterable[pd.DataFrame]) -> dict[str, Any]:
    """What is needed to draw where heads look: colours from 0 to 1 as CSS, and each frame's ``attention_figure``."""
    shades = [paint(step / (_SHADES - 1), "attention").style for step in range(_SHADES)]
    return {"shades": shades, "figures": [attention_figure(maps) for maps in figures]}


def attention_figure(maps: pd.DataFrame) -> dict[str, Any] | None:
    """What is needed to draw some heads, best first, on the same sentences; None of no rows.

    The rows are of a head (``rank``, ``layer``, ``head``, ``verdict``), a sentence (``example``), a ``query_pos`` and a
    ``key_pos``, with ``weight``, ``token`` and what it is. Weights are by sentence, query and key.
    """
    if maps.empty:
        return None
    maps = maps.sort_values(["rank", "example", "query_pos", "key_pos"])
    by_head = [[rows for _, rows in own.groupby("example")] for _, own in maps.groupby("rank")]
    heads = []
    for sentences in by_head:
        first = sentences[0].iloc[0]
        name, weights = f"{first['layer']}.{first['head']}", list(map(_weights, sentences))
        heads.append({"name": name, "verdict": str(first.get("verdict", "")), "weights": weights})
    return {"sentences": list(map(_sentence, by_head[0])), "heads": heads}


def _sentence(rows: pd.DataFrame) -> dict[str, Any]:
    keys = rows[rows["query_pos"] == rows["query_pos"].max()]
    distractors = keys["is_distractor"].astype(bool) if "is_distractor" in keys else keys["is_related"] & False
    return {
        "caption": str(keys["caption"].iloc[0]) if "caption" in keys else "",
        "tokens": [visible(token) for token in keys["token"]],
        "query": int(rows["query_pos"].max()),
        "related": keys.loc[keys["is_related"], "key_pos"].tolist(),
        "distractors": keys.loc[distractors, "key_pos"].tolist(),
    }


def _weights(rows: pd.DataFrame) -> list[list[float] | None]:
    """By query, the weights of its keys; None where they were not kept."""
    kept = {query: own["weight"].astype(float).round(3).tolist() for query, own in rows.groupby("query_pos")}
    return [kept.get(query) for query in range(rows["query_pos"].max() + 1)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {isolated(str(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return isolated(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_SCRIPTS = ("data", "keys", "boxes", "buttons", "tables", "attention", "heads")
"""In the order in which they run."""


def render(template: str, **shown: Any) -> str:
    """One self-contained HTML document of one of ``templates``, given what it calls by these names."""
    environment = Environment(
        loader=PackageLoader("interp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    script = "\n".join(('"use strict";', *(_own(f"scripts/{name}.js") for name in _SCRIPTS)))
    environment.globals.update(styles=_own("page.css"), script=script, hash_of=_hash_of, citation=citation())
    environment.filters["json"] = as_json
    return environment.get_template(template).render(**shown)


def as_page(page: Page, command: str | None = None) -> str:
    """The page of a result as one HTML document; `command` is the command line that asked for it."""
    groups: list[tuple[str, str, list[Section]]] = []
    taken = {"method", "command", "citation", *page.data}
    for section in page.sections:
        if isinstance(section, Picture) and not section.inline:
            continue
        if section.heading or not groups:
            groups.append((_id(section.heading, taken), section.heading, []))
        groups[-1][2].append(section)
    return render("sections.html", page=page, groups=groups, command=command, provenance=flatten(page.provenance))


def _id(heading: str, taken: set[str]) -> str:
    """An id for a heading, which no other element has; it is added to those that are taken."""
    slug = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") or "section"
    numbered = (f"{slug}-{n}" for n in itertools.count(2))
    found = next(each for each in itertools.chain([slug], numbered) if each not in taken)
    taken.add(found)
    return found


def _shown(value: Any) -> Any:
    """What a template shows of a value; what is markup already is made of such."""
    return isolated(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


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


def model_with_hash(known: Mapping[str, str]) -> dict[str, str]:
    """The model's name with the beginning of its hash, as the one entry ``model``; nothing where either is unknown."""
    if not {"model", "model_hash"} <= known.keys():
        return {}
    return {"model": f"{known['model']} (hash {known['model_hash'][:12]})"}


def facts(provenance: Mapping[str, Any], *pairs: str | tuple[str, str]) -> list[tuple[str, str]]:
    """What was asked, as the few facts that a reader looks for: their names, and what they are as far as that is known.

    Of a name alone it is what the provenance has; the rest of that stands under `How it was made`.
    """
    known = dict(flatten(provenance))
    known |= model_with_hash(known)
    named = [(each.capitalize(), known.get(each, "")) if isinstance(each, str) else each for each in pairs]
    return [(name, text) for name, text in named if text]
