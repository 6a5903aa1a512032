"""How is a report cited? The entry of this program for a bibliography; ``CITATION.cff`` says the same."""

from importlib.metadata import version

TITLE = "interp: which attention heads track what"
AUTHORS = "The interp authors"


def citation() -> str:
    """The version that made the report, as an entry of BibTeX."""
    return (
        f"@software{{interp,\n  title = {{{TITLE}}},\n  author = {{{{{AUTHORS}}}}},\n"
        f"  version = {{{version('interp')}}},\n}}"
    )
