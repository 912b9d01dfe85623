"""A stream of updates: each step is applied, and its changes are printed at once.

A line is `+edge(1, 2).` or `-edge(1, 2).`; a blank line, or the end of the input, ends a step.
Lines are read one by one, so a live pipe gets its answer as soon as a step is complete.  A step
with an error, in its lines or in the evaluation, is skipped as a whole, and the stream goes on.
Lines `.why fact` and `.why-not fact` are questions about the current state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TextIO, TypeAlias

from everlog.api.changes import NO_CHANGE
from everlog.api.database import Database
from everlog.api.facts.rows import is_idle, line_update
from everlog.core.program import Program
from everlog.core.program.executor import InsertOnly
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError, decoded
from everlog.core.proofs import NotDerived
from everlog.files.location import reason, write_stream
from everlog.files.text_values import FactsError
from everlog.store.errors import FileMoved, StoreError

NO_ANSWER = "(no answer)"
Step: TypeAlias = list[tuple[int, str]]  # lines with their numbers


Around: TypeAlias = Callable[[], AbstractContextManager[object]]  # what is done around each step


def follow(
    database: Database,
    name: str,
    lines: Iterable[str],
    out: TextIO,
    err: TextIO,
    around: Around = nullcontext,
) -> bool:
    """Apply the steps of a stream; print the changes of the relations of interest.

    A skipped step prints `(no change)`, and `err` gets the reason.  Returns whether every step was
    applied.
    """
    shown = relations_of_interest(database.program)
    all_well = True
    for step in steps(lines):
        mistakes: list[str] = []
        if is_question(step[0][1]):
            answer = _answered(database, name, step[0], mistakes)
        else:
            answer = _applied(database, name, step, shown, mistakes, around)
        for mistake in mistakes:
            print(f"error: {mistake}", file=err, flush=True)
        all_well = all_well and not mistakes
        write_stream(out, answer + "\n")
        out.flush()
    return all_well


def _applied(
    database: Database, name: str, step: Step, shown: set[str], mistakes: list[str], around: Around
) -> str:
    """Apply a step and return its changes as text; add errors to `mistakes`."""
    updates = []
    for number, line in step:
        try:
            update = line_update(database.relations, line)
            if not update.insert and database.relations[update.relation].insert_only:
                raise InsertOnly(update.relation)
            updates.append(update)
        except (FactError, InsertOnly) as problem:
            mistakes.append(f"{name}:{number}: {problem}")
    if not mistakes:
        try:
            with around():
                changes = database.apply(updates)
            return changes.text(shown)
        except FileMoved:  # no later step would be written either
            raise
        except (EvaluationError, MemoryError, StoreError) as problem:
            first, last = step[0][0], step[-1][0]
            place = f"{name}:{first}" if first == last else f"{name}:{first}-{last}"
            mistakes.append(f"{place}: {problem if str(problem) else 'out of memory'}")
    mistakes[-1] += "\nthe step is skipped"
    return NO_CHANGE


def is_question(line: str) -> bool:
    """Whether a line is a question: `.why fact` or `.why-not fact`."""
    return line.startswith(".")


def _answered(database: Database, name: str, question: tuple[int, str], mistakes: list[str]) -> str:
    """Answer a question: the proof of a fact, or what each rule lacks to derive it."""
    number, line = question
    command, _, fact = line.partition(" ")
    try:
        match command:
            case ".why":
                return database.why(fact.strip()).text()
            case ".why_not" | ".why-not":
                return database.why_not(fact.strip()).text()
        mistakes.append(f"{name}:{number}: unknown question `{command}`; use .why or .why-not")
    except NotDerived as problem:
        mistakes.append(f"{name}:{number}: {NotDerived(problem.fact, '.why-not')}")
    except ValueError as problem:  # no fact, or nothing to prove
        mistakes.append(f"{name}:{number}: {problem}")
    return NO_ANSWER


def relations_of_interest(program: Program) -> set[str]:
    """The `.output` relations; if there are none, those with rules."""
    return {d.relation for d in program.outputs} or {rule.head.relation for rule in program.rules}


def steps(lines: Iterable[str]) -> Iterator[Step]:
    """The steps of a stream: groups of update lines separated by blank lines.

    Comments are skipped.  A question stands alone, and ends the step before it.

    >>> list(steps(["+a(1).", "// why", "-a(2).", "", "", "+a(3).", ".why a(3)"]))
    [[(1, '+a(1).'), (3, '-a(2).')], [(6, '+a(3).')], [(7, '.why a(3)')]]
    """
    step: Step = []
    for number, line in enumerate(lines, start=1):
        if is_question(line.strip()):
            if step:
                yield step
            yield [(number, line.strip())]
            step = []
        elif not is_idle(line):
            step.append((number, line.strip()))
        elif step and not line.strip():
            yield step
            step = []
    if step:
        yield step


@contextmanager
def stream_lines(name: str, stdin: TextIO) -> Iterator[Iterator[str]]:
    """Open a file, or for `-` standard input, as an iterator that waits for each line."""
    if name == "-":
        buffer = getattr(stdin, "buffer", None)
        yield iter(stdin.readline, "") if buffer is None else map(decoded, iter(buffer.readline, b""))
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115  # an error here is not one of the block below
    except OSError as problem:
        raise FactsError(f"cannot read the updates in {name}: {reason(problem)}") from None
    with file:
        yield map(decoded, iter(file.readline, b""))
