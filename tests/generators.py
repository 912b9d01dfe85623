"""Random programs that check, facts for them, and streams of updates.

Programs are made as text, layer by layer, so that they exercise the whole way from characters to
relations.  A rule of a layer may use lower layers in any way, and its own layer in positive atoms,
which makes recursion of every shape.  Arithmetic in a recursive rule stays within a few values, so
that every program ends.

`histories` are facts and streams that fit them: half of the deletes are of facts that are there.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Any, TypeAlias

from attrs import define, field
from hypothesis import strategies as st

BASE: dict[str, tuple[str, ...]] = {
    "e": ("number", "number"),
    "v": ("number",),
    "t": ("number", "number", "number"),
    "w": ("number", "symbol"),
    "s": ("symbol",),
    "f": ("float",),
    "u": ("unsigned", "number"),
    "flag": (),
}
VALUES: dict[str, list[Any]] = {
    "number": [0, 1, 2, 3, 1, 2, 4, -1],
    "symbol": ["", "a", "b", "ab", "ba"],
    "float": [0.5, 1.0, 2.0],
    "unsigned": [0, 1, 2, 18446744073709551615],
}
NAMES: dict[str, str] = {"number": "xyz", "symbol": "pq", "float": "mn", "unsigned": "jk"}
INNER: dict[str, str] = {"number": "gh", "symbol": "o", "float": "l", "unsigned": "d"}  # inside aggregates only

Kinds: TypeAlias = dict[str, tuple[str, ...]]  # relation → the kinds of its columns
Fact: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[str, Fact, bool]  # relation, row, whether it is inserted
Case: TypeAlias = tuple[str, dict[str, list[Fact]], list[list[Change]]]  # a program's text, facts, a stream


@define
class Body:
    """A rule body under construction: its literals, and the bound variables by kind."""

    literals: list[str] = field(factory=list)
    bound: dict[str, list[str]] = field(factory=lambda: {k: [] for k in VALUES})

    def bind(self, kind: str, name: str) -> None:
        if name not in self.bound[kind]:
            self.bound[kind].append(name)


def constant_text(kind: str, value: Any) -> str:
    return f'"{value}"' if kind == "symbol" else f"{value}u" if kind == "unsigned" else str(value)


@st.composite
def facts(
    draw: st.DrawFn, relations: dict[str, tuple[str, ...]] | None = None
) -> dict[str, list[tuple[Any, ...]]]:
    """A few facts for each base relation."""
    out = {}
    for name, kinds in (relations or BASE).items():
        row = st.tuples(*(st.sampled_from(VALUES[k]) for k in kinds))
        least, most = (2, 9) if kinds else (0, 1)
        out[name] = draw(st.lists(row, min_size=least, max_size=most, unique=True))
    return out


@st.composite
def streams(
    draw: st.DrawFn, relations: dict[str, tuple[str, ...]] | None = None, steps: int = 6, size: int = 4
) -> list[list[tuple[str, tuple[Any, ...], bool]]]:
    """A stream of steps, each a few inserts and deletes; small domains make them meet."""
    pool = relations or BASE
    update = st.sampled_from(sorted(pool)).flatmap(
        lambda name: st.tuples(
            st.just(name), st.tuples(*(st.sampled_from(VALUES[k]) for k in pool[name])), st.booleans()
        )
    )
    return draw(st.lists(st.lists(update, min_size=1, max_size=size), min_size=1, max_size=steps))


# ── streams ──────────────────────────────────────────────────────────────────────────────────

_DECLARED = re.compile(r"\.decl (\w+)\(([^)]*)\)(?! inline)")


def declared(text: str) -> Kinds:
    """The relations of a program's text that may get base facts.

    >>> declared(".decl e(a:number, b:symbol)\n.decl small(x:number) inline")
    {'e': ('number', 'symbol')}
    """
    return {
        name: tuple(column.split(":")[1].strip() for column in columns.split(",") if column)
        for name, columns in _DECLARED.findall(text)
    }


@cache
def rows_of(kinds: tuple[str, ...], numbers: int = 0) -> list[Fact]:
    """Every row of small values; with `numbers`, of that many numbers from 0 on."""
    return list(product(*(range(numbers) if numbers else VALUES[kind] for kind in kinds)))


@st.composite
def histories(
    draw: st.DrawFn, often: Kinds, seldom: Kinds | None = None, steps: int = 6, size: int = 4, numbers: int = 0
) -> tuple[dict[str, list[Fact]], list[list[Change]]]:
    """Facts, and a stream of steps on them; `seldom` relations are rarely updated."""
    pool = {**(seldom or {}), **often}
    names = sorted(often) * 3 + sorted(seldom or {})
    present: dict[str, dict[Fact, None]] = {name: {} for name in pool}
    for name, kinds in often.items():
        row = st.sampled_from(rows_of(kinds, numbers))
        least, most = (2, 9) if kinds else (0, 1)
        present[name] = dict.fromkeys(draw(st.lists(row, min_size=least, max_size=most)))
    inputs = {name: list(rows) for name, rows in present.items()}
    stream = []
    for _ in range(draw(st.integers(1, steps))):
        step: list[Change] = []
        for _ in range(draw(st.integers(1, size))):
            name = draw(st.sampled_from(names))
            form = draw(st.integers(0, 3))  # insert, insert or delete anything, delete what is there
            if form == 3 and present[name]:
                row, insert = draw(st.sampled_from(list(present[name]))), False
            else:
                row, insert = draw(st.sampled_from(rows_of(pool[name], numbers))), form != 1
            step.append((name, row, insert))
            if insert:
                present[name][row] = None
            else:
                present[name].pop(row, None)
        stream.append(step)
    return inputs, stream


@st.composite
def cases(draw: st.DrawFn, steps: int = 6, size: int = 4) -> Case:
    """A random program with a history that also updates relations with rules."""
    text = draw(programs())
    read = {name: kinds for name, kinds in BASE.items() if re.search(rf"[^.\w]{name}\(", _rules(text))}
    derived = {name: kinds for name, kinds in declared(text).items() if name not in BASE}
    return (text, *draw(histories(read or {"v": BASE["v"]}, derived, steps, size)))


@st.composite
def dense_cases(draw: st.DrawFn, steps: int = 8, size: int = 3) -> Case:
    """A dense program, and a history over four numbers."""
    text = draw(dense_programs())
    rules = _rules(text)
    read = {name: kinds for name, kinds in DENSE.items() if f" {name}(" in rules}
    derived = {name: kinds for name, kinds in declared(text).items() if name not in DENSE}
    return (text, *draw(histories(read or {"v": DENSE["v"]}, derived, steps, size, numbers=4)))


@st.composite
def shaped_cases(draw: st.DrawFn, name: str | None = None, steps: int = 6, size: int = 4) -> Case:
    """A program of one of the shapes below, with a history for its inputs."""
    rules = SHAPES[name if name is not None else draw(st.sampled_from(sorted(SHAPES)))]
    text = f"{DECLARATIONS}\n{rules}\n"
    read = {name: kinds for name, kinds in BASE.items() if re.search(rf"[^.\w]{name}\(", rules)}
    return (text, *draw(histories(read, declared(rules), steps, size)))


def _rules(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if ":-" in line)


# ── programs ─────────────────────────────────────────────────────────────────────────────────


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a program over the base relations."""
    known = dict(BASE)
    lines = [_declaration(name, kinds) for name, kinds in BASE.items()]
    inline: dict[str, tuple[str, ...]] = {}
    if draw(st.booleans()):
        lines.append(".decl small(x:number) inline\nsmall(x) :- x < 3.\nsmall(x) :- x = 4, e(x, _).")
        inline["small"] = ("number",)
    for layer in range(draw(st.integers(1, 3))):
        own: dict[str, tuple[str, ...]] = {}
        for number in range(draw(st.integers(1, 2))):
            kinds = tuple(draw(st.lists(st.sampled_from(["number"] * 4 + list(VALUES)), max_size=3)))
            name = f"r{layer}{number}"
            own[name] = kinds
            lines.append(_declaration(name, kinds) + draw(qualifier(kinds)))
            if draw(st.integers(0, 15)) == 15:
                lines.append(f".limitsize {name}(n={draw(st.integers(1, 8))})")
        for _ in range(draw(st.integers(1, 4))):
            name = draw(st.sampled_from(sorted(own)))
            lines.append(draw(rule(name, own, known, inline)))
        known |= own
    return "\n".join(lines) + "\n"


