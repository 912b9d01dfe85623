"""The positive join of a rule body, as a hypergraph: what its class and its widths depend on.

The paper speaks of full conjunctive queries: atoms over variables, nothing else.  A rule body has
more.  Constants and repeated variables are selections on one atom, so the atom keeps its distinct
variables.  Equal variables are merged.  Each occurrence of a relation is an atom of its own.
Negation, comparisons, arithmetic and aggregates stand above the join and do not count.

Source: Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024, Section 2.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from everlog.core.program import Atom, Comparison, Rule, Variable, variables_of, written_body


@frozen
class QueryAtom:
    """One atom: its relation, and its distinct variables in the order of their columns.

    `shown` is its text, where that is another.
    """

    relation: str
    variables: tuple[str, ...]
    shown: str = ""

    def __str__(self) -> str:
        return self.shown or f"{self.relation}({', '.join(self.variables)})"


@frozen
class Query:
    """A conjunction of atoms, and its free variables: those that the rule's head shows.

    >>> print(Query.of("R(A, B)", "S(B, C)", free="AC"))
    Q(A, C) = R(A, B), S(B, C)
    """

    atoms: tuple[QueryAtom, ...]
    free: frozenset[str]

    @staticmethod
    def of(*atoms: str, free: Iterable[str] | None = None) -> Query:
        """A query from text, for tests and examples; without `free` it is full."""
        read = []
        for text in atoms:
            relation, _, rest = text.rstrip(" )").partition("(")
            read.append(QueryAtom(relation.strip(), tuple(v.strip() for v in rest.split(",") if v.strip())))
        query = Query(tuple(read), frozenset())
        return Query(query.atoms, frozenset(query.variables if free is None else free))

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order in which they occur."""
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @property
    def full(self) -> Query:
        """The same join with every variable free."""
        return Query(self.atoms, frozenset(self.variables))

    def __str__(self) -> str:
        shown = ", ".join(v for v in self.variables if v in self.free)
        return f"Q({shown}) = {', '.join(map(str, self.atoms))}"


def query_of(rule: Rule) -> Query:
    """The positive join of a rule body, in the order of the body.

    >>> x, y, z = map(Variable, "xyz")
    >>> body = (Atom("e", (x, y)), Atom("e", (y, z)), Atom("f", (z, z)))
    >>> print(query_of(Rule(Atom("q", (x,)), body)))
    Q(x) = e(x, y), e(y, z), f(z)
    """
    merged = merged_variables(rule)
    atoms = []
    for literal in written_body(rule.body):
        if isinstance(literal, Atom):
            names = [merged.get(a.name, a.name) for a in literal.args if isinstance(a, Variable)]
            atoms.append(QueryAtom(literal.relation, tuple(dict.fromkeys(names))))
    shown = {merged.get(v.name, v.name) for arg in rule.head.args for v in variables_of(arg)}
    inside = {v for atom in atoms for v in atom.variables}
    return Query(tuple(atoms), frozenset(shown & inside))


def merged_variables(rule: Rule) -> dict[str, str]:
    """Variables that an equality of the body makes equal to another one, with its name."""
    merged: dict[str, str] = {}

    def found(name: str) -> str:
        while name in merged:
            name = merged[name]
        return name

    for literal in rule.body:
        match literal:
            case Comparison("=", Variable(left), Variable(right)) if found(left) != found(right):
                merged[found(right)] = found(left)
            case _:
                pass
    return {name: found(name) for name in merged}
