"""``python -m interp`` is the command ``interp``; where that cannot even begin, a sentence says why."""

import sys


def main() -> None:
    """Run the command line; without what that is made of, still examine the installation."""
    try:
        from interp.cli import main as run
    except ImportError as error:
        if (error.name or "").split(".")[0] == "interp":
            raise
        sys.exit(_without(error))
    run()


def _without(error: ImportError) -> int:
    from interp.doctor.examine import examine, in_lines
    from interp.report.words import legible

    if sys.argv[1:2] == ["doctor"]:
        sys.stdout.writelines(f"{legible(line)}\n" for line in in_lines(examine()))
    else:
        said = legible(f"error: the command line cannot begin ({error}); `interp doctor` says what to do")
        sys.stderr.write(f"{said}\n")
    return 1


if __name__ == "__main__":
    main()
