"""If an allocation of a step fails, the step is undone, or the engine is broken."""

from __future__ import annotations

import memory_faults
import pytest
from memory_faults import GOOD, faults

from everlog.core.engine import Engine
from everlog.core.program.executor import Update
from everlog.core.runtime.guards import Broken
from everlog.dsl.check import compile_text

E = ".decl e(x:number, y:number) .decl p(x:number, y:number) "
PROGRAMS = {
    "counts": E + ".decl f(x:number, y:number) p(x, z) :- e(x, y), f(y, z).",
    "sum": E + "p(x, n) :- e(x, _), n = sum y : { e(x, y) }.",
    "max": E + "p(x, n) :- e(x, _), n = max y : { e(x, y) }.",
    "flow": E + "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "ranked": E + ".decl q(x:number, y:number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
    " q(x, y) :- p(x, y), !e(x, y).",
    "triangle": E + ".decl t(x:number, y:number, z:number) t(x, y, z) :- e(x, y), e(y, z), e(z, x).",
    "eqrel": ".decl e(x:number, y:number) .decl p(x:number, y:number) eqrel p(x, y) :- e(x, y).",
}
ONE, GONE = [Update("e", (9, 10))], [Update("e", (3, 4), insert=False)]
ONE_BACK, GONE_BACK = [Update("e", (9, 10), insert=False)], [Update("e", (3, 4))]


def _rows(first: int, last: int, insert: bool = True) -> list[Update]:
    return [Update("e", (i, (i + 1) % 12), insert) for i in range(first, last)]


SEVERAL, SEVERAL_BACK = [*_rows(9, 12), *_rows(2, 4, False)], [*_rows(9, 12, False), *_rows(2, 4)]
STEPS = {"insert": ONE, "delete": GONE, "several": SEVERAL, "anew": SEVERAL}

needs_testcapi = pytest.mark.skipif(memory_faults._testcapi is None, reason="this Python has no _testcapi")


def every_allocation(name: str, kind: str, every: int) -> None:
    """Python itself may crash without memory (`for … in d.items()`); ignored."""
    before = [_rows(0, 8), ONE, ONE_BACK, GONE, GONE_BACK, SEVERAL, SEVERAL_BACK]
    ends = faults(compile_text(PROGRAMS[name]), before, STEPS[kind], kind == "anew", every)
    bad = {word: number for word, number in ends.items() if word not in GOOD and not word.startswith("signal -11")}
    print(f"{name}, {kind}: {dict(ends)}")
    assert not bad
    assert ends["taken back"]


@needs_testcapi
@pytest.mark.parametrize("kind", STEPS)
def test_an_allocation_that_fails_leaves_the_state_of_before(kind: str) -> None:
    for number, name in enumerate(PROGRAMS):
        if (number + len(kind)) % 3 == 0:
            every_allocation(name, kind, 307)


@needs_testcapi
@pytest.mark.deep
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_allocation_that_fails_leaves_the_state_of_before(name: str, kind: str) -> None:
    every_allocation(name, kind, 1)


def _failing_undo(*_: object) -> None:
    raise OSError("no way back")


def _failing_step(engine: Engine) -> None:
    """A step that fails, and whose undoing fails, too."""

    def seal(_net: object) -> None:
        engine._small.undo.append((_failing_undo, ()))
        raise ValueError("the file is full")

    engine.seal = seal
    engine.update("e", (5, 6))


def test_an_engine_that_cannot_take_a_step_back_refuses_everything() -> None:
    engine = Engine(compile_text(PROGRAMS["counts"]))
    with pytest.raises(Broken, match="no way back"):
        _failing_step(engine)
    for use in (
        lambda: engine.view("e"),
        lambda: engine.update("e", (1, 2)),
        lambda: engine.apply([Update("e", (1, 2))]),
        lambda: engine.change_program(engine.program),
        lambda: engine.check(),
    ):
        with pytest.raises(Broken, match="open it anew"):
            use()
