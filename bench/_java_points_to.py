"""A points-to analysis of a Java-like program over strings, with calls found on the way.

Classes extend each other and implement interfaces; methods allocate, assign, cast, load, store,
throw and call.  Which method a virtual call reaches depends on what its receiver may point to, so
points-to sets, the graph of calls and the reachable methods are one recursion.
"""

from __future__ import annotations

import random

JAVA = """
.decl class_(c:symbol)  .decl interface(c:symbol)
.decl super(c:symbol, s:symbol)  .decl implements(c:symbol, i:symbol)
.decl method(m:symbol, c:symbol, sig:symbol)  .decl main(m:symbol)
.decl alloc(v:symbol, h:symbol, m:symbol)  .decl heap_type(h:symbol, c:symbol)
.decl assign(to:symbol, from:symbol, m:symbol)  .decl cast(to:symbol, from:symbol, c:symbol, m:symbol)
.decl load(to:symbol, base:symbol, f:symbol, m:symbol)  .decl store(base:symbol, f:symbol, from:symbol, m:symbol)
.decl load_item(to:symbol, base:symbol, m:symbol)  .decl store_item(base:symbol, from:symbol, m:symbol)
.decl load_static(to:symbol, f:symbol, m:symbol)  .decl store_static(f:symbol, from:symbol, m:symbol)
.decl call(i:symbol, base:symbol, sig:symbol, m:symbol)  .decl call_static(i:symbol, callee:symbol, m:symbol)
.decl actual(i:symbol, n:number, v:symbol)  .decl formal(m:symbol, n:number, v:symbol)
.decl this(m:symbol, v:symbol)  .decl returns(m:symbol, v:symbol)  .decl result(i:symbol, v:symbol)
.decl throws(v:symbol, m:symbol)  .decl catches(v:symbol, c:symbol, m:symbol)
.input class_, interface, super, implements, method, main, alloc, heap_type, assign, cast, load, store
.input load_item, store_item, load_static, store_static, call, call_static, actual, formal, this
.input returns, result, throws, catches

.decl type(c:symbol)  .decl subclass(c:symbol, s:symbol)  .decl superinterface(c:symbol, i:symbol)
.decl subtype(c:symbol, s:symbol)  .decl declares(sig:symbol, c:symbol)
.decl lookup(c:symbol, sig:symbol, m:symbol)
type(c) :- class_(c).
type(c) :- interface(c).
subclass(c, s) :- super(c, s).
subclass(c, t) :- subclass(c, s), super(s, t).
superinterface(c, i) :- implements(c, i).
superinterface(c, j) :- superinterface(c, i), implements(i, j).
superinterface(c, i) :- super(c, s), superinterface(s, i).
subtype(c, c) :- type(c).
subtype(c, s) :- subclass(c, s).
subtype(c, i) :- superinterface(c, i).
declares(sig, c) :- method(_, c, sig).
lookup(c, sig, m) :- method(m, c, sig).
lookup(c, sig, m) :- super(c, s), lookup(s, sig, m), !declares(sig, c).

.decl reachable(m:symbol)  .decl calls(i:symbol, m:symbol)
.decl points(v:symbol, h:symbol)  .decl passes(to:symbol, from:symbol)
.decl field(b:symbol, f:symbol, h:symbol)  .decl item(b:symbol, h:symbol)  .decl static(f:symbol, h:symbol)
.decl thrown(m:symbol, h:symbol)
.output calls, points, field, thrown
reachable(m) :- main(m).
reachable(m) :- calls(_, m).
points(v, h) :- reachable(m), alloc(v, h, m).
points(to, h) :- reachable(m), assign(to, from, m), points(from, h).
points(to, h) :- reachable(m), cast(to, from, c, m), points(from, h), heap_type(h, t), subtype(t, c).
field(b, f, h) :- reachable(m), store(base, f, from, m), points(base, b), points(from, h).
points(to, h) :- reachable(m), load(to, base, f, m), points(base, b), field(b, f, h).
item(b, h) :- reachable(m), store_item(base, from, m), points(base, b), points(from, h).
points(to, h) :- reachable(m), load_item(to, base, m), points(base, b), item(b, h).
static(f, h) :- reachable(m), store_static(f, from, m), points(from, h).
points(to, h) :- reachable(m), load_static(to, f, m), static(f, h).
calls(i, m) :- reachable(in), call_static(i, m, in).
calls(i, m) :- reachable(in), call(i, base, sig, in), points(base, h), heap_type(h, c), lookup(c, sig, m).
points(v, h) :-
    reachable(in), call(_, base, sig, in), points(base, h), heap_type(h, c), lookup(c, sig, m), this(m, v).
passes(to, from) :- calls(i, m), formal(m, n, to), actual(i, n, from).
passes(to, from) :- calls(i, m), returns(m, from), result(i, to).
points(to, h) :- passes(to, from), points(from, h).
thrown(m, h) :- reachable(m), throws(v, m), points(v, h).
thrown(m, h) :- calls(i, n), within(i, m), thrown(n, h), !handles(m, h).
points(v, h) :- calls(i, n), within(i, m), thrown(n, h), heap_type(h, t), catches(v, c, m), subtype(t, c).
.decl within(i:symbol, m:symbol)  .decl handles(m:symbol, h:symbol)
within(i, m) :- call(i, _, _, m).
within(i, m) :- call_static(i, _, m).
handles(m, h) :- catches(_, c, m), heap_type(h, t), subtype(t, c).

.decl polymorphic(i:symbol)  .decl may_fail(to:symbol, c:symbol, h:symbol)  .decl dead(m:symbol)
.decl unread(f:symbol)
.output polymorphic, may_fail, dead, unread
polymorphic(i) :- calls(i, m), calls(i, n), m != n.
may_fail(to, c, h) :- reachable(m), cast(to, from, c, m), points(from, h), heap_type(h, t), !subtype(t, c).
dead(m) :- method(m, _, _), !reachable(m).
unread(f) :- field(_, f, _), !load(_, _, f, _).
"""

