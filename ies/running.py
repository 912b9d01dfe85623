"""A running system: its relations, and atomic updates.

An update computes the shared bindings, checks the requirements, computes the next value of every
relation from the old state, checks the size of the result, and only then changes anything.  So an
error (a wrong tuple, a failed requirement, auxiliaries past the limit, a division by zero) leaves
all relations as they were.

The limit bounds the number of values in the auxiliary relations, nested sets included; an
exponential system that reaches it should be replaced by another one.  Only changes are counted, so
counting costs no more than the update.

Source: Libkin and Wong, Section 3: RES and AUX of the next step from X, RES and AUX of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import frozen

from everlog.ies.nrc.compiled_terms import compile_term
from everlog.ies.nrc.indexes import carry
from everlog.ies.nrc.terms import Bind, Pattern, Term
from everlog.ies.nrc.types import Base, Value, inhabits
from everlog.ies.nrc.value_text import fact_text, is_itself, value_text
from everlog.ies.practical.protocol import BadTuple, NotPermissible
from everlog.ies.system import DEFAULT_LIMIT, Becomes, Differs, Event, System, Update
from everlog.ies.validation import definitions_of, needed

__all__ = ["DEFAULT_LIMIT", "BadTuple", "Changes", "NotPermissible", "Running", "TooLarge", "values_in"]

# relation → (gone, new), never both empty
Changes: TypeAlias = dict[str, tuple[frozenset[Value], frozenset[Value]]]
State: TypeAlias = dict[str, frozenset[Value]]
_Function: TypeAlias = Callable[[Mapping[str, Value]], Value]


class TooLarge(ValueError):
    """An update that would make the auxiliary relations larger than the limit."""

    def __init__(self, system: System, update: str, values: int, limit: int) -> None:
        self.values, self.limit = values, limit
        parts = [f"{update} refused: the auxiliary relations of {system.name} would hold {values:,} values"]
        parts.append(f", and the limit is {limit:,}")
        if system.growth:
            parts.append(f"; they grow {'exponentially' if system.exponential else 'like this'}: {system.growth}")
        if system.instead:
            parts.append(f"; use {system.instead}, which keeps the same answer with polynomial auxiliaries")
        super().__init__("".join(parts) + ". Nothing was changed.")


def values_in(value: Value) -> int:
    """The number of values of base types in a value; an empty set is one.

    >>> values_in((1, frozenset({(1, 2), (2, 3)}), frozenset()))
    6
    """
    if isinstance(value, (tuple, frozenset)):
        return sum(map(values_in, value)) or 1
    return 1


@frozen
class _Compiled:
    """The compiled functions of an update.

    Their arguments are the old relations, the parts of the tuple, and the bindings, by name.
    """

    update: Update
    bindings: tuple[tuple[Pattern, _Function], ...]
    requirements: tuple[tuple[_Function, str], ...]
    changes: tuple[tuple[str, _Function | None, _Function | None, _Function | None], ...]  # becomes, gone, new


class Running:
    """A system with its relations.

    Invariants, verified by `check`:
      I1  every relation is a set of values of its type;
      I2  `values` is the number of values in the auxiliary relations; past the limit no update
          makes it grow.
    """

    def __init__(
        self,
        system: System,
        limit: int | None = DEFAULT_LIMIT,
        state: Mapping[str, Iterable[Value]] | None = None,
    ) -> None:
        self.system, self.limit = system, limit
        self._types = {stored.name: stored.type for stored in system.stored}
        self._inputs = {stored.name for stored in system.inputs}
        self._auxiliaries = [stored.name for stored in system.auxiliaries]
        self._compiled: dict[tuple[Event, str], _Compiled] = {}
        self._state: State = self._checked_state(state) if state is not None else self._initial()
        self.values = sum(values_in(row) for name in self._auxiliaries for row in self._state[name])

    def anew(self) -> Running:
        """The same system in its initial state, with the compiled functions."""
        fresh = Running(self.system, self.limit)
        fresh._compiled = self._compiled
        return fresh

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def view(self, name: str) -> frozenset[Value]:
        """The current elements of a relation; those of a unary one are not tuples."""
        if name not in self._state:
            raise BadTuple(f"{name} is not a relation of {self.system.name}; there is {', '.join(self._state)}")
        return self._state[name]

    def rows(self, name: str) -> frozenset[tuple[Value, ...]]:
        """The current rows of a flat relation; those of a unary one are 1-tuples."""
        found = self.view(name)
        return frozenset((value,) for value in found) if isinstance(self._types[name].element, Base) else found

    def state(self) -> State:
        """All relations; `Running(system, state=...)` continues from them."""
        return dict(self._state)

    def sizes(self) -> dict[str, int]:
        """The number of tuples of each relation."""
        return {name: len(rows) for name, rows in self._state.items()}

    def check(self) -> None:
        """Assert the invariants.  Cost: the size of everything."""
        for name, rows in self._state.items():
            assert inhabits(rows, self._types[name]), f"I1: {name}"
        values = sum(values_in(row) for name in self._auxiliaries for row in self._state[name])
        assert values == self.values, "I2: the count of values"

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, relation: str, row: Value) -> Changes:
        """Insert a tuple; return the lost and new elements of each changed relation."""
        return self._apply("insert", relation, row)

    def delete(self, relation: str, row: Value) -> Changes:
        """Delete a tuple; return the lost and new elements of each changed relation."""
        return self._apply("delete", relation, row)

    def _apply(self, event: Event, relation: str, row: Value) -> Changes:
        row = self._checked(relation, row)
        old = self._state[relation]
        changes: Changes = {}
        if (row in old) != (event == "insert"):
            single = frozenset((row,))
            changes[relation] = (frozenset(), single) if event == "insert" else (single, frozenset())
        compiled = self._functions(event, relation)
        if changes or not compiled.update.effective:
            changes.update(self._computed(compiled, row))
        values = self.values + self._growth(changes)
        if self.limit is not None and self.limit < values and self.values < values:
            raise TooLarge(self.system, _shown(event, relation, row), values, self.limit)
        # nothing below can fail
        for name, (gone, new) in changes.items():
            old = self._state[name]
            kept = old - gone if gone else old
            self._state[name] = kept | new if new else kept
            carry(old, self._state[name], gone, new)
        self.values = values
        return changes

    def _computed(self, compiled: _Compiled, row: Value) -> Changes:
        """The next values of answer and auxiliaries."""
        values = dict(self._state)
        _bind(compiled.update.tuple_, row, values)
        for pattern, function in compiled.bindings:
            _bind(pattern, function(values), values)
        for function, otherwise in compiled.requirements:
            if not function(values):
                update = compiled.update
                raise NotPermissible(f"{_shown(update.event, update.relation, row)} refused: {otherwise}")
        changes: Changes = {}
        for name, becomes, gone, new in compiled.changes:
            old = self._state[name]
            if becomes is not None:
                after: frozenset[Value] = becomes(values)
                change = (old - after, after - old)
            else:
                added: frozenset[Value] = frozenset() if new is None else new(values)
                dropped: frozenset[Value] = frozenset() if gone is None else gone(values)
                change = ((dropped & old) - added, added - old)
            if change[0] or change[1]:
                changes[name] = change
        return changes

    def _growth(self, changes: Changes) -> int:
        pairs = [changes[name] for name in self._auxiliaries if name in changes]
        return sum(sum(map(values_in, new)) - sum(map(values_in, gone)) for gone, new in pairs)

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _initial(self) -> State:
        definitions = definitions_of(self.system)
        state: State = {name: frozenset() for name in self._types}
        for name, term in self.system.initial.items():
            state[name] = compile_term(term, (), definitions)()
        return state

    def _checked_state(self, state: Mapping[str, Iterable[Value]]) -> State:
        if missing := self._types.keys() ^ state.keys():
            there = ", ".join(self._types)
            raise BadTuple(
                f"a state of {self.system.name} has the relations {there}: see {', '.join(sorted(missing))}"
            )
        checked = {name: frozenset(state[name]) for name in self._types}
        for name, rows in checked.items():
            if wrong := [row for row in rows if not inhabits(row, self._types[name].element)]:
                raise BadTuple(f"{value_text(wrong[0])} is not a tuple of {name} : {self._types[name]}")
        return checked

    def _functions(self, event: Event, relation: str) -> _Compiled:
        key = (event, relation)
        if key not in self._compiled:
            self._compiled[key] = self._compile(self.system.updates[key])
        return self._compiled[key]

    def _compile(self, update: Update) -> _Compiled:
        definitions = definitions_of(self.system)

        def compiled(term: Term) -> _Function:
            parameters = sorted(needed(term, definitions))
            function = compile_term(term, parameters, definitions)
            return lambda values: function(*[values[name] for name in parameters])

        changes: list[tuple[str, _Function | None, _Function | None, _Function | None]] = []
        for name, change in update.changes.items():
            match change:
                case Becomes(value):
                    changes.append((name, compiled(value), None, None))
                case Differs(gone, new):
                    taken = None if gone is None else compiled(gone)
                    changes.append((name, None, taken, None if new is None else compiled(new)))
        bindings = tuple((pattern, compiled(term)) for pattern, term in update.bindings)
        requirements = tuple((compiled(r.condition), r.otherwise) for r in update.requirements)
        return _Compiled(update, bindings, requirements, tuple(changes))

    def _checked(self, relation: str, row: Value) -> Value:
        if relation not in self._inputs:
            there = ", ".join(stored.name for stored in self.system.inputs)
            raise BadTuple(f"{relation} is not an input of {self.system.name}; there is {there}")
        type_ = self._types[relation]
        if isinstance(row, list):
            row = tuple(row)
        if isinstance(type_.element, Base) and isinstance(row, tuple) and len(row) == 1:
            row = row[0]
        if not inhabits(row, type_.element):
            raise BadTuple(f"{value_text(row)} is not a tuple of {relation} : {type_}")
        if not is_itself(row):
            raise BadTuple(f"{value_text(row)} is not a tuple of {relation}: systems do not take NaN")
        return row


def _bind(pattern: Pattern, value: Value, values: dict[str, Value]) -> None:
    """Bind the variables of a pattern to the parts of a value; later ones win."""
    if isinstance(pattern, Bind):
        values[pattern.name] = value
        return
    for part, item in zip(pattern.parts, value, strict=True):
        _bind(part, item, values)


def _shown(event: Event, relation: str, row: Value) -> str:
    return ("+" if event == "insert" else "-") + fact_text(relation, row)
