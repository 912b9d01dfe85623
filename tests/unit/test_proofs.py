"""Proofs: why a fact is there, why another is not, and how both are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from textwrap import dedent
from typing import Any

import generators
import pytest
from attrs import evolve, frozen
from engines import Incremental
from hypothesis import assume, given, note
from hypothesis import strategies as st

from everlog.core.engine import Engine
from everlog.core.evaluate import seminaive
from everlog.core.program import Program, Row, Rule, Value
from everlog.core.program.executor import NotABaseRelation, Update
from everlog.core.program.values import EvaluationError
from everlog.core.proofs import Condition, Evidence, NotDerived, Proof, verify, why, why_not
from everlog.core.proofs.reader import ORDERED, Reader
from everlog.core.proofs.solve import Solver
from everlog.core.storage.equivalence import Equivalence
from everlog.core.storage.table_shapes import PairShape, RowShape, ValueShape
from everlog.core.storage.tables import Table
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError

CLOSURE = """\
.decl edge(x:number, y:number)
.decl path(x:number, y:number)

path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@frozen
class Hint:
    rule: Rule
    binding: Mapping[str, Value]


class Standing:
    """Evidence without an engine: whole evaluation, and last steps from the test."""

    def __init__(self, program: Program, inputs: Mapping[str, Iterable[Row]]) -> None:
        self.program = program
        self.tables = seminaive.evaluate(program, inputs).tables
        self._given = {n: {*program.facts.get(n, ()), *inputs.get(n, ())} for n in program.relations}
        self.last_steps: dict[tuple[str, Row], Hint] = {}

    def given(self, relation: str) -> Collection[Row]:
        return self._given[relation]

    def last_step(self, relation: str, row: Row) -> Hint | None:
        return self.last_steps.get((relation, row))


def living(program: Program, inputs: Mapping[str, Iterable[Row]]) -> Evidence:
    engine = Engine(program)
    engine.apply([Update(name, row) for name, rows in inputs.items() for row in rows])
    return engine


MAKERS: dict[str, Any] = {"engine": living, "no last steps": Standing}
INPUTS: Mapping[str, Iterable[Row]] = {}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    """Makes evidence from a text and inputs, with and without an engine's last steps."""
    maker = MAKERS[request.param]
    return lambda text, inputs=INPUTS: maker(compile_text(dedent(text), "prog.dl"), inputs)


def proved(evidence: Evidence, relation: str, *row: Value) -> Proof:
    """The proof of a fact, verified."""
    proof = why(evidence, relation, row)
    verify(evidence, proof)
    assert (proof.relation, proof.row) == (relation, row)
    return proof


def prove_all(evidence: Evidence, relation: str) -> list[Proof]:
    return [proved(evidence, relation, *row) for row in sorted(evidence.tables[relation].rows())]


def lines(text: str) -> str:
    return dedent(text).strip("\n")


# ── why ──────────────────────────────────────────────────────────────────────────────────────


def test_a_proof_goes_down_to_base_facts(make: Any) -> None:
    evidence = make(CLOSURE, {"edge": [(1, 2), (2, 3)]})
    assert proved(evidence, "path", 1, 3).text() == lines("""
        path(1, 3)   path#2 at prog.dl:5:  path(x, z) :- path(x, y), edge(y, z).
        ├── path(1, 2)   path#1 at prog.dl:4:  path(x, y) :- edge(x, y).
        │   └── edge(1, 2)   given
        └── edge(2, 3)   given
    """)


def test_a_base_fact_is_a_leaf(make: Any) -> None:
    proof = proved(make(CLOSURE, {"edge": [(1, 2)]}), "edge", 1, 2)
    assert (proof.reason, proof.rule, proof.children, str(proof)) == ("given", None, (), "edge(1, 2)   given")


def test_proofs_in_a_cycle_are_well_founded(make: Any) -> None:
    evidence = make(CLOSURE, {"edge": [(1, 2), (2, 3), (3, 1), (3, 4), (4, 2)]})
    assert len(prove_all(evidence, "path")) == 16


