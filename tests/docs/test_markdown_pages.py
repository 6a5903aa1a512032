"""What counts as the same output, and what is taken from a page."""

import pytest
from markdown_pages import agrees, blocks, commands, parse_command, prints

PAGE = """\
Text.

```python
print(1 / 3)
```

```text
0.25
```

*Not run by the tests: it needs a GPU.*

```python
print(torch.cuda.device_count())
```

```sh
make report
interp tasks --json > tasks.json   # all of them
interp ablate --task ioi \\
  --out ablation
```
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a  1.25\n", "a 1.25", True),
        ("a 1.25", "a 1.26", True),
        ("a 1.25", "a 1.27", False),
        ("a 1.25", "a 1.250", False),
        ("a 1.25...", "a 1.2509", True),
        ("a 1.25...", "a 1.2709", False),
        ("a -1.25", "a 1.25", False),
        ("60 units", "61 units", False),
        ("60 units", "60 heads", False),
        ("60 units", "60 units more", False),
        ("took ... seconds", "took 3.1 seconds", True),
        ("took ... seconds", "took 3.1 minutes", False),
        ("2.1e-07", "2.2e-07", True),
        ("2.1e-07", "9.5e-07", True),
        ("0e+00", "3e-07", False),
        ("3e-07", "0e+00", True),
        ("2.1e-07", "2.1e-06", False),
        ("2.1e-05", "3.1e-05", False),
        ("head 2.2: (tracks)", "head 2.2: (tracks)", True),
    ],
)
def test_output_agrees_up_to_space_and_the_last_digit(expected, printed, same):
    assert agrees(expected, printed) is same


def test_blocks_come_with_their_output_and_why_they_are_not_run(page):
    first, second, shell = blocks(page, "python", "sh")
    assert (first.line, first.prints, first.not_run) == (4, "0.25\n", None)
    assert (second.prints, second.not_run) == (None, "it needs a GPU")
    assert list(commands(shell)) == [["tasks", "--json"], ["ablate", "--task", "ioi", "--out", "ablation"]]


def test_a_block_that_prints_something_else_fails_by_its_line(page):
    block = next(blocks(page, "python"))
    with pytest.raises(AssertionError, match=r"page\.md, line 4: prints\n0\.3333333333333333"):
        prints(block, page, {})


@pytest.mark.parametrize(
    "arguments", [["ablate", "--task", "ioi", "--nonsense"], ["ablate"], ["runs", "nonsense"], ["heads", "--n", "many"]]
)
def test_a_command_that_there_is_not_is_refused(arguments):
    with pytest.raises(Exception, match=r"(?i)no such|missing|valid integer"):
        parse_command(arguments)
