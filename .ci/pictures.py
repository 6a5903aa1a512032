"""Take README's pictures: a report's page, and a head's card on it, as a browser shows them.

python .ci/pictures.py out/report/report.html docs
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SIZE = {"width": 1080, "height": 1180}


def main(report: str, folder: str) -> None:
    """Write ``page.png`` and ``card.png``."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(Path(report).resolve().as_uri())
        take(page, Path(folder) / "page.png")
        page.locator("td.tracks").first.click()
        take(page, Path(folder) / "card.png")
        browser.close()


def take(page: Page, file: Path) -> None:
    """The window as it is, once it has come to rest."""
    page.wait_for_timeout(300)
    page.screenshot(path=file)


if __name__ == "__main__":
    main(*sys.argv[1:])
