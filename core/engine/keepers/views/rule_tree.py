"""The join of a rule as counts along a variable order: nothing is stored for each answer.

The tree has the rows of every atom (constants and repeated variables are selected before).  It
knows how many answers there are, finds out in constant time whether a row is one, and enumerates
all of them with constant delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

from everlog.core.classify.query import query_of
from everlog.core.engine.keepers.joined import head_of, selection
from everlog.core.engine.planning.view_rules import counted_order
from everlog.core.engine.stepping.store import Store
from everlog.core.joins.strategy_choice import selections
from everlog.core.joins.view import Asked
from everlog.core.joins.view_tree import ViewTree
from everlog.core.program import Atom, Row, Rule, Variable

Log = list[tuple[int, Row, bool]]
RowChange = tuple[Iterable[Row], Iterable[Row]]  # rows that went, that came


class RuleTree:
    """Invariant: `tree` is None, or has what the atoms select from the tables at the last turn."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self.store, self.rule = store, rule
        query = query_of(rule)
        tests = selections(rule)
        atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        self._atoms = [(atom.relation, selection(atom, tests.get(n, ()))) for n, atom in enumerate(atoms)]
        kept = tuple(dict.fromkeys(arg.name for arg in rule.head.args if isinstance(arg, Variable)))
        self._head, self._values = head_of(rule, kept), selection(rule.head)
        self.is_full = set(kept) == set(query.variables)
        counted = counted_order(query)
        assert counted is not None, "such a rule is searched"
        self._asked, self._order = Asked(query, kept, distinct=True), counted.order
        self._tree: ViewTree | None = None

    @property
    def tree(self) -> ViewTree:
        if self._tree is None:
            tree = ViewTree(self._asked, self._order)
            tables = self.store.tables
            tree.load({n: self._selected(n, tables[name].rows()) for n, (name, _) in enumerate(self._atoms)})
            self._tree = tree
        return self._tree

    def _selected(self, atom: int, rows: Iterable[Row]) -> Iterator[Row]:
        return filter(_is_row, map(self._atoms[atom][1], rows))

    @property
    def is_made(self) -> bool:
        return self._tree is not None

    def make(self) -> None:
        """Make the tree now.  Cost: linear in the rows of its atoms."""
        assert self.tree is not None

    def forget(self) -> None:
        """The tables changed as a whole: the tree is made again."""
        self._tree = None

    def take(self, changes: Mapping[str, RowChange], gone: bool, log: Log) -> None:
        """Take out the rows that went, or put in those that came; `log` gets what was done."""
        tree = self.tree
        change = tree.delete if gone else tree.insert
        for atom, (name, _) in enumerate(self._atoms):
            if name in changes:
                for row in self._selected(atom, changes[name][0 if gone else 1]):
                    log.append((atom, row, not gone))
                    change(atom, row)

    def revert(self, log: Log) -> None:
        """Undo what `take` noted in a log, whether or not it was done."""
        tree = self._tree
        while log:
            atom, row, inserted = log.pop()
            if tree is not None:
                (tree.delete if inserted else tree.insert)(atom, row)

    def number(self) -> int:
        """How many answers there are."""
        return self.tree.number()

    def __iter__(self) -> Iterator[Row]:
        return (self._head(answer) for answer, _ in self.tree.answers())

    def __contains__(self, row: Row) -> bool:
        values = self._values(row)
        return values is not None and self.tree.holds(values)

    def containers(self) -> Iterator[object]:
        """What is kept, to count bytes."""
        if self._tree is not None:
            for source in (*self._tree.inputs, *(node.total for node in self._tree.nodes)):
                yield source.rows
                yield from (index.entries for index in source.indexes.values())
            yield from (node.view for node in self._tree.nodes)

    def check(self) -> None:
        if self._tree is not None:
            self._tree.check()
            for atom, (name, _) in enumerate(self._atoms):
                expected = set(self._selected(atom, self.store.tables[name].rows()))
                assert set(self._tree.rows(atom)) == expected, f"{self.rule.name}: atom {atom + 1}"


def _is_row(row: Row | None) -> TypeGuard[Row]:
    return row is not None
