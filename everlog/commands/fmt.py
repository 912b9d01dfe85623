"""`everlog fmt`: format programs, on standard output or in place.

A rewritten file is first written beside the old one and then renamed, so a crash leaves either the
old file or the new one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from uuid import uuid4

from everlog.dsl.diagnostics import Report
from everlog.dsl.formatter import format_text

EXAMPLES = """
  everlog fmt prog.dl                   print it, formatted
  everlog fmt -i *.dl                   rewrite the files that change, and list them
  everlog fmt --check *.dl              only list them: status 1 if there are any
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="programs (.dl); - reads standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-i", "--in-place", action="store_true", help="rewrite the files that change, and list them")
    how.add_argument("--check", action="store_true", help="only list the files that would change; status 1 if any")


def run(arguments: argparse.Namespace) -> int:
    if arguments.in_place and "-" in arguments.files:
        print("error: standard input cannot be rewritten in place", file=sys.stderr)
        return 2
    return max([_run_file(file, arguments) for file in arguments.files])


def _run_file(file: str, arguments: argparse.Namespace) -> int:
    """Format one file and return the exit status."""
    try:
        text = _read(file)
    except OSError as error:
        return _failed(file, "read", error)
    formatted, report = format_text(text, "<stdin>" if file == "-" else file)
    if report.items:
        return _refused(file, text, report)
    if arguments.check:
        if formatted != text:
            print(file)
        return int(formatted != text)
    if not arguments.in_place:
        _show(formatted)
    elif formatted != text:
        try:
            _rewrite(Path(os.path.realpath(file)), formatted)
        except OSError as error:
            return _failed(file, "write", error)
        print(f"formatted {file}")
    return 0


def _failed(file: str, what: str, error: OSError) -> int:
    print(f"error: cannot {what} `{file}`: {error.strerror or error}", file=sys.stderr)
    return 1


def _refused(file: str, text: str, report: Report) -> int:
    print("\n\n".join(map(report.render, report.sorted())), file=sys.stderr)
    if any(line.lstrip().startswith("#") for line in text.splitlines()):
        print(f"note: `{file}` is read as written: macros are not expanded, every branch counts", file=sys.stderr)
    return 1


# ── bytes: a text may not be UTF-8, and keeps its line endings ───────────────────────────────


def _read(file: str) -> str:
    if file != "-":
        data = Path(file).read_bytes()
    elif hasattr(sys.stdin, "buffer"):
        data = sys.stdin.buffer.read()
    else:
        return sys.stdin.read()
    return data.decode("utf-8", "surrogateescape")


def _show(text: str) -> None:
    if not hasattr(sys.stdout, "buffer"):
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))


def _rewrite(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        beside.write_bytes(text.encode("utf-8", "surrogateescape"))
        shutil.copymode(path, beside)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
