"""Evaluations and steps in which one allocation in C fails, for test_native_sanitized."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from everlog.core.engine import Engine
from everlog.core.evaluate import reference, seminaive
from everlog.core.native import _machine as machine
from everlog.core.program import Program
from everlog.core.program.executor import Update
from everlog.dsl.check import compile_text
from everlog.functors import bind

LEFT = ctypes.c_long.in_dll(ctypes.CDLL(os.environ["EVERLOG_MACHINE"]), "allocations_left")
PROGRAM = compile_text("""
    .decl e(x:number, y:number) .decl p(x:number, y:number) .decl q(x:number, s:symbol) .decl w(x:number)
    .decl m(x:number, n:number) .decl a(x:float)
    p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z), x < 9. q(x, cat("n", to_string(x))) :- e(x, _), !e(x, x).
    m(x, n) :- e(x, _), n = count : { e(x, y), p(y, _) }. a(n) :- n = mean y : { e(_, y) }.
    w(x * 3000000000) :- e(x, y), e(y, z), e(z, _).""")
CLOSURE = compile_text(
    ".decl e(x:number, y:number) .decl b(x:number) .decl p(x:number, y:number)"
    " p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z), !b(y). p(y, x) :- p(x, y), e(_, x), x < 4."
)


MAPS = compile_text("""
    .decl e(x:number, y:number) .decl d(x:number, n:number) .decl w(x:float, y:number) .decl v(n:number)
    d(0, 0). d(y, min(n + (x + y) % 4)) :- d(x, n), e(x, y). w(max(f), y) :- e(x, y), f = itof(x) / 3.
    w(max(min(f, 9.5)), z) :- w(f, y), e(y, z). d(y, min(n - 1)) :- d(x, n), e(x, y), x = 7, y > x.
    v(n) :- n = @@f y : 1, { e(_, y) }. .functor f(a:number, b:number):number""")
MAPS = bind(MAPS, {"f": lambda a, b: a ^ b})


def each(attempt: Callable[[], None], every: int = 1) -> int:
    """Try with the 1st, the 2nd, … allocation failing, until none fails; how many failed."""
    failed, number = 0, 1
    while True:
        LEFT.value = number
        try:
            attempt()
        except MemoryError:
            failed += 1
        unused, LEFT.value = LEFT.value > 0, 0
        if unused:
            return failed
        number += every


def evaluations(program: Program, rows: int, jobs: int, every: int) -> None:
    facts = {"e": [(n % 40, n * 7 % 53) for n in range(rows)]}
    expected = reference.evaluate(program, facts)

    def attempt() -> None:
        found = seminaive.evaluate(program, facts, jobs=jobs)
        LEFT.value = min(LEFT.value, 1) and 10**9  # it is over: comparing is none of it
        assert all(found.relation(name) == expected[name] for name in program.relations)

    print("evaluations that failed:", failed := each(attempt, every))
    assert failed > 10


def steps() -> None:
    engine = Engine(CLOSURE, strategies={"p": "ranked"}, large=10**9)
    engine.apply([Update("e", (n, n + 1), True) for n in range(6)])
    step = [Update("e", (n % 9, n * 5 % 11), n % 3 > 0) for n in range(12)] + [Update("b", (2,), True)]
    back = [Update("e", (n % 9, n * 5 % 11), False) for n in range(12)] + [Update("b", (2,), False)]
    back += [Update("e", (n, n + 1), True) for n in range(6)]

    def right() -> None:
        left, LEFT.value = LEFT.value, 0
        facts = {name: engine.view(name) for name in ("e", "b")}
        assert engine.view("p") == reference.evaluate(CLOSURE, facts)["p"]
        engine.check()
        LEFT.value = left

    def attempt() -> None:
        for updates in (step, back):
            before = engine.view("e")
            try:
                engine.apply(updates)
            except MemoryError:
                assert engine.view("e") == before
                right()
                raise
            right()

    print("steps that failed:", failed := each(attempt))
    engine = Engine(CLOSURE, strategies={"p": "ranked"}, large=10**9)
    print("first steps that failed:", first := each(attempt))
    assert failed + first > 10


def again() -> None:
    """An index and a plan do after a failure what they would have done without it."""

    def attempt() -> None:
        symbols = machine.Symbols()
        relation, out = machine.Relation((0, 0), symbols), machine.Relation((0, 0), symbols)
        plan = machine.Plan(2, 2, symbols, lambda: None)
        plan.put(0, "SCAN", -1, (), ((0, 0), (1, 1)))
        plan.put(1, "ADD", 0, (0, 1))
        plan.over(0, relation, 0, (0,))
        plan.over(1, out, 0)
        relation.fill([(n % 30, n) for n in range(90)])
        failed: MemoryError | None = None
        for act in (relation.advance, plan.run):
            try:
                act()
            except MemoryError as error:
                failed, LEFT.value = error, 0
                act()
        relation.check()
        assert set(out) == set(relation)
        if failed is not None:
            raise failed

    assert each(attempt) > 10


def columns() -> None:
    """Rows of lines and columns, sealed and opened again; what has failed is done once more."""
    rows = {(n, n * 7 % 53) for n in range(300)}
    data = "".join(f"{x}\t{y}\n" for x, y in rows).encode()

    def attempt() -> None:
        words = machine.Relation((0, 0), machine.Symbols())
        words.take((bytes(800), bytes(800)))
        failed: MemoryError | None = None
        for act in (lambda: words.parse(data, "\t"), words.seal, lambda: words.fill([(-1, -1)])):
            try:
                act()
            except MemoryError as error:
                failed, LEFT.value = error, 0
                act()
        parts = list(words.columns(100))
        LEFT.value = min(LEFT.value, 1) and 10**9
        words.check()
        assert {row for x, y in parts for row in zip(as_numbers(x), as_numbers(y), strict=True)} == {
            *rows,
            (-1, -1),
        }
        if failed is not None:
            raise failed

    assert each(attempt) > 10


def as_numbers(words: bytearray) -> list[int]:
    return memoryview(words).cast("q").tolist()


if __name__ == "__main__":
    again()
    columns()
    evaluations(PROGRAM, 40, 1, 1)
    evaluations(PROGRAM, 1500, 3, 7)
    evaluations(MAPS, 60, 1, 1)
    steps()
