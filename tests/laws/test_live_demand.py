"""A relation on demand has, wherever somebody looks, the facts that it has if it is kept whole."""

from __future__ import annotations

from typing import Any

import generators
from attrs import evolve
from generators import SHAPES, VALUES, Case
from hypothesis import assume, given, note
from hypothesis import strategies as st
from living import Oracle, examples, first_step, program_of, updates
from random_queries import query_of

from everlog.core.engine import Engine
from everlog.core.engine.compiled_query import CompiledQuery
from everlog.core.engine.planning.demand_parts import only_asked_for
from everlog.core.evaluate import reference
from everlog.core.evaluate.seminaive import evaluate
from everlog.core.program import Directive, Program, Relation, Row, Value
from everlog.core.program.dependencies import needed_part
from everlog.core.program.executor import Changes
from everlog.core.program.values import EvaluationError


class Follower:
    """An engine with relations on demand, some of them watched, beside the reference."""

    def __init__(self, program: Program, data: st.DataObject) -> None:
        self.program, self.data, self.oracle = program, data, Oracle(program)
        derived = [name for name in program.relations if program.rules_of(name)]
        chosen = data.draw(st.sets(st.sampled_from(derived)) if derived else st.just(set()), label="on demand")
        self.engine = Engine(program, strategies=dict.fromkeys(sorted(chosen), "demand"))
        self.watched: list[tuple[str, dict[int, Value]]] = []
        self.tokens: list[Any] = []

    def pattern(self) -> tuple[str, dict[int, Value]]:
        name = self.data.draw(st.sampled_from(sorted(self.program.relations)))
        columns = self.program.relations[name].columns
        bound = self.data.draw(st.sets(st.integers(0, len(columns) - 1)) if columns else st.just(set()))
        return name, {n: self.data.draw(st.sampled_from(VALUES[columns[n].kind.value])) for n in sorted(bound)}

    def watch_one(self) -> None:
        name, bound = self.pattern()
        if self.engine.demands.is_on_demand(name):
            self.tokens.append(self.engine.demands.watch(name, bound))
            self.watched.append((name, bound))

    def unwatch_one(self) -> None:
        if self.tokens:
            place = self.data.draw(st.integers(0, len(self.tokens) - 1))
            self.engine.demands.unwatch(*self.tokens.pop(place))
            self.watched.pop(place)

    def apply(self, step: Any) -> None:
        expected = self.oracle.apply(updates(step))
        if expected is None:  # the part of the program that is needed may not fail
            assume(False)
        assert expected is not None
        self.told(expected, self.engine.apply(updates(step)))

    def told(self, expected: Changes, told: Changes) -> None:
        for name in self.program.relations:
            found = dict(told.get(name, {}))
            if not self.engine.demands.is_on_demand(name):
                assert found == expected.get(name, {}), f"told of {name}"
                continue
            mine = [bound for watched, bound in self.watched if watched == name]
            wanted = {
                row: sign
                for row, sign in expected.get(name, {}).items()
                if any(all(row[n] == value for n, value in bound.items()) for bound in mine)
            }
            assert found == wanted, f"told of {name}, watched as {mine}"

    def agrees(self) -> None:
        state = self.oracle.state
        for name in self.program.relations:
            if not self.engine.demands.is_on_demand(name):
                assert self.engine.view(name) == state[name], name
        name, bound = self.pattern()
        wanted = {row for row in state[name] if all(row[n] == value for n, value in bound.items())}
        assert set(self.engine.lookup(name, bound)) == wanted, (name, bound)
        assert self.engine.view(name) == state[name]
        self.engine.check()
        self.invariant(state)

    def invariant(self, state: dict[str, frozenset[Row]]) -> None:
        live = self.engine.plan.demand
        for name, parts in {} if live is None else live.parts.items():
            for part in parts:
                rows = set(self.engine.tables[part.name].rows())
                asked = set(self.engine.tables[part.magic].rows())
                assert rows <= state[name], part
                assert {row for row in state[name] if part.bound(row) in asked} <= rows, part

    def asks(self) -> None:
        rule, columns = query_of(self.program, self.data)
        note(str(rule))
        relations = {**self.program.relations, "?-": Relation("?-", columns)}
        program = evolve(self.oracle.program, relations=relations, rules=(*self.oracle.program.rules, rule))
        try:
            expected = reference.evaluate(program, self.oracle.given)["?-"]
        except EvaluationError:
            return
        assert set(CompiledQuery(self.engine, [rule]).answers()) == expected
        tried: list[Any] = []
        self.engine.what_if([], lambda _: tried.extend(CompiledQuery(self.engine, [rule]).answers()))
        assert set(tried) == expected


def follows(case: Case, data: st.DataObject) -> None:
    text, inputs, stream = case
    try:
        follower = Follower(program_of(text), data)
    except EvaluationError:
        assume(False)
        raise
    for step in [first_step(inputs), *stream]:
        follower.watch_one()
        follower.apply(step)
        follower.agrees()
        follower.asks()
        if data.draw(st.booleans()):
            follower.unwatch_one()
    while follower.tokens:
        follower.unwatch_one()
    live = follower.engine.plan.demand
    for parts in () if live is None else live.parts.values():
        for part in parts:  # nobody asks any more
            needed = live.always.get(part, frozenset()) if live is not None else frozenset()
            assert follower.engine.given(part.magic) == needed or set(follower.engine.given(part.magic)) == needed
    follower.agrees()


@examples(80)
@given(generators.cases(), st.data())
def test_demand_equals_full_evaluation(case: Case, data: st.DataObject) -> None:
    follows(case, data)


@examples(80)
@given(generators.dense_cases(), st.data())
def test_dense_programs_on_demand(case: Case, data: st.DataObject) -> None:
    follows(case, data)


@examples(60, share=10)
@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_shapes_on_demand(name: str, data: st.DataObject) -> None:
    follows(data.draw(generators.shaped_cases(name)), data)


@examples(80)
@given(generators.cases(), st.data())
def test_one_evaluation_computes_what_its_outputs_ask_for(case: Case, data: st.DataObject) -> None:
    text, inputs, _ = case
    program = program_of(text)
    derived = sorted(name for name in program.relations if program.rules_of(name))
    outputs = data.draw(st.sets(st.sampled_from(sorted(program.relations)), min_size=1), label="outputs")
    chosen = data.draw(st.sets(st.sampled_from(derived)) if derived else st.just(set()), label="on demand")
    program = needed_part(evolve(program, outputs=tuple(Directive(name) for name in sorted(outputs))))
    given_rows = {name: set(rows) for name, rows in program.facts.items()}
    for name, rows in inputs.items():
        if name in program.relations:
            given_rows[name] = given_rows.get(name, set()) | set(rows)
    try:
        expected = reference.evaluate(evolve(program, facts={}), given_rows)
    except EvaluationError:  # the part of the program that is needed may not fail
        assume(False)
        raise
    chosen = {name for name in chosen if name in program.relations and program.rules_of(name)}
    made, asked = only_asked_for(program, dict.fromkeys(sorted(chosen), "demand"))
    found = evaluate(evolve(made, facts={}), {**given_rows, **asked})
    assert {name: set(found.rows(name)) for name in outputs} == {name: expected[name] for name in outputs}