def _declaration(name: str, kinds: tuple[str, ...]) -> str:
    return f".decl {name}({', '.join(f'c{i}:{k}' for i, k in enumerate(kinds))})"


@st.composite
def qualifier(draw: st.DrawFn, kinds: tuple[str, ...]) -> str:
    options = [""] * 6
    if len(kinds) == 2 and kinds[0] == kinds[1]:
        options.append(" eqrel")
    if len(kinds) >= 2:
        options += [" choice-domain c0", " choice-domain c0, c1", " choice-domain (c0, c1)"]
    return draw(st.sampled_from(options))


@st.composite
def rule(
    draw: st.DrawFn,
    head: str,
    own: dict[str, tuple[str, ...]],
    known: dict[str, tuple[str, ...]],
    inline: dict[str, tuple[str, ...]],
) -> str:
    body = Body()
    recursive = False
    read: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        form = draw(st.integers(0, 5))  # own, the same again, one of the same layer, any
        pool = own if form == 0 else known
        if form == 1 and read:
            pool = {n: k for n, k in (known | own).items() if n == read[-1]}
        elif form == 2 and read:
            pool = {n: k for n, k in (known | own).items() if n[:2] == read[-1][:2]}
        name = draw(st.sampled_from(sorted(pool)))
        recursive = recursive or name in own
        read.append(name)
        body.literals.append(draw(positive(name, pool[name], body)))
    extras = draw(st.lists(st.sampled_from(EXTRAS), max_size=3))
    for extra in extras:
        made = draw(extra(body, known, inline))
        if made:
            body.literals.append(made)
    args = [draw(head_term(kind, body, recursive)) for kind in own[head]]
    if not recursive and own[head][:1] == ("number",) and draw(st.integers(0, 15)) == 15:
        args[0] = "autoinc()"
    order = draw(st.permutations(body.literals)) if draw(st.booleans()) else body.literals
    return f"{head}({', '.join(args)}) :- {', '.join(order)}."


