"""What axe-core finds wrong with a page for whoever reads it with a keyboard or a screen reader."""

from importlib.resources import files

SCRIPT = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_FOUND = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(
    ({ impact, id, help, nodes }) => `${impact}: ${id}, ${help}: ${nodes.map(node => node.html).slice(0, 3).join(" ")}`
)"""


def violations(page) -> list[str]:
    """Each rule that the page breaks, with how much that weighs and where."""
    page.evaluate(SCRIPT)
    return page.evaluate(_FOUND)
