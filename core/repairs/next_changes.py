"""In one state, the changes that a goal needs next.

Let S be a set of changes that does not reach the goal, and T a larger one that does.  In the state
after S, `next_changes` finds at least one set E of changes with S ∪ E ⊆ T, as long as it is not
stopped.  So the search, which adds E and asks again, finds every least T.  The reason:

- A fact that holds has a proof.  In the state after T that proof fails: a base fact of it is
  deleted, or a fact that it needs to be absent comes, or an aggregate in it changes.
- A fact that does not hold, and comes, has a proof in the state after T.  Some facts of that proof
  hold already.  The others come, and so on down to base facts that are inserted, or to facts that
  must go.

An agenda holds partial solutions: wants that are open, and changes made for those that are not.
Each has a place once, so cycles of rules end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count, product
from typing import TypeAlias

from everlog.core.program import Atom, Call, Comparison, Literal, Row, Rule, Value, Variable, written_body
from everlog.core.program.bodies import Binding
from everlog.core.program.executor import Changes, Update
from everlog.core.proofs.evidence import Evidence, draws, matched
from everlog.core.proofs.proof import GIVEN
from everlog.core.proofs.search import why
from everlog.core.proofs.solve import Solver
from everlog.core.repairs.domain import Domain
from everlog.core.repairs.instances import NONE, Instances, Want, Wants, Work
from everlog.core.repairs.repair import Allowed, Step

_Option: TypeAlias = tuple[Wants, frozenset[Update]]
ENOUGH = 100  # changes of a goal without a bound


class NextChanges:
    """The next changes in one state, in which the step `made` has been tried."""

    def __init__(
        self,
        engine: Evidence,
        allowed: Allowed,
        made: Step,
        told: Changes,
        goals: tuple[Update, ...],
        computed: Collection[tuple[str, int]],
        work: Work,
    ) -> None:
        self.engine, self.allowed, self.made = engine, allowed, made
        self._solver = Solver(engine.program, engine.tables)
        self._domain = Domain(engine.program, engine.tables, goals, told)
        self._instances = Instances(self._solver, self._domain, computed, work)
        self._work = work
        self._too_many = False

    def holds(self, relation: str, row: Row) -> bool:
        return self._solver.has(relation, row)

    def sets(self, want: Want, most: int) -> Iterator[frozenset[Update]]:
        """Sets of at most `most` changes, few changes first; `OutOfWork` ends them."""
        numbers = count()
        agenda: list[tuple[int, int, Wants, frozenset[Update]]] = [(1, 0, frozenset([want]), frozenset())]
        seen: set[_Option] = set()
        while agenda:
            _, _, wants, changes = heappop(agenda)
            if not wants:
                yield changes
                continue
            first = min(wants, key=_order)
            for more, new in self._options(first, most):
                option = (wants - {first}) | more, changes | new
                if option in seen or not self._fits(option[1], most):
                    continue
                seen.add(option)
                heappush(agenda, (len(option[0]) + len(option[1]), next(numbers), *option))

    def _fits(self, changes: frozenset[Update], most: int) -> bool:
        """Whether changes are few enough, and contradict neither each other nor the step made."""
        opposite = {Update(change.relation, change.row, not change.insert) for change in changes}
        if opposite & changes or opposite & self.made:
            return False
        self._too_many = self._too_many or len(changes) > most
        return len(changes) <= most

    @property
    def cut(self) -> bool:
        """Whether sets of more changes than allowed were left out."""
        return self._too_many or self._instances.cut

    # ── the options of one want ──────────────────────────────────────────────────────────────

    def _options(self, want: Want, most: int) -> Iterator[_Option]:
        self._work.step()
        return self._to_come(want, most) if want.comes else self._to_go(want, most)

    def _to_come(self, want: Want, most: int) -> Iterator[_Option]:
        if want.relation in self.allowed.inserts:
            for row in self._rows(want):
                yield NONE, frozenset([Update(want.relation, row)])
        for rule in self.engine.program.rules_of(want.relation):
            if draws(rule.head.args, rule.body):
                continue
            start = _binding(rule, want.row)
            if start is not None:
                for wants in self._instances.makes(self._body(rule, want.row), start, most):
                    if want not in wants:
                        yield wants, frozenset()

    def _rows(self, want: Want) -> Iterator[Row]:
        """The rows of a fact that must come, with values for unknown columns."""
        columns = [
            self._domain.values(want.relation, n) if value is None else (value,)
            for n, value in enumerate(want.row)
        ]
        for row in product(*columns):
            self._work.step()
            yield row

    def _body(self, rule: Rule, row: Sequence[Value | None]) -> tuple[Literal, ...]:
        """The body, and `?j = term` for each computed column j whose value is known."""
        known = tuple(
            Comparison("=", Variable(f"?{n}"), arg, arg.kind)
            for n, arg in enumerate(rule.head.args)
            if isinstance(arg, Call) and row[n] is not None
        )
        return (*rule.body, *known)

    def _to_go(self, want: Want, most: int) -> Iterator[_Option]:
        row = tuple(value for value in want.row if value is not None)
        if not self._solver.has(want.relation, row):
            return
        for proof in why(self.engine, want.relation, row).proofs():
            change = Update(proof.relation, proof.row, insert=False)
            if proof.reason == GIVEN:
                if self.allowed.has(change):
                    yield NONE, frozenset([change])
            elif proof.rule is not None:
                conditions = [x for x in written_body(proof.rule.body) if not isinstance(x, Atom)]
                for wants in self._instances.breaks(conditions, dict(proof.binding), most):
                    yield wants, frozenset()


def _order(want: Want) -> tuple[bool, str, str]:
    return not want.comes, want.relation, repr(want.row)


def _binding(rule: Rule, row: Sequence[Value | None]) -> Binding | None:
    """The binding of a head for a row, as far as it is known; None if they do not match."""
    known = [n for n, value in enumerate(row) if value is not None]
    values = [value for value in row if value is not None]
    found = matched([rule.head.args[n] for n in known], values)
    if isinstance(found, str):
        return None
    computed = {
        f"?{n}": value for n, value in zip(known, values, strict=True) if isinstance(rule.head.args[n], Call)
    }
    return found | computed
