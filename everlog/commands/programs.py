"""`everlog programs`: list, show, run and copy shipped programs, or make facts.

`run` is `everlog run` on the program's own files, with answers on the screen; flags of `run` may
follow, and override ours.  A script in the program's folder generates facts, in a separate process.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

from everlog.shipped import NoSuchProgram, Shipped, shipped

EXAMPLES = """
  everlog programs                                   the list
  everlog programs show fraud_rings
  everlog programs run fraud_rings --updates         with its own stream of updates
  everlog programs run access_control --updates -    type `-member("grace", "on-call").` and an empty line
  everlog programs copy link_failures mine           a copy to experiment with
  everlog programs make debian_packages mine --all --remove libssl3     facts of this machine
  everlog programs run debian_packages -F mine
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="list the programs with what they answer (also without an action)")
    listing.add_argument("--json", action="store_true", help="as JSON")
    show = actions.add_parser("show", help="show purpose, class and cost of each rule, and how to run it")
    run_ = actions.add_parser("run", help="run it on its facts; flags of `everlog run` may follow")
    copy = actions.add_parser("copy", help="copy the program and its facts to a folder")
    make = actions.add_parser("make", help="make other facts; options of its script may follow")
    for action in (show, run_, copy, make):
        action.add_argument("name", metavar="NAME", help="a name from the list")
    for action in (copy, make):
        action.add_argument("folder", type=Path, metavar="DIR", help="the folder; created if it does not exist")
    run_.add_argument("rest", nargs=argparse.REMAINDER, metavar="…", help="flags of `everlog run`, also after --")
    make.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="…", help="options of the script; --help lists them"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        match arguments.action:
            case "show":
                from everlog.programs_shown import program_page

                print(program_page(arguments.name))
            case "run":
                return _run(shipped(arguments.name), _without_dashes(arguments.rest))
            case "copy":
                _copy(shipped(arguments.name), arguments.folder)
            case "make":
                return _make(shipped(arguments.name), arguments.folder, _without_dashes(arguments.rest))
            case _:
                from everlog.programs_shown import list_json, list_text

                print(list_json() if getattr(arguments, "json", False) else list_text())
    except NoSuchProgram as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has closed it: see `everlog.cli`
        raise
    except OSError as error:
        print(f"error: `{error.filename}`: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _without_dashes(words: list[str]) -> list[str]:
    """Remove the `--` before flags of another command; it is optional here.

    >>> _without_dashes(["--", "-v", "--"]), _without_dashes(["-D-"])
    (['-v', '--'], ['-D-'])
    """
    return [word for i, word in enumerate(words) if word != "--" or "--" in words[:i]]


def _run(one: Shipped, words: list[str]) -> int:
    """Run `everlog run` on the program's files; the user's flags come last, and win.

    It runs in the program's folder, so that proofs and messages show short file names.
    """
    from everlog.commands import run as command

    parser = argparse.ArgumentParser(prog=f"everlog programs run {one.name}")
    command.add_arguments(parser)
    own = [one.program.name, "-F", str(one.facts), "-D-"]
    arguments = parser.parse_args([*own, *_with_updates(words, str(one.updates))])
    for name in ("fact_dir", "output_dir", "updates", "checkpoint"):
        setattr(arguments, name, _from_anywhere(getattr(arguments, name)))
    for name in ("include_dir", "library_dir"):
        setattr(arguments, name, [_from_anywhere(folder) for folder in getattr(arguments, name)])
    with contextlib.chdir(one.folder):
        return command.run(arguments)


def _from_anywhere(path: str | None) -> str | None:
    """An absolute path; `-` and addresses are not paths, and stay as they are."""
    return path if path is None or path == "-" or "://" in path else str(Path(path).absolute())


def _with_updates(words: list[str], updates: str) -> list[str]:
    """Insert the program's own stream after an `--updates` without a file.

    >>> _with_updates(["--updates", "-v"], "own.txt"), _with_updates(["--updates", "-"], "own.txt")
    (['--updates', 'own.txt', '-v'], ['--updates', '-'])
    """
    out: list[str] = []
    for i, word in enumerate(words):
        out.append(word)
        following = words[i + 1] if i + 1 < len(words) else "--"
        if word == "--updates" and following.startswith("-") and following != "-":
            out.append(updates)
    return out


def _copy(one: Shipped, folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OSError(17, "already exists; nothing was copied. Name a new folder", str(folder))
    shutil.copytree(one.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    print(f"{one.name} is in {folder}; run it with")
    print(f"  everlog run {folder / one.program.name} -F {folder / 'facts'} -D-")


def _make(one: Shipped, folder: Path, words: list[str]) -> int:
    if one.maker is None:
        hint = f"`everlog programs copy {one.name} DIR` copies its own"
        print(f"error: {one.name} has no script that makes facts; {hint}", file=sys.stderr)
        return 1
    command = [sys.executable, "-P", str(one.maker), str(folder), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode
