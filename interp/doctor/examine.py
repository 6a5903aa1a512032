"""Examine this installation: one look for each part, whose failures are findings, so that the others go on.

1. This interp, Python and every dependency, against the versions that interp's own metadata ask for.
2. The files that came with interp: models by their hashes, data by kind, everything by the wheel's record.
3. The machine: processors, what torch can compute on, a place for runs.
4. A small run: ablating one head of the embedded model gives the numbers of one hooked forward pass and, within a
   tolerance (processors differ in the last bits), those of the machine that this version was made on.

Each look imports what it looks at.
"""

import base64
import hashlib
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal

import interp
from interp.errors import plain

NAME = "interp"
OPTIONAL = {"ray": "for several machines: --executor ray"}
"""Extras that are of use to users of interp, and what for."""
PACKAGE = Path(__file__).parent.parent
SUMS = "model/zoo/SHA256SUMS"
PARTS = {
    "the grammar's words": "tasks/grammar/words/*.tsv",
    "word senses": "tasks/word_senses/*.toml",
    "templates of pages": "report/templates/*.html",
    "scripts of pages": "report/templates/scripts/*.js",
    "styles of pages": "report/templates/*.css",
}
"""Files of the package that are no modules, by kind."""
AGAIN = "install interp again; in a clone: git checkout -- interp"
ELSEWHERE = "name another folder with --runs DIR, or with INTERP_RUNS"
LITTLE_ROOM = 10**9
"""Bytes: a head sweep of a large model keeps more."""
TASK, UNITS, HEAD = "agreement", 20, (2, 2)
BASE, EFFECT = 5.85906, -6.02483
"""Means over the examples, in units of the logit difference: without ablation, and the change by zero ablation."""
TOLERANCE = 1e-3
_SYMBOLS = {"well": "ok", "note": "note", "wrong": "WRONG"}


@dataclass(frozen=True)
class Finding:
    """What a look at `what` found: all `well`, a `note` that is no fault, or something `wrong` and what to do."""

    what: str
    state: Literal["well", "note", "wrong"]
    says: str
    todo: str = ""


@dataclass(frozen=True)
class Look:
    """A look that cannot fail: an exception is a finding, with `todo` as what to do about it."""

    what: str
    at: Callable[[], Iterable[Finding]]
    todo: str

    def __call__(self) -> list[Finding]:
        """All that was found."""
        try:
            return list(self.at())
        except Exception as error:  # whatever is broken in other libraries, in their own words
            says = plain(f"{type(error).__name__}: {' '.join(str(error).split())}")
            return [Finding(self.what, "wrong", says, self.todo)]


def _checked(what: str, says: str, fault: str, todo: str) -> Finding:
    """What it `says` if there is no `fault`, else that and what to do."""
    return Finding(what, "wrong", fault, todo) if fault else Finding(what, "well", says)


def own() -> Iterator[Finding]:
    """Whether this interp is the one that is installed, or one in a folder that hides it."""
    folder, installed = Path(interp.__file__).parent, metadata.version(NAME)
    other = f"{interp.__version__} in {folder} runs, {installed} is installed"
    fault = "" if installed == interp.__version__ else other
    yield _checked(NAME, f"{installed} ({folder})", fault, "install interp again, or leave the folder that hides it")


def python() -> Iterator[Finding]:
    """This Python, and whether interp is made for it."""
    from packaging.specifiers import SpecifierSet

    needed, here = metadata.metadata(NAME)["Requires-Python"] or "", platform.python_version()
    says = f"{here} ({sys.executable})"
    fault = "" if SpecifierSet(needed).contains(here, prereleases=True) else f"{says}; expected {needed}"
    yield _checked("Python", says, fault, "install interp with a Python that it is made for")


