"""Maps to a best value, settled in the order of their values.

A unit of maps (`best_values`) whose rules read at most one of its values is a graph:
keys are nodes, and a rule leads from the key that it reads to the key that it derives.  While no
rule makes a value better than the one it came from, the best pending value is final: each key is
settled once, in the order of values, as in Dijkstra's algorithm.  Keys of the same value are
settled together, in the order of their *depth*, the number of steps since that value was reached.

Where a rule does improve on its source, that order is lost.  From then on all pending keys are
passed on together, round by round, as in the algorithm of Bellman and Ford.  If rules only add to
values, an improvement that takes more rounds than there are keys went through a cycle that improves
on itself, for ever; the error names its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from attrs import define, evolve, field, frozen

from everlog.core import program as p
from everlog.core.program import Kind, Program, Row, Rule, Value
from everlog.core.program.aggregates.best_values import BestMap, check_ordered
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts, Key, Shape

Offer = Callable[[Facts | None, Any], None]  # from Δ, into {key: value}
_MANY = 4096  # keys between two checks of the limits
ROUNDS = 8  # more rounds than keys: only then a cycle is looked for


@frozen
class Form:
    """How a map's facts are made of keys and values, and which values are better."""

    name: str
    column: int
    sign: int  # the order of a value is its value, times -1 for the greatest
    shape: Shape
    arity: int
    floats: bool

    def key(self, row: Row) -> Key:
        rest = row[: self.column] + row[self.column + 1 :]
        return rest[0] if len(rest) == 1 else rest

    def row(self, key: Any, value: Value) -> Row:
        if self.arity == 2:
            return (key, value) if self.column else (value, key)
        return (*key[: self.column], value, *key[self.column :])

    def rows(self, best: Mapping[Key, Value]) -> Iterable[Row]:
        row = self.row
        return (row(key, value) for key, value in best.items())


def forms_of(program: Program, maps: Mapping[str, BestMap], shapes: Mapping[str, Shape]) -> dict[str, Form]:
    out = {}
    for name, known in maps.items():
        columns = program.relations[name].columns
        floats = columns[known.column].kind is Kind.FLOAT
        out[name] = Form(name, known.column, -known.direction, shapes[name], len(columns), floats)
    return out


def offering(rule: Rule, known: BestMap) -> Rule:
    """The rule with the head `(value, key…)`."""
    args = rule.head.args
    rest = args[: known.column] + args[known.column + 1 :]
    head = p.Atom(f"{known.op} of {known.relation}", (args[known.column], *rest))
    return evolve(rule, head=head)


def only_adds(unit: Unit, maps: Mapping[str, BestMap]) -> bool:
    """Whether all rules only add to values: then a gain is passed on undiminished."""
    return all(_adds(rule, maps) for rule in unit.rules)


def _adds(rule: Rule, maps: Mapping[str, BestMap]) -> bool:
    values = {x.args[maps[x.relation].column] for x in rule.body if isinstance(x, p.Atom) and x.relation in maps}
    names = {value.name for value in values if isinstance(value, p.Variable)}
    if not names:
        return True
    head = rule.head.args[maps[rule.head.relation].column]
    elsewhere = [x for x in rule.body if not isinstance(x, p.Atom)]
    used = {v.name for x in elsewhere for v in variables_of_literal(x)}
    return names.isdisjoint(used) and _sum(head, names) == 1


def _sum(term: p.Term, names: set[str]) -> int:
    """How often a sum has one of the variables; 2 if the term is no sum of them."""
    match term:
        case p.Variable(name):
            return int(name in names)
        case p.Call("+", (left, right)) if term.kind is not Kind.SYMBOL:
            return _sum(left, names) + _sum(right, names)
        case p.Call("-", (left, right)) if names.isdisjoint(v.name for v in p.variables_of(right)):
            return _sum(left, names)
    return 2 if any(v.name in names for v in p.variables_of(term)) else 0


