"""What several commands share: how a program is named on the command line, and loaded."""

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
        "-I", "--include-dir", action="append", default=[], metavar="DIR", help="where includes are"
    )
    parser.add_argument("-M", "--macro", action="append", default=[], metavar='"A=1 B=2"', help="define macros")
    parser.add_argument("--no-preprocessor", action="store_true", help="leave # lines and macros alone")
    parser.add_argument("-w", "--no-warn", action="store_true", help="no warnings; missing fact files are empty")
    parser.add_argument("-W", "--warn", action="append", default=[], metavar="X", help="accepted, ignored")


def add_functor_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-l",
        "--library",
        "--libraries",
        action="append",
        default=[],
        metavar="NAME",
        help="Python file of functors",
    )
    parser.add_argument(
        "-L", "--library-dir", action="append", default=[], metavar="DIR", help="where such files are"
    )


def load_program(arguments: argparse.Namespace, untold: Collection[str] = ()) -> Program | None:
    """The checked program, warnings told but for those `untold`; None after its errors were told."""
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
    """What is no mistake, but worth knowing; where a meter writes its line, after that is gone."""
    if meter is not None:
        meter.clear()
    print(f"note: {text}", file=sys.stderr)


def load_live(arguments: argparse.Namespace, untold: Collection[str] = ()) -> LiveText | None:
    """The checked program with its text, warnings told but for those `untold`; None after its
    errors were told.
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
    """The text that was named, preprocessed; None after it was told that it cannot be read."""
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
    """The program and what there is to tell; no report where the file cannot be read."""
    found = _source(arguments)
    if found is None:
        return None, None
    source, problems = found
    pragmas = dict(text.partition(":")[::2] for text in getattr(arguments, "pragma", []))
    return diagnose(source, problems, pragmas)


def macros_of(definitions: list[str]) -> dict[str, str]:
    """`-M "A=1 B"` as names and values.

    >>> macros_of(["A=1 B", "C=x=y"])
    {'A': '1', 'B': '', 'C': 'x=y'}
    """
    words = [word for definition in definitions for word in definition.split()]
    return {name: value for name, _, value in (word.partition("=") for word in words)}