def dependencies() -> Iterator[Finding]:
    """Each dependency: whether it is there, and new enough; those of an extra may be absent."""
    from packaging.requirements import Requirement

    for each in map(Requirement, metadata.requires(NAME) or ()):
        needed = each.marker is None or each.marker.evaluate({"extra": ""})
        if not needed and not (each.name in OPTIONAL and each.marker and each.marker.evaluate({"extra": each.name})):
            continue
        todo = f"{shlex.quote(sys.executable)} -m pip install '{each.name}{each.specifier}'"
        try:
            here = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            says = f"expected {each.specifier}" if needed else OPTIONAL[each.name]
            yield Finding(each.name, "wrong" if needed else "note", f"not installed; {says}", todo)
            continue
        fault = "" if each.specifier.contains(here, prereleases=True) else f"{here}; expected {each.specifier}"
        yield _checked(each.name, f"{here} ({each.specifier})", fault, todo)


def command_line() -> Iterator[Finding]:
    """Whether the libraries of the command line can be imported."""
    for name in ("rich", "typer"):
        import_module(name)
    yield Finding("command line", "well", "can begin")


def models(package: Path = PACKAGE) -> Iterator[Finding]:
    """Each embedded model, byte by byte."""
    sums = package / SUMS
    files = defaultdict(list)
    for line in sums.read_text(encoding="utf-8").splitlines():
        expected, name = line.split(maxsplit=1)
        files[name.partition("/")[0]].append((sums.parent / name, expected))
    for model, expected_files in files.items():
        wrong = [f"{path.name} is {fault}" for path, expected in expected_files if (fault := _fault(path, expected))]
        yield _checked(f"model {model}", f"{len(expected_files)} files, each as its hash says", "; ".join(wrong), AGAIN)


def data(package: Path = PACKAGE) -> Iterator[Finding]:
    """Each kind of file that is no module."""
    for what, pattern in PARTS.items():
        n = len(list(package.glob(pattern)))
        yield _checked(what, f"{n} in {Path(pattern).parent}", "" if n else f"no {pattern} in {package}", AGAIN)


def record(package: Path = PACKAGE) -> Iterator[Finding]:
    """Every file of an installed wheel; a clone, whose files change, has no record."""
    files = [each for each in metadata.files(NAME) or () if each.hash is not None and each.parts[0] == package.name]
    if not files or Path(str(files[0].locate())).resolve().parents[len(files[0].parts) - 2] != package.resolve():
        yield Finding("files", "note", f"a clone or a source tree, {package}: no record says how they were packaged")
        return
    wrong = [str(each) for each in files if each.hash and _fault(Path(str(each.locate())), _hex(each.hash.value))]
    named = ", ".join(wrong[:3]) + (", ..." if len(wrong) > 3 else "")
    fault = f"{len(wrong)} of {len(files)} are not as they were packaged: {named}" if wrong else ""
    yield _checked("files", f"{len(files)}, each as it was packaged", fault, AGAIN)


def _hex(value: str) -> str:
    return base64.urlsafe_b64decode(value + "==").hex()  # a wheel's record leaves the padding out