@define
class Settling:
    """The values of a unit's maps, while they are settled.

    `depth` has the depths that are not 0.  `touched` has the value and depth that each changed key
    had before, so that a step can be told and undone; None where that is not needed.
    """

    name: str
    forms: Mapping[str, Form]
    forward: Mapping[str, Sequence[tuple[str, Offer]]]  # by source: target and rule
    guard: Guard
    adds: bool = False
    best: dict[str, dict[Key, Value]] = field(init=False)
    depth: dict[str, dict[Key, int]] = field(init=False)
    heap: list[tuple[Any, int, str, Any]] = field(factory=list)
    touched: dict[tuple[str, Key], tuple[Value | None, int]] | None = None
    in_order: bool = True

    def __attrs_post_init__(self) -> None:
        self.best = {name: {} for name in self.forms}
        self.depth = {name: {} for name in self.forms}

    # ── values ───────────────────────────────────────────────────────────────────────────────

    def order(self, name: str, value: Any) -> Any:
        return value if self.forms[name].sign > 0 else -value

    def rank(self, name: str, key: Key) -> tuple[Any, int]:
        """The place of a key in the order in which keys are settled."""
        return self.order(name, self.best[name][key]), self.depth[name].get(key, 0)

    def offer(self, name: str, key: Key, value: Any, depth: int = 0) -> bool:
        """Take a candidate if it is better than what there is."""
        form, best = self.forms[name], self.best[name]
        if form.floats:
            check_ordered(value, name)
        old: Any = best.get(key)
        if old is not None and not (value < old if form.sign > 0 else value > old):
            return False
        self.set(name, key, value, depth)
        heappush(self.heap, (value if form.sign > 0 else -value, depth, name, key))
        return True

    def set(self, name: str, key: Key, value: Value | None, depth: int = 0) -> None:
        """Give a key a value, or none."""
        best, depths = self.best[name], self.depth[name]
        if self.touched is not None and (name, key) not in self.touched:
            self.touched[name, key] = best.get(key), depths.get(key, 0)
        if value is None:
            del best[key]
        else:
            best[key] = value
        if depth:
            depths[key] = depth
        elif key in depths:
            del depths[key]

    def restore(self, touched: Mapping[tuple[str, Key], tuple[Value | None, int]]) -> None:
        """Undo changes, whether or not they were made."""
        self.heap.clear()
        for (name, key), (value, depth) in touched.items():
            self.best[name].pop(key, None)
            self.depth[name].pop(key, None)
            if value is not None:
                self.best[name][key] = value
            if depth:
                self.depth[name][key] = depth

    # ── settling ─────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Settle all pending keys, and those that they improve."""
        settled = passed = 0
        while self.heap and self.in_order:
            order, depth, name, keys = self._next()
            if keys:
                self._pass_on(order, depth, name, keys)
                settled += len(keys)
                if settled - passed >= _MANY:
                    self.guard.round(self.name, 2, settled - passed, False)
                    passed = settled
        self.guard.round(self.name, 2, settled - passed, False)
        if self.heap:
            self._rounds()

    def _next(self) -> tuple[Any, int, str, list[Key]]:
        """The pending keys that come first, of one relation, without those that improved since."""
        heap = self.heap
        order, depth, name, key = heappop(heap)
        best, depths = self.best[name], self.depth[name]
        value = order if self.forms[name].sign > 0 else -order
        keys: list[Key] = []
        while True:
            if best.get(key) == value and depths.get(key, 0) == depth and (not keys or keys[-1] != key):
                keys.append(key)
            if not heap or heap[0][0] != order or heap[0][1] != depth or heap[0][2] != name:
                return order, depth, name, keys
            key = heappop(heap)[3]

    def _pass_on(self, order: Any, depth: int, name: str, keys: list[Key]) -> None:
        """Offer what follows from keys of one value."""
        form = self.forms[name]
        value = order if form.sign > 0 else -order
        delta = form.shape.facts_of([form.row(key, value) for key in keys])
        for target, rule in self.forward[name]:
            found: dict[Key, Any] = {}
            rule(delta, found)
            if not found:
                continue
            to = self.forms[target]
            if to.floats:
                for made in found.values():
                    check_ordered(made, target)
            best, heap, up, touched = self.best[target], self.heap, to.sign > 0, self.touched
            depths = self.depth[target]
            for key, made in found.items():
                old: Any = best.get(key)
                if old is not None and not (made < old if up else made > old):
                    continue
                place = made if up else -made
                deep = depth + 1 if place == order else 0
                if place < order:
                    self.in_order = False
                if touched is not None or deep or depths:
                    self.set(target, key, made, deep)
                else:
                    best[key] = made
                heappush(heap, (place, deep, target, key))

    def _rounds(self) -> None:
        """Pass on all pending keys together, until nothing improves."""
        for depths in self.depth.values():
            depths.clear()
        pending = self._pending()
        number = 2
        while pending:
            number += 1
            size = sum(map(len, self.best.values()))
            if self.adds and number > size + ROUNDS:
                raise EvaluationError(self._endless(pending))
            self.guard.round(self.name, number, sum(map(len, pending.values())), True)
            for name, keys in pending.items():
                form, best = self.forms[name], self.best[name]
                delta = form.shape.facts_of([form.row(key, best[key]) for key in keys])
                for target, rule in self.forward[name]:
                    found: dict[Key, Any] = {}
                    rule(delta, found)
                    for key, made in found.items():
                        self.offer(target, key, made)
            pending = self._pending()

    def _pending(self) -> dict[str, list[Key]]:
        pending: dict[str, dict[Key, None]] = {}
        for _, _, name, key in self.heap:
            pending.setdefault(name, {})[key] = None
        self.heap.clear()
        return {name: list(keys) for name, keys in pending.items()}

    def _endless(self, pending: Mapping[str, Sequence[Key]]) -> str:
        """The error for a cycle of keys that improves on itself."""
        name, keys = next(iter(pending.items()))
        cycle = " → ".join(self._shown(*node) for node in self._cycle(name, keys[0]))
        word = "smaller" if self.forms[name].sign > 0 else "larger"
        return f"`{name}` has no best value: along {cycle} it becomes {word} for ever"

    def _shown(self, name: str, key: Key) -> str:
        form = self.forms[name]
        values = key if form.arity != 2 else (key,)
        assert isinstance(values, tuple)
        shown = [p.quoted(v) if isinstance(v, str) else str(v) for v in values]
        shown.insert(form.column, "_")
        return f"{name}({', '.join(shown)})"

    def _cycle(self, name: str, key: Key) -> list[tuple[str, Key]]:
        """A cycle of keys, each of which improves the next, behind a key that improved."""
        came: dict[tuple[str, Key], tuple[str, Key]] = {}
        pending = {(n, k) for n, keys in self.best.items() for k in keys}
        for _ in range(len(pending) + 1):
            improved = set()
            for source, at in pending:
                form = self.forms[source]
                delta = form.shape.facts_of([form.row(at, self.best[source][at])])
                for target, rule in self.forward[source]:
                    found: dict[Key, Any] = {}
                    rule(delta, found)
                    for new, made in found.items():
                        if self.offer(target, new, made):
                            came[target, new] = source, at
                            improved.add((target, new))
            pending = improved
            for start in improved:
                trail: dict[tuple[str, Key], None] = {}
                node = start
                while node in came and node not in trail:
                    trail[node] = None
                    node = came[node]
                if node in trail:
                    backwards = [node, *list(trail)[list(trail).index(node) + 1 :], node]
                    return backwards[::-1]
        return [(name, key), (name, key)]
