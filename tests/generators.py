"""Random programs that check, and facts for them.

Programs are made as text, layer by layer, so that they exercise the whole way from characters to
relations.  A rule of a layer may use lower layers in any way, and its own layer in positive atoms,
which makes recursion of every shape.  Arithmetic in a recursive rule stays within a few values, so
that every program ends.
"""

from __future__ import annotations

from typing import Any

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


@define
class Body:
    """A rule body in the making: its literals, and the variables that they bind, by kind."""

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
    for _ in range(draw(st.integers(1, 3))):
        from_own = draw(st.integers(0, 3)) == 0
        recursive = recursive or from_own
        pool = own if from_own else known
        name = draw(st.sampled_from(sorted(pool)))
        body.literals.append(draw(positive(name, pool[name], body)))
    extras = draw(st.lists(st.sampled_from(EXTRAS), max_size=3))
    for extra in extras:
        made = draw(extra(body, known, inline))
        if made:
            body.literals.append(made)
    args = [draw(head_term(kind, body, recursive)) for kind in own[head]]
    order = draw(st.permutations(body.literals)) if draw(st.booleans()) else body.literals
    return f"{head}({', '.join(args)}) :- {', '.join(order)}."


@st.composite
def positive(draw: st.DrawFn, name: str, kinds: tuple[str, ...], body: Body) -> str:
    args = []
    new = []
    for kind in kinds:
        form = draw(st.integers(0, 9))
        if form == 0:
            args.append("_")
        elif form == 1:
            args.append(constant_text(kind, draw(st.sampled_from(VALUES[kind]))))
        else:
            variable = draw(st.sampled_from(NAMES[kind]))
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


# ── literals beyond positive atoms ───────────────────────────────────────────────────────────


@st.composite
def negated(draw: st.DrawFn, body: Body, known: Any, inline: Any) -> str:
    name = draw(st.sampled_from(sorted(known)))
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
    inner = Body()
    name = draw(st.sampled_from(sorted(n for n, kinds in known.items() if "number" in kinds)))
    literals = [draw(positive(name, known[name], inner))]
    if draw(st.booleans()):
        other = draw(st.sampled_from(sorted(known)))
        literals.append(draw(positive(other, known[other], inner)))
    if inner.bound["number"] and draw(st.booleans()):
        literals.append(draw(comparison(inner, known, inline)))
    if draw(st.integers(0, 4)) == 0:
        literals.append(f"{{0}} = count : {{{{ {draw(positive('e', known['e'], Body()))} }}}}".format("cc"))
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
