"""Pages in Markdown, and the code in them: run as a reader runs it, and compared with what the page says it prints."""

import io
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import takewhile

import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from interp.cli import app

FENCE = re.compile(r"^```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\s*^```text[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"\*Not run by the tests: ([^*]+)\.\*\s*\Z")
PIECE = re.compile(r"\.\.\.|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\s+|[^\s\d.+-]+|.", re.DOTALL)
NUMBER = r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
ROUNDING = 1e-6


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language: As its fence names it.
        code: What is in it.
        line: The line of the page on which it begins.
        prints: The block ``text`` right behind it; None where there is none.
        not_run: Why the tests do not run it, as the page says right before it; None where they do.
    """

    language: str
    code: str
    line: int
    prints: str | None
    not_run: str | None


def anchors(text):
    """What links to a page's headings say behind the #."""
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in re.findall(r"^#+ (.+)$", text, re.M)}


def blocks(page, *languages):
    """The code of a page, in its order."""
    text = page.read_text()
    for fence in FENCE.finditer(text):
        if fence["language"] in languages:
            output = OUTPUT.match(text, fence.end())
            reason = NOT_RUN.search(text, 0, fence.start())
            line = text.count("\n", 0, fence.start("code")) + 1
            yield Block(
                fence["language"],
                fence["code"],
                line,
                output["text"] if output else None,
                reason[1] if reason else None,
            )


def run_python(block, page, namespace):
    """What a block prints; an error names the page's own line."""
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def commands(block):
    """The arguments of each ``interp ...`` of a block of shell."""
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["interp"]:
            yield list(takewhile(lambda word: word not in (">", "|", "&&"), words[1:]))


def parse_command(arguments):
    """Let the command line read its arguments, and run nothing; a wrong one raises."""
    command = typer.main.get_command(app)
    context = command.make_context("interp", list(arguments))
    while isinstance(context.command, TyperGroup):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)


def run_command(arguments):
    """What a command prints on standard output."""
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def prints(block, page, namespace):
    """Run a block, and compare what it prints with what its page says; shell is run where its page says something."""
    if block.language == "python":
        printed = run_python(block, page, namespace)
    else:
        printed = "".join(map(run_command, commands(block))) if block.prints is not None else ""
    if block.prints is not None:
        assert agrees(block.prints, printed), f"{page.name}, line {block.line}: prints\n{printed}\nnot\n{block.prints}"


def agrees(expected, printed):
    """Whether `printed` is what a page says.

    ``...`` stands for anything, any space for any other, and a number may differ by one in its last digit: processors
    round differently. It has as many digits as on the page, unless ``...`` stands for the rest of them. Where the page
    has ``2e-07``, any below ``ROUNDING`` will do, as rounding leaves of a difference. A page's 0 is exact.
    """
    pattern, numbers = [], []
    pieces = PIECE.findall(expected.strip())
    for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
        if re.fullmatch(NUMBER, piece):
            numbers.append((piece, following == "..."))
            pattern.append(NUMBER)
        else:
            pattern.append({"...": ".*?"}.get(piece) or (r"\s+" if piece.isspace() else re.escape(piece)))
    found = re.fullmatch("".join(pattern), printed.strip(), re.DOTALL)
    return found is not None and all(map(_as_near_as_written, numbers, found.groups()))


def _as_near_as_written(number, got):
    expected, cut = number
    mantissa, _, exponent = expected.partition("e")
    digits = _decimals(mantissa)
    if exponent and 0 < abs(float(expected)) < ROUNDING:
        return abs(float(got)) < ROUNDING
    if "." not in mantissa:
        return expected == got
    near = abs(float(expected) - float(got)) <= 1.01 * 10.0 ** (int(exponent or 0) - digits)
    return near and (cut or digits == _decimals(got.partition("e")[0]))


def _decimals(mantissa):
    return len(mantissa.partition(".")[2])