_FIELDS = 6  # of a class


_MODULE = 14  # classes that know each other


def classes(chance: random.Random, size: int) -> dict[str, set[tuple[object, ...]]]:
    """A program of `size` modules of a few classes, with methods of a dozen statements."""
    made = _Program(chance)
    for module in range(size):
        made.module(f"com.example.package{module}")
    return made.facts


class _Program:
    """Facts under construction."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.facts: dict[str, set[tuple[object, ...]]] = {
            word: set()
            for line in JAVA.splitlines()
            if line.startswith(".input")
            for word in line.removeprefix(".input ").split(", ")
        }
        self.methods: dict[str, list[str]] = {}  # method → its variables

    def add(self, relation: str, *row: object) -> None:
        self.facts[relation].add(row)

    def module(self, package: str) -> None:
        """Classes that extend each other; the first has every method, and some begin to run."""
        chance = self.chance
        names = [f"{package}.Class{n}" for n in range(_MODULE)]
        interfaces = [f"{package}.Interface{n}" for n in range(_MODULE // 3)]
        for n, name in enumerate(names):
            self.add("class_", name)
            if n:
                self.add("super", name, names[chance.randrange(n)])
            if chance.random() < 0.4:
                self.add("implements", name, chance.choice(interfaces))
        for n, interface in enumerate(interfaces):
            self.add("interface", interface)
            if n:
                self.add("implements", interface, interfaces[chance.randrange(n)])
        self.methods.clear()
        signatures = range(_MODULE)
        for name in names:
            for sig in signatures if name == names[0] else chance.sample(signatures, 4):
                self.method(name, f"void handle{sig}(java.lang.Object)", names)
        for method in chance.sample(sorted(self.methods), _MODULE // 2):
            self.add("main", method)
        self.static_calls()

    def method(self, name: str, signature: str, names: list[str]) -> None:
        method = f"<{name}: {signature}>"
        variables = self.methods[method] = [f"{method}/r{n}" for n in range(12)]
        self.add("method", method, name, signature)
        self.add("this", method, variables[0])
        self.add("formal", method, 0, variables[1])
        self.add("returns", method, variables[2])
        for number in range(12):
            self.statement(method, variables, number, names)

    def statement(self, method: str, variables: list[str], number: int, names: list[str]) -> None:
        chance = self.chance
        one, other, third = chance.sample(variables, 3)
        field = f"<{chance.choice(names)}: field{chance.randrange(_FIELDS)}>"
        object_ = chance.choice(variables[:5])  # what is made and called: `this`, an argument, a result, others
        match chance.randrange(15):
            case 0 | 1 | 2 | 3 | 4:
                heap, kind = f"{method}/new{number}", chance.choice(names)
                self.add("alloc", object_, heap, method)
                self.add("heap_type", heap, kind)
            case 5:
                self.add("assign", one, other, method)
            case 6:
                self.add("cast", one, other, chance.choice(names[: len(names) // 3 + 1]), method)
            case 7:
                self.add("load", one, object_, field, method)
            case 8:
                self.add("store", object_, field, other, method)
            case 9:
                self.add("load_item" if chance.random() < 0.5 else "store_item", one, other, method)
            case 10:
                static = f"<{names[0]}: static{chance.randrange(20)}>"
                if chance.random() < 0.5:
                    self.add("load_static", one, static, method)
                else:
                    self.add("store_static", static, one, method)
            case 11 | 12 | 13:
                site = f"{method}/call{number}"
                self.add(
                    "call", site, object_, f"void handle{chance.randrange(_MODULE)}(java.lang.Object)", method
                )
                self.add("actual", site, 0, other)
                self.add("result", site, third)
            case _:
                if chance.random() < 0.5:
                    self.add("throws", one, method)
                else:
                    self.add("catches", one, chance.choice(names[: len(names) // 3 + 1]), method)

    def static_calls(self) -> None:
        names = sorted(self.methods)
        for method in names:
            if self.chance.random() < 0.2:
                site = f"{method}/static"
                one, other = self.chance.sample(self.methods[method], 2)
                self.add("call_static", site, self.chance.choice(names), method)
                self.add("actual", site, 0, one)
                self.add("result", site, other)
