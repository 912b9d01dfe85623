"""Random bodies of two relations, `e` and `v`, and weaker or stronger ones."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["x", "y", "z", "w"]
terms = st.one_of(st.sampled_from(NAMES), st.sampled_from(["1", "2", "_"]))


@st.composite
def bodies(draw: st.DrawFn, most: int) -> tuple[list[str], list[str]]:
    """Literals, and the variables that their atoms bind."""
    atoms: list[tuple[str, ...]] = []
    for _ in range(draw(st.integers(1, most))):
        atoms.append(draw(st.one_of(st.tuples(st.just("e"), terms, terms), st.tuples(st.just("v"), terms))))
    bound = sorted({arg for _, *args in atoms for arg in args if arg in NAMES})
    literals = [f"{name}({', '.join(args)})" for name, *args in atoms]
    if bound:
        for _ in range(draw(st.integers(0, 2))):
            name, op = draw(st.sampled_from(bound)), draw(st.sampled_from(["<", "<=", ">", ">=", "!=", "="]))
            literals.append(f"{name} {op} {draw(st.sampled_from([*bound, '1', '2']))}")
        if draw(st.booleans()):
            literals.append(f"!v({draw(st.sampled_from(bound))})")
    return literals, bound


def another(draw: st.DrawFn, literal: str) -> str:
    """Perhaps a stronger or a weaker comparison."""
    name, _, rest = literal.partition(" ")
    if not rest or not rest[-1].isdigit() or draw(st.booleans()):
        return literal
    return f"{name} {draw(st.sampled_from(['<', '<=', '>', '>=', '=', '!=']))} {draw(st.integers(0, 3))}"
