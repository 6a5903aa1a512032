"""``python -m interp`` is the command ``interp``."""

from interp.cli import main

main()