def test_same_generation(make: Any) -> None:
    evidence = make(
        """
        .decl parent(x:symbol, y:symbol)  .decl same(x:symbol, y:symbol)
        same(x, x) :- parent(x, _).
        same(x, y) :- parent(a, x), same(a, b), parent(b, y).
        """,
        {"parent": [("eva", "ann"), ("eva", "bob"), ("ann", "cy"), ("bob", "di")]},
    )
    prove_all(evidence, "same")
    assert set(proved(evidence, "same", "cy", "di").given()) == {
        ("parent", pair) for pair in [("eva", "ann"), ("eva", "bob"), ("ann", "cy"), ("bob", "di")]
    }


def test_mutual_recursion(make: Any) -> None:
    evidence = make("""
        .decl even(x:number)  .decl odd(x:number)
        even(0).
        odd(x + 1) :- even(x), x < 9.
        even(x + 1) :- odd(x), x < 9.
    """)
    assert len(prove_all(evidence, "even")) + len(prove_all(evidence, "odd")) == 10
    assert proved(evidence, "odd", 1).text() == lines("""
        odd(1)   odd#1 at prog.dl:4:  odd(x + 1) :- even(x), x < 9.
        ├── even(0)   given
        └── 0 < 9
    """)


def test_conditions_show_their_values(make: Any) -> None:
    evidence = make(
        """
        .decl e(x:number, y:number)  .decl blocked(x:number)  .decl p(x:number, y:number, z:number)
        p(x, y + 1, r) :- e(x, y), !blocked(x), !e(y, _), x < y, y - 1 = x, r = range(0, 3), r > 1.
        """,
        {"e": [(1, 2), (1, 3)], "blocked": [(4,)]},
    )
    assert proved(evidence, "p", 1, 3, 2).text().split("\n", 1)[1] == lines("""
        ├── e(1, 2)   given
        ├── no fact blocked(1)
        ├── no fact e(2, _)
        ├── 1 < 2
        ├── 2 - 1 = 1
        ├── 2 in range(0, 3)
        └── 2 > 1
    """)


def test_aggregates_show_some_of_their_matches(make: Any) -> None:
    evidence = make(
        """
        .decl e(x:number, y:number)  .decl size(x:number, n:number, total:number, most:number)  .decl none(n:number)
        size(x, n, s, m) :- e(x, _), n = count : { e(x, _) }, s = sum y : { e(x, y) }, m = max y : { e(x, y), y < 9 }.
        none(n) :- n = count : { e(9, _) }.
        """,
        {"e": [(1, 2), (1, 3), (1, 5), (1, 9)]},
    )
    assert proved(evidence, "size", 1, 4, 19, 5).text().split("\n", 1)[1] == lines("""
        ├── e(1, 2)   given
        ├── count : { e(1, _) } = 4   4 matches: e(1, 2); e(1, 3); e(1, 5); …
        ├── sum y : { e(1, y) } = 19   4 matches: e(1, 2); e(1, 3); e(1, 5); …
        └── max y : { e(1, y), y < 9 } = 5   3 matches: e(1, 5); …
    """)
    assert "count : { e(9, _) } = 0   0 matches" in proved(evidence, "none", 0).text()


def test_repeated_variables_constants_and_wildcards(make: Any) -> None:
    evidence = make(
        """
        .decl e(x:number, y:number)  .decl t(x:number, y:symbol, z:number)  .decl p(x:number, y:number, z:number)
        p(x, x, 7) :- e(x, x), t(_, "a", x), t(_, _, _).
        """,
        {"e": [(1, 1), (2, 2), (1, 2)], "t": [(5, "a", 1), (6, "b", 2)]},
    )
    assert len(prove_all(evidence, "p")) == 1


def test_nullary_relations_and_strings(make: Any) -> None:
    evidence = make("""
        .decl s(x:symbol)  .decl flag()  .decl on()
        s("a\\"b"). flag().
        on() :- flag(), s(x), contains("b", x), !match("c.*", x).
    """)
    assert proved(evidence, "on").text() == lines(r"""
        on()   on#1 at prog.dl:4:  on() :- flag(), s(x), contains("b", x), !match("c.*", x).
        ├── flag()   given
        ├── s("a\"b")   given
        ├── contains("b", "a\"b")
        └── !match("c.*", "a\"b")
    """)


