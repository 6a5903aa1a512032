import os
import re
import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import jaxtyping

ROOT = Path(__file__).resolve().parent.parent
# Shapes, and types beside them, are checked as the tests run; of modules without shapes, types are for mypy to check:
# as they run that would take as long as all else.
SHAPES = re.compile(r"^from (jaxtyping|interp\.shapes) import", re.MULTILINE)
jaxtyping.install_import_hook(
    [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in ("interp", "forerunners", "recipes", "analyses")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if SHAPES.search(path.read_text())
    ],
    "as_users_call.checked",
)

import pytest  # noqa: E402
import torch  # noqa: E402
from device.simulator import SimulatedCuda, install  # noqa: E402

STRICT = os.environ.get("INTERP_STRICT") == "1"
FIRST = {"test_advice_typed", "test_house", "test_notebooks", "test_results_show_themselves", "test_workers"}
"""Files that take long and would come late: begun first, so that no worker is left alone with one at the end."""


def skip_or_fail(reason):
    """Skip on a user's machine; fail where everything is expected to be there."""
    (pytest.fail if STRICT else pytest.skip)(reason)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _runs_root(tmp_path_factory):
    """What commands keep goes where nobody else's is; also what fixtures run for several tests."""
    root = tmp_path_factory.mktemp("runs")
    os.environ["INTERP_RUNS"] = str(root / "shared")
    return root


@pytest.fixture(autouse=True)
def _own_runs(_runs_root, request):
    """No test finds another one's answer; set without monkeypatch, which a test may undo."""
    os.environ["INTERP_RUNS"] = str(_runs_root / f"{abs(hash(request.node.nodeid))}")
    yield
    os.environ["INTERP_RUNS"] = str(_runs_root / "shared")


def _types_are_checked(request):
    """Checks take half of all time. `make test` makes them in an eighth of tests; ``unchecked`` ones are of numbers."""
    before, node = jaxtyping.config.jaxtyping_disable, request.node
    left_out = request.config.getoption("markexpr") == "not slow" and crc32(node.nodeid.encode()) % 8
    jaxtyping.config.update("jaxtyping_disable", bool(left_out or node.get_closest_marker("unchecked")))
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


_in_a_module = pytest.fixture(scope="module", autouse=True)(_types_are_checked)
_in_a_test = pytest.fixture(autouse=True)(_types_are_checked)


@pytest.fixture(scope="session")
def data_dir():
    folder = Path(os.environ.get("INTERP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        skip_or_fail(f"the real data is not at {folder}; set INTERP_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def ray_module():
    try:
        import ray
    except ImportError:
        skip_or_fail("Ray is not installed; pip install 'interp[ray]'")
    return ray


@pytest.fixture(scope="session")
def smollm2_folder():
    """SmolLM2, in the cache of whoever runs the tests, where `interp model fetch` puts it; fetched once."""
    from interp.errors import InterpError
    from interp.model.loading.fetched import fetch_model

    try:
        return fetch_model("smollm2")
    except InterpError as error:
        skip_or_fail(f"SmolLM2 cannot be fetched: {error}")


@pytest.fixture(scope="session")
def smollm2_for_transformers(smollm2_folder):
    """A folder beside it with the .gguf that it was made of, and what transformers saves of that; made once."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from interp.model.loading.fetched import FETCHABLE, download

    place = smollm2_folder.parent.parent / "tests" / "smollm2"
    if place.is_dir():
        return place
    place.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=place.parent) as draft:
        folder = Path(draft) / place.name
        folder.mkdir()
        how = {"pretrained_model_name_or_path": folder, "gguf_file": "smollm2.gguf"}
        download(FETCHABLE["smollm2"], Path(draft)).rename(folder / how["gguf_file"])
        quantised = AutoModelForCausalLM.from_pretrained(**how)  # it says that it is, and cannot be saved
        module = type(quantised)(AutoConfig.from_pretrained(**how))
        module.load_state_dict(quantised.state_dict())
        module.save_pretrained(folder)
        AutoTokenizer.from_pretrained(**how).save_pretrained(folder)
        folder.rename(place)
    return place


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        skip_or_fail("no chromium on the PATH; install Debian's package chromium")
    return path


@pytest.fixture(scope="session")
def browser(chromium):
    """One for all tests of a process: playwright's loop runs until the last is through."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


SIMULATED = not torch.cuda.is_available()
"""Whether what is marked ``gpu`` runs on the simulated device: outside of tests/device in `make test-all` alone."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Files are dealt out in the order of their tests."""
    items.sort(key=lambda item: item.path.stem not in FIRST)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and SIMULATED:
        install()
        for item in on_gpu:
            if item.path.parent.name != "device":
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Fixtures of a module, too, find the simulated device there."""
    with SimulatedCuda() if SIMULATED and item.get_closest_marker("gpu") else nullcontext():
        return (yield)


def pytest_terminal_summary(terminalreporter):
    """What the tests of faults have counted."""
    noted = [each for report in terminalreporter.getreports("passed") for each in report.user_properties]
    for name, said in noted:
        if name == "kills":
            terminalreporter.write_line(said)
    malformed = Counter()
    for name, counts in noted:
        if name == "malformed":
            malformed.update(counts)
    if malformed:
        each = ", ".join(f"{n:,} {what}" for what, n in malformed.most_common())
        terminalreporter.write_line(f"malformed inputs: {malformed.total():,} ({each}; nothing else)")
