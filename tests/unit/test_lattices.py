"""The laws of lattices, tried on the values of data and under hypothesis."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.cli import main
from everlog.core.engine import Engine
from everlog.core.evaluate import reference
from everlog.core.program.executor import Update
from everlog.dsl.check import compile_text
from everlog.functors import FunctorError, bind
from everlog.testing import obeys_lattice_laws

TEXT = """.type Bits = number
.functor both(a:Bits, b:Bits):Bits  .functor moved(a:Bits, n:number):Bits
.lattice Bits<> { Bottom -> 0, Lub -> @both(_, _) }
.decl arc(x:number, y:number)  arc(1, 2).  arc(2, 1).
.decl r(x:number, v:Bits<>)  r(1, 1).  r(2, 6).  r(y, @moved(v, 3)) :- r(x, v), arc(x, y).
.output r
"""
SOUND = "def both(a, b): return a | b\ndef moved(a, n): return a & n\n"
TWO = """.type Bits = number  .functor both(a:Bits, b:Bits):Bits
    .lattice Bits<> { Bottom -> 0, Lub -> @both(_, _) }
    .decl at(x:number, v:Bits)  .decl arc(x:number, y:number)  .decl r(v:Bits<>, x:number, w:Bits<>)  """


def checked(folder: Path, functors: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    (folder / "bits.dl").write_text(TEXT)
    (folder / "functors.py").write_text(functors)
    status = main(["check", str(folder / "bits.dl"), "--try"])
    return status, capsys.readouterr().out


def test_sound_lattices_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = checked(tmp_path, SOUND, capsys)
    assert (status, "no law broken" in said) == (0, True)


@pytest.mark.parametrize(
    ("functors", "law"),
    [
        ("def both(a, b): return a | b if a != b else 9\ndef moved(a, n): return a & n\n", "not idempotent"),
        ("def both(a, b): return a if a else b\ndef moved(a, n): return a & n\n", "not commutative"),
        ("def both(a, b): return a | b\ndef moved(a, n): return 4 if a == 1 else 1\n", "not monotone"),
    ],
)
def test_broken_laws_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], functors: str, law: str) -> None:
    status, said = checked(tmp_path, functors + "\n", capsys)
    assert (status, law in said) == (1, True), said


def test_hypothesis_finds_a_broken_law() -> None:
    program = bind(compile_text(TEXT), {"both": lambda a, b: a | b, "moved": lambda a, n: a & n})
    obeys_lattice_laws(program, "Bits", st.integers(0, 63))()
    wrong = bind(program, {"both": lambda a, b: a + b})
    with pytest.raises(AssertionError, match="idempotent"):
        obeys_lattice_laws(wrong, "Bits", st.integers(1, 63))()


def test_a_join_without_a_function_is_an_error() -> None:
    from everlog import Database

    with pytest.raises(FunctorError, match="both"):
        Database.from_text(TEXT)


def test_a_fact_with_a_bottom_is_absent_before_it_is_joined() -> None:
    text = TWO + "r(v, x, 1) :- at(x, v).  r(w, y, v) :- r(v, x, w), arc(x, y)."
    program = bind(compile_text(text), {"both": lambda a, b: a | b})
    facts: dict[str, list[tuple[int, ...]]] = {"at": [(0, 0), (1, 2)], "arc": [(0, 0), (1, 0)]}
    assert reference.evaluate(program, facts)["r"] == {(2, 1, 1), (3, 0, 3)}
    engine = Engine(program, large=10**9)
    engine.insert(facts)
    engine.apply([Update("arc", (0, 0), False)])
    assert (
        engine.view("r") == {(2, 1, 1), (1, 0, 2)} == reference.evaluate(program, facts | {"arc": [(1, 0)]})["r"]
    )