@st.composite
def positive(draw: st.DrawFn, name: str, kinds: tuple[str, ...], body: Body, names: dict[str, str] = NAMES) -> str:
    args = []
    new = []
    for kind in kinds:
        form = draw(st.integers(0, 9))
        if form == 0:
            args.append("_")
        elif form == 1:
            args.append(constant_text(kind, draw(st.sampled_from(VALUES[kind]))))
        else:
            variable = draw(st.sampled_from(names[kind]))
            args.append(variable)
            new.append((kind, variable))
    for kind, variable in new:
        body.bind(kind, variable)
    return f"{name}({', '.join(args)})"


def bound_term(kind: str, body: Body) -> st.SearchStrategy[str]:
    constants = [constant_text(kind, v) for v in VALUES[kind]]
    return st.sampled_from(body.bound[kind] * 3 + constants)


@st.composite
def head_term(draw: st.DrawFn, kind: str, body: Body, recursive: bool) -> str:
    term = draw(bound_term(kind, body))
    form = draw(st.integers(0, 5))
    if form == 0 and kind == "number":
        other = draw(bound_term(kind, body))
        op = draw(st.sampled_from(["+", "-", "*", "band", "bxor", "lor"]))
        return f"({term} {op} {other}) % 5" if recursive else f"({term} {op} {other})"
    if form == 1 and kind == "number":
        return draw(
            st.sampled_from([f"max({term}, 1)", f"min({term}, 2, 3)", f"-{term}" if "-" not in term else term])
        )
    if form == 0 and kind == "symbol" and not recursive:
        return f'cat({term}, "x")'
    if form == 0 and kind == "float" and not recursive:
        return f"{term} * 2"
    return term


