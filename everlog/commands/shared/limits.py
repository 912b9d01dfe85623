"""Command-line options for the limits of a run, such as `--max-seconds 60`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlog.core.runtime.guards import Limits

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_limit_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-iterations", type=count, metavar="N", help="limit of rounds of a recursion that computes new values"
    )
    parser.add_argument("--max-facts", type=count, metavar="N", help="limit of facts that one step may derive")
    parser.add_argument("--max-memory", type=size, metavar="SIZE", help="limit of process memory: 800M, 2G, …")
    parser.add_argument("--max-seconds", type=seconds, metavar="S", help="time limit of one step")


def limits_of(arguments: argparse.Namespace) -> Limits | None:
    """The limits from the command line, over the defaults; None if there are none."""
    names = ("iterations", "facts", "memory", "seconds")
    asked = {name: value for name in names if (value := getattr(arguments, f"max_{name}")) is not None}
    if not asked:
        return None
    from everlog.core.runtime.guards import Limits  # here: most runs have no limits

    return Limits(**asked)


# argparse takes the name of the function into its message: "invalid size value: '1x'".


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def size(text: str) -> int:
    """A number of bytes.

    >>> size("800M"), size("1.5g"), size("4096")
    (838860800, 1610612736, 4096)
    """
    unit = text[-1:].upper() if text[-1:].isalpha() else ""
    value = float(text[: len(text) - len(unit)]) * _UNITS.get(unit, 0)
    if not 1 <= value < 1 << 62:
        raise ValueError(text)
    return int(value)


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number
