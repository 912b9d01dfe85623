"""Every system by its name, read lazily.

A name stands for a system of the calculus (a file in `systems`), one written in Python (in
`practical`), or both.  If both, the calculus defines the relations and is the source of the SQL,
and the Python class runs, with auxiliaries of its own.  `flatten(NAME)` and `binarize(NAME)` name
the encodings of a system and may be nested.  A path that ends in `.nrc` names a user's own file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.ies.nrc.types import Base, Product, SetOf, Type, columns, height
from everlog.ies.system import DEFAULT_LIMIT

if TYPE_CHECKING:
    from everlog.ies.calculus_system import Rowwise
    from everlog.ies.practical.protocol import Described, Practical
    from everlog.ies.system import System

# name → module of ies.practical, class
PRACTICAL = {
    "tc_witness": ("tc_witness", "WitnessClosure"),
    "tc_counts": ("tc_counts", "CountedClosure"),
    "tc_algebra": ("tc_algebra", "AlgebraicClosure"),
    "same_generation_counts": ("same_generation_counts", "CountedGenerations"),
    "alternating_counters": ("alternating_paths", "AlternatingPaths"),
}
ENCODINGS = ("flatten", "binarize")
_ENCODED = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
SUFFIX = ".nrc"


class NoSuchSystem(ValueError):
    """A name that stands for no system."""


@frozen
class Auxiliary:
    """An auxiliary relation, for listings; a nested one has its outermost columns."""

    name: str
    type: SetOf
    columns: tuple[str, ...]
    meaning: str

    @property
    def flat(self) -> bool:
        return height(self.type) == 1

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def types(self) -> tuple[Base, ...]:
        """The column types of a flat relation."""
        return columns(self.type.element)


@frozen
class Entry:
    """A name of the catalogue; its system is loaded on first use."""

    name: str

    @property
    def practical(self) -> bool:
        """Whether it runs in Python rather than in the calculus."""
        return self.name in PRACTICAL

    @property
    def place(self) -> str:
        """The module of a Python system."""
        return f"everlog.ies.practical.{PRACTICAL[self.name][0]}"

    @property
    def prospects(self) -> list[str]:
        """Statements about a Python system besides its description."""
        return _class(self.name).prospects() if self.practical else []

    @property
    def described(self) -> System | Described:
        """The system that runs: its title, cost, growth and so on."""
        return _class(self.name).described if self.practical else system_of(self.name)

    @property
    def title(self) -> str:
        return self.described.title

    @property
    def growth(self) -> str:
        return self.described.growth

    @property
    def cost(self) -> str:
        return self.described.cost

    @property
    def exponential(self) -> bool:
        return self.described.exponential

    @property
    def kept(self) -> tuple[Auxiliary, ...]:
        """The auxiliary relations of the system that runs."""
        return tuple(
            Auxiliary(one.name, one.type, _columns(one), one.meaning) for one in self.described.auxiliaries
        )


class _Names(Mapping[str, Entry]):
    """The entries by name; listing names reads only the folder."""

    def __getitem__(self, name: str) -> Entry:
        if name not in _names():
            raise KeyError(name)
        return Entry(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())


SYSTEMS: Mapping[str, Entry] = _Names()


@cache
def _names() -> tuple[str, ...]:
    folder = resources.files("everlog.ies").joinpath("systems")
    written = {path.name.removesuffix(SUFFIX) for path in folder.iterdir() if path.name.endswith(SUFFIX)}
    return tuple(sorted(written | PRACTICAL.keys()))


def entry(name: str) -> Entry:
    """The entry of a name, an encoding or a file.  Raises NoSuchSystem."""
    if name not in SYSTEMS:
        system_of(name)
    return Entry(name)


def system(name: str) -> System | Described:
    """A system by its name: in the calculus, or the description of a Python one.

    >>> system("tc_paths").answer.name
    'path'
    >>> system("flatten(tc_paths)").auxiliaries[0].name
    'paths_flat'
    """
    if name in PRACTICAL and not _is_written(name):
        return entry(name).described
    return system_of(name)


def of_ones_own(name: str) -> bool:
    """Whether a name is that of a file, or of an encoding of one.

    >>> of_ones_own("flatten(mine.nrc)"), of_ones_own("tc_paths")
    (True, False)
    """
    encoded = _ENCODED.fullmatch(name)
    return of_ones_own(encoded[2].strip()) if encoded is not None else name.endswith(SUFFIX)


def running(name: str, limit: int | None = DEFAULT_LIMIT) -> Practical | Rowwise:
    """A running system, empty; it takes and gives rows.

    The Python class runs if there is one.  `limit` bounds the values in the auxiliaries of a system
    of the calculus; None is no limit.  A Python system has none: its auxiliaries are polynomial.
    """
    if name in PRACTICAL:
        return _class(name)()
    from everlog.ies.calculus_system import Rowwise

    return Rowwise(system_of(name), limit)


@cache
def system_of(name: str) -> System:
    """A checked system of the calculus: by name, encoding, or path of a file.

    >>> system_of("tc_path")
    Traceback (most recent call last):
    everlog.ies.registry.NoSuchSystem: no system is called `tc_path`; is it `tc_paths`?
    """
    from everlog.ies import files

    if _is_written(name):
        place = resources.files("everlog.ies").joinpath("systems", name + SUFFIX)
        return files.system_of(place.read_text(encoding="utf-8"), name + SUFFIX)
    if name.endswith(SUFFIX):
        return files.read_system(name)
    encoded = _ENCODED.fullmatch(name)
    if encoded is not None and encoded[1] in ENCODINGS:
        module = import_module(f"everlog.ies.encodings.{encoded[1]}")
        original = system_of(encoded[2].strip())
        made: System = getattr(module, encoded[1])(original)
        return made
    if name in PRACTICAL:
        raise NoSuchSystem(f"`{name}` is written in Python, not in the calculus")
    raise NoSuchSystem(f"no system is called `{name}`" + _guess(name))


def _guess(name: str) -> str:
    close = get_close_matches(name, list(SYSTEMS), 1)
    if close:
        return f"; is it `{close[0]}`?"
    return f"; there are {', '.join(SYSTEMS)}, and files that end in {SUFFIX}"


def _is_written(name: str) -> bool:
    return name in _names() and resources.files("everlog.ies").joinpath("systems", name + SUFFIX).is_file()


def _class(name: str) -> type[Practical]:
    module, cls = PRACTICAL[name]
    found: type[Practical] = getattr(import_module(f"everlog.ies.practical.{module}"), cls)
    return found


def _columns(one: object) -> tuple[str, ...]:
    """The names of the columns, if there are any."""
    names: tuple[str, ...] | None = getattr(one, "columns", None)
    if names is not None:
        return names
    type_: Type = one.type.element  # type: ignore[attr-defined]  # a Stored
    parts = columns(type_) if height(type_) == 0 else type_.parts if isinstance(type_, Product) else (type_,)
    return tuple(f"c{n}" for n in range(1, len(parts) + 1))
