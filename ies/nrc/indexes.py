"""Hash indexes of sets, kept as long as the set itself.

A set has at most one index per choice of parts: a set never changes, and a stored relation stays
the same object until an update changes it (`carry` then hands its indexes on).  The first lookup in
a set scans it; the second builds the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias
from weakref import ref

Path: TypeAlias = tuple[int, ...]  # projections, counted from 0, outermost first; () is the element itself
Index: TypeAlias = dict[Any, list[Any]]

_KEPT: dict[int, tuple[ref[frozenset[Any]], dict[tuple[Path, ...], Index | None]]] = {}


def index(source: frozenset[Any], paths: tuple[Path, ...]) -> Index:
    """The elements of a set by the parts at some paths.

    >>> index(frozenset({(1, 2), (1, 3)}), ((1,),))
    {2: [(1, 2)], 3: [(1, 3)]}

    Cost: linear in the set the first time, constant after that.
    """
    kept = _kept(source)
    found = kept.get(paths)
    if found is None:
        found = kept[paths] = _made(source, key_of(paths))
    return found


def probe(source: frozenset[Any], paths: tuple[Path, ...], key: Any) -> Sequence[Any]:
    """The elements with this key: by a scan first, by an index from the second time.

    >>> probe(frozenset({(1, 2), (3, 4)}), ((0,),), 3)
    [(3, 4)]
    """
    kept = _kept(source)
    found = kept.get(paths)
    if found is None:
        part = key_of(paths)
        if paths not in kept:
            kept[paths] = None
            return [item for item in source if part(item) == key]
        found = kept[paths] = _made(source, part)
    return found.get(key, ())


def carry(old: frozenset[Any], after: frozenset[Any], gone: Iterable[Any], new: Iterable[Any]) -> None:
    """Hand the indexes of a set on to the updated set: (old minus gone) union new.

    `gone` are elements of the old set, `new` are not, and no element is both.  The old set loses
    its indexes.

    Cost: the change, times the number of indexes (and the elements with the same key as a lost
    one).
    """
    entry = _KEPT.get(id(old))
    if entry is None or entry[0]() is not old or after is old:
        return
    made = {paths: found for paths, found in entry[1].items() if found is not None}
    entry[1].clear()
    for paths, found in made.items():
        part = key_of(paths)
        for item in gone:
            key = part(item)
            found[key].remove(item)
            if not found[key]:
                del found[key]
        for item in new:
            found.setdefault(part(item), []).append(item)
    _kept(after).update(made)


def _kept(source: frozenset[Any]) -> dict[tuple[Path, ...], Index | None]:
    name = id(source)
    entry = _KEPT.get(name)
    if entry is not None and entry[0]() is source:
        return entry[1]
    kept: dict[tuple[Path, ...], Index | None] = {}

    def forget(gone: ref[frozenset[Any]], name: int = name) -> None:
        now = _KEPT.get(name)
        if now is not None and now[0] is gone:
            del _KEPT[name]

    _KEPT[name] = (ref(source, forget), kept)
    return kept


def _made(source: Iterable[Any], part: Callable[[Any], Any]) -> Index:
    made: Index = {}
    for item in source:
        key = part(item)
        bucket = made.get(key)
        if bucket is None:
            made[key] = [item]
        else:
            bucket.append(item)
    return made


@lru_cache(maxsize=1000)
def key_of(paths: tuple[Path, ...]) -> Callable[[Any], Any]:
    """A function that picks the parts at some paths: one part, or a tuple of them.

    >>> key_of(((0,), (1, 0)))((1, (2, 3)))
    (1, 2)
    """
    if all(len(path) == 1 for path in paths):
        return itemgetter(*(path[0] for path in paths))
    if len(paths) == 1:
        return _at(paths[0])
    parts = [_at(path) for path in paths]
    return lambda item: tuple(part(item) for part in parts)


def _at(path: Path) -> Callable[[Any], Any]:
    def part(item: Any) -> Any:
        for step in path:
            item = item[step]
        return item

    return part