def test_facts_in_a_relation_with_rules(make: Any) -> None:
    evidence = make(CLOSURE + "path(2, 9).", {"edge": [(9, 1)]})
    assert proved(evidence, "path", 2, 9).reason == "given"
    assert proved(evidence, "path", 2, 1).given() == [("path", (2, 9)), ("edge", (9, 1))]


def test_a_sum_in_a_head_leads_back_to_one_fact() -> None:
    """The solver undoes the addition: of ten thousand facts it looks at one."""
    program = compile_text(".decl n(x:number, y:number)  .decl m(x:number)  m(3 - (x + 1)) :- n(x, _).")
    evidence = Standing(program, {"n": [(x, 0) for x in range(10_000)]})
    proof = proved(evidence, "m", -5000)
    assert proof.given() == [("n", (5002, 0))]


def test_a_fact_that_is_not_there_has_no_proof(make: Any) -> None:
    evidence = make(CLOSURE, {"edge": [(1, 2)]})
    with pytest.raises(NotDerived, match=r"path\(2, 1\) is not there.* `why_not` says"):
        why(evidence, "path", (2, 1))
    with pytest.raises(NotABaseRelation, match="undefined relation `road`"):
        why(evidence, "road", (2, 1))
    with pytest.raises(NotABaseRelation, match="2 columns, not 1"):
        why_not(evidence, "path", (2,))


def test_an_error_in_a_branch_that_is_excluded_does_not_matter(make: Any) -> None:
    """As in the run itself: another literal excludes the zero."""
    evidence = make(
        ".decl a(x:number)  .decl q(x:number)  q(y) :- a(x), x != 0, a(y), y > 20 / x.",
        {"a": [(0,), (2,), (6,)]},
    )
    assert len(prove_all(evidence, "q")) == 1
    assert "✗" in why_not(evidence, "q", (2,)).text()


# ── equivalences, choices, subsumption, counters ─────────────────────────────────────────────


def test_a_pair_of_an_equivalence_has_a_shortest_chain(make: Any) -> None:
    evidence = make(
        """
        .decl link(x:number, y:number)
        .decl q(x:number, y:number) eqrel
        q(x, y) :- link(x, y).
        """,
        {"link": [(1, 2), (3, 2), (3, 4), (4, 5), (1, 5), (7, 8)], "q": [(5, 6)]},
    )
    assert len(prove_all(evidence, "q")) == 40
    assert proved(evidence, "q", 6, 4).text() == lines("""
        q(6, 4)   q is an equivalence
        ├── q(5, 6)   given
        └── q(4, 5)   q#1 at prog.dl:4:  q(x, y) :- link(x, y).
            └── link(4, 5)   given
    """)
    assert [str(child) for child in proved(evidence, "q", 8, 8).children] == [str(proved(evidence, "q", 7, 8))]


def test_an_equivalence_in_a_recursion_is_well_founded(make: Any) -> None:
    evidence = make(
        """
        .decl e(x:number, y:number)
        .decl q(x:number, y:number) eqrel  .decl p(x:number, y:number)
        q(x, y) :- e(x, y), x < 3.
        p(x, y) :- q(x, _), e(_, y).
        q(x, y) :- p(x, y), p(y, x), x < y.
        """,
        {"e": [(1, 2), (2, 3), (5, 6), (6, 5)]},
    )
    prove_all(evidence, "q")
    prove_all(evidence, "p")


def test_choice_in_a_recursion(make: Any) -> None:
    evidence = make(
        """
        .decl e(x:number, y:number)
        .decl tree(x:number, y:number) choice-domain y
        tree(0, 0).
        tree(x, y) :- tree(_, x), e(x, y).
        """,
        {"e": [(0, 1), (0, 2), (1, 2), (2, 1), (2, 0), (2, 3)]},
    )
    assert len(prove_all(evidence, "tree")) == 4
    assert why_not(evidence, "tree", (1, 2)).text() == lines("""
        tree(1, 2) is not there
        ├── choice-domain y: the key is taken by tree(0, 2)
        └── tree#1 at prog.dl:5:  tree(x, y) :- tree(_, x), e(x, y).
            ├── ✓ tree(0, 1)
            ├── ✓ e(1, 2)
            └── the body holds
    """)


