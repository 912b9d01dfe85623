"""The shipped programs as text: the list, and the page of one program."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from everlog.core.engine.explain import explanation
from everlog.core.program import Program
from everlog.dsl.check import compile_file
from everlog.shipped import Shipped, names, shipped

WIDTH = 100


def list_text() -> str:
    """Each program with the first sentence of its description."""
    known = names()
    width = max(map(len, known))
    lines = [
        textwrap.fill(
            shipped(name).title, WIDTH, initial_indent=f"{name:<{width}}  ", subsequent_indent=" " * (width + 2)
        )
        for name in known
    ]
    return "\n".join([*lines, "", "`everlog programs show NAME` says more, `everlog programs run NAME` runs it."])


def list_json() -> str:
    """The list as JSON: name, folder, description and remarks of each program."""
    found = [shipped(name) for name in names()]
    return json.dumps(
        [{"name": one.name, "folder": str(one.folder), "what": one.what, **_lower(one)} for one in found],
        ensure_ascii=False,
        indent=2,
    )


def _lower(one: Shipped) -> dict[str, str]:
    return {name.lower(): text for name, text in one.remarks.items()}


def program_page(name: str) -> str:
    """A program's page: purpose, relations, cost of each rule, commands to run it."""
    one = shipped(name)
    program, _ = compile_file(one.program)
    parts = [
        "\n".join(_remarks(one)),
        "\n".join(_relations(one, program)),
        "\n".join(["rules, with their class and what one update costs them", *_rules(program)]),
        "\n".join(_commands(one)),
    ]
    return "\n\n".join(parts)


def _remarks(one: Shipped) -> Iterator[str]:
    yield textwrap.fill(f"{one.name}: {one.what}", WIDTH)
    yield ""
    for title, text in one.remarks.items():
        yield textwrap.fill(text, WIDTH, initial_indent=f"{title.lower():<9}", subsequent_indent=" " * 9)


def _relations(one: Shipped, program: Program) -> Iterator[str]:
    rows = {path.stem: path.read_bytes().count(b"\n") for path in one.facts.glob("*.facts")}
    reads = ", ".join(f"{d.relation} {rows.get(d.relation, 0)}" for d in program.inputs)
    yield textwrap.fill(f"reads    {reads}", WIDTH, subsequent_indent=" " * 9)
    yield textwrap.fill(
        f"answers  {', '.join(dict.fromkeys(d.relation for d in program.outputs))}",
        WIDTH,
        subsequent_indent=" " * 9,
    )


def _rules(program: Program) -> Iterator[str]:
    """One line for each rule as written; alternatives of one rule get a line each."""
    rules: list[dict[str, Any]] = explanation(program)["rules"]
    lines: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        lines.setdefault((_cost(rule), rule["rule"]), []).append(rule["name"])
    labels = [
        f"{names[0]}…{names[-1].rpartition('#')[2]}" if len(names) > 1 else names[0] for names in lines.values()
    ]
    width = max(map(len, labels))
    for label, (cost, text) in zip(labels, lines, strict=True):
        yield f"  {label:<{width}}  {cost:<28} {text}"
    yield "  An update of a recursive rule follows the facts whose proof breaks; `everlog explain` says more."


def _cost(rule: dict[str, Any]) -> str:
    """The class of a rule and the cost of one update."""
    if rule["class"] == "recursive":
        return "recursive"
    kind = rule["class"] if len(rule["join"]["atoms"]) > 1 else "no join"
    return f"{kind}, {rule['in_use']['update_cost']}"


def _commands(one: Shipped) -> Iterator[str]:
    commands = [
        (f"run {one.name}", "its answers, from its facts"),
        (f"run {one.name} --updates", "then the steps of its updates.txt, and what each changes"),
        (
            f"run {one.name} --updates -",
            "then lines such as +fact. and -fact. that you type; an empty line ends a step",
        ),
        (f"copy {one.name} DIR", "the program and its facts, to play with"),
    ]
    if one.maker is not None:
        commands.append(
            (f"make {one.name} DIR", f"other facts, by its {one.maker.name}; then `run {one.name} -F DIR`")
        )
    width = max(len(command) for command, _ in commands)
    yield "to run it"
    for command, what in commands:
        yield f"  everlog programs {command:<{width}}  {what}"