# ── programs of numbers alone, in which most rules derive something ──────────────────────────

DENSE: Kinds = {name: BASE[name] for name in ("e", "v", "t")}
_DENSE_NAMES = {**NAMES, "number": "xyzw"}
_ARITIES = (2, 2, 2, 1, 1, 3, 0)


@st.composite
def dense_programs(draw: st.DrawFn) -> str:
    """Layers of numeric relations; each reads lower ones, itself, or its neighbours."""
    known = dict(DENSE)
    lines = [_declaration(name, kinds) for name, kinds in DENSE.items()]
    for layer in range(draw(st.integers(1, 3))):
        own: Kinds = {}
        for number in range(draw(st.integers(1, 3))):
            kinds = ("number",) * draw(st.sampled_from(_ARITIES))
            own[f"r{layer}{number}"] = kinds
            special = draw(st.integers(0, 11)) == 11
            lines.append(_declaration(f"r{layer}{number}", kinds) + (draw(qualifier(kinds)) if special else ""))
            if special and draw(st.booleans()):
                lines.append(f".limitsize r{layer}{number}(n={draw(st.integers(1, 8))})")
        for name in own:
            lines += [draw(dense_rule(name, {}, known, own[name]))]
            lines += [draw(dense_rule(name, own, known, own[name])) for _ in range(draw(st.integers(0, 2)))]
        known |= own
    return "\n".join(lines) + "\n"


@st.composite
def dense_rule(draw: st.DrawFn, head: str, own: Kinds, known: Kinds, kinds: tuple[str, ...]) -> str:
    body = Body()
    recent = sorted(own) * 2 + [name for name in known if name not in DENSE] * 2 + list(DENSE)
    read: list[str] = []
    for _ in range(draw(st.sampled_from([1, 2, 2, 2, 3]))):
        pool = [read[-1]] if read and draw(st.integers(0, 3)) == 3 else recent
        read.append(draw(st.sampled_from(pool)))
        body.literals.append(draw(positive(read[-1], (known | own)[read[-1]], body, _DENSE_NAMES)))
    recursive = any(name in own for name in read)
    for extra in draw(st.lists(st.sampled_from([negated, negated, comparison, aggregate, equality]), max_size=2)):
        made = draw(extra(body, known, {}))
        if made:
            body.literals.append(made)
    args = []
    for _ in kinds:
        term = draw(st.sampled_from(body.bound["number"] or ["1"]))
        form = draw(st.integers(0, 11))
        if form == 10:
            term = f"({term} + {draw(st.sampled_from(body.bound['number'] or ['1']))}) % 4"
        elif form == 11:
            term = "2" if recursive or draw(st.booleans()) else "autoinc()"
        elif term == "agg" and recursive:
            term = "agg % 4"
        args.append(term)
    return f"{head}({', '.join(args)}) :- {', '.join(body.literals)}."


# ── literals beyond positive atoms ───────────────────────────────────────────────────────────


