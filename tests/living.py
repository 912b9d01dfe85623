"""The law of the living engine: after every step it equals the reference."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import generators
from attrs import evolve
from engines import EXECUTORS
from hypothesis import assume, note, settings
from hypothesis import strategies as st
from last_steps import assert_explained

from everlog.core.engine import Engine
from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.core.program.executor import Changes, Update
from everlog.core.program.values import NAN, EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError


def examples(number: int, share: int = 1) -> settings:
    """This number of examples; scaled if more than usual are asked for."""
    asked = settings().max_examples
    return settings(max_examples=number if asked <= 60 else asked // share)


@contextmanager
def on_a_machine(data: st.DataObject) -> Iterator[None]:
    """Run on the compiled machine, or in Python alone."""
    with patch.dict(os.environ, EVERLOG_PURE=data.draw(st.sampled_from(["", "1"]), label="pure")):
        yield


@lru_cache(maxsize=64)
def compiled(text: str) -> Program:
    try:
        return compile_text(text)
    except DatalogError as error:
        # A random aggregate may use a variable as a witness of count or sum, which is an error.
        unexpected = {d.code for d in error.report.errors} - {"DL041", "DL042", "DL040", "DL057"}
        if unexpected:
            raise
        assume(False)
        raise


def program_of(text: str) -> Program:
    note(text)
    return compiled(text)


def updates(step: Iterable[generators.Change]) -> list[Update]:
    return [Update(*change) for change in step]


def first_step(inputs: dict[str, list[Row]]) -> list[generators.Change]:
    return [(name, row, True) for name, rows in inputs.items() for row in rows]


def views(engine: Engine) -> dict[str, frozenset[Row]]:
    return {name: engine.view(name) for name in engine.program.relations}


def state_of_engine(engine: Engine) -> tuple[dict[str, frozenset[Row]], dict[str, frozenset[Row]]]:
    """All facts, and the base facts among them."""
    return views(engine), {name: frozenset(engine.given(name)) for name in engine.program.relations}


def plain(changes: Changes) -> dict[str, dict[Row, int]]:
    return {name: dict(change) for name, change in changes.items()}


def summed(told: Iterable[Changes]) -> dict[str, dict[Row, int]]:
    """The net change of several steps."""
    out: dict[str, dict[Row, int]] = {}
    for changes in told:
        for name, change in changes.items():
            for row, sign in change.items():
                rows = out.setdefault(name, {})
                rows[row] = rows.get(row, 0) + sign
    net = {name: {row: n for row, n in rows.items() if n} for name, rows in out.items()}
    return {name: rows for name, rows in net.items() if rows}


class Oracle:
    """The reference evaluator on the current base facts."""

    def __init__(self, program: Program) -> None:
        self.program = evolve(program, facts={})
        self.given = {name: set(program.facts.get(name, ())) for name in program.relations}
        self.state = reference.evaluate(self.program, self.given)

    def apply(self, step: Iterable[Update]) -> Changes | None:
        """The net change, or None if the step fails: then nothing has changed."""
        given = {name: set(rows) for name, rows in self.given.items()}
        for update in step:
            (given[update.relation].add if update.insert else given[update.relation].discard)(update.row)
        try:
            state = reference.evaluate(self.program, given)
        except EvaluationError:
            return None
        before, self.given, self.state = self.state, given, state
        changes = {
            name: dict.fromkeys(state[name] - before[name], 1) | dict.fromkeys(before[name] - state[name], -1)
            for name in state
        }
        return {name: change for name, change in changes.items() if change}


def follows(program: Program, inputs: Any, stream: Any, executors: Iterable[str] = EXECUTORS) -> dict[str, Engine]:
    """Run a stream on engines and the reference; they agree after each step and error.

    Invariants of the engine, last steps and changes are checked after each step too.
    """
    oracle = Oracle(program)
    engines = {name: EXECUTORS[name].start(program) for name in executors}
    told = {name: [{n: dict.fromkeys(rows, 1) for n, rows in views(e).items()}] for name, e in engines.items()}
    for number, step in enumerate([first_step(inputs), *stream]):
        expected = oracle.apply(updates(step))
        for name, engine in engines.items():
            where = f"{name}, after {step}"
            try:
                load = number == 0 and name == "mixed"
                changes = engine.insert(inputs) if load else engine.apply(updates(step))
            except EvaluationError:
                assert expected is None, f"{where}: only the engine fails"
            else:
                assert expected is not None, f"{where}: only the reference fails"
                assert plain(changes) == expected, f"{where}: told"
                told[name].append(changes)
            for relation, rows in oracle.state.items():
                assert engine.view(relation) == rows, f"{where}: {relation}"
                assert engine.size(relation) == len(rows)
                assert set(engine.given(relation)) == oracle.given[relation], f"{where}: given of {relation}"
            engine.check()
            assert_explained(engine)
    for name, engine in engines.items():
        assert summed(told[name]) == {n: dict.fromkeys(rows, 1) for n, rows in views(engine).items() if rows}
        for relation, rows in oracle.state.items():
            assert NAN in [value for row in rows for value in row] or list(engine.rows(relation)) == sorted(rows)
    return engines
