"""The rest of a query when a row of one atom is given, as a tree of bags.

There is one tree for each order σ of the atoms by age, from the oldest generation to the updated
atom.  An optimal decomposition of Q̂σ has a bag with all of Z1 … Zk and the updated atom's
variables: the root here.  The bags below it have prefixes Z1 … Zd, for a Z that is gone does not
come back.  So a bag depends only on the generations of the d oldest atoms, and stays valid as long
as the youngest of *those* does.

Given the values of the variables that a bag shares with its parent, all its other variables stand
in those d atoms: if a younger atom had one of them, that atom's bag would lie above, and the
variable would be shared.  So the rows of a bag come from exact generations alone; younger atoms
only decide which values are asked for.

Source: Definition 3.3 and Section 7.1 of Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import define, field

from everlog.core.classify.decompositions import Decomposition
from everlog.core.classify.multivariate import component
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width
from everlog.core.ir.python_text import key_text, tuple_text
from everlog.core.joins.code import Code, local
from everlog.core.joins.generic_join import binding_order, loop_over_common, write_offers
from everlog.core.joins.tries import row_picker
from everlog.core.program import Row

Access = tuple[int, tuple[str, ...], str]  # an index: the position of its atom in σ, its key, the next variable


@define(eq=False)
class ResidualBag:
    """One bag below (or at) the root.

    `given` are the variables shared with the parent, `found` the others; `depth` is how many atoms
    of σ it depends on.  `search` finds rows of `found` from values of `given`, over the indexes of
    `accesses`.
    """

    given: tuple[str, ...]
    found: tuple[str, ...]
    depth: int
    homes: tuple[
        tuple[int, Callable[[Row], Row]], ...
    ]  # atoms that must hold: position in σ, row from given + found
    accesses: tuple[Access, ...] = ()
    search: Callable[..., Iterator[Row]] = field(init=False)
    children: list[tuple[Callable[[Row], Row], ResidualBag]] = field(factory=list)
    steps: list[int] = field(factory=lambda: [0])


@define(eq=False)
class Residual:
    """The tree of bags for one order of the atoms, which ends with the updated one."""

    order: tuple[int, ...]
    root: ResidualBag
    bags: list[ResidualBag]  # parents first
    answer: Callable[..., Row]  # from the rows of all bags, and the given row, to an answer over `kept`


def residual(query: Query, order: tuple[int, ...], kept: Sequence[str], count: list[int]) -> Residual:
    """The residual tree of the query for an update of the last atom of the order."""
    extended = component(query, order)
    decomposition = fractional_hypertree_width(extended).decomposition
    times = [v for v in extended.variables if v not in query.variables]  # Z1 … Zk
    top = decomposition.home(extended)[-1]
    neighbours = _neighbours(decomposition)
    schemas = [query.atoms[i].variables for i in order]
    placed: set[int] = set()
    bags: list[ResidualBag] = []

    def make(number: int, parent: int | None, above: frozenset[str]) -> ResidualBag:
        bag = decomposition.bags[number]
        values = [v for v in query.variables if v in bag]
        depth = max((n for n, z in enumerate(times[:-1], 1) if z in bag), default=0)
        given = tuple(v for v in values if v in above)
        found = tuple(v for v in values if v not in above)
        homes = []
        for position, schema in enumerate(schemas[:-1]):
            if position < depth and position not in placed and set(schema) <= set(values):
                placed.add(position)
                homes.append((position, row_picker((*given, *found), schema)))
        made = ResidualBag(given, found, depth, tuple(homes), steps=count)
        bags.append(made)
        for other in neighbours[number]:
            if other != parent:
                child = make(other, number, frozenset(values))
                if child.found or child.homes or child.children:
                    made.children.append((row_picker((*given, *found), child.given), child))
                else:
                    bags.remove(child)
        return made

    root = make(top, None, frozenset(schemas[-1]))
    assert len(placed) == len(order) - 1, "every other atom is at home in some bag"
    for bag in bags:
        _write(bag, [schemas[p] for p in range(bag.depth)])
    return Residual(order, root, bags, _answer(bags, schemas[-1], kept))


def _neighbours(decomposition: Decomposition) -> list[list[int]]:
    """The neighbours of each bag; several trees are joined at their roots."""
    out: list[list[int]] = [[] for _ in decomposition.bags]
    for child, parent in enumerate(decomposition.parents):
        if parent is None and child == 0:
            continue
        out[child].append(parent or 0)
        out[parent or 0].append(child)
    return out


def _write(bag: ResidualBag, schemas: Sequence[tuple[str, ...]]) -> None:
    """Write the search of a bag: a generic join over generations, whose indexes are arguments."""
    accesses: list[Access] = []
    code = Code(_count=bag.steps)
    lines: list[tuple[str, list[str]]] = []
    bound = set(bag.given)
    for variable in binding_order(schemas, bag.given, bag.found):
        offers = []
        for position, schema in enumerate(schemas):
            if variable in schema:
                key = tuple(v for v in schema if v in bound)
                accesses.append((position, key, variable))
                offers.append(f"_i{len(accesses) - 1}.get({key_text(map(local, key))})")
        lines.append((variable, offers))
        bound.add(variable)
    arguments = [*map(local, bag.given), *(f"_i{n}" for n in range(len(accesses)))]
    code.define("search", ", ".join(arguments))
    for variable, offers in lines:
        loop_over_common(code, variable, write_offers(code, variable, offers, counting=True))
    code.line(f"yield {tuple_text(map(local, bag.found))}")
    bag.accesses = tuple(accesses)
    bag.search = code.compiled()["search"]


def _answer(bags: Sequence[ResidualBag], schema: tuple[str, ...], kept: Sequence[str]) -> Callable[..., Row]:
    """A function from the given row and a row of each bag to an answer."""
    places = {v: f"row[{n}]" for n, v in enumerate(schema)}
    for number, bag in enumerate(bags):
        for column, v in enumerate(bag.found):
            places.setdefault(v, f"rows[{number}][{column}]")
    answer: Callable[..., Row] = eval(f"lambda row, rows: {tuple_text(places[v] for v in kept)}")  # our own text
    return answer
