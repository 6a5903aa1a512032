"""What may whoever uses interp rely on? Every public name of the public modules, with its signature, as text.

``python tests/public_api.py > tests/public_api.txt`` writes it anew: so a change of a signature is seen in a review.
The public modules are those that pyproject.toml has mypy check most strictly, and the model's; of them, the names that
pages of docs/reference show.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def public_modules() -> list[str]:
    """By pyproject.toml, without the package itself, whose names ``interp/__init__.pyi`` lists."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["overrides"]
    (strictest,) = [each["module"] for each in settings if each.get("warn_return_any")]
    return sorted({*strictest, "interp.model.transformer"} - {"interp"})  # whose own base is untyped


def reference() -> dict[str, list[str] | None]:
    """By module, the names that the pages of docs/reference show of it; None for all that it defines."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    shown = r"^::: (\S+)$(?:\n    options:\n      members: (.+)$)?"
    found = [each for page in pages for each in re.findall(shown, page.read_text(encoding="utf-8"), re.MULTILINE)]
    return {
        module: [name for name in re.findall(r"\w+", names) if name != "false"] if names else None
        for module, names in found
    }


def public_api() -> list[str]:
    """A line for each name."""
    return [line for module in public_modules() for line in _of_module(module)] + list(_figures())


def _figures() -> Iterator[str]:
    """Of ``interp.plots``, which only says where each figure is drawn."""
    for node in _body("interp.plots"):
        if isinstance(node, ast.ImportFrom):
            drawn = {each.name: each for each in _body(str(node.module)) if isinstance(each, ast.FunctionDef)}
            for alias in node.names:
                yield f"interp.plots.{alias.asname or alias.name}{_signature(drawn[alias.name])}"


def _body(module: str) -> list[ast.stmt]:
    return ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")).body


def _of_module(module: str) -> Iterator[str]:
    names = reference()[module]
    for node in _body(module):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if names is not None and node.name not in names:
            continue
        if isinstance(node, ast.FunctionDef):
            yield f"{module}.{node.name}{_signature(node)}"
        else:
            yield f"{module}.{node.name}({', '.join(map(ast.unparse, node.bases))})"
            yield from (f"{module}.{node.name}.{line}" for line in _of_class(node))


def _of_class(node: ast.ClassDef) -> Iterator[str]:
    """Its fields, and its methods; of what Python calls itself only the construction."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and not ast.unparse(each.target).startswith("_"):
            yield f"{ast.unparse(each)}"
        elif isinstance(each, ast.FunctionDef) and (each.name == "__init__" or not each.name.startswith("_")):
            kinds = [f"@{ast.unparse(kind)} " for kind in each.decorator_list]
            yield f"{''.join(kinds)}{each.name}{_signature(each)}"


def _signature(node: ast.FunctionDef) -> str:
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    print("\n".join(public_api()))
