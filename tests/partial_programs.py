"""Random programs whose functors often fail, with filters that often exclude that.

Whether such a program fails depends on the data alone, never on the order of its literals
(core.program.bodies).
"""

from __future__ import annotations

import re
from typing import Any

import generators
from generators import BASE, INNER, NAMES, Body, Case, Kinds, bound_term, positive
from hypothesis import strategies as st

READ: Kinds = {name: BASE[name] for name in ("e", "v", "t", "w")}


@st.composite
def number(draw: st.DrawFn, body: Body) -> str:
    """A number that may not be defined."""
    left, right = draw(bound_term("number", body)), draw(bound_term("number", body))
    form = draw(st.integers(0, 9))
    if form == 0 and body.bound["symbol"]:
        return f'to_number(cat({draw(st.sampled_from(body.bound["symbol"]))}, "1"))'
    if form == 1:
        return f"strlen(to_string({left} / {right}))"
    if form == 2:
        return f"({left} land ({right} / {left}))"
    return f"({left} {draw(st.sampled_from(['/', '/', '%']))} {right})"


@st.composite
def condition(draw: st.DrawFn, body: Body, known: Kinds) -> str:
    """A literal that may fail, or one that may exclude what fails."""
    numbers = body.bound["number"]
    form = draw(st.integers(0, 11))
    if form <= 2:
        name = draw(st.sampled_from("abc"))
        text = f"{name} = {draw(number(body))}"
        body.bind("number", name)
        return text
    if form <= 4:
        op = draw(st.sampled_from(["=", "!=", "<", ">="]))
        return f"{draw(number(body))} {op} {draw(bound_term('number', body))}"
    if form == 5:
        return f"!e({draw(number(body))}, {draw(bound_term('number', body))})"
    if form == 6:
        other = draw(st.sampled_from(["_", "x", "z"]))
        text = f"e({draw(number(body))}, {other})"
        if other != "_":
            body.bind("number", other)
        return text
    if form == 7:
        stop = draw(number(body))
        body.bind("number", "i")
        return f"i = range(0, min(3, {stop}))"
    if form == 8:
        name = draw(st.sampled_from(sorted(k for k in known if "number" in known[k])))
        return draw(positive(name, known[name], body))
    if numbers and form == 9:
        return f"!v({draw(st.sampled_from(numbers))})"
    return f"{draw(bound_term('number', body))} {draw(st.sampled_from(['!=', '!=', '>']))} 0"


@st.composite
def aggregate(draw: st.DrawFn, body: Body, known: Kinds) -> str:
    inner = Body()
    names = draw(st.sampled_from([NAMES, {k: NAMES[k][0] + INNER[k] for k in NAMES}, INNER]))
    name = draw(st.sampled_from(sorted(n for n in known if "number" in known[n])))
    literals = [draw(positive(name, known[name], inner, names))]
    shared = Body(bound={k: [*inner.bound[k], *body.bound[k]] for k in inner.bound})
    for _ in range(draw(st.integers(0, 2))):
        op = draw(st.sampled_from(["!=", "<", ">="]))
        left = draw(number(shared)) if draw(st.booleans()) else draw(bound_term("number", shared))
        literals.append(f"{left} {op} {draw(bound_term('number', shared))}")
    op = draw(st.sampled_from(["count", "sum", "min", "max", "mean"]))
    target = draw(number(inner)) if draw(st.booleans()) else draw(bound_term("number", inner))
    text = f"{op}{'' if op == 'count' else ' ' + target} : {{ {', '.join(literals)} }}"
    result = f"{'g' if op == 'mean' else 'n'}{len(body.literals)}"
    if op != "mean":
        body.bind("number", result)
    return f"{result} = {text}" if op != "mean" else f"{result} = {text}, {result} >= 0"


@st.composite
def rule(draw: st.DrawFn, head: str, kinds: tuple[str, ...], own: Kinds, known: Kinds) -> str:
    body = Body()
    for _ in range(draw(st.integers(1, 2))):
        pool = {**known, **own}
        name = draw(st.sampled_from(sorted(pool)))
        body.literals.append(draw(positive(name, pool[name], body)))
    recursive = any(literal.startswith(f"{name}(") for literal in body.literals for name in own)
    for _ in range(draw(st.integers(1, 3))):
        body.literals.append(draw(condition(body, known)))
    if draw(st.integers(0, 2)) == 0:
        body.literals.append(draw(aggregate(body, known)))
        if draw(st.booleans()):
            body.literals.append(draw(condition(body, known)))
    args = []
    for _ in kinds:
        term = draw(number(body)) if draw(st.integers(0, 5)) == 0 else draw(bound_term("number", body))
        args.append(f"({term}) % 5" if recursive else term)
    order = draw(st.permutations(body.literals))
    return f"{head}({', '.join(args)}) :- {', '.join(order)}."


@st.composite
def programs(draw: st.DrawFn) -> str:
    known = dict(READ)
    lines = [generators._declaration(name, kinds) for name, kinds in READ.items()]
    for layer in range(draw(st.integers(1, 2))):
        kinds = ("number",) * draw(st.sampled_from([1, 2, 2, 3]))
        name = f"r{layer}"
        lines.append(generators._declaration(name, kinds))
        lines.append(draw(rule(name, kinds, {}, known)))
        if draw(st.booleans()):
            lines.append(draw(rule(name, kinds, {name: kinds} if draw(st.booleans()) else {}, known)))
        known[name] = kinds
    return "\n".join(lines) + "\n"


@st.composite
def cases(draw: st.DrawFn, steps: int = 8, size: int = 3) -> Case:
    """A program and a history of single inserts, some of which fail."""
    text = draw(programs())
    rules = "\n".join(line for line in text.splitlines() if ":-" in line)
    read = {name: kinds for name, kinds in READ.items() if re.search(rf"[^.\w]{name}\(", rules)}
    derived: dict[str, Any] = {n: k for n, k in generators.declared(text).items() if n not in READ}
    inputs, stream = draw(generators.histories(read or {"v": BASE["v"]}, derived, steps, size))
    return text, {}, [*([(name, row, True)] for name, rows in inputs.items() for row in rows), *stream]
