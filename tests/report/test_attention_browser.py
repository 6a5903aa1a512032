"""Where heads look, as a browser draws it: arcs and shaded words, by sentence, head and word."""

from dataclasses import replace

import pytest

from interp.report.heads import page_of
from interp.report.html import as_page


@pytest.fixture(scope="module")
def report(make_report):
    return make_report()


@pytest.fixture(scope="module")
def source(report):
    return as_page(page_of(report))


@pytest.fixture(scope="module")
def page(keep_html, source):
    return keep_html(source)


@pytest.fixture
def figure(page):
    """As it is shown first: the pointer is elsewhere, and a chosen sentence is asked anew."""
    figure = page.locator("[data-attention]").first
    figure.locator("h4").first.hover()
    for number in (1, 0):
        figure.locator("select").select_option(index=number)
    return figure


def weights(report, rank, example, query):
    maps = report.attention_maps.query("task == 'agreement' and rank == @rank and example == @example")
    return maps[maps["query_pos"] == query].sort_values("key_pos")["weight"].tolist()


def shown(panel):
    return [float(text) for text in panel.locator(".weight").all_inner_texts() if text]


def asked(panel):
    return panel.locator("[aria-pressed=true] .token").inner_text()


def test_the_query_that_is_scored_is_asked_first(figure, report):
    panels = figure.locator(".panel")
    assert panels.locator("h4").all_inner_texts() == ["Head 1.3 tracks", "Head 0.2 tracks"]
    for rank in (0, 1):
        assert shown(panels.nth(rank)) == pytest.approx(weights(report, rank, 0, 7), abs=0.006)
        assert asked(panels.nth(rank)) == "are"


def test_another_word_is_asked_in_every_head_while_one_points_at_it(figure, report):
    panels = figure.locator(".panel")
    panels.nth(0).locator(".word").nth(5).hover()
    for rank in (0, 1):
        assert asked(panels.nth(rank)) == "the"
        assert shown(panels.nth(rank)) == pytest.approx(weights(report, rank, 0, 5), abs=0.006)
    figure.locator("h4").first.hover()
    assert asked(panels.nth(0)) == "are"


def test_a_click_keeps_the_word(figure):
    panel = figure.locator(".panel").first
    panel.locator(".word").nth(4).click()
    figure.locator("h4").first.hover()
    figure.locator("select").focus()
    assert asked(panel) == "to"


def test_arrow_keys_go_from_word_to_word(figure):
    panel = figure.locator(".panel").first
    panel.locator(".word[tabindex='0']").focus()
    for _ in range(3):
        figure.page.keyboard.press("ArrowLeft")
    assert asked(panel) == "to"
    figure.page.keyboard.press("Home")
    assert asked(panel) == "<|endoftext|>"


def test_another_sentence_and_other_heads_can_be_chosen(open_html, source, report):
    figure = open_html(source).locator("[data-attention]").first
    figure.locator("select").select_option(index=1)
    assert shown(figure.locator(".panel").first) == pytest.approx(weights(report, 0, 1, 7), abs=0.006)
    figure.get_by_label("0.2", exact=True).uncheck()
    assert figure.locator(".panel h4").all_inner_texts() == ["Head 1.3 tracks"]
    figure.get_by_label("1.3", exact=True).uncheck()
    assert "Choose a head" in figure.inner_text()
    figure.get_by_label("0.2", exact=True).check()
    assert shown(figure.locator(".panel")) == pytest.approx(weights(report, 1, 1, 7), abs=0.006)


def test_an_arc_goes_from_the_asked_word_to_each_that_it_looks_at_and_is_as_wide_as_the_weight(figure, report):
    expected = weights(report, 0, 0, 7)
    paths = figure.locator(".panel").first.locator("path")
    drawn = paths.evaluate_all(
        "all => all.map(each => [each.getAttribute('d'), Number(each.getAttribute('stroke-width'))])"
    )
    middles = (
        figure.locator(".panel")
        .first.locator(".word")
        .evaluate_all("all => all.map(each => each.offsetLeft + each.offsetWidth / 2)")
    )
    looked_at = [place for place, weight in enumerate(expected[:7]) if round(weight, 3) >= 0.02]
    assert len(drawn) == len(looked_at) > 0
    for (path, width), place in zip(drawn, looked_at, strict=True):
        start, end = float(path.split()[0][1:]), float(path.split()[-2])
        assert (start, end) == pytest.approx((middles[7], middles[place]))
        assert width == pytest.approx(1 + 7 * expected[place], abs=0.01)


def test_the_related_word_and_the_distractor_are_marked(figure):
    panel = figure.locator(".panel").first
    assert panel.locator(".related").all_inner_texts() == ["<script>alert(1)</script>"]
    assert panel.locator(".distractor").all_inner_texts() == ["Zoë"]


def test_where_only_the_scored_row_was_kept_other_words_are_not_asked(open_html, report):
    maps = report.attention_maps[report.attention_maps["query_pos"] == 7]
    page = open_html(as_page(page_of(replace(report, attention_maps=maps))))
    panel = page.locator("[data-attention] .panel").first
    panel.locator(".word").nth(5).click()
    assert asked(panel) == "are"
    assert shown(panel) == pytest.approx(weights(report, 0, 0, 7), abs=0.006)


def test_it_can_be_read_without_a_script(browser, source, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(source, encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    words = page.locator("[data-attention]").first.locator(".sentence").first
    assert "Zoë" in words.inner_text()
    assert page.locator(".tools button").first.is_hidden()
    context.close()
