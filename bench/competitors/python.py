"""Plain Python: loops over sets and dicts; no library, no rules.

For updates there is one program, the join with a count by group: triggers by hand
(bench/triggers.py).
"""

from __future__ import annotations

import platform
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from everlog.bench.harness.workload import Case, Facts, Living, Row, Side, Static, Told, Update

Found = dict[str, set[Row]]


class Loops:
    def __init__(self, case: Case) -> None:
        self.case = case

    def load(self) -> None:
        self.facts = {relation: self.case.rows(relation) for relation in self.case.base}

    def solve(self) -> None:
        self.found = LOOPS[self.case.query](self.facts)

    def size(self, relation: str) -> int:
        return len(self.found[relation])

    def answer(self, relation: str) -> Iterable[Row]:
        return self.found[relation]

    def close(self) -> None:
        pass


def by(rows: Iterable[Row], column: int) -> dict[int, list[int]]:
    """The values of the other column of a binary relation, by one column."""
    out: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        out[row[column]].append(row[1 - column])
    return out


# ── recursion ────────────────────────────────────────────────────────────────────────────────


def closure(facts: Facts) -> Found:
    """Tuple at a time: join the last found pairs with the edges."""
    after = by(facts["edge"], 0)
    path: set[Row] = set(facts["edge"])
    last = path
    while last:
        new: set[Row] = set()
        for x, y in last:
            for z in after.get(y, ()):
                if (x, z) not in path:
                    new.add((x, z))
        path |= new
        last = new
    return {"path": path}


def same_generation(facts: Facts) -> Found:
    children = by(facts["parent"], 1)
    found: set[Row] = {(x, y) for siblings in children.values() for x in siblings for y in siblings if x != y}
    work = deque(found)
    while work:
        p, q = work.popleft()
        for x in children.get(p, ()):
            for y in children.get(q, ()):
                if x != y and (x, y) not in found:
                    found.add((x, y))
                    work.append((x, y))
    return {"same_generation": found}


def components(facts: Facts) -> Found:
    near = defaultdict(list)
    for x, y in facts["edge"]:
        near[x].append(y)
        near[y].append(x)
    least: dict[int, int] = {}
    for start in sorted(near):
        if start in least:
            continue
        least[start] = start
        work = [start]
        while work:
            for node in near[work.pop()]:
                if node not in least:
                    least[node] = start
                    work.append(node)
    return {"component": set(least.items())}


def points_to(facts: Facts) -> Found:
    """A work list of pairs; each rule is tried from both of its sides."""
    copied, loaded = by(facts["assign"], 1), by(facts["load"], 1)
    stored, storing = by(facts["store"], 0), by(facts["store"], 1)
    to: dict[int, set[int]] = defaultdict(set)
    at: dict[int, set[int]] = defaultdict(set)
    work: list[Row] = []

    def add(v: int, o: int) -> None:
        if o not in to[v]:
            to[v].add(o)
            at[o].add(v)
            work.append((v, o))

    for v, o in facts["address_of"]:
        add(v, o)
    while work:
        v, o = work.pop()
        for x in copied.get(v, ()):
            add(x, o)
        for x in loaded.get(v, ()):  # x = *v, and v points to o
            for target in list(to[o]):
                add(x, target)
        for p in list(at[v]):  # x = *p, and p points to v
            for x in loaded.get(p, ()):
                add(x, o)
        for w in stored.get(v, ()):  # *v = w
            for target in list(to[w]):
                add(o, target)
        for p in storing.get(v, ()):  # *p = v
            for q in list(to[p]):
                add(q, o)
    return {"points_to": {(v, o) for v, targets in to.items() for o in targets}}


def value_flow(facts: Facts) -> Found:
    """Three relations indexed by both columns, and one work list."""
    assigned = by(facts["assign"], 1)
    seen = by(facts["dereference"], 0)
    forward: dict[str, dict[int, set[int]]] = {name: defaultdict(set) for name in ("flow", "alias", "memory")}
    back: dict[str, dict[int, set[int]]] = {name: defaultdict(set) for name in ("flow", "alias", "memory")}
    work: list[tuple[str, int, int]] = []

    def add(name: str, x: int, y: int) -> None:
        if y not in forward[name][x]:
            forward[name][x].add(y)
            back[name][y].add(x)
            work.append((name, x, y))

    for x, y in facts["assign"]:
        add("flow", x, y)
        for v in (x, y):
            add("flow", v, v)
            add("memory", v, v)
    flow, flown, memory = forward["flow"], back["flow"], forward["memory"]
    while work:
        name, x, y = work.pop()
        if name == "flow":
            for z in list(flow[y]):
                add("flow", x, z)
            for z in list(flown[x]):
                add("flow", z, y)
            for z in list(flown[y]):
                add("alias", x, z)
                add("alias", z, x)
            for w in list(memory[y]):  # x ← y ~ w → z
                for z in list(flown[w]):
                    add("alias", x, z)
            for w in list(back["memory"][y]):
                for z in list(flown[w]):
                    add("alias", z, x)
        elif name == "memory":
            for z in assigned.get(x, ()):
                add("flow", z, y)
            for a in list(flown[x]):
                for z in list(flown[y]):
                    add("alias", a, z)
        else:
            for v in seen.get(x, ()):
                for w in seen.get(y, ()):
                    add("memory", v, w)
    names = {"value_flow": "flow", "value_alias": "alias", "memory_alias": "memory"}
    return {
        relation: {(x, y) for x, others in forward[name].items() for y in others}
        for relation, name in names.items()
    }


