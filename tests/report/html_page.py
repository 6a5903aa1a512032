"""A page as its elements."""

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, and whether every one of them is closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def scripts(self) -> list[dict[str, str | None]]:
        """The elements that a browser runs; of a type of its own is what a script reads."""
        return [attributes for attributes in self.all("script") if "type" not in attributes]


def sound(source):
    """The page: closed elements, one script, nothing that is asked for, links that arrive, and tables with labels."""
    page = Page(source)
    assert page.open == []
    assert len(page.scripts) == 1
    assert not re.search(r"url\(|@import|https?://", source)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(names)
    assert source.count("<caption>") == len(page.all("table"))
    assert all(heading.get("scope") in ("row", "col") for heading in page.all("th"))
    return page
