"""Where witnesses are kept: beside each fact, or as sets of facts that share one.

A witness is a tuple: the number of a rule, and the hidden values of its body.  Two forms:

`Proofs`          {fact: witness}; of a binary relation {key: {value: witness}}
`GroupedProofs`   of a binary relation {key: {witness: {value, …}}}: the fan of a key, cut into the sets
                  that one witness serves.  Where a rule carries a column along (`path(x, z) :- path(x, y),
                  edge(y, z)` carries x) these sets are large, and all work on them runs in C.

What a round derives is collected in the same form (`new`), grouped with the set of all values
beside it:  {key: (values, {witness: values})}.
"""

from __future__ import annotations

from typing import Any

from everlog.core.program import Row
from everlog.core.storage import forms
from everlog.core.storage.tables import Facts, Shape

Taken = Any


class Proofs:
    """Witnesses of one relation, beside each fact.  `data` is what compiled rules look them up in."""

    def __init__(self, shape: Shape, data: dict[Any, Any]) -> None:
        self.shape, self.data = shape, data

    def facts(self, new: Any) -> Facts:
        """The facts that were collected."""
        return forms.support(self.shape, new)

    def merge(self, new: Any) -> None:
        """Keep the witnesses that were collected; their facts had none."""
        forms.merge_counted(self.shape, self.data, new)

    def bring(self, new: Any, row: Row, witness: Any) -> None:
        """Add one row to what is collected."""
        if self.shape.arity == 2:
            new.setdefault(row[self.shape.key], {})[row[self.shape.fan]] = witness
        else:
            new[row[0] if self.shape.arity == 1 else row] = witness

    def entries(self, new: Any) -> list[tuple[Row, Any]]:
        """What was collected, as rows with their witnesses."""
        return list(forms.counted_rows(self.shape, new))

    def set(self, row: Row, witness: Any) -> None:
        """Keep the witness of one fact, which had none."""
        self.bring(self.data, row, witness)

    def take(self, facts: Facts) -> Taken:
        """Remove the witnesses of these facts; what to `put` back."""
        return forms.take_counted(self.shape, self.data, facts)

    def put(self, taken: Taken) -> None:
        """The inverse of `take`."""
        forms.merge_counted(self.shape, self.data, taken)

    def found(self) -> Any:
        """A container for the suspects that rules find."""
        return self.shape.empty()

    def taken(self, found: Any) -> tuple[Facts, Taken]:
        """The facts that were found and still have their witness, which is taken from them; what to
        `put` back.
        """
        taken = self.take(found)
        return forms.support(self.shape, taken), taken

    def get(self, row: Row) -> Any:
        """The witness of a fact, or None."""
        return forms.get_counted(self.shape, self.data, row)

    def everything(self) -> Facts:
        """All facts that have a witness."""
        return forms.support(self.shape, self.data)


class GroupedProofs(Proofs):
    """Invariant: the sets of one key are disjoint, and none is empty; a key may be left without
    any.
    """

    def facts(self, new: Any) -> Facts:
        return {key: values for key, (values, _) in new.items() if values}

    def merge(self, new: Any) -> None:
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

    def bring(self, new: Any, row: Row, witness: Any) -> None:
        key, value = row[self.shape.key], row[self.shape.fan]
        values, groups = new.setdefault(key, (set(), {}))
        if value not in values:
            values.add(value)
            groups.setdefault(witness, set()).add(value)

    def entries(self, new: Any) -> list[tuple[Row, Any]]:
        row = self.shape.row
        return [(row(k, v), w) for k, (_, groups) in new.items() for w, values in groups.items() for v in values]

    def set(self, row: Row, witness: Any) -> None:
        groups = self.data.setdefault(row[self.shape.key], {})
        groups.setdefault(witness, set()).add(row[self.shape.fan])

    def take(self, facts: Facts) -> Taken:
        data = self.data
        taken: dict[Any, dict[Any, set[Any]]] = {}
        for key, fan in facts.items():
            groups = data.get(key)
            if groups is None:
                continue
            left = len(fan)
            found = taken[key] = {}
            for witness, values in groups.items():
                hit = values & fan
                if hit:
                    found[witness] = hit
                    values -= hit
                    left -= len(hit)
                    if not left:
                        break
            for witness in found:
                if not groups[witness]:
                    del groups[witness]
        return taken

    def found(self) -> Any:
        return {}

    def taken(self, found: Any) -> tuple[Facts, Taken]:
        """Rules have taken the witnesses already; or they left that to us, and found plain facts."""
        if any(isinstance(entry, set) for entry in found.values()):
            taken = self.take(found)
            return {key: set().union(*groups.values()) for key, groups in taken.items() if groups}, taken
        return self.facts(found), {key: groups for key, (_, groups) in found.items()}

    def put(self, taken: Taken) -> None:
        for key, groups in taken.items():
            known = self.data.setdefault(key, {})
            for witness, values in groups.items():
                known.setdefault(witness, set()).update(values)

    def get(self, row: Row) -> Any:
        value = row[self.shape.fan]
        for witness, values in self.data.get(row[self.shape.key], {}).items():
            if value in values:
                return witness
        return None

    def everything(self) -> Facts:
        return {key: set().union(*groups.values()) for key, groups in self.data.items() if groups}
