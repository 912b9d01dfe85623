"""A query that reads relations for parts of its body has the answers of its body."""

from __future__ import annotations

import operator
from itertools import product
from typing import Any

from covered_bodies import NAMES, another, bodies
from hypothesis import given, note
from hypothesis import strategies as st
from living import examples

from everlog import Database
from everlog.core.evaluate import reference
from everlog.core.program.containment import answering_rules, covered
from everlog.dsl.check import compile_text

COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str]:
    """A program with relations that hold the answers of bodies, and a query."""
    text, views = ".decl e(x:number, y:number)  .decl v(x:number)\n", []
    for n in range(draw(st.integers(1, 3))):
        literals, bound = draw(bodies(3))
        head = draw(st.lists(st.sampled_from(bound), max_size=3)) if bound else []
        columns = ", ".join(f"c{i}:number" for i in range(len(head)))
        text += f".decl r{n}({columns})  r{n}({', '.join(head)}) :- {', '.join(literals)}.\n"
        views.append(literals)
    extra, _ = draw(bodies(2))
    rename = dict(zip(NAMES, draw(st.permutations(NAMES)), strict=True))
    chosen = [["".join(rename.get(c, c) for c in each) for each in draw(st.sampled_from(views))], extra]
    chosen[0] = [another(draw, each) for each in chosen[0]]
    query = [each for part in draw(st.permutations(chosen)) for each in part]
    hidden = draw(st.sets(st.sampled_from(NAMES)))
    hide = {name: f"_{name}" for name in hidden}
    return text, ", ".join("".join(hide.get(c, c) for c in each) for each in query)


facts = st.fixed_dictionaries(
    {
        "e": st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8),
        "v": st.lists(st.tuples(st.integers(0, 3)), max_size=3),
    }
)


@examples(300)
@given(cases(), facts, st.booleans())
def test_queries_that_read_what_is_kept(case: tuple[str, str], rows: Any, own: bool) -> None:
    text, query = case
    note(text + query)
    db = Database.from_text(text, facts=rows)
    found = db.query(query)
    names = found.columns
    asked = f".decl asked({', '.join(f'{name}:number' for name in names)})"
    program = compile_text(f"{text}{asked}  asked({', '.join(names)}) :- {query}.")
    assert set(found) == reference.evaluate(program, rows)["asked"]
    if own and db.relations["r0"].arity:  # r0 no longer holds just the answers of its body
        row = (9,) * db.relations["r0"].arity
        db.insert("r0", row)
        assert set(db.query(query)) == reference.evaluate(program, {**rows, "r0": [row]})["asked"]


def test_a_comparison_covers_those_that_it_implies() -> None:
    found = 0
    for op, known, one, other in product(COMPARED, COMPARED, range(3), range(3)):
        program = compile_text(f"""
            .decl e(x:number, y:number)  .decl r(x:number)  .decl q(x:number)
            r(x) :- e(x, y), e(y, x), x {op} {one}.  q(x) :- e(x, y), e(y, x), x {known} {other}.""")
        implied = all(COMPARED[op](x, one) for x in range(-2, 5) if COMPARED[known](x, other))
        is_covered = bool(covered(program.rules[1], answering_rules(program)[:1])[1])
        assert implied or not is_covered, f"x {known} {other} does not imply x {op} {one}"
        found += is_covered
    assert found > 30


def test_the_mapping_is_found_and_shown() -> None:
    program = compile_text("""
        .decl e(x:number, y:number)  .decl two(x:number, y:number)  .decl q(z:number)
        two(a, c) :- e(a, b), e(b, c), c > 1.  q(z) :- e(1, y), e(y, z), z > 2, z < 9.""")
    rule, coverings = covered(program.rules[1], answering_rules(program))
    assert str(rule) == "q(z) :- two(1, z), z > 2, z < 9."
    assert str(coverings[0]) == "two(1, z) for e(1, y), e(y, z)  (two#1 with a → 1, b → y, c → z)"


def test_what_is_hidden_and_needed_elsewhere_is_not_covered() -> None:
    program = compile_text("""
        .decl e(x:number, y:number)  .decl two(x:number, y:number)  .decl q(x:number, y:number, z:number)
        two(a, c) :- e(a, b), e(b, c).  q(x, y, z) :- e(x, y), e(y, z).""")
    assert covered(program.rules[1], answering_rules(program))[1] == []