def borrow_check(facts: Facts) -> Found:
    after = by(facts["next"], 0)
    live, killed = set(facts["live"]), set(facts["killed"])
    subset: dict[int, set[Row]] = defaultdict(set)  # by point
    pairs: list[Row] = []

    def add_subset(a: int, b: int, p: int) -> None:
        if (a, b) not in subset[p]:
            subset[p].add((a, b))
            pairs.append((a, b, p))

    for a, b, p in facts["subset_at"]:
        add_subset(a, b, p)
    while pairs:
        a, b, p = pairs.pop()
        for c, d in list(subset[p]):
            if b == c and a != d:
                add_subset(a, d, p)
            if d == a and c != b:
                add_subset(c, b, p)
        for q in after.get(p, ()):
            if (a, q) in live and (b, q) in live:
                add_subset(a, b, q)
    holds: set[Row] = set()
    work: list[Row] = []

    def add(o: int, loan: int, p: int) -> None:
        if (o, loan, p) not in holds:
            holds.add((o, loan, p))
            work.append((o, loan, p))

    for o, loan, p in facts["issued"]:
        add(o, loan, p)
    while work:
        o, loan, p = work.pop()
        for a, b in subset[p]:
            if a == o:
                add(b, loan, p)
        if (loan, p) not in killed:
            for q in after.get(p, ()):
                if (o, q) in live:
                    add(o, loan, q)
    loan_live = {(loan, p) for o, loan, p in holds if (o, p) in live}
    return {"holds": holds, "error": set(facts["invalidated"]) & loan_live}


def negation(facts: Facts) -> Found:
    calls, off = by(facts["call"], 0), {f for (f,) in facts["off"]}
    work = [f for (f,) in facts["root"] if f not in off]
    reached = set(work)
    while work:
        for g in calls.get(work.pop(), ()):
            if g not in reached and g not in off:
                reached.add(g)
                work.append(g)
    return {"dead": {(f,) for (f,) in facts["function"] if f not in reached}}


# ── joins and aggregates ─────────────────────────────────────────────────────────────────────


def _triangle(r: Iterable[Row], s: Iterable[Row], t: Iterable[Row]) -> set[Row]:
    after, last = by(s, 0), set(t)
    return {(a, b, c) for a, b in r for c in after.get(b, ()) if (a, c) in last}


def triangles(facts: Facts) -> Found:
    return {"triangle": _triangle(facts["edge"], facts["edge"], facts["edge"])}


def three_triangles(facts: Facts) -> Found:
    return {"q": _triangle(facts["r"], facts["s"], facts["t"])}


def four_cycles(facts: Facts) -> Found:
    after, edges = by(facts["edge"], 0), set(facts["edge"])
    out: set[Row] = set()
    for a, b in edges:
        if a < b:
            for c in after.get(b, ()):
                if a < c:
                    for d in after.get(c, ()):
                        if a < d and (d, a) in edges:
                            out.add((a, b, c, d))
    return {"cycle": out}


def three_path(facts: Facts) -> Found:
    s, t = by(facts["s"], 0), by(facts["t"], 0)
    return {"q": {(a, b, c, d) for a, b in facts["r"] for c in s.get(b, ()) for d in t.get(c, ())}}


def join_count(facts: Facts) -> Found:
    s = by(facts["s"], 0)
    q: set[Row] = {(a, c) for a, b in facts["r"] for c in s.get(b, ())}
    n: dict[int, int] = defaultdict(int)
    for a, _ in q:
        n[a] += 1
    return {"q": q, "n": set(n.items())}


def aggregates(facts: Facts) -> Found:
    amounts: dict[int, list[int]] = defaultdict(list)
    for _, shop, amount in facts["sale"]:
        amounts[shop].append(amount)
    return {"total": {(shop, len(a), sum(a), min(a), max(a)) for shop, a in amounts.items()}}


LOOPS: dict[str, Callable[[Facts], Found]] = {
    "closure": closure,
    "same_generation": same_generation,
    "components": components,
    "points_to": points_to,
    "value_flow": value_flow,
    "borrow_check": borrow_check,
    "negation": negation,
    "triangles": triangles,
    "three_triangles": three_triangles,
    "four_cycles": four_cycles,
    "three_path": three_path,
    "join_count": join_count,
    "aggregates": aggregates,
}


# ── updates ──────────────────────────────────────────────────────────────────────────────────


class ByHand:
    """The triggers of bench/triggers.py; changes of a batch are added up."""

    def __init__(self, case: Case) -> None:
        from everlog.bench.triggers import Triggers

        self.case = case
        self.triggers: Any = Triggers()

    def load(self) -> None:
        for relation in self.case.base:
            for row in self.case.rows(relation):
                self.triggers.apply(relation, row, True)

    def step(self, updates: list[Update]) -> Told:
        from everlog.bench._common import add_changes

        if len(updates) == 1:
            told: Told = self.triggers.apply(*updates[0])
            return told
        total: dict[str, Any] = {}
        for update in updates:
            add_changes(total, self.triggers.apply(*update))
        return total

    def answer(self, relation: str) -> Iterable[Row]:
        return set(self.triggers.q) if relation == "q" else set(self.triggers.n.items())

    def close(self) -> None:
        pass


def _version() -> str:
    return platform.python_version()


def _refuses(query: str, living: bool) -> str:
    return "triggers by hand for one query only" if living and query != "join_count" else ""


def _static(case: Case) -> Static:
    return Loops(case)


def _living(case: Case) -> Living:
    return ByHand(case)


SIDES = [Side("python", "Python, by hand", _version, _static, _living, _refuses)]
