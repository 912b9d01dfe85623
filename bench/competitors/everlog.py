"""everlog itself: computed once, as a living database, and by other strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING

from everlog import __version__
from everlog.bench.harness.workload import Case, Living, Row, Side, Static, Told, Update

if TYPE_CHECKING:
    from everlog import Database
    from everlog.core.evaluate.seminaive import Evaluation
    from everlog.core.program import Program

RECURSIVE = {"closure", "same_generation", "points_to", "value_flow", "borrow_check", "components", "negation"}
JOINS = {"triangles", "four_cycles", "three_path", "three_triangles"}


class Once:
    """`everlog run`: a whole program, no state kept."""

    def __init__(self, case: Case) -> None:
        import everlog.core.evaluate.seminaive
        import everlog.dsl.check
        import everlog.initial_facts  # noqa: F401  # loaded before the clock runs, as modules of others are
        from everlog.dsl.automaton import automaton

        automaton()  # the grammar's tables, which others have compiled in
        self.case = case

    def load(self) -> None:
        from everlog import compile_text
        from everlog.initial_facts import read_inputs

        self.program: Program = compile_text(self.case.program)
        self.facts = read_inputs(self.program, self.case.folder)

    def solve(self) -> None:
        from everlog import evaluate

        self.found: Evaluation = evaluate(self.program, self.facts)

    def size(self, relation: str) -> int:
        return self.found.size(relation)

    def answer(self, relation: str) -> Iterable[Row]:
        return self.found.relation(relation)  # type: ignore[return-value]  # all values are numbers

    def close(self) -> None:
        pass


class Kept:
    """A `Database` that every insert and delete keeps current."""

    def __init__(self, case: Case, strategy: str = "") -> None:
        import everlog.api.database  # noqa: F401
        from everlog.dsl.automaton import automaton

        automaton()
        self.case, self.strategies = case, {"*": strategy} if strategy else {}

    def load(self) -> None:
        from everlog import Database, compile_text

        program = compile_text(self.case.program)
        self.database: Database = Database(program, facts=self.case.folder, strategies=self.strategies)

    def step(self, updates: list[Update]) -> Told:
        """Apply a step and read every changed row: an unread change would cost us nothing."""
        if len(updates) == 1:
            relation, row, insert = updates[0]
            changes = (self.database.insert if insert else self.database.delete)(relation, row)
        else:
            changes = self.database.apply([(name, row, 1 if insert else -1) for name, row, insert in updates])
        self.current_at = perf_counter()
        return {name: changes[name] for name in changes}  # type: ignore[misc]  # all values are numbers

    def answer(self, relation: str) -> Iterable[Row]:
        return self.database.rows(relation)  # type: ignore[return-value]

    def close(self) -> None:
        pass


class Loaded(Kept):
    """The same, with reading files and computing timed separately."""

    def load(self) -> None:
        from everlog import compile_text
        from everlog.initial_facts import read_inputs

        self.program: Program = compile_text(self.case.program)
        self.facts = read_inputs(self.program, self.case.folder)

    def solve(self) -> None:
        from everlog import Database

        self.database = Database(self.program, facts=self.facts)
        del self.facts

    def size(self, relation: str) -> int:
        return self.database.size(relation)


def _version() -> str:
    return __version__


def _strategy(name: str, title: str, queries: set[str]) -> Side:
    def living(case: Case) -> Living:
        return Kept(case, name)

    def refuses(query: str, living: bool) -> str:
        return "" if query in queries else f"`{name}` is for other rules"

    return Side(f"everlog {name}", f"everlog, {title}", _version, None, living, refuses, own=True)


_once: Callable[[Case], Static] = Once
_loaded: Callable[[Case], Static] = Loaded
_living: Callable[[Case], Living] = Kept

SIDES = [
    Side("everlog", "everlog", _version, _once, _living, grows=True),
    Side("everlog living", "everlog, living", _version, _loaded, own=True, grows=True),
    _strategy("delta", "first-order delta", JOINS),
    _strategy("generations", "age generations", JOINS),
    _strategy("ranked_python", "ranks in Python", RECURSIVE),
    _strategy("tc_witness", "system of auxiliary relations", {"closure"}),
]
