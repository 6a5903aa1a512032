import os
import shutil
from pathlib import Path
from pkgutil import iter_modules

from jaxtyping import install_import_hook

# Types and shapes are checked as the tests run; among the words of `tasks` that would take most of the tests' time.
ROOMS = [f"interp.{room.name}" for room in iter_modules([str(Path(__file__).parent.parent / "interp")])]
install_import_hook(
    [*(room for room in ROOMS if room != "interp.tasks"), "interp.tasks.word_tokens"], "beartype.beartype"
)

import pytest  # noqa: E402
import torch  # noqa: E402

STRICT = os.environ.get("INTERP_STRICT") == "1"
ROOT = Path(__file__).resolve().parent.parent


def skip_or_fail(reason):
    """Skip on a user's machine; fail where everything is expected to be there."""
    (pytest.fail if STRICT else pytest.skip)(reason)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_dir():
    folder = Path(os.environ.get("INTERP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        skip_or_fail(f"the real data is not at {folder}; set INTERP_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        skip_or_fail("no chromium on the PATH; install Debian's package chromium")
    return path


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
