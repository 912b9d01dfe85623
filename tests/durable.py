"""Helpers for tests of databases in files; crash tests use `durable_load`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from attrs import evolve

from everlog import Database
from everlog.core.evaluate import reference
from everlog.store.durable_database import DurableDatabase

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2).
"""


def views(db: Database) -> dict[str, list[Any]]:
    return {name: db.view(name) for name in db.relations}


def assert_right(db: Database) -> None:
    """Check all relations against the reference, and the engine's invariants."""
    program = evolve(db.program, facts={})
    expected = reference.evaluate(program, {name: db.given(name) for name in db.relations})
    assert {name: set(db.view(name)) for name in db.relations} == {
        name: set(rows) for name, rows in expected.items()
    }
    db._engine.check()


def reopened(db: DurableDatabase, **how: Any) -> DurableDatabase:
    db.close()
    return Database.open(db.path, **how)


STATES = """
.decl e(x:number, y:number)
.decl s(x:symbol, y:symbol)
.decl tc(x:number, y:number)
tc(x, y) :- e(x, y).
tc(x, z) :- tc(x, y), e(y, z).
.decl sg(x:number, y:number)
sg(x, y) :- e(x, p), e(y, p).
sg(x, y) :- e(x, a), sg(a, b), e(y, b).
.decl tri(x:number, y:number, z:number)
tri(x, y, z) :- e(x, y), e(y, z), tc(z, x).
.decl far(x:number)
far(y) :- far(x), e(x, y), e(y, _).
far(0).
.decl wide(x:number, y:number, z:number)
wide(x, y, z) :- tri(x, y, z).
wide(y, x, z) :- wide(x, y, z), e(z, _).
.decl some()
some() :- tc(x, x).
.decl loop()
loop() :- some(). loop() :- loop(), e(_, _).
.decl counted(x:number, n:number)
counted(x, n) :- e(x, _), n = count : { tc(x, _) }.
.decl same(x:number, y:number) eqrel
same(x, y) :- e(x, y), x < 5.
.decl chosen(x:number, y:number) choice-domain x
chosen(x, y) :- tc(x, y).
.decl numbered(i:number, x:number)
numbered(autoinc(), x) :- e(x, _).
.decl numbered2(i:number, x:number)
numbered2(autoinc(), x) :- e(_, x).
.decl words(x:symbol, y:symbol)
words(x, y) :- s(x, y).
words(x, z) :- words(x, y), s(y, z).
.decl floats(x:float)
floats(to_float(to_string(x)) / 0.0) :- e(x, _).
"""


def grown(path: Path, **how: Any) -> DurableDatabase:
    generator = random.Random(3)
    edges = [(generator.randrange(12), generator.randrange(12)) for _ in range(25)]
    words = [(generator.choice("abcdé"), generator.choice("abcdé")) for _ in range(9)]
    return Database.open(
        path, text=STATES, facts={"e": edges, "s": words, "tc": [(50, 51)], "tri": [(1, 1, 1)]}, **how
    )
