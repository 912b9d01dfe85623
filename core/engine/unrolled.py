"""A small step on one relation as one function: the turns of all units it reaches.

A step of a few facts spends most of its time on dispatch: whose turn is next, which readers to
call, which rule to run.  For one relation the sequence is always the same, so it is compiled once:
table changes, rules and counts in a row, with a test before each unit whether it has anything to
do.  Units of other strategies are called as they are.  The function does what `Step.run` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from everlog.core.codegen.code_lines import comment, defined, identifier
from everlog.core.engine.keepers.counted import DerivingKeeper
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.stepping.step import Listener, Readers, Step, put_back
from everlog.core.storage.shape import Facts

if TYPE_CHECKING:
    from everlog.core.engine.network import Network

Follow = Callable[[Step, Facts, Facts], None]


class _Writer:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.lines: list[str] = []
        self.scope: dict[str, object] = {"put_back": put_back}

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self, prefix: str, value: object) -> str:
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name

    def spread(self, depth: int, relation: str) -> None:
        """`Step.spread` for one relation: `gone` and `new` are its change."""
        table = self.name("table", self.network.store.tables[relation])
        readers = self.network.readers.get(relation, Readers())
        if relation in self.network.reported:
            self.line(depth, f"changes[{relation!r}] = (gone, new)")
        self.line(depth, f"undo.append((put_back, ({table}, gone, new)))")
        for facts, early, change, late in (
            ("gone", readers.losses, "remove", readers.late_gains),
            ("new", readers.early_losses, "merge", readers.gains),
        ):
            self.line(depth, f"if {facts}:")
            for listener in early:
                self.listener(depth + 1, listener, facts)
            self.line(depth + 1, "shield.held = True")
            self.line(depth + 1, f"{table}.{change}({facts})")
            self.line(depth + 1, "shield.release()")
            for listener in late:
                self.listener(depth + 1, listener, facts)

    def listener(self, depth: int, listener: Listener, facts: str) -> None:
        task, keeper, sign = getattr(listener, "direct", (None, None, 0))
        if task is None:
            tell = getattr(listener, "unmeasured", listener)  # it leaves waking to `turn`
            self.line(depth, f"{self.name('tell', tell)}(step, {facts})")
            return
        self.line(depth, comment(str(task.rule)))
        run, kept = self.name("rule", task), self.name("unit", keeper)
        self.line(depth, f"{run}.time.runs += 1")
        self.line(depth, f"({run}.run or {run}.bind())({facts}, {kept}.{'plus' if sign > 0 else 'minus'})")

    def turn(self, keeper: Keeper) -> None:
        kept = self.name("unit", keeper)
        relation = keeper.relations[0]
        if isinstance(keeper, DerivingKeeper) and not self.network.is_filtered(relation):
            self.line(1, f"if {kept}.plus or {kept}.minus:  {comment(keeper.planned.name)}")
            self.line(2, f"gone, new = {kept}.settle(step)")
            self.line(2, "if gone or new:")
            self.spread(3, relation)
        else:
            if isinstance(keeper, DerivingKeeper):
                self.line(1, f"if {kept}.plus or {kept}.minus:")
            else:
                self.line(1, f"if {kept}.waiting:")
            self.line(2, f"{kept}.waiting = False")
            self.line(2, f"{kept}.turn(step)")


def unrolled(network: Network, relation: str) -> Follow | None:
    """The function that follows a change of a base relation; None if it is too long."""
    if network.is_filtered(relation):
        return None
    keepers = network.after(relation)
    if len(keepers) > MOST_UNITS:
        return None
    writer = _Writer(network)
    writer.line(0, "def follow(step, gone, new):")
    writer.line(1, comment(relation))
    writer.line(1, "undo, changes, shield = step.undo, step.changes, step.guard.shield")
    writer.spread(1, relation)
    for keeper in keepers:
        writer.turn(keeper)
    writer.line(1, "if step.queue: step.all_awake()")
    source = "\n".join(writer.lines)
    follow: Follow = defined("follow", source, identifier("step on ", relation), writer.scope)
    return follow


MOST_UNITS = 200  # beyond this, dispatch hardly matters
