"""Heavy and light values (IVM^ε): the triangle and the 3-path with O(√D) for each update.

A value is *heavy* in a relation when it has at least θ ≈ √D partners there: few values can be.  A
light one has few partners, which may be walked.  So a search either walks the partners of a light
value, or looks each heavy value up; and what joins a heavy with a light side is kept ready.

Unlike generations this needs a plan made by hand for each query: which relation to split on which
variable, and which views to keep.  The two below are those of the literature.

Thresholds have slack (a value turns heavy at 3/2 θ and light again at 1/2 θ), so a turn is paid by
the updates that led to it; θ itself is chosen anew when the size of the database has doubled or
halved.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang, "Maintaining triangle queries under updates", TODS
45(3), 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import permutations
from math import isqrt
from typing import Any

from everlog.core.classify.query import Query
from everlog.core.joins.tries import row_picker
from everlog.core.joins.view import Asked, CannotServe, CountedView, Weighted
from everlog.core.program import Row

Value = Any


class Pairs:
    """A binary relation with both directions, and the heavy values of its first column.

    Invariant: a heavy value has at least θ/2 partners, any other fewer than 3θ/2.
    """

    def __init__(self) -> None:
        self.forward: dict[Value, set[Value]] = {}
        self.backward: dict[Value, set[Value]] = {}
        self.heavy: set[Value] = set()

    def __contains__(self, pair: tuple[Value, Value]) -> bool:
        return pair[1] in self.forward.get(pair[0], ())

    def add(self, x: Value, y: Value) -> None:
        self.forward.setdefault(x, set()).add(y)
        self.backward.setdefault(y, set()).add(x)

    def remove(self, x: Value, y: Value) -> None:
        for index, key, value in ((self.forward, x, y), (self.backward, y, x)):
            index[key].remove(value)
            if not index[key]:
                del index[key]

    def fill(self, pairs: Iterable[Row]) -> None:
        """Many pairs at once; `choose_heavy` has to follow."""
        forward, backward = self.forward, self.backward
        for x, y in pairs:
            partners = forward.get(x)
            if partners is None:
                forward[x] = {y}
            else:
                partners.add(y)
            partners = backward.get(y)
            if partners is None:
                backward[y] = {x}
            else:
                partners.add(x)

    def choose_heavy(self, threshold: int) -> None:
        self.heavy = {x for x, partners in self.forward.items() if len(partners) >= threshold}

    def heavy_partners(self, y: Value) -> Collection[Value]:
        """Values among which are the heavy ones with the partner y: all heavy ones, or all
        partners.

        Cost: that of the smaller side, so at most about √D.
        """
        partners = self.backward.get(y, ())
        return self.heavy if len(self.heavy) <= len(partners) else partners

    def turns(self, x: Value, threshold: int) -> bool:
        """Whether a value has to change sides."""
        partners = len(self.forward.get(x, ()))
        return 2 * partners < threshold if x in self.heavy else 2 * partners >= 3 * threshold


class HeavyLight(CountedView):
    """What both have in common: roles of atoms and columns, sizes, and the choice of θ."""

    roles: tuple[tuple[str, str], ...]  # the atoms of the query by hand, over variables of its own

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked
        found = matched(asked.query, self.roles)
        if found is None:
            raise CannotServe("heavy and light values are worked out for the triangle and the 3-path only")
        self._place, names = found  # the role of each atom; which variable stands for ours
        variables = list(dict.fromkeys(v for role in self.roles for v in role))
        self._to_role = [
            row_picker(asked.query.atoms[n].variables, [names[v] for v in self.roles[role]])
            for n, role in enumerate(self._place)
        ]
        self._from_role = [
            row_picker([names[v] for v in self.roles[role]], asked.query.atoms[n].variables)
            for n, role in enumerate(self._place)
        ]
        self._answer = row_picker([names[v] for v in variables], asked.kept)
        self.pairs = [Pairs() for _ in self.roles]
        self.load({})

    def clear(self) -> None:
        """Empty views."""
        raise NotImplementedError

    def follow(self, role: int, x: Value, y: Value, insert: bool) -> None:
        """Change the views for a pair whose first value is on the side where it is now."""
        raise NotImplementedError

    def build(self) -> None:
        """The views, from pairs whose heavy values are known."""
        raise NotImplementedError

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        """Many rows at once: sides are chosen by the final sizes, and the views made in one go."""
        for atom, given in rows.items():
            self.pairs[self._place[atom]].fill(map(self._to_role[atom], given))
        self.size = sum(len(partners) for pairs in self.pairs for partners in pairs.forward.values())
        self.base = max(16, self.size)
        self.threshold = max(2, isqrt(self.base))
        for pairs in self.pairs:
            pairs.choose_heavy(self.threshold)
        self.clear()
        self.build()

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        role, (x, y) = self._place[atom], self._to_role[atom](row)
        if (x, y) in self.pairs[role]:
            return False
        self._put(role, x, y)
        self.size += 1
        self._balance(role, x)
        return True

    def delete(self, atom: int, row: Row) -> bool:
        role, (x, y) = self._place[atom], self._to_role[atom](row)
        if (x, y) not in self.pairs[role]:
            return False
        self._take(role, x, y)
        self.size -= 1
        self._balance(role, x)
        return True

    def _put(self, role: int, x: Value, y: Value) -> None:
        self._count[0] += 1
        self.pairs[role].add(x, y)
        self.follow(role, x, y, insert=True)

    def _take(self, role: int, x: Value, y: Value) -> None:
        self._count[0] += 1
        self.follow(role, x, y, insert=False)
        self.pairs[role].remove(x, y)

    def _balance(self, role: int, x: Value) -> None:
        if not self.base <= 2 * self.size + 32 or self.size > 2 * self.base:
            self._count[0] += self.size
            self.load({})
        else:
            self._turn_if_due(role, x)

    def _turn_if_due(self, role: int, x: Value) -> None:
        """A value changes sides with all its pairs."""
        pairs = self.pairs[role]
        if pairs.turns(x, self.threshold):
            partners = list(pairs.forward.get(x, ()))
            for y in partners:
                self._take(role, x, y)
            pairs.heavy ^= {x}
            for y in partners:
                self._put(role, x, y)

    def rows(self, atom: int) -> Collection[Row]:
        pick = self._from_role[atom]
        forward = self.pairs[self._place[atom]].forward
        return {pick((a, b)) for a, partners in forward.items() for b in partners}

    # ── answers ──────────────────────────────────────────────────────────────────────────────

    def found(self, role: int, x: Value, y: Value) -> Iterator[Row]:
        """The answers with this pair, over our own variables."""
        raise NotImplementedError

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        pick = self._answer
        return ((pick(answer), 1) for answer in self.found(self._place[atom], *self._to_role[atom](row)))

    def answers(self) -> Iterator[Weighted]:
        for x, partners in list(self.pairs[0].forward.items()):
            for y in list(partners):
                for answer in self.found(0, x, y):
                    yield self._answer(answer), 1

    def check(self) -> None:
        for pairs in self.pairs:
            for x, partners in pairs.forward.items():
                assert partners, "no empty set"
                assert not pairs.turns(x, self.threshold), f"{x} is on the wrong side"
            assert pairs.heavy <= pairs.forward.keys() or not pairs.forward
        fresh = self.__class__(self.asked)
        fresh.size, fresh.base, fresh.threshold = self.size, self.base, self.threshold
        for role, pairs in enumerate(self.pairs):
            fresh.pairs[role].heavy = set(pairs.heavy)
        for role, pairs in enumerate(self.pairs):
            for x, partners in pairs.forward.items():
                for y in partners:
                    fresh._put(role, x, y)
        assert self.views() == fresh.views(), "views"

    def views(self) -> Any:
        """What is kept ready, to be compared."""
        raise NotImplementedError


class HeavyLightTriangle(HeavyLight):
    """R(a, b), S(b, c), T(c, a), each split on its first variable; the views join a heavy with a
    light side.

    Of an update R(a, b), c is found in three ways: b is light in S (walk its partners); c is heavy
    in T (look all such c up); b is heavy in S and c light in T (kept ready for each (b, a)).  The
    same holds for S and T in turn.
    """

    roles = (("a", "b"), ("b", "c"), ("c", "a"))

    def clear(self) -> None:
        # ready[n]: for the two relations after n, {(y, x): middle values with a heavy y and a light
        # middle}
        self.ready: list[dict[tuple[Value, Value], set[Value]]] = [{}, {}, {}]

    def build(self) -> None:
        for role, pairs in enumerate(self.pairs):
            for x in pairs.heavy:
                for y in pairs.forward[x]:
                    self.follow(role, x, y, insert=True)

    def follow(self, role: int, x: Value, y: Value, insert: bool) -> None:
        # as the heavy side of ready[role - 1]: S(y', m) heavy in y' = x, with T(m, ·) light in m =
        # y
        after, before = self.pairs[(role + 1) % 3], self.pairs[(role + 2) % 3]
        if x in self.pairs[role].heavy:
            if y not in after.heavy:
                for z in after.forward.get(y, ()):
                    self._count[0] += 1
                    _change(self.ready[(role + 2) % 3], (x, z), y, insert)
        else:  # as the light side of ready[role - 2]: the one before is heavy in its first value
            for w in before.heavy_partners(x):
                self._count[0] += 1
                if w in before.heavy and (w, x) in before:
                    _change(self.ready[(role + 1) % 3], (w, y), x, insert)

    def found(self, role: int, x: Value, y: Value) -> Iterator[Row]:
        after, before = self.pairs[(role + 1) % 3], self.pairs[(role + 2) % 3]
        turn = _TURNS[role]
        if y not in after.heavy:  # walk the few partners of y
            for z in after.forward.get(y, ()):
                self._count[0] += 1
                if (z, x) in before:
                    yield turn(x, y, z)
            return
        for z in before.heavy_partners(x):
            self._count[0] += 1
            if z in before.heavy and (y, z) in after and (z, x) in before:
                yield turn(x, y, z)
        for z in self.ready[role].get((y, x), ()):
            self._count[0] += 1
            yield turn(x, y, z)

    def views(self) -> Any:
        return self.ready


_TURNS: list[Callable[[Value, Value, Value], Row]] = [
    lambda x, y, z: (x, y, z),  # R(a, b), then c
    lambda x, y, z: (z, x, y),  # S(b, c), then a
    lambda x, y, z: (y, z, x),  # T(c, a), then b
]


class HeavyLightPath(HeavyLight):
    """R(b, a), S(b, c), T(c, d) as stars around the middle pair: whether b and c are used on the
    other side.

    Of an update R(b, a) the partners c of b must have some d.  For values c that are light in S
    (few b) it is kept ready, for each b, which of them do; those that are heavy are looked up.  The
    same for T with the roles of b and c exchanged.
    """

    roles = (("b", "a"), ("b", "c"), ("c", "d"))

    def clear(self) -> None:
        self.turned = Pairs()  # S from c to b: heavy are the c with many b
        self.after: dict[Value, set[Value]] = {}  # b → light c that have some d
        self.before: dict[Value, set[Value]] = {}  # c → light b that have some a

    def build(self) -> None:
        ends, middle, starts = self.pairs[0].forward, self.pairs[1], self.pairs[2].forward
        self.turned.fill((c, b) for b, partners in middle.forward.items() for c in partners)
        self.turned.choose_heavy(self.threshold)
        for b, partners in middle.forward.items():
            for c in partners:
                if c not in self.turned.heavy and c in starts:
                    self.after.setdefault(b, set()).add(c)
                if b not in middle.heavy and b in ends:
                    self.before.setdefault(c, set()).add(b)

    def follow(self, role: int, x: Value, y: Value, insert: bool) -> None:
        ends, middle = self.pairs[0].forward, self.pairs[1]
        starts = self.pairs[2].forward
        if role == 1:
            (self.turned.add if insert else self.turned.remove)(y, x)
            if y not in self.turned.heavy and y in starts:
                _change(self.after, x, y, insert)
            if x not in middle.heavy and x in ends:
                _change(self.before, y, x, insert)
            self._count[0] += 2
            if insert or y in self.turned.forward:
                self._turn_middle(y)
        elif role == 0 and len(ends[x]) == 1 and x not in middle.heavy:  # the first a of b comes, or the last goes
            for c in middle.forward.get(x, ()):
                self._count[0] += 1
                _change(self.before, c, x, insert)
        elif role == 2 and len(starts[x]) == 1 and x not in self.turned.heavy:
            for b in middle.backward.get(x, ()):
                self._count[0] += 1
                _change(self.after, b, x, insert)

    def _turn_middle(self, c: Value) -> None:
        """A value c changes sides."""
        if self.turned.turns(c, self.threshold):
            used = c in self.pairs[2].forward
            becomes_light = c in self.turned.heavy
            self.turned.heavy ^= {c}
            if used:
                for b in self.turned.forward.get(c, ()):
                    self._count[0] += 1
                    _change(self.after, b, c, becomes_light)

    def _turn_if_due(self, role: int, x: Value) -> None:
        if role != 1 or not self.pairs[1].turns(x, self.threshold):
            return
        middle = self.pairs[1]
        used = x in self.pairs[0].forward
        becomes_light = x in middle.heavy
        middle.heavy ^= {x}
        if used:
            for c in middle.forward.get(x, ()):
                self._count[0] += 1
                _change(self.before, c, x, becomes_light)

    def found(self, role: int, x: Value, y: Value) -> Iterator[Row]:
        ends, middle, starts = self.pairs[0].forward, self.pairs[1], self.pairs[2].forward
        if role == 1:
            for a in ends.get(x, ()):
                for d in starts.get(y, ()):
                    self._count[0] += 1
                    yield x, a, y, d
        elif role == 0:
            for c in self._partners(self.after.get(x, ()), self.turned.heavy, lambda c: (x, c) in middle, starts):
                for d in starts[c]:
                    self._count[0] += 1
                    yield x, y, c, d
        else:
            for b in self._partners(self.before.get(x, ()), middle.heavy, lambda b: (b, x) in middle, ends):
                for a in ends[b]:
                    self._count[0] += 1
                    yield b, a, x, y

    def _partners(
        self, ready: Collection[Value], heavy: Collection[Value], meets: Callable[[Value], bool], used: Any
    ) -> Iterator[Value]:
        yield from ready
        for value in heavy:
            self._count[0] += 1
            if value in used and meets(value):
                yield value

    def views(self) -> Any:
        return self.after, self.before, self.turned.forward

    def check(self) -> None:
        middle, starts, ends = self.pairs[1], self.pairs[2].forward, self.pairs[0].forward
        after: dict[Value, set[Value]] = {}
        before: dict[Value, set[Value]] = {}
        for b, partners in middle.forward.items():
            assert not middle.turns(b, self.threshold)
            for c in partners:
                if c not in self.turned.heavy and c in starts:
                    after.setdefault(b, set()).add(c)
                if b not in middle.heavy and b in ends:
                    before.setdefault(c, set()).add(b)
        assert self.after == after
        assert self.before == before
        assert self.turned.forward == middle.backward
        for c in self.turned.forward:
            assert not self.turned.turns(c, self.threshold)


def _change(view: dict[Any, set[Value]], key: Any, value: Value, insert: bool) -> None:
    if insert:
        view.setdefault(key, set()).add(value)
    else:
        view[key].remove(value)
        if not view[key]:
            del view[key]


def matched(query: Query, roles: tuple[tuple[str, str], ...]) -> tuple[list[int], dict[str, str]] | None:
    """The role of each atom, and which variable of the query stands for which of ours; None for
    another query.

    >>> matched(Query.of("E(x, y)", "F(z, y)", "G(x, z)"), HeavyLightTriangle.roles)
    ([0, 1, 2], {'a': 'x', 'b': 'y', 'c': 'z'})
    """
    if [len(atom.variables) for atom in query.atoms] != [2] * len(roles):
        return None
    for place in permutations(range(len(roles))):
        by_role = {role: set(query.atoms[n].variables) for n, role in enumerate(place)}
        names: dict[str, str] = {}
        for ours in dict.fromkeys(v for role in roles for v in role):
            inside = [by_role[n] for n, role in enumerate(roles) if ours in role]
            outside = [by_role[n] for n, role in enumerate(roles) if ours not in role]
            here = set.intersection(*inside) - set().union(*outside)
            if len(here) != 1:
                break
            names[ours] = here.pop()
        else:
            if len(set(names.values())) == len(names) == len(query.variables):
                return list(place), names
    return None


def heavy_light(asked: Asked) -> HeavyLight:
    """The view for the triangle or the 3-path."""
    if matched(asked.query, HeavyLightTriangle.roles) is not None:
        return HeavyLightTriangle(asked)
    return HeavyLightPath(asked)


def is_served(query: Query) -> bool:
    return any(matched(query, kind.roles) is not None for kind in (HeavyLightTriangle, HeavyLightPath))
