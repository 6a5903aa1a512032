"""What can have happened to a file: each damage takes its bytes and random numbers, and gives other bytes."""

import json
import math
import struct

LONG = 100_000
DEEP = 100_000


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


ODD_VALUES = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        7,
        10**7,
        2**31,
        10**12,
        2**63,
        10**30,
        10**400,
        -(10**400),
        0.0,
        1.5,
        -1e308,
        1e308,
    ),
    *(math.nan, math.inf, -math.inf, "", " ", "a", "1", "\0", "\ud800", "💥", "a" * LONG, [], [[]], [None], [1, "a"]),
    *({}, {"a": 1}, {"type": "linear"}, nested(100), nested(900)),
)
ODD_FIELDS = (
    *("", " ", "_", "-1", "0", "1", "7", "99999999999999999999", "9" * 5_000, "1e400", "nan", "²", "٣", "½"),
    *("a" * LONG, "\0", "\r", "\x1b[31m", "\u2028", "\x85", "\ufeff", "\ud800", "💥", "TRUE", "None", "../..", "#"),
    *("(", ")", "[", "]", "()", "[]", "[ ]", "1-", "-1-2", "2-1", "1-9", "2.1", "1/0", "a=b", "a|b", "=", "|"),
    *("Entity=", "Entity=(", "Entity=1)", "Entity=((1)", "Entity=(1[1/2]-a)", "Entity=(1[0/0])", "(" * 5_000),
)


def _cut(rng, content):
    return rng.randrange(len(content) + 1)


def empty(content, rng):
    return b""


def truncated(content, rng):
    return content[: _cut(rng, content)]


def headless(content, rng):
    return content[_cut(rng, content) :]


def flipped(content, rng):
    flipped = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if flipped:
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def noise(content, rng):
    return rng.randbytes(rng.choice((1, 8, 300, 5_000)))


def overwritten(content, rng):
    at = _cut(rng, content)
    new = rng.choice((rng.randbytes(4), b"\0" * 4, b"\xff" * 8, struct.pack("<q", 2**62), b"\xff\xff\xff\x7f"))
    return content[:at] + new + content[at + len(new) :]


def inserted(content, rng):
    at = _cut(rng, content)
    new = (b"\0", b"\xff", b"\xed\xa0\x80", b"\r", b"\n", b"\t", b" ", b"\xef\xbb\xbf", b'"', b"}", b"[" * DEEP)
    return content[:at] + rng.choice(new) + content[at:]


def appended(content, rng):
    return content + rng.choice((content, b"\0" * 8, b"\n", b"a" * LONG, rng.randbytes(16)))


def deep(content, rng):
    left, right = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")))
    return left * DEEP + rng.choice((b"", b"1" + right * DEEP))


BYTES = (empty, truncated, truncated, headless, flipped, flipped, flipped, noise, overwritten, overwritten, appended)


def _lines(change):
    def changed(content, rng):
        lines = content.splitlines(keepends=True)
        if lines:
            change(lines, rng.randrange(len(lines)), rng)
        return b"".join(lines)

    changed.__name__ = change.__name__
    return changed


@_lines
def line_deleted(lines, at, rng):
    del lines[at]


@_lines
def line_doubled(lines, at, rng):
    lines.insert(at, lines[at])


@_lines
def lines_swapped(lines, at, rng):
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


@_lines
def lines_joined(lines, at, rng):
    lines[at] = lines[at].rstrip(b"\n")


@_lines
def field_changed(lines, at, rng):
    """One of the fields between tabs, or one of the words."""
    between = b"\t" if b"\t" in lines[at] else b" "
    fields = lines[at].rstrip(b"\n").split(between)
    fields[rng.randrange(len(fields))] = rng.choice(ODD_FIELDS).encode(errors="surrogatepass")
    lines[at] = between.join(fields) + b"\n"


@_lines
def field_deleted(lines, at, rng):
    fields = lines[at].rstrip(b"\n").split(b"\t")
    del fields[rng.randrange(len(fields))]
    lines[at] = b"\t".join(fields) + b"\n"


@_lines
def fields_swapped(lines, at, rng):
    fields = lines[at].rstrip(b"\n").split(b"\t")
    rng.shuffle(fields)
    lines[at] = b"\t".join(fields) + b"\n"


def encoded_otherwise(content, rng):
    return content.decode(errors="replace").encode(
        rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7")), errors="replace"
    )


LINES = (line_deleted, line_doubled, lines_swapped, lines_joined, encoded_otherwise, inserted, inserted, deep)
FIELDS = (field_changed, field_changed, field_changed, field_changed, field_deleted, fields_swapped)


def json_changed(content, rng):
    """One value of a JSON object, anywhere in it, another one; or missing, or under another name."""
    return json.dumps(changed(json.loads(content), rng)).encode()


@_lines
def json_line_changed(lines, at, rng):
    lines[at] = json_changed(lines[at], rng) + b"\n"


def changed(value, rng):
    """`value` with one thing in it changed; `value` itself, once in a while."""
    places = list(_places(value))
    if not places or rng.random() < 0.05:
        return rng.choice(ODD_VALUES)
    holder, key = rng.choice(places)
    what = rng.random()
    if what < 0.15:
        del holder[key]
    elif what < 0.25 and isinstance(holder, dict):
        holder[rng.choice(("", "nonsense", key.upper(), "a" * LONG, "\ud800", "__class__"))] = holder.pop(key)
    else:
        holder[key] = rng.choice(ODD_VALUES)
    return value


def _places(value):
    """Every container in a JSON value, with each of its keys."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield value, key
        yield from _places(each)


def safetensors_header(content, rng):
    """The header with another value in it, or with another length than it has."""
    (length,) = struct.unpack_from("<Q", content)
    header, data = content[8 : 8 + length], content[8 + length :]
    if rng.random() < 0.2:
        return (
            struct.pack("<Q", rng.choice((0, 1, length - 1, length + 1, 2**31, 2**40, 2**63, 2**64 - 1)))
            + header
            + data
        )
    fields = json.loads(header)
    if rng.random() < 0.5:
        each = fields[rng.choice([name for name in fields if name != "__metadata__"])]
        part = rng.choice(("dtype", "shape", "data_offsets"))
        each[part] = rng.choice(_TENSOR_PARTS[part])
        header = json.dumps(fields).encode()
    else:
        header = json.dumps(changed(fields, rng)).encode()
    return struct.pack("<Q", len(header)) + header + data


_TENSOR_PARTS = {
    "dtype": ("F16", "BF16", "F64", "I64", "U8", "U16", "U64", "BOOL", "F8_E4M3", "F8_E5M2", "C64", "F4", "E8M0", "X"),
    "shape": ([], [0], [1], [10**12], [2**32, 2**32], [-1], [1] * 100, [0, 10**18]),
    "data_offsets": ([0, 0], [0, 4], [4, 0], [0, 2**62], [-4, 0], [0], []),
}