SHORTEST = """
    .decl e(x:number, y:number)
    .decl d(x:number, n:number) btree_delete
    .decl far(x:number)
    d(0, 0).
    d(y, n + 1) :- d(x, n), e(x, y), n < 9.
    d(9, 0) :- far(_).
    far(x) :- d(x, n), n > 2.
    d(x, a) <= d(x, b) :- b < a.
"""


def test_subsumption(make: Any) -> None:
    evidence = make(SHORTEST, {"e": [(0, 1), (1, 2), (0, 2), (2, 3)]})
    assert len(prove_all(evidence, "d")) == 4
    assert why_not(evidence, "d", (3, 3)).text().split("\n")[1] == (
        "├── dominated by d(3, 2):  d(x, a) <= d(x, b) :- b < a. at prog.dl:9"
    )


def test_a_fact_may_rest_on_one_that_was_dropped(make: Any) -> None:
    """`far` follows from a long way, which a shorter one replaces in the round after."""
    evidence = make(
        """
        .decl seed(x:number, n:number)  .decl better(n:number, m:number)
        .decl d(x:number, n:number) btree_delete
        .decl far(x:number)
        d(x, n) :- seed(x, n).
        far(x) :- d(x, n), n > 5.
        d(x, m) :- far(x), d(x, n), better(n, m).
        d(x, a) <= d(x, b) :- b < a.
        """,
        {"seed": [(1, 7)], "better": [(7, 2)]},
    )
    proof = proved(evidence, "far", 1)
    assert proof.text() == lines("""
        far(1)   far#1 at prog.dl:6:  far(x) :- d(x, n), n > 5.
        ├── d(1, 7)   d#1 at prog.dl:5:  d(x, n) :- seed(x, n).   (replaced since by a better fact)
        │   └── seed(1, 7)   given
        └── 7 > 5
    """)
    assert proof.to_json()["nodes"][1]["dropped"] is True
    proved(evidence, "d", 1, 2)


def test_size_limits(make: Any) -> None:
    text = CLOSURE + ".limitsize path(n=3)\n"
    evidence = make(text, {"edge": [(1, 2), (2, 3), (3, 4), (4, 5)]})
    assert len(prove_all(evidence, "path")) == 4
    assert "the recursion ended at .limitsize path(n=3)" in why_not(evidence, "path", (1, 3)).text()


def test_numbers_drawn_from_a_counter(make: Any) -> None:
    evidence = make(
        """
        .decl v(x:number)  .decl a(i:number, x:number)  .decl b(i:number)
        a(autoinc(), x) :- v(x), x > 2.
        b(i) :- v(x), i = autoinc() * 2, x < 9.
        """,
        {"v": [(1,), (3,), (5,)]},
    )
    assert [proof.given() for proof in prove_all(evidence, "a")] == [[("v", (3,))], [("v", (5,))]]
    assert [proof.given() for proof in prove_all(evidence, "b")] == [[("v", (n,))] for n in (1, 3, 5)]
    assert "✗ autoinc() gave another number" in why_not(evidence, "a", (7, 3)).text()


# ── last steps ────────────────────────────────────────────────────────────────────────────────

WILD = """
    .decl e(x:number, y:number)  .decl p(x:number, y:number)
    p(x, y) :- p(_, x), e(x, y).
"""


def test_a_wildcard_that_the_last_step_leaves_open_is_no_way_into_a_circle() -> None:
    """Any fact p(_, 1) may be taken for p(1, 2), but p(2, 1) itself needs p(_, 2)."""
    program = compile_text(WILD)
    evidence = Standing(program, {"e": [(1, 2), (2, 1)], "p": [(3, 1)]})
    rule = program.rules[0]
    evidence.last_steps = {("p", row): Hint(rule, {"x": row[0], "y": row[1]}) for row in [(1, 2), (2, 1)]}
    for row in [(1, 2), (2, 1)]:
        proved(evidence, "p", *row)


