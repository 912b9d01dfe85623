"""Who reads which relation, and by which columns: what an adviser needs to know.

A read by columns counts with the values that were asked for, so that it can be told how much of the
relation was never asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeAlias

from everlog.core.program import Constant, Rule, Value, Variable, atoms_of
from everlog.core.storage.shape import Columns

Asked: TypeAlias = tuple[str, Columns]
MOST = 10_000  # values that are remembered for each way to ask


class Usage:
    """Reads of relations: how often by which columns, and for which values.

    Without columns, all of a relation was read.
    """

    def __init__(self) -> None:
        self.reads: Counter[Asked] = Counter()
        self.values: dict[Asked, set[Hashable]] = {}

    def read(self, relation: str, columns: Columns, values: Hashable = ()) -> None:
        asked = relation, columns
        self.reads[asked] += 1
        if columns:
            known = self.values.setdefault(asked, set())
            if len(known) < MOST:
                known.add(values)

    def lookup(self, relation: str, bound: Mapping[int, Value]) -> None:
        columns = tuple(sorted(bound))
        self.read(relation, columns, tuple(bound[column] for column in columns))

    def of(self, relation: str) -> dict[Columns, int]:
        """How often a relation was read, by its columns."""
        return {columns: number for (name, columns), number in self.reads.items() if name == relation}


def columns_asked(rule: Rule) -> list[tuple[str, Columns, Hashable]]:
    """The columns by which a query finds the facts of each of its relations, and the values there.

    These are constants, or else variables that other atoms have, too: then the values are not
    known, which is None.

    >>> from everlog.core.program import Atom, Kind
    >>> x, y, z = map(Variable, "xyz")
    >>> body = Atom("p", (Constant(1, Kind.NUMBER), y)), Atom("q", (y, z)), Atom("r", (x,))
    >>> columns_asked(Rule(Atom("?-", (x, z)), body))
    [('p', (0,), (1,)), ('q', (0,), None), ('r', (), ())]
    """
    atoms = [atom for atom, _ in atoms_of(rule.body)]
    homes = Counter(arg for atom in atoms for arg in set(atom.args) if isinstance(arg, Variable))
    found: list[tuple[str, Columns, Hashable]] = []
    for atom in atoms:
        constants = {n: arg.value for n, arg in enumerate(atom.args) if isinstance(arg, Constant)}
        shared = tuple(n for n, arg in enumerate(atom.args) if isinstance(arg, Variable) and homes[arg] > 1)
        if constants or not shared:
            found.append((atom.relation, tuple(constants), tuple(constants.values())))
        else:
            found.append((atom.relation, shared, None))
    return found