def _fault(path: Path, expected: str) -> str:
    """What is wrong with a file; empty where its bytes have this SHA-256."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return "missing" if isinstance(error, FileNotFoundError) else f"not readable ({error.strerror})"
    return "" if hashlib.sha256(content).hexdigest() == expected else "damaged"


def system() -> Iterator[Finding]:
    """The system, and the number of processors that this process may use."""
    n_cpus = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_cpus
    yield Finding("system", "well", f"{platform.platform()}; {usable} of {n_cpus} processors to be used")


def torch_devices() -> Iterator[Finding]:
    """Whether torch can multiply on each device that it has."""
    import torch

    devices = {torch.device("cpu"): f"the CPU, on {torch.get_num_threads()} threads unless --threads says"}
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        says = f"{about.name}, {about.total_memory / 1e9:.0f} GB: --device cuda:{number}"
        devices[torch.device("cuda", number)] = says
    numbers = torch.arange(64.0).reshape(8, 8)  # small whole numbers, whose products every device makes exactly
    expected = [[sum(map(float.__mul__, row, column)) for column in numbers.tolist()] for row in numbers.tolist()]
    for device, says in devices.items():
        is_right = (numbers.to(device) @ numbers.to(device).T).tolist() == expected
        fault = "" if is_right else f"{says}; a matrix product is wrong"
        yield _checked(f"torch on {device}", says, fault, "install torch again, in a build for it")
    if not torch.cuda.device_count():
        built = torch.version.cuda or torch.version.hip
        says = f"none is seen, though torch is built for {built}" if built else "none; torch is built for the CPU"
        yield Finding("GPU", "note", says, "needed for large models alone: a driver, and a torch that is built for it")
    if torch.backends.mps.is_available():
        yield Finding("MPS", "note", "Apple's GPU is there; interp does not compute on it", "use --device cpu")


def runs_folder() -> Iterator[Finding]:
    """Whether results can be kept, and how much room there is."""
    from interp.runs.root import root_of  # which needs torch

    root = root_of(None)
    place = next(each for each in (root, *root.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(b"0")
    except OSError as error:
        says = f"{root} cannot be written ({error.strerror or error})"
        yield Finding("folder of runs", "wrong", says, ELSEWHERE)
        return
    free = shutil.disk_usage(place).free
    says, todo = f"{root}, {free / 1e9:,.1f} GB free", f"make room (`interp runs rm`), or {ELSEWHERE}"
    yield Finding("folder of runs", "note" if free < LITTLE_ROOM else "well", says, todo if free < LITTLE_ROOM else "")


def small_run() -> Iterator[Finding]:
    """Load the embedded model, ablate a head, and compare."""
    from interp.methods.ablation import ablate
    from interp.model.loading import load_model
    from interp.tasks.catalogue import load_task

    model = load_model()
    task = load_task(TASK, n=UNITS, seed=0, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    result = ablate(model, task, heads=[HEAD], replacement="zero")
    audit = result.provenance["audit"]
    difference, allowed = audit["largest_difference"], audit["tolerance"]
    says = f"engine and plain way differ by {difference:.1e} (at most {allowed:.0e})"
    yield Finding(f"head {HEAD[0]}.{HEAD[1]} ablated", "well", says)
    pairs = [(name, float(result.examples[name].mean()), value) for name, value in (("base", BASE), ("effect", EFFECT))]
    says = ", ".join(f"{name} {found:.5f} (expected {expected:.5f})" for name, found, expected in pairs)
    far = any(abs(found - expected) > TOLERANCE * abs(expected) for _, found, expected in pairs)
    todo = "torch computes wrongly here: install it again, in another version"
    yield _checked("its numbers", says, says if far else "", todo)


_INSTALL = "install interp with pip, which brings what it needs"
LOOKS = (
    Look("interp", own, _INSTALL),
    Look("Python", python, _INSTALL),
    Look("system", system, "report it as a fault of interp"),
    Look("dependencies", dependencies, _INSTALL),
    Look("command line", command_line, _INSTALL),
    Look("torch", torch_devices, "install torch again, in a build for this machine"),
    Look("models", models, AGAIN),
    Look("data", data, AGAIN),
    Look("files", record, AGAIN),
    Look("folder of runs", runs_folder, ELSEWHERE),
    Look("a small run", small_run, "mend what is wrong above, and ask again"),
)


def examine() -> list[Finding]:
    """All findings, in the order of ``LOOKS``."""
    return [finding for look in LOOKS for finding in look()]


def in_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each, another for what to do, and one for all of them."""
    width = max(len(each.what) for each in findings)
    for each in findings:
        yield f"{_SYMBOLS[each.state]:<5}  {each.what:<{width}}  {each.says}"
        if each.todo and each.state != "well":
            yield f"{'':<5}  {'':<{width}}  -> {each.todo}"
    wrong = [each.what for each in findings if each.state == "wrong"]
    yield ""
    yield f"{len(wrong)} wrong: {', '.join(wrong)}" if wrong else "All is well."


def well(findings: Sequence[Finding]) -> bool:
    """Whether nothing is wrong."""
    return all(each.state != "wrong" for each in findings)
