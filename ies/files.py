"""System files: reads and checks them, and runs their worked examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from everlog.dsl.diagnostics import Report
from everlog.dsl.source import Source
from everlog.ies.nrc.compiled_terms import evaluate
from everlog.ies.nrc.parser import parse_system
from everlog.ies.nrc.types import Base, Type, Value, columns
from everlog.ies.nrc.value_text import row_of, value_text
from everlog.ies.running import Running
from everlog.ies.system import Event, Example, Stored, System
from everlog.ies.validation import definitions_of, make

_STEP = re.compile(
    r"""\s*([+-])\s*([A-Za-z_]\w*'*)\s*  # what happens, and to which relation
        (\((?:"(?:\\.|[^"\\])*"|[^"])*?\))  # the tuple
        \s*\.?\s*(?:(?://|--).*)?  # a comment
    """,
    re.DOTALL | re.VERBOSE,
)


def read_system(path: Path | str) -> System:
    """The checked system of a file.  Raises DatalogError with every error."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start + 1} is not UTF-8"
        raise ValueError(f"cannot read `{place}`: {reason}") from None
    return system_of(text, str(place))


def system_of(text: str, file: str = "<text>") -> System:
    """The checked system of a text.

    >>> system = system_of('''system same "What is there"
    ... input r : {num}  answer s : {num}
    ... on insert x into r  s += {x}
    ... on delete x from r  s -= {x}''')
    >>> running = Running(system)
    >>> running.insert("r", 7)["s"]
    (frozenset(), frozenset({7}))
    """
    return make(parse_system(text, file), Report(Source(text, file)))


def parse_step(text: str) -> tuple[Event, str, Value]:
    """Read an update such as `+edge(1, 2).`: the event, the relation and the tuple.

    >>> parse_step('-edge("a", 1.5).  // a comment')
    ('delete', 'edge', ('a', Fraction(3, 2)))
    """
    found = _STEP.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text.strip()}` is not an update; write `+edge(1, 2).` or `-edge(1, 2).`")
    try:
        row = row_of(found[3])
    except ValueError as error:
        raise ValueError(f"`{text.strip()}` is not an update: {error}") from None
    return ("insert" if found[1] == "+" else "delete"), found[2], row


def mismatches(system: System, example: Example) -> Iterator[str]:
    """The expectations of a worked example that do not hold, in words."""
    running = Running(system)
    definitions = definitions_of(system)
    for step, expected in example.steps:
        try:
            event, relation, row = parse_step(step)
            (running.insert if event == "insert" else running.delete)(relation, row)
        except (ValueError, ArithmeticError) as error:
            yield f"{step} fails: {error}"
            return
        for name, term in expected.items():
            wanted, found = evaluate(term, {}, definitions), running.view(name)
            if found != wanted:
                yield f"after {step} {name} should be {value_text(wanted)}, and is {value_text(found)}"


# ── Datalog ──────────────────────────────────────────────────────────────────────────────────────


def datalog(system: System, kind: str = "number") -> str:
    """The Datalog program that defines the answer, with its declarations.

    All named base types are of one kind.  Empty if the system names no program.  The program
    declares relations of the query that are neither input nor answer itself.
    """
    if not system.query:
        return ""
    named = {column.name for stored in (*system.inputs, system.answer) for column in columns(stored.type.element)}
    lines = [f".type {name} <: {kind}" for name in sorted(named - {"num", "bool"})]
    lines += [_declaration(stored) for stored in (*system.inputs, system.answer)]
    return "\n".join([*lines, f".output {system.answer.name}", system.query, ""])


def _declaration(stored: Stored) -> str:
    kinds = [_kind(column) for column in columns(stored.type.element)]
    return f".decl {stored.name}({', '.join(f'c{n}: {kind}' for n, kind in enumerate(kinds, 1))})"


def _kind(column: Type) -> str:
    assert isinstance(column, Base)
    return "number" if column.name in ("num", "bool") else column.name
