"""How to make a fact come or go: every answer is right and minimal, and none is missing.

The oracle tries all sets of at most three changes over a small domain, with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product

from attrs import evolve
from hypothesis import assume, example, given, note
from hypothesis import strategies as st
from living import compiled, examples, state_of_engine

from everlog.core.engine import Engine
from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.core.program.executor import Update
from everlog.core.repairs import Bounds, Repairs, repairs
from everlog.core.repairs.repair import allowed

DECLARATIONS = """.decl dom(x:number)  dom(0).  dom(1).  dom(2).
.decl e(x:number, y:number)  .decl v(x:number)
.decl p(x:number, y:number)  .decl q(x:number)  .decl r(x:number)  .decl m(x:number, n:number)
"""
# each may stand beside any of the others: they stratify in the order p, q, m, r
RULES = [
    "p(x, y) :- e(x, y).",
    "p(x, z) :- p(x, y), e(y, z).",
    "p(x, y) :- e(y, x), v(x).",
    "p(x, y) :- e(x, y), e(y, x), x != y.",
    "p(x, y) :- v(x), v(y), !e(x, y).",
    "p(x, y) :- e(x, y), !v(y).",
    "q(x) :- p(x, _), !v(x).",
    "q(x) :- dom(x), !p(x, _).",
    "q(y) :- q(x), e(x, y).",
    "q(x) :- p(x, x).",
    "q(x + 1) :- v(x), x < 2.",
    "m(x, n) :- dom(x), n = count : { p(x, _) }.",
    "m(x, n) :- v(x), n = sum y : { e(x, y), !q(y) }.",
    "m(x, n) :- dom(x), n = max y : { e(y, x) }.",
    "r(x) :- m(x, n), n > 1.",
    "r(x) :- q(x), !m(x, 0).",
    "r(x) :- v(x), count : { q(_) } > 1.",
    "r(y) :- r(x), e(x, y), !q(y).",
]
NUMBERS = range(3)
MOST = 3
_pairs = st.tuples(*[st.sampled_from(NUMBERS)] * 2)
_facts = st.fixed_dictionaries(
    {"e": st.sets(_pairs, max_size=5), "v": st.sets(st.tuples(st.sampled_from(NUMBERS)), max_size=3)}
)
_goals = st.one_of(
    st.tuples(st.sampled_from(["p", "m"]), _pairs, st.booleans()),
    st.tuples(st.sampled_from(["q", "r"]), st.tuples(st.sampled_from(NUMBERS)), st.booleans()),
)
_keeps = st.frozensets(st.one_of(st.tuples(st.just("p"), _pairs), st.tuples(st.just("e"), _pairs)), max_size=2)
Fact = tuple[str, Row]
Step = frozenset[Update]


class Oracle:
    """What sets of changes do, by the reference."""

    def __init__(self, program: Program, facts: dict[str, set[Row]], goal: Update, keeps: frozenset[Fact]) -> None:
        self.program, self.facts, self.goal = evolve(program, facts={}), facts, goal
        now = self.state(frozenset())
        self.keeps = [(name, row) for name, row in keeps if row in now[name]]

    def state(self, step: Step) -> dict[str, frozenset[Row]]:
        given = {name: set(rows) for name, rows in self.facts.items()}
        for change in step:
            (given[change.relation].add if change.insert else given[change.relation].discard)(change.row)
        return reference.evaluate(self.program, given)

    def reaches(self, step: Step) -> bool:
        state = self.state(step)
        reached = (self.goal.row in state[self.goal.relation]) is self.goal.insert
        return reached and all(row in state[name] for name, row in self.keeps)

    def is_minimal(self, step: Step) -> bool:
        return not any(self.reaches(frozenset(fewer)) for fewer in subsets(step, len(step) - 1))

    def answers(self, relations: Iterable[str]) -> set[Step]:
        """The minimal sets of at most `MOST` changes over the domain."""
        columns = {"e": 2, "v": 1}
        rows = [(name, row) for name in relations for row in product(NUMBERS, repeat=columns[name])]
        changes = [Update(name, row, row not in self.facts[name]) for name, row in rows]
        found: set[Step] = set()
        for step in map(frozenset, subsets(changes, MOST)):
            if not any(answer <= step for answer in found) and self.reaches(step):
                found.add(step)
        return found


def subsets(items: Iterable[Update], most: int) -> Iterator[tuple[Update, ...]]:
    listed = sorted(items, key=repr)
    return (some for size in range(most + 1) for some in combinations(listed, size))


def asked(
    engine: Engine, goal: Update, relations: Iterable[str], keeps: Callable[[str, Row], bool], bounds: Bounds
) -> Repairs:
    engine.prove_all()
    return repairs(engine, engine.what_if, (goal,), allowed(engine.program, relations, keeps), bounds)


@examples(60)
@given(
    st.lists(st.sampled_from(RULES), min_size=1, max_size=6, unique=True),
    _facts,
    _goals,
    _keeps,
    st.sampled_from([("e", "v"), ("e",), ("v",)]),
)
@example(
    ["m(x, n) :- v(x), n = sum y : { e(x, y), !q(y) }.", "r(x) :- m(x, n), n > 1."],
    {"e": {(1, 1)}, "v": set()},
    ("r", (1,), True),
    frozenset(),
    ("e", "v"),
)
@example(
    ["p(x, y) :- e(x, y).", "p(x, z) :- p(x, y), e(y, z)."],
    {"e": {(0, 1), (1, 2)}, "v": set()},
    ("p", (0, 2), False),
    frozenset(),
    ("e",),
)
def test_every_minimal_answer_is_found_and_nothing_else(
    rules: list[str],
    facts: dict[str, set[Row]],
    goal: tuple[str, Row, bool],
    keeps: frozenset[Fact],
    relations: tuple[str, ...],
) -> None:
    rules = sorted(rules, key=RULES.index)
    assume(any(rule.startswith(goal[0]) for rule in rules))
    text = DECLARATIONS + "\n".join(rules)
    note(text)
    program = compiled(text)
    base = {"dom": {(n,) for n in NUMBERS}, **facts}
    oracle = Oracle(program, base, Update(*goal), keeps)
    engine = Engine(program)
    engine.insert(facts)
    before = state_of_engine(engine)
    bounds = Bounds(changes=MOST, answers=10_000, trials=100_000)
    found = asked(engine, Update(*goal), relations, lambda name, row: (name, row) in keeps, bounds)
    assert state_of_engine(engine) == before
    engine.check()
    steps = [frozenset(answer.step) for answer in found.answers]
    assert len(set(steps)) == len(steps)
    for step, answer in zip(steps, found.answers, strict=True):
        assert {change.relation for change in step} <= set(relations)
        assert oracle.reaches(step)
        assert oracle.is_minimal(step)
        assert_effects(oracle, step, answer.effects)
    sizes = [answer.size for answer in found.answers]
    assert sizes == sorted(sizes)
    assert found.complete, found.remarks
    expected = oracle.answers(relations)
    assert expected <= set(steps)
    assert {step for step in steps if all(set(c.row) <= set(NUMBERS) for c in step)} == expected


def assert_effects(oracle: Oracle, step: Step, effects: object) -> None:
    """The side effects are all changes but those asked for and those made."""
    before, after = oracle.state(frozenset()), oracle.state(step)
    own = {(change.relation, change.row) for change in (*step, oracle.goal)}
    expected: dict[str, dict[Row, int]] = {}
    for name in before:
        for row in before[name] ^ after[name]:
            if (name, row) not in own:
                expected.setdefault(name, {})[row] = 1 if row in after[name] else -1
    assert effects == expected
