"""Atoms that compute an argument: bodies are flat, and shown as written."""

from __future__ import annotations

from everlog import Database
from everlog.core.dbsp.derive import delta_rules
from everlog.core.engine.explain import explain_plan
from everlog.core.evaluate import reference
from everlog.core.program import Aggregate, Atom, Call, Literal, Rule, flat_body, written_body
from everlog.dsl.check import compile_text

TEXT = """
.decl r(z:number)
.decl q(a:number, b:number)
.decl p(x:number)
.decl n(z:number, k:number)
r(1).  r(2).  q(2, 5).  q(3, 1).  q(7, 3).
p(y) :- r(z), q(z + 1, y).
p(y) :- q(z + 1, y), z = 2 * y.
p(y) :- q(2 * y + 1, y).
p(y) :- r(z), q(6 / z, y).
n(z, k) :- r(z), k = count : { q(z + 1, _) }.
p(b) <= p(a) :- q(a + 1, b), a < b.
"""


def computing(body: tuple[Literal, ...]) -> list[Atom]:
    """The positive atoms that compute an argument, those of aggregates included."""
    found = [x for x in body if isinstance(x, Atom) and any(isinstance(arg, Call) for arg in x.args)]
    return found + [y for x in body if isinstance(x, Aggregate) for y in computing(x.body)]


def test_no_body_of_a_program_has_an_atom_that_computes() -> None:
    program = compile_text(TEXT)
    bodies = [rule.body for rule in program.rules] + [each.body for each in program.subsumptions]
    assert not [atom for body in bodies for atom in computing(body)]
    assert [str(rule) for rule in program.rules][:3] == [
        "p(y) :- r(z), q((z + 1), y).",
        "p(y) :- q((z + 1), y), z = (2 * y).",
        "p(y) :- q(((2 * y) + 1), y).",
    ]


def test_a_rule_that_is_built_without_text_is_flat() -> None:
    written = Rule(Atom("p", ()), tuple(written_body(compile_text(TEXT).rules[0].body)))
    assert not computing(written.body)
    assert flat_body(written.body) is written.body
    assert str(written) == "p() :- r(z), q((z + 1), y)."


def test_delta_rules_are_shown_as_they_would_be_written() -> None:
    rule = compile_text(TEXT).rules[0]
    assert [str(delta) for delta in delta_rules(rule, "q")] == [
        "p(y) -:= r(z), Δq((z + 1), y).",
        "p(y) +:= r(z), Δq((z + 1), y).",
    ]


def test_proofs_show_what_was_written() -> None:
    db = Database.from_text(TEXT.replace("p(b) <= p(a) :- q(a + 1, b), a < b.", ""))
    assert dict(reference.evaluate(db.program)) == {name: frozenset(db.view(name)) for name in db.relations}
    missing = db.why_not("p(9)").text()
    for fact in ("q(1 + 1, 9)", "q(18 + 1, 9)", "q((2 * 9) + 1, 9)", "q(6 / 1, 9)"):
        assert f"no fact {fact}" in missing
    assert "@" not in missing + db.why("p(1)").text() + db.why("n(1, 1)").text()


def test_a_part_of_a_body_may_have_the_variable_without_its_equality() -> None:
    """The domain of an aggregate leaves out what may fail; the atom that needs it is joined all the
    same.
    """
    db = Database.from_text("""
      .decl b(x:number)  .decl e(x:number, y:number)  .decl p(x:number, n:number)
      p(x, n) :- b(y), a = 6 / y, e(a / 3, x), n = count : { b(_), a != 7 }.
    """)
    for change in ("+b(2).", "+e(1, 5).", "+e(1, 6).", "+b(1).", "+e(2, 7).", "-e(1, 5).", "-b(2).", "-e(2, 7)."):
        db.apply(change)
        given = {name: db.given(name) for name in db.relations}
        assert frozenset(db.view("p")) == reference.evaluate(db.program, given)["p"]


def test_what_a_shape_lacks_is_named_as_it_was_written() -> None:
    program = compile_text(
        ".decl e(x:number, y:number)  .decl p(x:number, y:number)\n"
        "p(x, y) :- e(x + 0, y), e(x, y).  p(x, z) :- p(x, y), e(y, z)."
    )
    assert "p#1 has `e((x + 0), y)`, which is not in the shape" in explain_plan(program)
