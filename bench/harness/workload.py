"""What is measured: a workload is data, a program and updates; a side is a system that is given
them.

Sides are told apart by name (`everlog`, `duckdb`, `souffle compiled`).  Whatever a side needs of a
workload it finds in a folder, a `Case`: the program, facts in tab-separated files, streams of
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
    """An exponent that a time grows with, at most, and why; that of each update, or `amortized`
    over many.
    """

    exponent: float
    why: str
    amortized: bool = False


@frozen
class Workload:
    """One kind of work, at any size.

    `make(size)` gives its facts, always the same ones.  `fresh(draw, size)` is a fact that might
    come next; where it is None, updates take given facts away and bring them back.  `large` is the
    size of the tables, `growth` the sizes that exponents are fitted to.  `steps` is how many
    updates a stream has at its large size.
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
    hubs: Callable[[Facts], list[tuple[str, Row]]] | None = None  # what `hubs` toggles; else facts of high degree
    steps: int = 2000
    small_steps: int = 30
    batch: int = 1000
    small_batch: int = 10
    budget: float = 0.0  # seconds of a stream, where it needs more than others
    describe: Callable[[int], str] = field(default="size {}".format)


# ── what a side is given ─────────────────────────────────────────────────────────────────────


@frozen
class Case:
    """A workload of one size as a folder: `program.dl`, `NAME.facts`, `streams.pickle`,
    `case.json`.
    """

    folder: Path
    workload: str
    query: str
    answers: tuple[str, ...]
    given: Mapping[str, int]  # relation → arity

    @property
    def program(self) -> str:
        return (self.folder / "program.dl").read_text(encoding="utf-8")

    def facts(self, relation: str) -> Path:
        return self.folder / f"{relation}.facts"

    def rows(self, relation: str) -> list[Row]:
        """The given rows, read as one would in Python."""
        with self.facts(relation).open() as file:
            return [tuple(map(int, line.split("\t"))) for line in file]

    def stream(self, name: str) -> list[Update]:
        with (self.folder / "streams.pickle").open("rb") as file:
            streams: dict[str, list[Update]] = pickle.load(file)
        return streams[name]

    @classmethod
    def read(cls, folder: Path) -> Case:
        told = json.loads((folder / "case.json").read_text())
        return cls(folder, told["workload"], told["query"], tuple(told["answers"]), told["given"])


class Static(Protocol):
    """A system that computes the answers once."""

    def load(self) -> None:
        """The program and the facts, from the files of the case."""

    def solve(self) -> None:
        """The answers are there, and their sizes known."""

    def size(self, relation: str) -> int: ...

    def answer(self, relation: str) -> Iterable[Row]: ...

    def close(self) -> None: ...


class Living(Protocol):
    """A system that follows updates, and tells what each step changes.

    If it has `current_at`, that is when the answers of the last step were there, by `perf_counter`;
    what comes after is making rows of what changed, as nobody does who computes answers anew.
    """

    def load(self) -> None:
        """The program and the facts, from the files of the case, and everything that follows from
        them.
        """

    def step(self, updates: list[Update]) -> Told:
        """Apply updates in their order as one step, and tell the changes of the answers."""

    def answer(self, relation: str) -> Iterable[Row]: ...

    def close(self) -> None: ...


# ── sides ────────────────────────────────────────────────────────────────────────────────────


class NotInstalled(Exception):
    """Why a competitor is left out."""


@frozen
class Side:
    """A system to be measured.

    `version()` raises `NotInstalled` where it is not here.  `refuses(query, living)` says why a
    query is not asked of it, or "".  `own` are strategies of ours.  Those with `grows` are measured
    against size, too; those with `apart` need a process for themselves at any time.
    """

    name: str
    title: str
    version: Callable[[], str]
    static: Callable[[Case], Static] | None = None
    living: Callable[[Case], Living] | None = None
    refuses: Callable[[str, bool], str] = field(default=lambda query, living: "")
    own: bool = False
    grows: bool = False
    apart: bool = False

    def refusal(self, query: str, living: bool) -> str:
        if (self.living if living else self.static) is None:
            return "does not follow updates" if living else "is for updates"
        return self.refuses(query, living)


def installed_version(package: str) -> Callable[[], str]:
    """The version of a Python package, as metadata has it."""

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
