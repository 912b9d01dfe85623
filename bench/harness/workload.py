"""Workloads (data, program and updates) and sides (systems to measure).

Sides are identified by name (`everlog`, `duckdb`, `souffle compiled`).  A side finds everything it
needs of a workload in a folder, a `Case`: the program, facts in tab-separated files, streams of
updates.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Protocol, TypeAlias

from attrs import field, frozen

Row: TypeAlias = tuple[int, ...]
Facts: TypeAlias = dict[str, list[Row]]
Update: TypeAlias = tuple[str, Row, bool]  # relation, row, whether it is inserted
Told: TypeAlias = Mapping[str, Mapping[Row, int]]  # relation → row → +1 or -1


@frozen
class Promise:
    """The largest exponent that a time grows with, and why.

    It holds for each update, or `amortized` over many.
    """

    exponent: float
    why: str
    amortized: bool = False


@frozen
class Workload:
    """One kind of work, at any size.

    `make(size)` gives its facts, deterministically.  `fresh(draw, size)` is a new fact to insert;
    if it is None, updates delete base facts and insert them again.  `large` is the size of the
    tables, `growth` the sizes that exponents are fitted to.  `steps` is the number of updates of a
    stream at its large size.
    """

    name: str
    query: str
    title: str
    program: str
    answers: tuple[str, ...]
    make: Callable[[int], Facts]
    small: int
    large: int
    growth: tuple[int, ...]
    static_promise: Promise
    update_promise: Promise
    fresh: Callable[[Random, int], tuple[str, Row]] | None = None
    streams: tuple[str, ...] = ("random", "window", "undo", "hubs")
    hubs: Callable[[Facts], list[tuple[str, Row]]] | None = (
        None  # facts that `hubs` toggles; default: facts of high degree
    )
    steps: int = 2000
    small_steps: int = 30
    batch: int = 1000
    small_batch: int = 10
    budget: float = 0.0  # seconds of a stream, if it needs more than others
    describe: Callable[[int], str] = field(default="size {}".format)


# ── input of a side ─────────────────────────────────────────────────────────────────────


@frozen
class Case:
    """A workload of one size as a folder.

    Its files are `program.dl`, `NAME.facts`, `streams.pickle` and `case.json`.
    """

    folder: Path
    workload: str
    query: str
    answers: tuple[str, ...]
    base: Mapping[str, int]  # relation → arity

    @property
    def program(self) -> str:
        return (self.folder / "program.dl").read_text(encoding="utf-8")

    def facts(self, relation: str) -> Path:
        return self.folder / f"{relation}.facts"

    def rows(self, relation: str) -> list[Row]:
        """The base rows, read in plain Python."""
        with self.facts(relation).open() as file:
            return [tuple(map(int, line.split("\t"))) for line in file]

    def stream(self, name: str) -> list[Update]:
        with (self.folder / "streams.pickle").open("rb") as file:
            streams: dict[str, list[Update]] = pickle.load(file)
        return streams[name]

    @classmethod
    def read(cls, folder: Path) -> Case:
        told = json.loads((folder / "case.json").read_text())
        return cls(folder, told["workload"], told["query"], tuple(told["answers"]), told["base"])


class Static(Protocol):
    """A system that computes the answers once."""

    def load(self) -> None:
        """Read the program and the facts from the files of the case."""

    def solve(self) -> None:
        """Compute the answers and their sizes."""

    def size(self, relation: str) -> int: ...

    def answer(self, relation: str) -> Iterable[Row]: ...

    def close(self) -> None: ...


class Living(Protocol):
    """A system that follows updates, and reports the changes of each step.

    `current_at`, if present, is the `perf_counter` time at which the answers of the last step were
    ready; the rest is making rows of the changes, which a recomputation does not do.
    """

    def load(self) -> None:
        """Read the program and the facts, and compute all answers."""

    def step(self, updates: list[Update]) -> Told:
        """Apply updates in their order as one step, and return the changes of the answers."""

    def answer(self, relation: str) -> Iterable[Row]: ...

    def close(self) -> None: ...


# ── sides ────────────────────────────────────────────────────────────────────────────────────


class NotInstalled(Exception):
    """Why a competitor is left out."""


@frozen
class Side:
    """A system to be measured.

    `version()` raises `NotInstalled` if it is missing.  `refuses(query, living)` says why a query
    does not suit it, or "".  `own` are strategies of ours.  Those with `grows` are also measured
    against size; those with `own_process` always need a process of their own.
    """

    name: str
    title: str
    version: Callable[[], str]
    static: Callable[[Case], Static] | None = None
    living: Callable[[Case], Living] | None = None
    refuses: Callable[[str, bool], str] = field(default=lambda query, living: "")
    own: bool = False
    grows: bool = False
    own_process: bool = False

    def refusal(self, query: str, living: bool) -> str:
        if (self.living if living else self.static) is None:
            return "does not follow updates" if living else "is for updates"
        return self.refuses(query, living)


def installed_version(package: str) -> Callable[[], str]:
    """The version of a Python package, from its metadata."""

    def version() -> str:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as of

        try:
            return of(package)
        except PackageNotFoundError:
            raise NotInstalled(f"the Python package `{package}` is not installed") from None

    return version


def only(*queries: str, why: str = "no program for this query") -> Callable[[str, bool], str]:
    """`refuses` of a side that has programs for these queries alone."""
    return lambda query, living: "" if query in queries else why
