"""The architecture, checked by tests: imports between folders, and module headers."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# folder → the other folders of this repository that it may import
ALLOWED = {
    "core": {"core"},
    "dsl": {"dsl", "core"},
    "ies": {"ies", "dsl", "core"},
    "spark_backend": {"spark_backend", "core"},
    "everlog": {"everlog", "dsl", "core", "ies", "spark_backend", "programs"},
}
# the rooms of core: each imports only itself and those before it
ROOMS = (
    "program",
    "runtime",
    "storage",
    "codegen",
    "ir",
    "native",
    "evaluate",
    "dbsp",
    "classify",
    "joins",
    "engine/planning",
    "engine/stepping",
    "engine/keepers",
    "engine",
    "proofs",
    "repairs",
)
HEAVY = {"pyspark", "numpy", "scipy", "pandas", "pyarrow", "duckdb", "psycopg", "matplotlib", "zstandard"}
CODE = sorted(path for folder in (*ALLOWED, "bench") for path in (ROOT / folder).rglob("*.py"))
FILES = [path for folder in ALLOWED for path in sorted((ROOT / folder).rglob("*.py"))]
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
MOST_MODULES = 20  # in a folder, unless its README says why
MOST_LINES = 60  # of a function
WIDTH_OF_PROSE = 100
PROSE = (*ALLOWED, "docs", "bench", "editors", "web", "programs", "tests")
MOST_ANY = 135  # lines of core that name `Any`
# Names of modules that several folders share, each for one idea.
SHARED_NAMES = {
    "builder": "reductions of a grammar to nodes",
    "changes": "what a step changed",
    "check": "what is wrong with a text, before it runs",
    "costs": "what an update costs: promised, and counted",
    "durable": "databases in files",
    "errors": "what can go wrong, in one package",
    "executor": "the protocol of everything that runs a program",
    "explain": "why and how relations are kept",
    "expressions": "terms and comparisons, written for an executor",
    "functors": "functions of the language",
    "growing": "running totals and joined values through recursion",
    "how": "the least changes that make a fact come or go",
    "ies": "incremental evaluation systems, of a user and measured",
    "lexer": "characters to tokens",
    "parameters": "values for `$name`",
    "parser": "tokens to a tree",
    "plan": "which unit runs how",
    "postgres": "PostgreSQL",
    "printer": "a tree to text",
    "programs": "the programs that are shipped",
    "query": "what is asked of relations",
    "recomputed": "everything is evaluated again",
    "settings": "what a user can set",
    "sqlite": "SQLite",
    "transactions": "several updates as one step",
    "triggers": "triggers of a database",
    "types": "types of a language",
    "walk": "visits of all nodes of a tree",
}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(node: ast.AST) -> set[str]:
    """The modules and names that a tree imports, at any depth."""
    return {name for part in ast.walk(node) for name in _names(part)}


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def imported_at_run_time(tree: ast.Module) -> set[str]:
    """What a file imports, without imports that only a type checker reads."""
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_type_checking(node.test)]
    for_types = {id(part) for node in checked for part in ast.walk(node)}
    return {name for part in ast.walk(tree) if id(part) not in for_types for name in _names(part)}


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def folder_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "everlog":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED | {"programs": set()} else "everlog"


def room_of(parts: list[str]) -> str | None:
    """The room of core of a path or a module, from its parts after `core`."""
    inside = "/".join(parts)
    found = [room for room in ROOMS if inside == room or inside.startswith(room + "/")]
    return max(found, key=len, default=None)


def test_imports_go_in_one_direction() -> None:
    wrong = [
        f"{named(path)} imports {module}"
        for path, tree in TREES.items()
        for module in imported(tree)
        if (target := folder_of(module)) is not None and target not in ALLOWED[path.relative_to(ROOT).parts[0]]
    ]
    assert not wrong


def core_imports() -> Iterator[tuple[Path, str, str]]:
    """The imports between files of core: the file, its room, and the imported room."""
    for path, tree in TREES.items():
        inside = list(path.relative_to(ROOT).with_suffix("").parts)
        if inside[0] != "core" or (room := room_of(inside[1:])) is None:
            continue
        for module in imported_at_run_time(tree):
            parts = module.split(".")
            if parts[:2] == ["everlog", "core"] and (target := room_of(parts[2:])) is not None:
                yield path, room, target


def test_a_room_of_core_imports_only_rooms_before_it() -> None:
    found = list(core_imports())
    assert {room for _, room, _ in found} >= set(ROOMS) - {"program"}
    wrong = [
        f"{named(path)}: {room} imports {target}"
        for path, room, target in found
        if ROOMS.index(target) > ROOMS.index(room)
    ]
    assert not wrong


def test_every_module_of_core_is_in_a_room() -> None:
    outside = [path.name for path in (ROOT / "core").glob("*.py") if path.name != "__init__.py"]
    folders = {folder.name for folder in (ROOT / "core").iterdir() if (folder / "__init__.py").exists()}
    assert not outside
    assert folders == {room.split("/")[0] for room in ROOMS}


def test_every_folder_of_modules_is_installed() -> None:
    """The list in pyproject.toml names each: what is missing there is missing for users."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    found = set()
    for package, folder in setup["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join([package, *init.parent.relative_to(ROOT / folder).parts]))
    assert found == set(setup["packages"])


def test_heavy_libraries_are_imported_lazily() -> None:
    wrong = [
        f"{named(path)} imports {module} at its top"
        for path, tree in TREES.items()
        for node in tree.body
        for module in _names(node)
        if module.split(".")[0] in HEAVY
    ]
    assert not wrong


def test_pyspark_belongs_to_one_folder() -> None:
    wrong = [
        named(path)
        for path, tree in TREES.items()
        if path.relative_to(ROOT).parts[0] != "spark_backend"
        and any(module.split(".")[0] == "pyspark" for module in imported(tree))
    ]
    assert not wrong


def test_every_module_says_what_it_is_for() -> None:
    assert not [named(path) for path, tree in TREES.items() if not ast.get_docstring(tree)]


def test_no_function_is_longer_than_a_screen() -> None:
    """What is longer has two ideas, or is a table of data, which stands in its module."""
    long = {
        (named(path), node.name): size
        for path in CODE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES
    }
    assert not long


def test_core_has_real_types() -> None:
    """`Any` is for values whose kind a comment cannot tell either; the number only falls."""
    lines = [
        f"{named(path)}: {line.strip()}"
        for path in FILES
        if path.is_relative_to(ROOT / "core")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bAny\b", line)
    ]
    assert len(lines) <= MOST_ANY, "\n".join(lines)


def test_two_modules_share_a_name_only_for_one_idea() -> None:
    """Workloads and competitors are named after what is measured, and count apart."""
    homes: dict[str, list[str]] = {}
    for path in CODE:
        measured = path.parent in (ROOT / "bench/workloads", ROOT / "bench/competitors")
        if not path.name.startswith("__") and not measured:
            homes.setdefault(path.stem, []).append(named(path))
    shared = {name: files for name, files in homes.items() if len(files) > 1}
    assert not {name: files for name, files in shared.items() if name not in SHARED_NAMES}
    assert not SHARED_NAMES.keys() - shared.keys(), "these are names of one module by now"


def test_a_large_folder_says_why_it_is_one() -> None:
    folders = {path.parent for path in FILES}
    large = [folder for folder in folders if len(list(folder.glob("*.py"))) > MOST_MODULES + 1]
    unexplained = [
        named(folder)
        for folder in large
        if not (folder / "README.md").exists()
        or "more than 20 modules" not in " ".join((folder / "README.md").read_text(encoding="utf-8").split())
    ]
    assert not unexplained


def _has_own_list(folder: Path) -> bool:
    """Whether a folder has a README, or a table of its modules in its `__init__.py`."""
    start = folder / "__init__.py"
    return not start.exists() or (folder / "README.md").exists() or "|" in start.read_text(encoding="utf-8")


def test_a_readme_names_every_module_of_its_folder() -> None:
    missing = []
    for readme in sorted(ROOT.glob("*/**/README.md")):
        if readme.relative_to(ROOT).parts[0] not in ALLOWED:
            continue
        prose = re.sub(r"```.*?```", "", readme.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
        folders = [readme.parent, *(folder for folder in readme.parent.iterdir() if not _has_own_list(folder))]
        modules = {path.stem for folder in folders for path in folder.glob("*.py")}
        modules -= {"__init__", "__main__", "_version"}
        missing += [f"{named(readme)}: {module}" for module in sorted(modules - found)]
    assert not missing


def test_only_storage_tells_the_form_of_facts_by_their_arity() -> None:
    """Elsewhere a shape is asked, or a `PairShape` where only binary relations are served."""
    wrong = [
        f"{named(path)}:{node.lineno}"
        for path, tree in TREES.items()
        if path.parent != ROOT / "core" / "storage"
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(isinstance(side, ast.Constant) for side in node.comparators)
        and ast.unparse(node.left).endswith("shape.arity")
    ]
    assert not wrong


def test_prose_in_markdown_has_at_most_100_columns() -> None:
    """But for code, tables, headings and pictures, and for lines with the address of a source."""
    pages = [*ROOT.glob("*.md"), *(page for folder in PROSE for page in (ROOT / folder).rglob("*.md"))]
    assert len(pages) > 60
    wide = []
    for page in pages:
        if "node_modules" in page.parts:
            continue
        text = re.sub(
            r"(?ms)^[ >]*```.*?^[ >]*```", lambda code: "\n" * code[0].count("\n"), page.read_text("utf-8")
        )
        for number, line in enumerate(text.splitlines(), 1):
            free = line.lstrip(" >").startswith(("|", "#", "![", "[^")) or line.startswith("    ")
            if len(line) > WIDTH_OF_PROSE and not free:
                wide.append(f"{named(page)}:{number}")
    assert not wide


def test_the_architecture_is_short() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    terms = [line for line in lines[lines.index("## Glossary") :] if line.startswith("| ")]
    assert len(lines) <= 200
    assert len(terms) <= 25 + 1  # and the heading