def test_a_last_step_may_say_what_wildcards_matched() -> None:
    program = compile_text(WILD)
    evidence = Standing(program, {"e": [(1, 2)], "p": [(3, 1), (4, 1)]})
    evidence.last_steps = {("p", (1, 2)): Hint(program.rules[0], {"_7": 4, "x": 1, "y": 2})}
    proof = proved(evidence, "p", 1, 2)
    assert proof.given() == [("p", (4, 1)), ("e", (1, 2))]
    assert proof.to_json()["nodes"][0]["binding"] == {"x": 1, "y": 2}


def test_last_steps_in_a_circle_are_a_mistake_of_ours() -> None:
    program = compile_text(CLOSURE)
    evidence = Standing(program, {"edge": [(1, 2), (2, 1)]})
    step = program.rules[1]
    evidence.last_steps = {
        ("path", (1, 1)): Hint(step, {"x": 1, "y": 2, "z": 1}),
        ("path", (1, 2)): Hint(step, {"x": 1, "y": 1, "z": 2}),
    }
    with pytest.raises(AssertionError, match="the last steps of path are not well-founded"):
        why(evidence, "path", (1, 1))


@pytest.mark.parametrize("maker", MAKERS)
def test_a_deep_proof_is_an_ordinary_proof(maker: str) -> None:
    """A chain of 20 000 facts: built, verified and shown without deep recursion."""
    length = 20_000 if maker == "engine" else 3_000
    program = compile_text(".decl e(x:number, y:number)  .decl r(x:number)  r(0).  r(y) :- r(x), e(x, y).")
    evidence = MAKERS[maker](program, {"e": [(x, x + 1) for x in range(length)]})
    proof = proved(evidence, "r", length)
    assert sum(1 for _ in proof.proofs()) == 2 * length + 1
    shown = proof.text(depth=3).split("\n")
    assert len(shown) == 8
    assert shown[4].endswith(f"└── … {2 * length + 1 - 7} more")
    assert proof.text(depth=None, lines=10).split("\n")[-1] == f"… {2 * length + 1 - 10} more"
    assert len(proof.text().split("\n")) < 500
    assert len(json.dumps(proof.to_json())) > length
    assert proof.to_dot().count("->") == 2 * length


# ── why not ──────────────────────────────────────────────────────────────────────────────────


def test_each_rule_says_where_it_stops(make: Any) -> None:
    evidence = make(CLOSURE, {"edge": [(1, 2), (2, 3), (4, 5)]})
    assert why_not(evidence, "path", (1, 5)).text() == lines("""
        path(1, 5) is not there
        ├── path#1 at prog.dl:4:  path(x, y) :- edge(x, y).
        │   └── ✗ no fact edge(1, 5)
        └── path#2 at prog.dl:5:  path(x, z) :- path(x, y), edge(y, z).
            ├── ✓ path(1, 2)
            └── ✗ no fact edge(2, 5)   the same for 1 other match
    """)
    assert "✗ no fact path(9, _)" in why_not(evidence, "path", (9, 1)).text()
    assert "✗ no fact edge(_, 9)" in why_not(evidence, "path", (1, 9)).text()


def test_a_fact_that_is_there_or_only_could_be_given(make: Any) -> None:
    evidence = make(CLOSURE, {"edge": [(1, 2)]})
    there = why_not(evidence, "path", (1, 2))
    assert there.present
    assert there.text() == "path(1, 2) is there\n└── why gives a proof of it"
    assert why_not(evidence, "edge", (2, 2)).text() == lines("""
        edge(2, 2) is not there
        └── it is not given, and no rule derives edge
    """)


