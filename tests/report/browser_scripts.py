"""What the browser is asked about a page, in JavaScript, and what is asked often."""

BEYOND = """() => [...document.querySelectorAll('body *')]
    .filter(each => !each.closest('.scroll') && each.getBoundingClientRect().right > innerWidth + 1)
    .map(each => each.outerHTML.slice(0, 80))"""
"""Elements that stick out of the page."""

CONTRASTS = """() => {
  const luminance = rgb => rgb.match(/[\\d.]+/g).slice(0, 3).map(Number).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const background = each => {
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return colour;
    }
  };
  const texts = 'p, li, dt, dd, td, th, caption, summary, a, h1, h2, h3, h4, .token, .weight, .symbol';
  return [...document.querySelectorAll(texts)].map(each => {
    const [low, high] = [getComputedStyle(each).color, background(each)].map(luminance).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  });
}"""
"""The contrast ratio of every text with what is behind it."""


def unfold(page, to=True):
    """Open all that is folded away, or fold it again."""
    page.evaluate("to => document.querySelectorAll('details').forEach(each => { each.open = to; })", to)


def assert_fits(page, width):
    """The page does not scroll sideways, and nothing sticks out of it."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BEYOND) == []
