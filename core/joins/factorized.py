"""Factorized delta: for each atom, the rest of the query with one row fixed, bag by bag.

First-order delta joins atom after atom, so a long or cyclic body may have far more partial matches
than there are rows.  Here the rest of the query, without the variables of the row, has an optimal
tree of bags.  A bag is searched for values of the variables that it shares with the bag above it,
and what it finds is remembered while the update lasts: however many ways lead to some values, what
lies behind them is searched once.  Rows that lead to no answer are dropped, so after the search
answers come with constant delay; a part of the tree that shows nothing is counted instead.

An update costs as much as the widest rest: D^w.  A cycle of any length without one edge is a path,
so that is O(D), and K5 without the ends of an edge is a triangle: D^3/2.  Only indexes are kept,
and the answers of a view that is to be enumerated.

Source: Yannakakis, VLDB 1981; Section 4 of Abo Khamis et al. 2024 for bags.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from attrs import define, field

from everlog.core.classify.query import Query, QueryAtom
from everlog.core.classify.widths import Width, fractional_hypertree_width
from everlog.core.ir.python_text import key_text, tuple_text
from everlog.core.joins.code import Code, local
from everlog.core.joins.generic_join import binding_order, loop_over_common, write_offers
from everlog.core.joins.tries import Input, row_picker
from everlog.core.joins.view import Asked, CountedView, Weighted
from everlog.core.program import Row

Answer: TypeAlias = Callable[[Row, Sequence[Row]], Row]


@lru_cache(maxsize=4096)
def rest_of(query: Query, fixed: frozenset[str]) -> Width | None:
    """Width and decomposition of what is left when some variables are fixed; None if nothing is.

    >>> square = Query.of("R(a, b)", "S(b, c)", "T(c, d)", "U(a, d)")
    >>> [sorted(bag) for bag in rest_of(square, frozenset("ab")).decomposition.bags]
    [['c', 'd']]
    """
    scopes = [tuple(v for v in atom.variables if v not in fixed) for atom in query.atoms]
    left = tuple(QueryAtom("r", scope) for scope in scopes if scope)
    return fractional_hypertree_width(Query(left, frozenset(v for s in scopes for v in s))) if left else None


def trees_of(rest: Width, shown: Collection[str]) -> list[tuple[frozenset[str], int | None]]:
    """The bags, each with the place of its parent before it; bags that show most are the roots.

    What is shown is then near to the roots, and little else is walked to enumerate it.
    """
    tree = rest.decomposition
    near: list[list[int]] = [[] for _ in tree.bags]
    for bag, parent in enumerate(tree.parents):
        if parent is not None:
            near[bag].append(parent)
            near[parent].append(bag)
    found: list[tuple[frozenset[str], int | None]] = []
    done: set[int] = set()
    for root in sorted(range(len(tree.bags)), key=lambda n: -len(tree.bags[n].intersection(shown))):
        waiting: list[tuple[int, int | None]] = [(root, None)] if root not in done else []
        for bag, parent in waiting:  # grows while it is read: parents first
            done.add(bag)
            found.append((tree.bags[bag], parent))
            waiting += [(other, len(found) - 1) for other in near[bag] if other not in done]
    return found


@define(eq=False)
class RestBag:
    """A bag of what is left: `given` is shared with the bag above, `found` is new here.

    `search` finds rows of `found` from the fixed row and values of `given`.
    """

    given: tuple[str, ...]
    found: tuple[str, ...]
    shows: bool = False  # whether it, or a bag below, has a variable that answers show
    search: Callable[..., Iterator[Row]] = field(init=False)
    children: list[tuple[Callable[[Row], Row], RestBag]] = field(factory=list)


@define(eq=False)
class Rest:
    """What is left of the query for one atom, or without a row."""

    roots: list[RestBag]
    bags: list[RestBag]  # parents first; those that show something
    answer: Answer
    test: Callable[..., bool]  # of the atoms whose variables are all fixed


class Found:
    """What bags have found during one update: for given values, the rows that can be completed.

    Each entry has the number of completions below and at the bag, and a row with its own.
    """

    def __init__(self, row: Row, steps: list[int]) -> None:
        self.row, self.steps = row, steps
        self.memory: dict[tuple[RestBag, Row], dict[Row, int]] = {}
        self.totals: dict[tuple[RestBag, Row], int] = {}

    def rows(self, bag: RestBag, given: Row) -> dict[Row, int]:
        """The rows of a bag that can be completed, with the number of ways where nothing shows."""
        known = self.memory.get((bag, given))
        if known is None:
            known = self.memory[bag, given] = dict(self._searched(bag, given))
        return known

    def ways(self, bag: RestBag, given: Row) -> int:
        """In how many ways a bag, and those below it, can be completed."""
        known = self.totals.get((bag, given))
        if known is None:
            known = self.totals[bag, given] = sum(self.rows(bag, given).values())
        return known

    def _searched(self, bag: RestBag, given: Row) -> Iterator[tuple[Row, int]]:
        for row in bag.search(*self.row, *given):
            self.steps[0] += 1
            whole, ways = given + row, 1
            for pick, child in bag.children:
                ways *= bool(self.rows(child, pick(whole))) if child.shows else self.ways(child, pick(whole))
                if not ways:
                    break
            else:
                yield row, ways


class Factorized(CountedView):
    """Invariant: `inputs` have the rows and indexes of the atoms, and `kept` has all answers if
    they are to be enumerated; nothing else is kept.
    """

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked
        self.kept: dict[Row, int] = {}
        self.inputs = [Input(atom.variables) for atom in asked.query.atoms]
        self._rests: dict[int | None, Rest] = {}

    def _rest(self, atom: int | None) -> Rest:
        found = self._rests.get(atom)
        if found is None:
            found = self._rests[atom] = self._made(atom)
        return found

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def _made(self, atom: int | None) -> Rest:
        schema = () if atom is None else self.inputs[atom].schema
        others = [source for number, source in enumerate(self.inputs) if number != atom]
        code = Code(_count=self._count)
        bags, roots = self._bags(schema)
        for number, bag in enumerate(bags):
            _write_search(code, number, bag, schema, others)
        code.define("test", ", ".join(map(local, schema)))
        code.line("_count[0] += 1")
        for source in others:
            if set(source.schema) <= set(schema):
                code.line(f"if {tuple_text(map(local, source.schema))} not in {code.name('rows', source.rows)}:")
                code.line("    return False")
        code.finish("return True")
        scope = code.compiled()
        for number, bag in enumerate(bags):
            bag.search = scope[f"search{number}"]
        shown = [bag for bag in bags if bag.shows]
        return Rest(roots, shown, _answer(shown, schema, self.asked.kept), scope["test"])

    def _bags(self, schema: tuple[str, ...]) -> tuple[list[RestBag], list[RestBag]]:
        """The bags of what is left, parents first, and those without a parent."""
        width = rest_of(self.asked.query, frozenset(schema))
        if width is None:
            return [], []
        trees = trees_of(width, self.asked.kept)
        bags, roots = list[RestBag](), list[RestBag]()
        for variables, parent in trees:
            above = frozenset() if parent is None else trees[parent][0]
            given, found = tuple(sorted(variables & above)), tuple(sorted(variables - above))
            bag = RestBag(given, found)
            bags.append(bag)
            if parent is None:
                roots.append(bag)
            else:
                over = bags[parent]
                over.children.append((row_picker((*over.given, *over.found), given), bag))
        for bag in reversed(bags):
            bag.shows = not set(self.asked.kept).isdisjoint(bag.found) or any(c.shows for _, c in bag.children)
        return bags, roots

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        if row in self.inputs[atom].rows:
            return False
        self.inputs[atom].add(row, 1)
        self._count[0] += 1
        if self.asked.enumerated:
            self._keep(self.delta(atom, row), 1)
        return True

    def delete(self, atom: int, row: Row) -> bool:
        if row not in self.inputs[atom].rows:
            return False
        if self.asked.enumerated:
            self._keep(self.delta(atom, row), -1)
        self.inputs[atom].add(row, -1)
        self._count[0] += 1
        return True

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        """Hold these rows, too.  Cost: D^w of the whole query if answers are to be enumerated."""
        for atom, given in rows.items():
            source = self.inputs[atom]
            source.load(dict.fromkeys([*source.rows, *given], 1))
            self._count[0] += len(source.rows)
        if self.asked.enumerated:
            self.kept.clear()
            self._keep(self._searched(), 1)

    def _keep(self, changed: Iterable[Weighted], sign: int) -> None:
        for answer, weight in changed:
            now = self.kept.get(answer, 0) + sign * weight
            if now:
                self.kept[answer] = now
            else:
                del self.kept[answer]

    # ── answers ──────────────────────────────────────────────────────────────────────────────

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return self._answers(self._rest(atom), row)

    def answers(self) -> Iterator[Weighted]:
        """All answers: from what is kept, with constant delay, if they are to be enumerated."""
        if not self.asked.enumerated:
            yield from self._searched()
        for one in self.kept.items():
            self._count[0] += 1
            yield one

    def _searched(self) -> Iterator[Weighted]:
        return self._answers(self._rest(None), ())

    def _answers(self, rest: Rest, row: Row) -> Iterator[Weighted]:
        """Search; then every way to choose a row of each bag that is shown, parents first."""
        if not rest.test(*row):
            return iter(())
        found, weight = Found(row, self._count), 1
        for root in rest.roots:
            weight *= bool(found.rows(root, ())) if root.shows else found.ways(root, ())
            if not weight:
                return iter(())
        return _walk(found, rest, row, weight)

    def rows(self, atom: int) -> Collection[Row]:
        return self.inputs[atom].rows

    def check(self) -> None:
        for source in self.inputs:
            source.check()
        kept, self.kept = self.kept, {}
        if self.asked.enumerated:
            self._keep(self._searched(), 1)
        assert kept == self.kept


def _walk(found: Found, rest: Rest, row: Row, weight: int) -> Iterator[Weighted]:
    chosen: dict[RestBag, Row] = {}

    def below(waiting: list[tuple[RestBag, Row]], weight: int) -> Iterator[Weighted]:
        if not waiting:
            yield rest.answer(row, [chosen[bag] for bag in rest.bags]), weight
            return
        (bag, given), later = waiting[0], waiting[1:]
        for own, ways in found.rows(bag, given).items():
            found.steps[0] += 1
            chosen[bag] = own
            whole = given + own
            more = [(child, pick(whole)) for pick, child in bag.children if child.shows]
            yield from below([*more, *later], weight * ways)

    return below([(root, ()) for root in rest.roots if root.shows], weight)


def _write_search(code: Code, number: int, bag: RestBag, schema: Sequence[str], others: Sequence[Input]) -> None:
    """Write the search of a bag: a generic join of all atoms that have one of its new variables."""
    code.define(f"search{number}", ", ".join(map(local, (*schema, *bag.given))))
    bound = {*schema, *bag.given}
    having = [source for source in others if not set(bag.found).isdisjoint(source.schema)]
    for variable in binding_order([source.schema for source in having], bound, bag.found):
        offers = []
        for source in having:
            if variable in source.schema:
                key = [v for v in source.schema if v in bound]
                offers.append(
                    f"{code.name('index', source.index(key, variable))}.get({key_text(map(local, key))})"
                )
        loop_over_common(code, variable, write_offers(code, variable, offers, counting=True))
        bound.add(variable)
    code.line(f"yield {tuple_text(map(local, bag.found))}")


def _answer(bags: Sequence[RestBag], schema: Sequence[str], kept: Sequence[str]) -> Answer:
    """A function from the fixed row and a row of each bag to an answer."""
    places = {v: f"row[{n}]" for n, v in enumerate(schema)}
    for number, bag in enumerate(bags):
        for column, v in enumerate(bag.found):
            places.setdefault(v, f"rows[{number}][{column}]")
    answer: Answer = eval(f"lambda row, rows: {tuple_text(places[v] for v in kept)}")  # our own text
    return answer
