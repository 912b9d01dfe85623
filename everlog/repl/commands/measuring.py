"""Commands `.timer`, `.prof`, `.advise`, `.mem`, `.progress`, `.limit`: time, memory, limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from everlog.core.program.values import integer
from everlog.repl.commands.output import change_or_show
from everlog.repl.commands.rules import named_rules, plan_lines
from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.core.engine.statistics import RuleStatistics
    from everlog.core.runtime.guards import Limits
    from everlog.repl.session import Session

THEME = "Time, memory, limits"


@command(".timer", "[on|off]", "print the time of each line", THEME, completes=("on|off",))
def timer(session: Session, words: Words) -> None:
    """
    Wall-clock seconds, including the output, without the time that a pager waits for a key.
    """
    change_or_show(session, "timer", words)


@command(".prof", "[N|NAME]", "runs and time of each rule", THEME, completes=("name",))
def prof(session: Session, words: Words) -> None:
    """
    The slowest first; with N, only the first N.  With NAME, a relation or a rule, its rules, what
    their joins have done so far, and how they join the facts that are there.  Rules that moved to
    another strategy follow, with when and why; then units for which a step made ranks, or that
    a step computed anew because following the change had cost as much.
    """
    from everlog.repl.modes import table_lines

    stats = session.db.stats()
    rules = sorted(stats.rules, key=lambda rule: -rule.seconds)
    name = words[0] if words and not words[0].isdecimal() else None
    if name is not None:
        named = named_rules(session, name)
        chosen = [rule for rule in rules if rule.name in named]
    else:
        chosen = rules[: _number(words[0])] if words else rules
    rows = [[r.name, r.strategy, str(r.runs), f"{r.seconds:.3f}", f"{r.compiling:.3f}"] for r in chosen]
    names = ["rule", "kept by", "runs", "seconds", "compiling"]
    lines = table_lines(session.screen, names, rows, [False, False, True, True, True])
    moves = (f"{rule.name} moved {rule.moved}" for rule in chosen if rule.moved)
    units = (line for unit in stats.units for line in unit.told())
    joins = chain(_work_lines(chosen), plan_lines(session, name)) if name is not None else ()
    told = () if name is not None else units
    session.screen.lines(chain(lines, moves, told, joins), paged=True, ready=session.screen.seen)


@command(".advise", "", "which relations are worth their memory", THEME)
def advise(session: Session, words: Words) -> None:
    """
    From who read which relation so far, by which columns, and what it cost: keep it, ask for it on
    demand, inline it, drop it; joins that another relation holds, or that several rules share.
    """
    from everlog.repl.reports import advice_lines

    program = session.places.program
    measure = f"everlog advise {'PROGRAM' if program is None else program} --log FILE{{}}"
    session.screen.lines(advice_lines(session.db, measure), paged=True)


def _work_lines(rules: Iterable[RuleStatistics]) -> Iterator[str]:
    for rule in rules:
        if rule.work:
            yield f"{rule.name}: its join has done {rule.work} units of work, of about ten nanoseconds each"


@command(".mem", "", "memory of the process and of each relation", THEME, words=(0, 0))
def mem(session: Session, words: Words) -> None:
    """
    The bytes of a relation are those of its tables, indexes, counts and ranks, without the
    values in them.
    """
    from everlog.core.runtime.guards import memory_in_use
    from everlog.repl.modes import table_lines

    rows = [[r.name, str(r.facts), str(r.bytes)] for r in session.db.stats().relations]
    lines = table_lines(session.screen, ["relation", "facts", "bytes"], rows, [False, True, True])
    session.screen.lines(lines, paged=True, ready=session.screen.seen)
    session.screen.line(f"process: {memory_in_use() / (1 << 20):.1f} MB")


@command(".progress", "[on|off]", "show the progress of a long step on the terminal", THEME, completes=("on|off",))
def progress(session: Session, words: Words) -> None:
    """
    After half a second, shows the round of the recursion and the facts so far.
    """
    change_or_show(session, "progress", words)


@command(
    ".limit",
    "[NAME [VALUE|off]]",
    "limits of one step",
    THEME,
    words=(0, 2),
    completes=("seconds|memory|facts|iterations", "off"),
)
def limit(session: Session, words: Words) -> None:
    """
    NAME is `seconds`, `memory` (such as 800M), `facts` (derived in one step) or `iterations` (of a
    recursion that computes new values).  A step that exceeds a limit is undone.
    """
    from attrs import evolve

    from everlog.commands.shared.limits import count, seconds, size

    readers: dict[str, Any] = {"seconds": seconds, "memory": size, "facts": count, "iterations": count}
    if words and words[0] not in readers:
        raise CommandError(f"no limit `{words[0]}`; the limits are {', '.join(readers)}")
    limits = session.db.limits
    if len(words) < 2:
        session.screen.lines(_shown(limits, name) for name in words or readers)
        return
    name, text = words
    try:
        value = None if text == "off" else readers[name](text)
    except ValueError:
        raise CommandError(f"invalid limit for {name}: `{text}`; use `off` to remove it") from None
    session.db.limits = session.limits = evolve(limits, **{name: value})


def _shown(limits: Limits, name: str) -> str:
    value = getattr(limits, name)
    if value is not None and name == "memory":
        return f"memory: {value >> 20}M"
    return f"{name}: {'off' if value is None else value}"


def _number(text: str) -> int:
    if not text.isdecimal() or integer(text) < 1:
        raise CommandError(f"`{text}` is not a number of rules")
    return integer(text)