@pytest.mark.parametrize(
    ("rule", "row", "stop"),
    [
        ("p(1, x) :- e(x, _).", (2, 3), "the head p(1, x) does not match: column 1 is always 1"),
        ("p(x, x) :- e(x, _).", (2, 3), "the head p(x, x) does not match: x would be 2 and 3"),
        ("p(x, y) :- e(x, y), !blocked(x).", (3, 4), "blocked(3) is there"),
        ("p(x, y) :- e(x, y), !e(y, _).", (1, 3), "e(3, 4) is there"),
        ("p(x, y) :- e(x, y), y < x.", (3, 4), "4 < 3 is false"),
        ("p(x, y) :- y < x, e(x, y).", (3, 4), "4 < 3 is false"),
        ("p(x, y + 1) :- e(x, y).", (3, 9), "no fact e(3, 8)"),
        ("p(x, y * 2) :- e(x, y).", (3, 9), "9 = 4 * 2 is false"),
        ("p(x, n) :- e(x, _), n = count : { e(x, _) }.", (1, 5), "count : { e(1, _) } is 2, not 5"),
        (
            "p(x, n) :- e(x, _), n = min y : { e(y, x) }.",
            (1, 5),
            "min y : { e(y, 1) } is over nothing, and has no value",
        ),
        ("p(x, n) :- e(x, _), n = range(0, x).", (3, 5), "5 in range(0, 3) is false"),
        ("p(x, y) :- e(x, y), y / (x - 3) > 0.", (3, 4), "4 / (3 - 3) > 0: division by zero: 4 / 0"),
    ],
)
def test_what_stops_a_rule(rule: str, row: Row, stop: str) -> None:
    declarations = ".decl e(x:number, y:number)  .decl blocked(x:number)  .decl p(x:number, y:number)\n"
    facts = "e(1, 2). e(1, 3). e(3, 4). blocked(3).\n"
    evidence = Standing(compile_text(declarations + facts), {})
    evidence.program = compile_text(declarations + facts + rule)  # not run: one of the rules has no answer
    (attempt,) = why_not(evidence, "p", row).attempts
    assert attempt.stop == stop


def test_an_equivalence_says_what_is_not_connected(make: Any) -> None:
    evidence = make(".decl q(x:number, y:number) eqrel", {"q": [(1, 2), (3, 4)]})
    assert "no chain of pairs leads from one to the other" in why_not(evidence, "q", (1, 4)).text()
    assert "5 is in no pair of q" in why_not(evidence, "q", (1, 5)).text()


def test_a_base_fact_may_be_kept_out(make: Any) -> None:
    evidence = make(".decl m(x:number, y:number) choice-domain x", {"m": [(1, 2), (1, 3)]})
    assert why_not(evidence, "m", (1, 3)).remarks == (
        "it is given, but something keeps it out:",
        "choice-domain x: the key is taken by m(1, 2)",
    )


def test_a_long_join_without_a_match_ends() -> None:
    """Twenty layers of ten nodes, all connected: 10^20 walks, and none arrives."""
    walk = ", ".join(f"e(x{n}, x{n + 1})" for n in range(20))
    program = compile_text(
        f".decl e(x:number, y:number)  .decl p(x:number)  p(x0) :- {walk}, x20 > 1000, x0 != x20."
    )
    layers = [(10 * n + a, 10 * (n + 1) + b) for n in range(20) for a in range(10) for b in range(10)]
    evidence = Standing(evolve(program, rules=()), {"e": layers})
    evidence.program = program
    (attempt,) = why_not(evidence, "p", (0,)).attempts
    assert attempt.stop == "200 > 1000 is false"


# ── how it is shown ──────────────────────────────────────────────────────────────────────────


def test_what_was_shown_is_not_shown_again() -> None:
    """p(n) needs p(n - 1) twice: a tree of 2^30 leaves, and 61 lines."""
    program = compile_text(
        ".decl zero(x:number)  .decl p(x:number)  p(x) :- zero(x).  p(x + 1) :- p(x), p(y), x = y, x < 30.  zero(0)."
    )
    proof = proved(living(program, {}), "p", 30)
    text = proof.text(depth=None)
    assert text.count("(above)") == 30
    assert "p(29)   (above)" in text
    assert sum(1 for _ in proof.proofs()) == 32


