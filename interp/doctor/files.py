"""Is all here that came with interp, as it was packaged? Models by their hashes, the rest by the wheel's record."""

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from interp.doctor.finding import Finding
from interp.doctor.requirements import NAME

PACKAGE = Path(__file__).parent.parent
SUMS = "model/zoo/SHA256SUMS"
PARTS = {
    "recipes": "recipes/*.toml",
    "published numbers": "recipes/*.npy",
    "the grammar's words": "tasks/grammar/words/*.tsv",
    "word senses": "tasks/word_senses/*.toml",
    "templates of pages": "report/templates/*.html",
    "scripts of pages": "report/templates/scripts/*.js",
    "styles of pages": "report/templates/*.css",
}
"""What is no module, by what it is."""
AGAIN = "install interp again; in a clone: git checkout -- interp"
_MOST_NAMED = 3


def models(package: Path = PACKAGE) -> Iterator[Finding]:
    """Each embedded model, byte by byte."""
    sums = package / SUMS
    files = defaultdict(list)
    for line in sums.read_text(encoding="utf-8").splitlines():
        expected, name = line.split(maxsplit=1)
        files[name.partition("/")[0]].append((sums.parent / name, expected))
    for model, expected_files in files.items():
        wrong = [f"{path.name} is {fault}" for path, expected in expected_files if (fault := _fault(path, expected))]
        if wrong:
            yield Finding(f"model {model}", "wrong", "; ".join(wrong), AGAIN)
        else:
            yield Finding(f"model {model}", "well", f"{len(expected_files)} files, each as its hash says")


def data(package: Path = PACKAGE) -> Iterator[Finding]:
    """Each kind of file that is no module."""
    for what, pattern in PARTS.items():
        found = list(package.glob(pattern))
        if found:
            yield Finding(what, "well", f"{len(found)} in {Path(pattern).parent}")
        else:
            yield Finding(what, "wrong", f"no {pattern} in {package}", AGAIN)


def record(package: Path = PACKAGE) -> Iterator[Finding]:
    """Every file of an installed wheel; a clone, whose files change, has no record."""
    files = [each for each in metadata.files(NAME) or () if each.hash is not None and each.parts[0] == package.name]
    if not files or Path(str(files[0].locate())).resolve().parents[len(files[0].parts) - 2] != package.resolve():
        yield Finding("files", "note", f"a clone or a source tree, {package}: no record says how they were packaged")
        return
    wrong = [str(each) for each in files if each.hash and _fault(Path(str(each.locate())), _hex(each.hash.value))]
    if wrong:
        named = ", ".join(wrong[:_MOST_NAMED]) + (", ..." if len(wrong) > _MOST_NAMED else "")
        yield Finding("files", "wrong", f"{len(wrong)} of {len(files)} are not as they were packaged: {named}", AGAIN)
    else:
        yield Finding("files", "well", f"{len(files)}, each as it was packaged")


def _hex(value: str) -> str:
    """A hash as hexadecimal digits, of the letters that a wheel's record has."""
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()


def _fault(path: Path, expected: str) -> str:
    """``missing`` or ``damaged``; empty where its bytes have this SHA-256."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return "missing" if isinstance(error, FileNotFoundError) else f"not readable ({error.strerror})"
    return "" if hashlib.sha256(content).hexdigest() == expected else "damaged"