@st.composite
def negated(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    read = [n for n in sorted(known) if any(x.startswith(f"{n}(") for x in body.literals)]
    name = draw(st.sampled_from(read * 3 + sorted(known)))
    args = ["_" if draw(st.integers(0, 3)) == 0 else draw(bound_term(kind, body)) for kind in known[name]]
    return f"!{name}({', '.join(args)})"


@st.composite
def comparison(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    kind = draw(st.sampled_from([k for k in VALUES if body.bound[k]] or ["number"]))
    op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    return f"{draw(bound_term(kind, body))} {op} {draw(bound_term(kind, body))}"


@st.composite
def equality(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    name = draw(st.sampled_from(["a", "b", "x"]))
    left, right = draw(bound_term("number", body)), draw(bound_term("number", body))
    op = draw(st.sampled_from(["+", "-", "*", "bshl", "land"]))
    if name in (left, right):
        return ""
    body.bind("number", name)
    return f"{name} = ({left} {op} {right}) % 7"


@st.composite
def disjunction(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    left = draw(comparison(body, known, inline))
    right = draw(st.one_of(negated(body, known, inline), comparison(body, known, inline)))
    text = f"({left} ; {right})"
    return f"!{text}" if draw(st.booleans()) else text


@st.composite
def aggregate(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    """An aggregate over variables of the rule, or over others compared with them."""
    inner = Body()
    names = draw(st.sampled_from([NAMES, {k: NAMES[k][0] + INNER[k] for k in NAMES}, INNER]))
    derived = [n for n in sorted(known) if n not in BASE and "number" in known[n]]
    base = [n for n in sorted(known) if n in BASE and "number" in known[n]]
    name = draw(st.sampled_from(derived * 2 + base))
    literals = [draw(positive(name, known[name], inner, names))]
    if draw(st.booleans()):
        other = draw(st.sampled_from(sorted(known)))
        literals.append(draw(positive(other, known[other], inner, names)))
    if inner.bound["number"] and draw(st.booleans()):
        literals.append(draw(comparison(inner, known, inline)))
    if inner.bound["number"] and body.bound["number"] and draw(st.booleans()):
        op = draw(st.sampled_from(["!=", "<", "<=", ">"]))
        outside = draw(st.sampled_from(body.bound["number"]))
        literals.append(f"{draw(st.sampled_from(inner.bound['number']))} {op} {outside}")
    if draw(st.integers(0, 4)) == 0:
        literals.append(draw(negated(inner, known, inline)))
    if draw(st.integers(0, 4)) == 0:
        nested = Body(bound={k: list(v) for k, v in inner.bound.items()})
        below = draw(st.sampled_from([*derived, "e"]))
        parts = [draw(positive(below, known[below], nested, names))]
        if draw(st.booleans()):
            parts.append(draw(comparison(nested, known, inline)))
        literals.append(f"cc = count : {{ {', '.join(parts)} }}")
        inner.bind("number", "cc")
    op = draw(st.sampled_from(["count", "sum", "min", "max", "mean"]))
    target = draw(st.sampled_from(inner.bound["number"])) if inner.bound["number"] else "1"
    # A variable that only the aggregate grounds would be a witness; keep to shared and local ones.
    text = f"{op}{'' if op == 'count' else ' ' + target} : {{ {', '.join(literals)} }}"
    if op == "mean":
        body.bind("float", "avg")
        return f"avg = {text}"
    body.bind("number", "agg")
    return f"agg = {text}"


@st.composite
def generated(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    start, stop = draw(bound_term("number", body)), draw(bound_term("number", body))
    step = draw(st.sampled_from(["", ", 2", ", -1"]))
    body.bind("number", "i")
    return f"i = range({start}, {stop}{step})"


@st.composite
def string_test(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    if not body.bound["symbol"]:
        return ""
    symbol = draw(bound_term("symbol", body))
    return draw(
        st.sampled_from(
            [
                f'contains("a", {symbol})',
                f'match("a.*", {symbol})',
                f'!match("b?a", {symbol})',
                f"strlen({symbol}) < 2",
                f'substr({symbol}, 0, 1) != "b"',
            ]
        )
    )


@st.composite
def inlined(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    if not inline:
        return ""
    return f"small({draw(bound_term('number', body))})"


EXTRAS: list[Any] = [
    negated,
    negated,
    comparison,
    comparison,
    equality,
    disjunction,
    aggregate,
    aggregate,
    generated,
    string_test,
    inlined,
]


# ── programs of one shape each, over the base relations ──────────────────────────────────────

PROGRAMS = {
    "closure, non-linear": ".decl p(a:number, b:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).",
    "closure, right-linear": ".decl p(a:number, b:number)\np(x, y) :- e(x, y).\np(x, z) :- e(x, y), p(y, z).",
    "same generation": ".decl g(a:number, b:number)\ng(x, x) :- v(x).\ng(x, y) :- e(a, x), g(a, b), e(b, y).",
    "mutual": ".decl a(x:number) .decl b(x:number)\na(x) :- v(x).\nb(y) :- a(x), e(x, y).\na(y) :- b(x), e(x, y).",
    "counter": ".decl n(i:number, x:number)\nn(autoinc(), x) :- e(x, _), !v(x).\nn(autoinc() + 10, x) :- v(x).",
    "subsumption": """.decl d(x:number, n:number) btree_delete
        d(0, 0).
        d(y, n + 1) :- d(x, n), e(x, y), n < 9.
        d(x, a) <= d(x, b) :- b < a.""",
    "subsumption of facts": """.decl d(x:number, y:number) btree_delete
        d(x, y) :- e(x, y).
        d(x, a) <= d(x, b) :- a < b.""",
    "limit": ".decl p(a:number, b:number)\n.limitsize p(n=5)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).",
    "equivalence": """.decl q(a:number, b:number) eqrel
        q(x, y) :- e(x, y).
        .decl c(n:number)
        c(n) :- n = count : { q(_, _) }.""",
    "equivalence of several sources": """.decl q(a:number, b:number) eqrel
        q(x, y) :- e(x, y).  q(y, x) :- e(x, y), v(x).  q(x, x) :- v(x).  q(x, y) :- t(x, y, _), !e(x, y).
        .decl near(a:number, b:number)  near(x, z) :- q(x, y), q(y, z), x < z, !e(x, z).
        .decl least(a:number, b:number)  least(x, y) :- v(x), y = min z : { q(x, z) }.""",
    "equivalence in a cycle": """.decl q(a:number, b:number) eqrel
        .decl p(a:number, b:number)
        q(x, y) :- e(x, y).  q(x, y) :- p(x, y), v(x).
        p(x, z) :- q(x, y), t(y, z, _).""",
    "choice in recursion": """.decl tree(a:number, b:number) choice-domain b
        tree(0, 0).
        tree(x, y) :- tree(_, x), e(x, y).""",
    "witness": ".decl m(x:number, y:number)\nm(x, y) :- x = max a : { e(a, y), a < 4 }.",
    "nested aggregates": """.decl m(x:number, n:number)
        m(x, n) :- v(x), n = max c : { e(x, y), c = count : { e(y, z), z > x } }.""",
    "functor in an atom": ".decl p(x:number)\np(x) :- e(x, x + 1).\np(y) :- v(x), e(x * 1, y).",
    "arithmetic wraps": ".decl p(x:number)\np(x * 9223372036854775807 + x) :- v(x).",
    "product": ".decl p(x:number, y:symbol)\np(x, y) :- v(x), s(y).",
    "nullary": ".decl a() .decl b()\na() :- e(_, _), !flag().\nb() :- a().\nb() :- flag().",
}

# ── and those in which a change goes through several units, or meets itself ───────────────────

CLOSURE = ".decl p(a:number, b:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
CHAINS = {
    "closure, read twice": CLOSURE
    + """.decl both(a:number, b:number)  both(x, y) :- p(x, y), p(y, x).
        .decl near(a:number, b:number)  near(x, z) :- p(x, y), e(y, z), p(z, x).
        .decl square(n:number)  square(n) :- n = count : { p(x, y), p(y, x) }.""",
    "three of one relation": """.decl q(a:number, b:number)  q(x, w) :- e(x, y), e(y, z), e(z, w), x != w.
        .decl cycle(a:number)  cycle(x) :- q(x, y), q(y, z), q(z, x), !q(x, z).""",
    "three of a closure": CLOSURE + ".decl q(a:number)  q(x) :- p(x, y), p(y, z), p(z, x), x <= y.",
    "a closure and its absence": CLOSURE
    + """.decl one(a:number, b:number)  one(x, y) :- p(x, y), !p(y, x).
        .decl two(a:number, b:number)  two(x, z) :- p(x, y), p(y, z), !p(x, z), !p(z, x).
        .decl none(a:number)  none(x) :- v(x), !p(x, _), !p(_, x).""",
    "two of one unit": """.decl a(x:number, y:number) .decl b(x:number, y:number)
        a(x, y) :- e(x, y).  a(x, z) :- b(x, y), e(y, z).  b(x, z) :- a(x, y), e(y, z).
        .decl c(x:number, y:number)  c(x, y) :- a(x, y), b(x, y).
        .decl d(x:number)  d(x) :- a(x, y), !b(x, y), b(y, x).""",
    "three relations of one unit": """.decl a(x:number) .decl b(x:number, y:number) .decl c(x:number, y:number, z:number)
        a(x) :- v(x).  b(x, y) :- a(x), e(x, y).  c(x, y, z) :- b(x, y), e(y, z).
        a(z) :- c(_, _, z).  b(y, x) :- c(x, y, _), a(y).
        .decl g(x:number)  g(x) :- a(x), b(x, y), c(x, y, _).""",
    "a wildcard in recursion": """.decl p(a:number, b:number)
        p(x, y) :- e(x, y), v(x).
        p(x, z) :- p(x, _), p(_, z), e(x, z).""",
    "recursion over a recursion": CLOSURE
    + """.decl q(a:number, b:number)
        q(x, y) :- p(x, y), p(y, x).
        q(x, z) :- q(x, y), p(y, z), p(z, y).""",
    "recursion with negation below": CLOSURE
    + """.decl q(a:number, b:number)
        q(x, y) :- e(x, y), !p(y, x).
        q(x, z) :- q(x, y), e(y, z), !p(z, x), !v(z).""",
    "recursion with an aggregate below": """.decl deg(a:number, n:number)
        deg(x, n) :- v(x), n = count : { e(x, _) }.
        .decl p(a:number, b:number)
        p(x, y) :- e(x, y), deg(x, n), n > 1.
        p(x, z) :- p(x, y), e(y, z), n = sum w : { e(y, w) }, n < 6.""",
    "aggregates of a closure": CLOSURE
    + """.decl m(x:number, n:number)
        m(x, n) :- v(x), n = count : { p(x, _) }.
        m(x, n) :- p(x, _), n = max y : { p(x, y), p(y, x) }.
        m(-1, n) :- n = sum y : { p(_, y) }.
        .decl avg(a:float)  avg(a) :- a = mean y : { p(_, y) }.""",
    "an outer variable bound outside": """.decl m(x:number, n:number)
        m(x, n) :- v(x), n = count : { e(y, z), z > x }.
        m(x, n) :- e(x, a), n = min y * b : { e(y, z), z != x, b = a }.
        m(x, n) :- t(x, a, b), n = sum y : { v(y), y < a, !e(y, b) }.""",
    "an outer variable bound by recursion": """.decl p(a:number, n:number)
        p(x, 0) :- v(x).
        p(y, n) :- p(x, k), e(x, y), n = count : { v(z), z < x }, k < 9.""",
    "nested aggregates of a closure": CLOSURE
    + """.decl m(x:number, n:number)
        m(x, n) :- v(x), n = sum c : { p(x, y), c = count : { p(y, z), z != x } }.
        m(x, n) :- v(x), n = max c : { e(_, y), c = min z : { p(y, z) } }, n > x.""",
    "an aggregate of an aggregate": """.decl d(x:number, n:number)  d(x, n) :- e(x, _), n = count : { e(x, _) }.
        .decl top(n:number)  top(n) :- n = max c : { d(_, c) }.
        .decl best(x:number)  best(x) :- d(x, n), top(n).
        .decl rest(n:number)  rest(n) :- n = count : { d(x, _), !best(x) }.""",
    "two aggregates in one rule": """.decl m(x:number, a:number, b:number)
        m(x, a, b) :- v(x), a = min y : { e(x, y) }, b = max y : { e(x, y) }, a != b.
        m(x, a, a) :- v(x), a = count : { e(x, _) }, a = count : { e(_, x) }.""",
    "arithmetic in recursion": """.decl p(a:number, n:number)
        p(x, 0) :- v(x).
        p(y, n + 1) :- p(x, n), e(x, y), n < 4.
        p((x + 1) % 5, n) :- p(x, n), e(n, _).
        .decl far(x:number, n:number)  far(x, n) :- p(x, _), n = max k : { p(x, k) }.""",
    "repeated variables and constants": """.decl p(a:number, b:number, c:number)
        p(x, x, y) :- e(x, y).  p(x, y, y) :- p(x, y, 1), e(y, y).  p(1, y, z) :- p(y, z, z).
        p(x, z, w) :- p(x, y, z), p(y, y, w).
        .decl q(a:number)  q(x) :- p(x, x, x), !p(x, x, 2).  q(x) :- p(x, _, x), p(_, x, 3).""",
    "an equivalence in the middle": CLOSURE
    + """.decl q(a:number, b:number) eqrel
        q(x, y) :- p(x, y), p(y, x).  q(x, y) :- t(x, y, _).
        .decl n(x:number, k:number)  n(x, k) :- v(x), k = count : { q(x, _) }.
        .decl r(a:number, b:number)  r(x, y) :- q(x, y), e(x, y).  r(x, z) :- r(x, y), q(y, z), !e(x, z).
        .decl s2(a:number, b:number)  s2(x, z) :- q(x, y), q(y, z), v(y).""",
    "a sum of a product beside a negation": """
        .decl n(x:number)  n(s) :- s = sum x : { v(_), e(x, _), !flag() }.
        .decl m(x:number, s:number)  m(y, s) :- v(y), s = sum x : { e(_, y), t(x, _, y), !u(_, y) }.""",
    "a choice in the middle": CLOSURE
    + """.decl one(a:number, b:number) choice-domain a
        one(x, y) :- p(x, y).  one(x, 7) :- v(x).
        .decl back(a:number, b:number)  back(y, x) :- one(x, y).  back(x, z) :- back(x, y), one(y, z).""",
    "a limit in the middle": CLOSURE
    + """.decl l(a:number, b:number)
        .limitsize l(n=4)
        l(x, y) :- p(x, y), v(x).  l(x, z) :- l(x, y), p(y, z).
        .decl c(n:number)  c(n) :- n = count : { l(_, _) }.  .decl q(x:number)  q(x) :- l(x, y), !l(y, x).""",
    "a subsumption in the middle": """.decl d(x:number, n:number) btree_delete
        d(x, 0) :- v(x).  d(y, n + 1) :- d(x, n), e(x, y), n < 6.  d(x, a) <= d(x, b) :- b < a.
        .decl far(x:number)  far(x) :- d(x, n), n > 1.  far(y) :- far(x), e(x, y), !d(y, 0).""",
    "counters in two units": """.decl n(i:number, x:number)  n(autoinc(), x) :- e(x, _).
        .decl m(i:number, x:number)  m(autoinc(), x) :- v(x).
        .decl k(i:number, x:number)  k(autoinc(), x) :- n(_, x), !m(_, x).
        .decl q(i:number)  q(i) :- m(i, x), !k(i, x).""",
    "a counter above a recursion": CLOSURE
    + """.decl n(i:number, x:number, y:number)  n(autoinc(), x, y) :- p(x, y), !e(x, y).
        .decl q(i:number, x:number)  q(i, x) :- n(i, x, _).  q(i, y) :- q(i, x), e(x, y).""",
    "negation, twice": """.decl a(x:number)  a(x) :- v(x), !e(x, _).
        .decl b(x:number)  b(x) :- e(x, _), !a(x), !flag().
        .decl c(x:number, y:number)  c(x, y) :- e(x, y), !e(y, x), !b(y).""",
    "floats and symbols": """.decl a(x:float, p:symbol)  a(x, p) :- f(x), s(p), x > 0.5.
        .decl b(x:float)  b(x) :- x = sum y : { a(y, _) }.  b(x) :- x = max y : { a(y, p), p != "a" }.
        .decl c(p:symbol)  c(cat(p, "x")) :- a(_, p), !w(_, p).
        .decl d(j:unsigned)  d(j) :- u(j, _), n = count : { u(j, _) }, n > 1.""",
    "a product of four": ".decl p(a:number, b:number)\np(a, b) :- e(a, _), v(b), e(_, b), flag().",
}
SHAPES = PROGRAMS | CHAINS
DECLARATIONS = "\n".join(_declaration(name, kinds) for name, kinds in BASE.items())