def test_json_is_a_flat_graph(make: Any) -> None:
    evidence = make(
        '.decl f(x:float)  .decl p(x:float, s:symbol)  p(x, "é") :- f(x), !p2(x).  .decl p2(x:float)',
        {"f": [(float("inf"),)]},
    )
    data = json.loads(json.dumps(proved(evidence, "p", float("inf"), "é").to_json(), allow_nan=False))
    assert data["root"] == 0
    assert data["nodes"][0] == {
        "id": 0,
        "fact": 'p(inf, "é")',
        "relation": "p",
        "row": ["inf", "é"],
        "reason": "rule",
        "rule": {"name": "p#1", "text": 'p(x, "é") :- f(x), !p2(x).', "file": "prog.dl", "line": 1},
        "binding": {"x": "inf"},
        "children": [1, 2],
    }
    assert data["nodes"][2] == {"id": 2, "kind": "negation", "text": "no fact p2(inf)", "children": []}
    missing = why_not(evidence, "p", (1.0, "a")).to_json()
    assert missing["attempts"][0]["stop"] == 'the head p(x, "é") does not match: column 2 is always "é"'
    json.dumps(missing, allow_nan=False)


def test_dot_is_escaped(make: Any) -> None:
    evidence = make(".decl s(x:symbol)  .decl t(x:symbol)  t(x) :- s(x).", {"s": [('a"b\\\n',)]})
    dot = proved(evidence, "t", 'a"b\\\n').to_dot()
    assert dot.split("\n")[0] == r'digraph "why t(\"a\\\"b\\\\\\n\")" {'
    for line in dot.split("\n")[1:-2]:
        assert re.fullmatch(r'  (node|n\d+( -> n\d+)?)( \[(\w+=(\w+|"([^"\\]|\\.)*")(, )?)+\])?;', line), line
    assert why_not(evidence, "t", ('"',)).to_dot().count("{") == 1


# ── solver and reader ────────────────────────────────────────────────────────────────────────


def test_a_reader_leaves_no_index_behind() -> None:
    shape = PairShape(value=0)
    rows = [(x, y) for x in range(60) for y in range(60)]
    table = Table(shape, shape.facts_of(rows))
    assert len(rows) > ORDERED
    reader = Reader(table)
    for _ in range(300):  # first by scans, then by an index of its own
        assert sorted(reader.matching({0: 3})) == [(3, y) for y in range(60)]
    assert (reader.count({}), reader.count({1: 3}), reader.count({0: 3, 1: 60})) == (3600, 60, 0)
    assert table.indexes == {}
    table.index((0,), (1,))
    assert sorted(Reader(table).matching({0: 3})) == [(3, y) for y in range(60)]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12), st.sets(st.integers(0, 2)), st.booleans())
def test_a_reader_finds_what_a_filter_finds(rows: list[Row], columns: set[int], indexed: bool) -> None:
    table = Table(RowShape(3), set(rows))
    if indexed:
        table.index((1,), (0, 2))
        table.index((2, 0), (1,))
    bound = dict.fromkeys(columns, 1)
    expected = sorted({row for row in rows if all(row[c] == 1 for c in columns)})
    assert list(Reader(table).matching(bound)) == expected
    assert Reader(table).count(bound) == len(expected)


def test_an_equivalence_is_read_from_both_sides() -> None:
    table = Equivalence(PairShape())
    table.merge({1: {2}, 2: {3}})
    assert list(Reader(table).matching({1: 1})) == [(1, 1), (2, 1), (3, 1)]


def test_a_solver_is_lazy() -> None:
    program = compile_text(".decl n(x:number)  .decl p(x:number, y:number)  p(x, y) :- n(x), n(y), x <= y.")
    table = Table(ValueShape(), set(range(100_000)))
    solver = Solver(program, {"n": table})
    found = solver.solve(program.rules[0].body, {})
    assert all(int(one["x"]) <= int(one["y"]) for one in islice(found, 100))


# ── verification ─────────────────────────────────────────────────────────────────────────────


