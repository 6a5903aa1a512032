"""Names and tokens that would run, load, hide or turn round something, and what a reader should see of them."""

_UNCHANGED = (
    "<script>window.ran = 1</script>",
    "</script><script>window.ran = 1</script>",
    "</style><style>main { display: none }</style>",
    "--><script>window.ran = 1</script><!--",
    "<!--",
    '"><img src=x onerror="window.ran = 1">',
    "' autofocus onfocus='window.ran = 1' x='",
    "` onmouseover=window.ran=1 `",
    "<svg onload=window.ran=1>",
    "javascript:window.ran=1",
    "{{ 7*7 }}{% for _ in x %}",
    "${window.ran = 1}",
    "red;background:url(https://evil.example/a.png)}*{color:red",
    '<base href="https://evil.example/">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    "<iframe src=https://evil.example/></iframe><link rel=stylesheet href=https://evil.example/a.css>",
    "</td></table></main></body></html>",
    "&lt;b&gt; &#x3C;i&#x3E; &amp;amp;",
    "..%00/%2e%2e/x",
    "../../../x",
    "$\\frac{1}{0$ \\x1b_^",
    "[bold red]markup[/bold red] [/]",
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER} é",
    "\u05e9\u05dc\u05d5\u05dd 12 \u0639\u0627\u0644\u0645",
    "x" * 10_000,
)
_SHOWN = {
    "z" + 40 * "\N{COMBINING ACUTE ACCENT}": "z" + 4 * "\N{COMBINING ACUTE ACCENT}" + 36 * "\\u0301",
    "\N{RIGHT-TO-LEFT OVERRIDE}drow\N{LEFT-TO-RIGHT ISOLATE}": "\\u202edrow\\u2066",
    "\N{RIGHT-TO-LEFT MARK}\N{ARABIC LETTER MARK}mark": "\\u200f\\u061cmark",
    "a\N{LINE SEPARATOR}b\N{PARAGRAPH SEPARATOR}c": "a\\u2028b\\u2029c",
    "ze\N{ZERO WIDTH SPACE}ro\N{ZERO WIDTH NO-BREAK SPACE}": "ze\\u200bro\\ufeff",
    "\x00\x1b[2J\x07\x9b31m\x7f": "\\x00\\x1b[2J\\x07\\x9b31m\\x7f",
    "half \ud83d": "half \\ud83d",
    "\U000e0041tag": "\\U000e0041tag",
}
HOSTILE = {text: text for text in _UNCHANGED} | _SHOWN
"""By the text, what is seen of it."""
TEXTS = tuple(HOSTILE)
SAVED = tuple(text for text in TEXTS if "\ud83d" not in text)
"""Those that a table in a file can hold: in Parquet there is no half of a pair."""
ISOLATES = {0x2068: None, 0x2069: None}
