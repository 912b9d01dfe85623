"""The architecture, held by tests: who imports whom, and what a file says of itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# folder → the folders of ours that it may import
ALLOWED = {
    "core": {"core"},
    "dsl": {"dsl", "core"},
    "ies": {"ies", "dsl", "core"},
    "spark_backend": {"spark_backend", "core"},
    "everlog": {"everlog", "dsl", "core", "ies", "spark_backend", "programs"},
}
HEAVY = {"pyspark", "numpy", "scipy", "pandas", "pyarrow", "duckdb", "psycopg", "matplotlib", "zstandard"}
FILES = [path for folder in ALLOWED for path in sorted((ROOT / folder).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """The modules that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def folder_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "everlog":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED | {"programs": set()} else "everlog"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_in_one_direction(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    for module in imported(path):
        target = folder_of(module)
        assert target is None or target in ALLOWED[folder], f"{folder} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_libraries_are_imported_lazily(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {n for node in tree.body for n in _roots(node)}
    if path.relative_to(ROOT).parts[0] != "spark_backend":
        assert "pyspark" not in {m.split(".")[0] for m in imported(path)}, "pyspark belongs to spark_backend"
    assert not top & HEAVY


def _roots(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        return {node.module.split(".")[0]}
    return set()


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), "no docstring"
