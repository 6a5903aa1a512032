"""Made-up reports are those of the tests of pages."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "report"))
