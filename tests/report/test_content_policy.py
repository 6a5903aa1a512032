"""What may a page do? Its own script and style sheet, by their hashes, and pictures that stand in it; nothing else."""

import base64
import hashlib
import re

import pytest
from hostile_pages import PAGES
from html_page import Page

POLICY = {
    "default-src": ["'none'"],
    "script-src": ["{script}"],
    "style-src-elem": ["{style}"],
    "style-src-attr": ["'unsafe-inline'"],
    "img-src": ["data:"],
    "base-uri": ["'none'"],
    "form-action": ["'none'"],
}


@pytest.fixture(scope="module", params=list(PAGES))
def source(request):
    return PAGES[request.param]()


def hash_of(source, tag):
    (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", source, flags=re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()}'"


def test_every_page_has_a_policy_that_forbids_all_but_what_it_brings(source):
    (policy,) = [
        meta["content"] for meta in Page(source).all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    directives = dict(each.split(maxsplit=1) for each in policy.split(";"))
    hashes = {"script": hash_of(source, "script"), "style": hash_of(source, "style")}
    assert {name: value.split() for name, value in directives.items()} == {
        name: [value.format(**hashes) for value in values] for name, values in POLICY.items()
    }


def test_the_policy_stands_before_all_that_it_is_for(source):
    before = source[: source.index("Content-Security-Policy")]
    assert not re.search(r"<(script|style|link|img|title|body)", before)
