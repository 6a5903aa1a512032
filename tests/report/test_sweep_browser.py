"""The page of a sweep as a browser shows it."""

from wide_pages import PAGES


def test_cells_sort_by_their_numbers(open_html):
    page = open_html(PAGES["sweep"]())
    heading = page.locator("table.sortable thead th", has_text="effect (logits)")
    heading.get_by_role("button").click()
    column = heading.evaluate("each => each.cellIndex")
    values = page.locator(f"table.sortable tbody td:nth-child({column + 1})").all_inner_texts()
    numbers = [float(value.split(" ")[0]) for value in values if value != "—"]
    assert len(numbers) == 4 * 14 - 2
    assert numbers == sorted(numbers)