def test_verification_refuses_what_is_no_proof() -> None:
    evidence = living(compile_text(CLOSURE + "edge(1, 2). edge(2, 3). edge(5, 6)."), {})
    proof = why(evidence, "path", (1, 3))
    first, second = proof.children
    assert isinstance(first, Proof)
    other = why(evidence, "edge", (5, 6))
    forged = [
        (evolve(proof, row=(3, 1)), "V1"),
        (evolve(proof, reason="given", rule=None), "V2"),
        (evolve(proof, children=()), "zip"),
        (evolve(proof, rule=evidence.program.rules[0]), "V3|zip"),
        (evolve(proof, binding={**proof.binding, "y": 3}), "V3"),
        (evolve(proof, children=(first, other)), "V3"),
        (evolve(proof, children=(Condition("comparison", "1 < 2"), second)), "V3"),
        (evolve(proof, children=(evolve(first, children=(other,)), second)), "V3"),
        (evolve(proof, reason="equivalence", rule=None), "V5"),
        (evolve(proof, dropped=True), "V1"),
    ]
    for wrong, why_wrong in forged:
        with pytest.raises((AssertionError, ValueError), match=why_wrong):
            verify(evidence, wrong)


def test_verification_refuses_conditions_that_do_not_hold() -> None:
    program = compile_text(".decl a(x:number)  .decl b(x:number)  .decl p(x:number)  p(x) :- a(x), !b(x), x < 5.")
    engine = Engine(program)
    engine.apply([Update("a", (1,))])
    proof = why(engine, "p", (1,))
    verify(engine, proof)
    engine.apply([Update("b", (1,)), Update("p", (1,))])
    with pytest.raises(AssertionError, match="V4"):
        verify(engine, proof)


# ── the law ──────────────────────────────────────────────────────────────────────────────────

EXECUTORS = {
    "follow": Incremental(large=10**9),
    "mixed": Incremental(large=3),
    "ranked_python": Incremental({"*": "ranked_python"}),
}
executors = st.sampled_from([*EXECUTORS, "no last steps"])


def explain_everything(evidence: Evidence) -> None:
    """Each fact has a proof; of each other row it is said what is missing."""
    values: dict[str, list[Any]] = {
        "number": [0, 1, 3],
        "symbol": ["a", "b"],
        "float": [0.5, 1.0],
        "unsigned": [0, 1],
    }
    for name, relation in evidence.program.relations.items():
        rows = set(evidence.tables[name].rows())
        for row in sorted(rows)[-6:]:
            proved(evidence, name, *row).text()
        probe: list[Row] = [()]
        for column in relation.columns:
            probe = [(*row, value) for row in probe for value in values[column.kind]]
        for row in probe[:4]:
            answer = why_not(evidence, name, row)
            assert answer.present is (row in rows)
            if not answer.present and any(not attempt.stop for attempt in answer.attempts):
                assert answer.remarks, f"nothing is missing: {answer}"


@given(executor=executors, text=generators.programs(), inputs=generators.facts(), stream=generators.streams())
def test_every_fact_of_every_program_has_a_proof(executor: str, text: str, inputs: Any, stream: Any) -> None:
    note(text)
    try:
        explain_everything(evidence_after(executor, compile_text(text), inputs, stream))
    except DatalogError:
        assume(False)


@pytest.mark.parametrize("name", generators.PROGRAMS)
@given(executor=executors, inputs=generators.facts(), stream=generators.streams(steps=4))
def test_every_fact_of_each_shape_has_a_proof(executor: str, name: str, inputs: Any, stream: Any) -> None:
    declarations = "\n".join(
        f".decl {n}({', '.join(f'c{i}:{k}' for i, k in enumerate(kinds))})" for n, kinds in generators.BASE.items()
    )
    program = compile_text(f"{declarations}\n{generators.PROGRAMS[name]}\n")
    explain_everything(evidence_after(executor, program, inputs, stream))


def evidence_after(executor: str, program: Program, inputs: Any, stream: Any) -> Evidence:
    try:
        if executor == "no last steps":
            return Standing(program, inputs)
        engine = EXECUTORS[executor].start(program)
        engine.apply([Update(name, row) for name, rows in inputs.items() for row in rows])
        for step in stream:
            engine.apply([Update(*update) for update in step])
    except EvaluationError:
        assume(False)
    return engine
