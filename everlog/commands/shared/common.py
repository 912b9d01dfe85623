"""Arguments that several commands share, and the loading of their program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.core.program import Program
from everlog.dsl.check import diagnose
from everlog.dsl.diagnostics import Report
from everlog.dsl.preprocess import Problem, load, preprocess_text
from everlog.dsl.source import Source

if TYPE_CHECKING:
    from everlog.api.live import LiveText
    from everlog.progress import Meter


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="FILE", help="the program (.dl); - reads standard input")
    parser.add_argument(
        "-I", "--include-dir", action="append", default=[], metavar="DIR", help="folder of included files"
    )
    parser.add_argument("-M", "--macro", action="append", default=[], metavar='"A=1 B=2"', help="define macros")
    parser.add_argument("--no-preprocessor", action="store_true", help="do not expand # lines and macros")
    parser.add_argument("-w", "--no-warn", action="store_true", help="no warnings; missing fact files are empty")
    parser.add_argument("-W", "--warn", action="append", default=[], metavar="X", help="accepted and ignored")


def add_functor_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-l",
        "--library",
        "--libraries",
        action="append",
        default=[],
        metavar="NAME",
        help="Python file with functors",
    )
    parser.add_argument(
        "-L", "--library-dir", action="append", default=[], metavar="DIR", help="folder of such files"
    )


def load_program(arguments: argparse.Namespace, untold: Collection[str] = ()) -> Program | None:
    """The checked program; None if it has errors, which are printed.

    Warnings are printed, except those with a code in `untold`.
    """
    program, report = diagnosed(arguments)
    if report is None:
        return None
    _tell_warnings(report, arguments, untold)
    return program


def _tell_warnings(report: Report, arguments: argparse.Namespace, untold: Collection[str]) -> None:
    report.items = [d for d in report.items if d.code not in untold]
    text = report.text(warnings=not arguments.no_warn)
    if text:
        print(text, file=sys.stderr)


def tell_note(text: str, meter: Meter | None = None) -> None:
    """Print a note that is not an error, after clearing the progress line."""
    if meter is not None:
        meter.clear()
    print(f"note: {text}", file=sys.stderr)


def load_live(arguments: argparse.Namespace, untold: Collection[str] = ()) -> LiveText | None:
    """The checked program with its text; None if it has errors, which are printed.

    Warnings are printed, except those with a code in `untold`.
    """
    from everlog.api.live import LiveText
    from everlog.dsl.diagnostics import DatalogError

    found = _source(arguments)
    if found is None:
        return None
    try:
        live = LiveText.from_source(*found, _include_dirs(arguments), macros_of(arguments.macro))
    except DatalogError as error:
        print(error.report.text(warnings=not arguments.no_warn), file=sys.stderr)
        return None
    _tell_warnings(live.report, arguments, untold)
    return live


def _include_dirs(arguments: argparse.Namespace) -> list[Path]:
    return [Path(d) for d in arguments.include_dir]


def _source(arguments: argparse.Namespace) -> tuple[Source, list[Problem]] | None:
    """The preprocessed text; None if the file cannot be read, which is printed."""
    path, include_dirs, macros = arguments.program, _include_dirs(arguments), macros_of(arguments.macro)
    use = not arguments.no_preprocessor
    try:
        if path == "-":
            return preprocess_text(sys.stdin.read(), "<stdin>", include_dirs, macros, use)
        return load(path, include_dirs, macros, use)
    except OSError as error:
        print(f"error: cannot read `{path}`: {error.strerror or error}", file=sys.stderr)
        return None


def diagnosed(arguments: argparse.Namespace) -> tuple[Program | None, Report | None]:
    """The program and its diagnostics; no report if the file cannot be read."""
    found = _source(arguments)
    if found is None:
        return None, None
    source, problems = found
    pragmas = dict(text.partition(":")[::2] for text in getattr(arguments, "pragma", []))
    return diagnose(source, problems, pragmas)


def macros_of(definitions: list[str]) -> dict[str, str]:
    """The names and values of `-M "A=1 B"`.

    >>> macros_of(["A=1 B", "C=x=y"])
    {'A': '1', 'B': '', 'C': 'x=y'}
    """
    words = [word for definition in definitions for word in definition.split()]
    return {name: value for name, _, value in (word.partition("=") for word in words)}
