"""Does a manifest describe a store? Its own hash says that it is as it was written, not that we have written it."""

import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

from interp.errors import InputError
from interp.model.devices import DTYPES
from interp.model.sites import Site
from interp.residual.collecting import Pooling

_TOP = {
    **{"format": str, "version": int, "rows": int, "request": dict, "shards": list},
    **{"index": (str, NoneType), "sha256": str},
}
_REQUEST = {
    **dict.fromkeys(("model_hash", "model_dtype", "data_hash", "pooling", "dtype"), str),
    **dict.fromkeys(("config_hash", "tokenizer_hash"), (str, NoneType)),
    "sites": list,
    "shard_rows": int,
    "computed": dict,
}
_SITE = {"name": str, "layer": (int, NoneType), "shape": list}
_SHARD = {"file": str, "rows": int, "read": str, "sha256": str}
_FILE = re.compile(r"shard-\d{5,9}\.safetensors")
"""No path: what lies outside of the store is not read."""


def is_described(content: Mapping[str, Any]) -> bool:
    """Whether what a ``manifest.json`` holds has the fields of one, each of its kind, and numbers that fit together."""
    if not _has(content, _TOP) or not _has(content["request"], _REQUEST):
        return False
    request, shards = content["request"], content["shards"]
    if request["pooling"] not in get_args(Pooling) or request["dtype"] not in DTYPES:
        return False
    if not all(_has(each, _SITE) for each in request["sites"]) or not all(_has(each, _SHARD) for each in shards):
        return False
    if not all(_is_site(each) for each in request["sites"]):
        return False
    sizes = [size for each in request["sites"] for size in each["shape"]]
    rows, most = [each["rows"] for each in shards], request["shard_rows"]
    if not all(isinstance(each, str | int) for each in request["computed"].values()):
        return False
    counts = all(type(each) is int and each > 0 for each in (*sizes, *rows, most))
    return counts and sum(rows) == content["rows"] and max(rows, default=0) <= most and _named(shards)


def _has(value: Any, kinds: Mapping[str, Any]) -> bool:
    """Whether a value is an object with these fields and no other."""
    return (
        isinstance(value, dict)
        and value.keys() == kinds.keys()
        and all(isinstance(value[name], kind) and not isinstance(value[name], bool) for name, kind in kinds.items())
    )


def _is_site(described: Mapping[str, Any]) -> bool:
    try:
        return bool(Site(described["name"], described["layer"]))
    except InputError:
        return False


def _named(shards: list[Any]) -> bool:
    return all(_FILE.fullmatch(each["file"]) for each in shards)
