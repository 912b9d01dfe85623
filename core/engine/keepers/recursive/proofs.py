"""The storage of witnesses: beside each fact, or by sets of facts that share one.

A witness is a tuple: the number of a rule, and the hidden values of its body.  Two forms:

`ProofsOf`        {fact: witness}; of a binary relation {key: {value: witness}} `GroupedProofs`   of
a binary relation {key: {witness: {value, …}}}: the values of a key, split
                  into sets that share a witness.  Where a rule carries a column along
                  (`path(x, z) :- path(x, y), edge(y, z)` carries x) these sets are large, and all
                  work on them runs in C.

A round collects its derivations in the same form (`new`), grouped with the set of all values: {key:
(values, {witness: values})}.
"""

from __future__ import annotations

from typing import Any, Generic, TypeAlias

from everlog.core.program import Row, Value
from everlog.core.storage.shape import Counted, F, PairFacts, ShapeOf, ValueSet
from everlog.core.storage.table_shapes import PairShape

Witness: TypeAlias = tuple[int, *tuple[Value, ...]] | tuple[()]  # rule and values; () of a base fact
Groups: TypeAlias = dict[Witness, ValueSet]
New: TypeAlias = dict[Value, tuple[ValueSet, Groups]]


class ProofsOf(Generic[F]):
    """Witnesses of one relation, each beside its fact.

    Compiled rules look witnesses up in `data`, and collect new ones in `new`.
    """

    def __init__(self, shape: ShapeOf[F], data: Counted) -> None:
        self.shape, self.data = shape, data

    def facts(self, new: Counted) -> F:
        """The facts that were collected."""
        return self.shape.support(new)

    def merge(self, new: Counted) -> None:
        """Add the collected witnesses; their facts had none."""
        self.shape.merge_counted(self.data, new)

    def bring(self, new: Counted, row: Row, witness: Witness) -> None:
        """Add one row to the collected ones."""
        self.shape.set_counted(new, row, witness)

    def entries(self, new: Counted) -> list[tuple[Row, Witness]]:
        """The collected rows with their witnesses."""
        return list(self.shape.counted_rows(new))

    def set(self, row: Row, witness: Witness) -> None:
        """Add the witness of one fact, which had none."""
        self.shape.set_counted(self.data, row, witness)

    def take(self, facts: F) -> Counted:
        """Remove the witnesses of these facts; return them for `put`."""
        return self.shape.take_counted(self.data, facts)

    def put(self, taken: Counted) -> None:
        """The inverse of `take`."""
        self.shape.merge_counted(self.data, taken)

    def found(self) -> Any:
        """A container for the suspects that rules find."""
        return self.shape.empty()

    def taken(self, found: Any) -> tuple[F, Counted]:
        """Remove the witnesses of found facts; return the facts that had one, and those."""
        taken = self.take(found)
        return self.shape.support(taken), taken

    def get(self, row: Row) -> Witness | None:
        """The witness of a fact, or None."""
        witness: Witness | None = self.shape.get_counted(self.data, row)
        return witness

    def everything(self) -> F:
        """All facts that have a witness."""
        return self.facts(self.data)


class GroupedProofs(ProofsOf[PairFacts]):
    """Invariant: the sets of a key are disjoint, and none is empty."""

    shape: PairShape
    data: dict[Value, Groups]

    def facts(self, new: New) -> PairFacts:
        return {key: values for key, (values, _) in new.items() if values}

    def merge(self, new: New) -> None:
        data = self.data
        for key, (_, groups) in new.items():
            known = data.get(key)
            if known is None:
                data[key] = groups
                continue
            for witness, values in groups.items():
                found = known.get(witness)
                if found is None:
                    known[witness] = values
                else:
                    found |= values

    def bring(self, new: New, row: Row, witness: Witness) -> None:
        key, value = row[self.shape.key], row[self.shape.value]
        values, groups = new.setdefault(key, (set(), {}))
        if value not in values:
            values.add(value)
            groups.setdefault(witness, set()).add(value)

    def entries(self, new: New) -> list[tuple[Row, Witness]]:
        row = self.shape.row
        return [(row(k, v), w) for k, (_, groups) in new.items() for w, values in groups.items() for v in values]

    def set(self, row: Row, witness: Witness) -> None:
        groups = self.data.setdefault(row[self.shape.key], {})
        groups.setdefault(witness, set()).add(row[self.shape.value])

    def take(self, facts: PairFacts) -> Counted:
        data = self.data
        taken: dict[Value, Groups] = {}
        for key, values in facts.items():
            groups = data.get(key)
            if groups is None:
                continue
            left = len(values)
            found = taken[key] = {}
            for witness, served in groups.items():
                hit = served & values
                if hit:
                    found[witness] = hit
                    served -= hit
                    left -= len(hit)
                    if not left:
                        break
            for witness in found:
                if not groups[witness]:
                    del groups[witness]
        return taken

    def taken(self, found: Counted) -> tuple[PairFacts, Counted]:
        """As above; rules may have removed the witnesses already, or found plain facts."""
        if any(isinstance(entry, set) for entry in found.values()):
            taken = self.take(found)
            return {key: set().union(*groups.values()) for key, groups in taken.items() if groups}, taken
        return self.facts(found), {key: groups for key, (_, groups) in found.items()}

    def put(self, taken: Counted) -> None:
        for key, groups in taken.items():
            known = self.data.setdefault(key, {})
            for witness, values in groups.items():
                known.setdefault(witness, set()).update(values)

    def get(self, row: Row) -> Witness | None:
        value = row[self.shape.value]
        for witness, values in self.data.get(row[self.shape.key], {}).items():
            if value in values:
                return witness
        return None

    def everything(self) -> PairFacts:
        return {key: set().union(*groups.values()) for key, groups in self.data.items() if groups}


Proofs: TypeAlias = ProofsOf[Any]  # of a relation of any shape
