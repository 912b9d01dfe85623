"""Random queries with streams of updates, and the changes that a view reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from everlog.core.classify.query import Query, QueryAtom
from everlog.core.joins.view import JoinView
from everlog.core.program import Row

VARIABLES = "abcde"
Step = tuple[int, Row, bool]


@st.composite
def queries(draw: st.DrawFn, most_atoms: int = 5) -> Query:
    """2 to 5 atoms of arity 0 to 4; some variables are free."""
    schemas = st.lists(st.sampled_from(VARIABLES), max_size=4, unique=True)
    atoms = [QueryAtom(f"R{n}", tuple(draw(schemas))) for n in range(draw(st.integers(2, most_atoms)))]
    query = Query(tuple(atoms), frozenset())
    return Query(query.atoms, frozenset(draw(st.sets(st.sampled_from(VARIABLES))) & set(query.variables)))


@st.composite
def cases(draw: st.DrawFn, most_atoms: int = 5, most_steps: int = 25) -> tuple[Query, list[Step]]:
    """A query with a stream; rows have few values, so that they join and repeat."""
    query = draw(queries(most_atoms))
    value = st.integers(0, draw(st.integers(1, 3)))
    stream: list[Step] = []
    for _ in range(draw(st.integers(1, most_steps))):
        if stream and draw(st.integers(0, 3)) == 0:  # undo, or once more
            atom, row, _ = draw(st.sampled_from(stream[-4:]))
            stream.append((atom, row, draw(st.booleans())))
            continue
        atom = draw(st.integers(0, len(query.atoms) - 1))
        row = tuple(draw(value) for _ in query.atoms[atom].variables)
        stream.append((atom, row, draw(st.integers(0, 3)) > 0))
    return query, stream


def told(view: JoinView, atom: int, row: Row, insert: bool) -> Counter[Row]:
    """Apply one update; the change of the answers, counted by weight."""
    change: Counter[Row] = Counter()
    if insert:
        if view.insert(atom, row):
            for answer, weight in view.delta(atom, row):
                change[answer] += weight
    elif row in view.rows(atom):
        for answer, weight in view.delta(atom, row):
            change[answer] -= weight
        view.delete(atom, row)
    return change


def joined(query: Query, relations: Sequence[Iterable[Row]]) -> set[Row]:
    """The answers of a query over all its variables, by nested loops: the oracle of all views."""
    found: list[dict[str, object]] = [{}]
    for atom, rows in zip(query.atoms, relations, strict=True):
        rows = list(rows)
        found = [
            {**binding, **dict(zip(atom.variables, row, strict=True))}
            for binding in found
            for row in rows
            if all(binding.get(v, x) == x for v, x in zip(atom.variables, row, strict=True))
        ]
    return {tuple(binding[v] for v in query.variables) for binding in found}


def states(query: Query, stream: list[Step]) -> Iterator[tuple[Step, set[Row]]]:
    relations: list[set[Row]] = [set() for _ in query.atoms]
    for atom, row, insert in stream:
        (relations[atom].add if insert else relations[atom].discard)(row)
        yield (atom, row, insert), joined(query, relations)
