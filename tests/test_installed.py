"""What is tested is the installed package, with everything that it needs."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import everlog
from everlog.core.native.availability import in_use

ROOT = Path(__file__).parent.parent
_FOUND = f"import sys; sys.path.append({str(Path(everlog.__file__).parent.parent)!r}); "  # without `site`, which imports much


def test_every_program_ships_with_its_facts() -> None:
    installed = resources.files("everlog.programs")
    for path in sorted((ROOT / "programs").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            assert installed.joinpath(*path.relative_to(ROOT / "programs").parts).is_file(), path


def test_the_grammar_and_the_type_marker_ship() -> None:
    assert resources.files("everlog.dsl").joinpath("grammar.lark").is_file()
    assert resources.files("everlog").joinpath("py.typed").is_file()


def test_the_console_ships_with_all_of_its_files() -> None:
    installed = resources.files("everlog.serve").joinpath("console")
    sources = [path.name for path in (ROOT / "everlog" / "serve" / "console").iterdir()]
    assert len(sources) > 8
    assert [name for name in sources if not installed.joinpath(name).is_file()] == []


def test_the_command_says_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"everlog {everlog.__version__} ({in_use()})\n"


def test_nothing_heavy_is_imported_to_say_the_version() -> None:
    for module in ("everlog", "everlog.cli"):
        code = f"import sys; before = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - before))"
        done = subprocess.run([sys.executable, "-P", "-S", "-c", _FOUND + code], capture_output=True, text=True)
        loaded = done.stdout.split()
        assert "everlog" in loaded, done.stderr
        assert {name for name in loaded if name.startswith("everlog")} <= {
            "everlog",
            "everlog._version",
            "everlog.cli",
        }
        heavy = {"typing", "argparse", "re", "lark", "attrs", "attr", "rich", "pygments", "prompt_toolkit"}
        assert not heavy & set(loaded)


def test_everything_public_is_there_and_loaded_when_asked_for() -> None:
    assert set(everlog._LAZY) | {"__version__"} == set(everlog.__all__)
    for name in everlog.__all__:
        assert getattr(everlog, name) is not None
