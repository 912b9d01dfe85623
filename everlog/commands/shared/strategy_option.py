"""The option `--strategy`: how to maintain relations or rules."""

from __future__ import annotations

import argparse


def add_strategy_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        action="append",
        default=[],
        metavar="[NAME=]STRATEGY",
        help="maintain a relation or a rule (`q`, `q#2`) with this strategy; without a name, all it can serve",
    )
    parser.add_argument(
        "--demand",
        action="append",
        default=[],
        metavar="RELATION",
        help="compute only what somebody asks of this relation, as if it were declared `magic`",
    )


def strategies_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The strategies by relation or rule; `*` means all.

    >>> strategies_of(argparse.Namespace(strategy=["delta", "q#2=view_tree"], demand=["path"]))
    {'*': 'delta', 'q#2': 'view_tree', 'path': 'demand'}
    """
    out: dict[str, str] = {}
    for text in arguments.strategy:
        name, found, strategy = text.rpartition("=")
        out[name if found else "*"] = strategy
    out |= dict.fromkeys(arguments.demand, "demand")
    return out
