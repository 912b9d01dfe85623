"""A view tree: counts along a variable order, so that an update is a walk to the root.

Each node X of the order joins the atoms that end there with the totals of the nodes below:

    view  X[key][x]   in how many ways the subtree can be completed, for these values of key and x
    total X[key]      their sum over x: what the node above multiplies with

An inserted row adds 1 to one entry of its atom's node.  The totals above change by that, times the
totals of their other children (the product rule).  For a hierarchical query these are looked up by
known values: O(1) for each update.  For other queries some variables of a level are not known yet
and are searched (F-IVM), which may cost as much as the database is large.  The order is then the
one whose updates have the smallest exponent.

Variables whose product is summed are factors of the totals of their nodes, so that weights above
them are sums of products.  Sums of different answers must not cancel: above the largest subtrees
that have such a variable and show nothing, weights count again in how many ways there is a sum that
is not zero.  Where `distinct`
answers are wanted, weights count likewise above each of the largest subtrees that show nothing, and
an order that has no hidden variable above one that is shown (`order_costs.shown_first`) makes each
answer come once.

No entry is zero, so a walk downwards never meets a dead end: answers come with constant delay, and
nothing is kept of them.  The answers of one row are found likewise, after the search upwards.  A
subtree none of whose variables is shown counts by its total and is not walked at all.

Source: Nikolic, Olteanu, SIGMOD 2018 (F-IVM); Berkholz, Keppeler, Schweikardt, PODS 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import prod
from typing import Any

from attrs import define, field

from everlog.core.ir.python_text import key_text, tuple_text
from everlog.core.joins.code import MOST_LOOPS, Code, local
from everlog.core.joins.generic_join import write_join
from everlog.core.joins.order_costs import best_order
from everlog.core.joins.tries import Input, Key, picker, row_picker
from everlog.core.joins.variable_orders import Order, OrderNode
from everlog.core.joins.view import Asked, CannotServe, CountedView, Weighted
from everlog.core.program import Row, Value


@define(eq=False)
class Node:
    """A node of the order with its counts; `parts` are the atoms and totals that it joins."""

    order: OrderNode
    number: int
    parent: Node | None
    view: dict[Key, dict[Key, int]] = field(factory=dict)
    total: Input = field(factory=lambda: Input(()))
    children: list[Node] = field(factory=list)
    parts: list[Input] = field(factory=list)

    def shows(self, kept: Iterable[str]) -> bool:
        """Whether the subtree has a variable that answers show."""
        return not set(self.order.variables).isdisjoint(kept) or any(c.shows(kept) for c in self.children)


class RowsOfNode(Collection[Row]):
    """The rows of the one atom that a node has: its entries are the rows, so they are kept once."""

    def __init__(self, node: Node, schema: tuple[str, ...]) -> None:
        key, values = node.order.key, node.order.variables
        self._view, self._key, self._value = node.view, picker(schema, key), picker(schema, values)
        self._bare = len(key) == 1, len(values) == 1
        self._row = row_picker((*key, *values), schema)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self._value(row) in self._view.get(self._key(row), ())

    def __iter__(self) -> Iterator[Row]:
        bare_key, bare_value = self._bare
        for key, entries in self._view.items():
            first = (key,) if bare_key else key
            for value in entries:
                yield self._row((*first, value) if bare_value else first + value)

    def __len__(self) -> int:
        return sum(map(len, self._view.values()))


class ViewTree(CountedView):
    """Invariants:
    I1  an entry of a view is the number of completions below it, and is not zero;
    I2  a total is the sum of its view's entries for a key, each times its values of the variables
        that are summed and stand in the node.
    """

    def __init__(self, asked: Asked, order: Order | None = None) -> None:
        super().__init__()
        if len(asked.query.variables) >= MOST_LOOPS:
            raise CannotServe(f"it has {MOST_LOOPS} variables or more, and each would be a nested loop")
        self.asked = asked
        self.inputs = [Input(atom.variables) for atom in asked.query.atoms]
        self.nodes: list[Node] = []
        self.order = best_order(asked.query)[0] if order is None else order
        self.roots = [self._placed(root, None) for root in self.order]
        self._home: dict[int, Node] = {i: node for node in self.nodes for i in node.order.atoms}
        self._alone = {i for i, node in self._home.items() if len(node.parts) == 1}
        self._held: list[Collection[Row]] = [
            RowsOfNode(self._home[i], source.schema) if i in self._alone else source.rows
            for i, source in enumerate(self.inputs)
        ]
        self._sums = self._with_sums()
        self._updates: list[Callable[..., None]] = []
        self._deltas: list[Callable[..., Iterator[Weighted]]] = []
        self._all: Callable[[], Iterator[Weighted]]
        self._find: Callable[..., Iterator[bool]]
        self._write()

    def _placed(self, order: OrderNode, parent: Node | None) -> Node:
        node = Node(order, len(self.nodes), parent, total=Input(order.key))
        self.nodes.append(node)
        node.children = [self._placed(child, node) for child in order.children]
        node.parts = [self.inputs[i] for i in order.atoms] + [child.total for child in node.children]
        return node

    def _with_sums(self) -> list[Node]:
        """The nodes whose totals are sums, upwards from those of the variables that are summed."""
        found: list[Node] = []
        for start in self.nodes:
            node: Node | None = start if self._factors(start) else None
            while node is not None and node not in found and not node.shows(self.asked.kept):
                found.append(node)
                node = node.parent
        return found

    def _factors(self, node: Node) -> list[str]:
        """The variables of a node whose values are factors, one as often as it is summed."""
        return [v for v in self.asked.summed if v in node.order.variables]

    def _counts_once(self, node: Node) -> bool:
        """Whether all that is below a node counts as one way, or none."""
        if node not in self._sums and not self.asked.distinct:
            return False
        above = node.parent
        return not node.shows(self.asked.kept) and (above is None or above.shows(self.asked.kept))

    def _value(self, code: Code, variable: str) -> str:
        """A variable as a factor: a whole number."""
        number = self.asked.number
        return local(variable) if number is None else f"{code.name('number', number)}({local(variable)})"

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def _write(self) -> None:
        code = Code(_count=self._count)
        for node in self.nodes:
            for part in node.parts:
                self._write_change(code, node, part)
            self._write_load(code, node)
        for number in range(len(self.inputs)):
            self._write_delta(code, number)
        code.define("answers", "")
        self._write_tops(code)
        self._write_answers(code, self.roots)
        self._write_find(code)
        scope = code.compiled()
        for number, source in enumerate(self.inputs):
            home = self._home.get(number)
            self._updates.append(scope[_change(home, source)] if home is not None else _nothing)
            walk, paths = scope[f"delta{number}"], scope.get(f"paths{number}")
            self._deltas.append(walk if paths is None else _in_two_parts(paths, walk))
        self._all, self._find = scope["answers"], scope["find"]
        self._loads = [scope[f"load{node.number}"] for node in self.nodes]

    def _write_change(self, code: Code, node: Node, part: Input) -> None:
        """Write the function that changes a node and those above it when a part changes by d."""
        code.define(_change(node, part), ", ".join([*map(local, part.schema), "d"]))
        self._write_entries(code, node, part)
        if node in self._sums and (factors := self._factors(node)):
            code.line(f"w *= {' * '.join(self._value(code, v) for v in factors)}")
            code.test("w")
        code.line(f"before = {code.name('add', node.total.add)}({tuple_text(map(local, node.order.key))}, w)")
        if self._counts_once(node) and node.parent is not None:
            code.line("w = (before + w != 0) - (before != 0)")
            code.test("w")
        if node.parent is not None:
            above = ", ".join([*map(local, node.order.key), "w"])
            code.line(f"{_change(node.parent, node.total)}({above})")

    def _write_load(self, code: Code, node: Node) -> None:
        """Write the function that makes the entries of a node from the rows of its first part."""
        part, hidden = node.parts[0], [child.total for child in node.children if self._counts_once(child)]
        code.define(f"load{node.number}", "rows")
        code.loop(f"{tuple_text(map(local, part.schema))}, d", "rows.items()")
        if part in hidden:
            code.line("d = 1")
        self._write_entries(code, node, part)

    def _write_entries(self, code: Code, node: Node, part: Input) -> None:
        """Write how entries of a node change when a row of a part, in variables, changes by d."""
        if self.asked.counting:
            code.line(f"_count[0] += {1 + len(node.parts)}")
        others = [other for other in node.parts if other is not part]
        write_join(code, others, set(part.schema), self.asked.ranges, self.asked.counting)
        counted = [child for child in node.children if not self._counts_once(child)]
        totals = [child.total for child in counted if child.total is not part]
        code.line(f"w = {' * '.join(['d', *(self._weight(code, total) for total in totals)])}")
        view, key = code.name("view", node.view), key_text(map(local, node.order.key))
        code.line(f"entries = {view}.get({key})")
        code.line(f"if entries is None: entries = {view}[{key}] = {{}}")
        value = key_text(map(local, node.order.variables))
        code.line(f"now = entries.get({value}, 0) + w")
        code.line(f"if now: entries[{value}] = now")
        code.line("else:")
        code.line(f"    del entries[{value}]")
        code.line(f"    if not entries: del {view}[{key}]")

    def _weight(self, code: Code, total: Input) -> str:
        return f"{code.name('rows', total.rows)}[{tuple_text(map(local, total.schema))}]"

    def _write_delta(self, code: Code, number: int) -> None:
        """Write the answers with one row: up to the root, then down the other branches."""
        source = self.inputs[number]
        schema = ", ".join(map(local, source.schema))
        path = list(self._path(number))
        searched = any(not set(source.schema).issuperset(p.schema) for node, _ in path for p in node.parts)
        code.define(f"{'paths' if searched else 'delta'}{number}", schema)
        if self.asked.counting:
            code.line("_count[0] += 1")
        bound = set(source.schema)
        if searched:
            code.line("found = []")
        top = path[-1][0] if path else None
        self._write_tops(code, source, top)
        for node, part in path:
            others = [other for other in node.parts if other is not part]
            write_join(code, others, bound, self.asked.ranges, self.asked.counting)
        if searched:
            values = tuple_text(map(local, sorted(bound)))
            code.line(f"found.append({values})")
            code.finish("return found")
            code.define(f"delta{number}", "found")
            code.loop(values, "found")
        below = [child for node, part in path for child in node.children if child.total is not part]
        self._write_answers(code, [*below, *(root for root in self.roots if root is not top)], bound)

    def _path(self, number: int) -> Iterator[tuple[Node, Input]]:
        """The nodes from an atom to the root, each with the part of it that lies on the path."""
        node, part = self._home.get(number), self.inputs[number]
        while node is not None:
            yield node, part
            part = node.total
            node = node.parent

    def _write_tops(self, code: Code, but: Input | None = None, own: Node | None = None) -> None:
        """Test that every other tree, and every atom without variables, has rows."""
        for root in self.roots:
            if root is not own:
                held = root.total.rows if root in self._sums else root.view
                code.test(code.name("held", held))
        for source in self.inputs:
            if not source.schema and source is not but:
                code.test(code.name("rows", source.rows))

    def _write_answers(self, code: Code, below: Iterable[Node], bound: Collection[str] = ()) -> None:
        """Write loops down these subtrees, and yield an answer for each path."""
        weights = [self._value(code, v) for v in self.asked.summed if v in bound]
        waiting = list(below)
        while waiting:
            node = waiting.pop(0)
            if not node.shows(self.asked.kept):
                weights += [] if self.asked.distinct else [self._weight(code, node.total)]
                continue
            entries = f"{code.name('view', node.view)}[{key_text(map(local, node.order.key))}]"
            code.loop(key_text(map(local, node.order.variables)), entries)
            if self.asked.counting:
                code.line("_count[0] += 1")
            for variable in self._factors(node):
                weights.append(self._value(code, variable))
                code.test(weights[-1])
            waiting += node.children
        code.line(f"yield {tuple_text(map(local, self.asked.kept))}, {' * '.join(weights) or '1'}")

    def _write_find(self, code: Code) -> None:
        """Write a search for one answer: it walks down the tree, and looks values up."""
        code.define("find", ", ".join(map(local, self.asked.kept)))
        self._write_tops(code)
        for node in self.nodes:
            if node.shows(self.asked.kept):
                entries = f"{code.name('view', node.view)}.get({key_text(map(local, node.order.key))}, ())"
                code.test(f"{key_text(map(local, node.order.variables))} in {entries}")
        code.line("yield True")

    # ── as a view ────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        if row in self._held[atom]:
            return False
        if atom not in self._alone:
            self.inputs[atom].add(row, 1)
        self._updates[atom](*row, 1)
        return True

    def delete(self, atom: int, row: Row) -> bool:
        if row not in self._held[atom]:
            return False
        if atom not in self._alone:
            self.inputs[atom].add(row, -1)
        self._updates[atom](*row, -1)
        return True

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        """Hold these rows instead of those that are there; make each node from its parts."""
        for number, source in enumerate(self.inputs):
            if number not in self._alone:
                source.load(dict.fromkeys(rows.get(number, ()), 1))
        for node in reversed(self.nodes):  # those below come first
            first, single = node.parts[0].rows, self._alone.intersection(node.order.atoms)
            if single:
                first = dict.fromkeys(rows.get(next(iter(single)), ()), 1)
            node.view.clear()
            self._loads[node.number](first)
            node.total.load(self._totals(node))

    def _totals(self, node: Node) -> dict[Row, int]:
        alone = len(node.order.key) == 1
        totals = ((key, self._total(node, entries)) for key, entries in node.view.items())
        return {(key,) if alone else key: total for key, total in totals if total}

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return self._deltas[atom](*row)

    def answers(self) -> Iterator[Weighted]:
        return self._all()

    def number(self) -> int:
        """The sum of the weights of all answers.  Cost: constant."""
        if not all(source.rows for source in self.inputs if not source.schema):
            return 0
        totals = [root.total.rows.get((), 0) for root in self.roots]
        once = [self._counts_once(root) for root in self.roots]
        return prod(bool(n) if single else n for n, single in zip(totals, once, strict=True))

    def holds(self, answer: Row) -> bool:
        """Whether there is an answer, in a tree whose order shows first.  Cost: constant."""
        return next(self._find(*answer), False)

    def rows(self, atom: int) -> Collection[Row]:
        return self._held[atom]

    def check(self) -> None:
        fresh = ViewTree(self.asked, self.order)
        fresh.load(dict(enumerate(self._held)))
        for node, other in zip(self.nodes, fresh.nodes, strict=True):
            assert node.view == other.view, f"I1: {node.order}"
            assert all(all(entries.values()) for entries in node.view.values()), "I1: zero"
            assert node.total.rows == self._totals(node), f"I2: {node.order}"
            node.total.check()
        for source in self.inputs:
            source.check()

    def _total(self, node: Node, entries: dict[Key, int]) -> int:
        """The total of some entries of a node."""
        factors = self._factors(node) if node in self._sums else []
        if not factors:
            return sum(entries.values())
        pick = row_picker(node.order.variables, factors)
        alone = len(node.order.variables) == 1
        number: Callable[[Value], int] = self.asked.number or int
        values = (((value,) if alone else value, w) for value, w in entries.items())
        return sum(w * prod(map(number, pick(row))) for row, w in values)


def _change(node: Node, part: Input) -> str:
    return f"change{node.number}_{next(n for n, p in enumerate(node.parts) if p is part)}"


def _in_two_parts(paths: Callable[..., Any], walk: Callable[..., Iterator[Weighted]]) -> Callable[..., Any]:
    """First find all paths to the root, then the answers below them, with constant delay."""
    return lambda *row: walk(paths(*row) or ())


def _nothing(d: int) -> None:
    """Do nothing: an atom without variables is below no node."""
