"""How large is the package, and how much of it does one number pass through? ``python tests/sizes.py`` prints it.

``tests/test_house.py`` holds the numbers.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "interp"


def sizes() -> dict[str, int]:
    """Lines of each file of the package, by its path."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of the package that one imports, in functions and for types alone, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def import_cycles() -> list[list[str]]:
    """Modules that import each other, in groups."""
    known = {_module(path): path for path in PACKAGE.rglob("*.py")}
    below = {name: {each for each in imported(path, known) if each in known} - {name} for name, path in known.items()}
    below = {name: others - {"interp"} for name, others in below.items()}
    reached: dict[str, set[str]] = {}
    for name in below:
        found, rest = set[str](), [name]
        while rest:
            new = below[rest.pop()] - found
            found |= new
            rest += new
        reached[name] = found
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in below}
    return sorted(sorted(group) for group in groups if group)


def _module(path: Path) -> str:
    return ".".join(["interp", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def files_run_by_heads() -> set[str]:
    """Files whose functions run when ``interp.heads`` is called a second time in a process."""
    import interp

    model, seen = interp.load_model(), set[str]()

    def note(frame, event, _argument):
        if event == "call" and frame.f_code.co_name not in ("<module>", "<lambda>"):
            seen.add(frame.f_code.co_filename)

    interp.heads(model, ["agreement"], n=10)
    sys.setprofile(note)
    try:
        interp.heads(model, ["agreement"], n=10)
    finally:
        sys.setprofile(None)
    return {str(Path(name).relative_to(PACKAGE)) for name in seen if name.startswith(str(PACKAGE))}


if __name__ == "__main__":
    lines = sizes()
    print(f"{sum(lines.values()):,} lines in {len(lines)} files")
    print(f"longest: {', '.join(f'{name} {lines[name]}' for name in sorted(lines, key=lines.__getitem__)[-5:])}")
    print(f"import cycles: {import_cycles() or 'none'}")
    ran = files_run_by_heads()
    print(f"files whose functions run in a second call of interp.heads: {len(ran)}")
    print("\n".join(sorted(ran)) if "--files" in sys.argv else "")
