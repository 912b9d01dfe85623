"""`--strategy`: how rules are to be kept current, from the command line."""

from __future__ import annotations

import argparse


def add_strategy_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        action="append",
        default=[],
        metavar="[NAME=]STRATEGY",
        help="keep a relation or a rule (`q`, `q#2`) by this strategy; without a name, all that it serves",
    )


def strategies_of(arguments: argparse.Namespace) -> dict[str, str]:
    """What was asked for, by relation or rule; `*` is all.

    >>> strategies_of(argparse.Namespace(strategy=["delta", "q#2=view_tree"]))
    {'*': 'delta', 'q#2': 'view_tree'}
    """
    out: dict[str, str] = {}
    for text in arguments.strategy:
        name, found, strategy = text.rpartition("=")
        out[name if found else "*"] = strategy
    return out
