"""Which relation needs which: units of relations, in the order of evaluation.

Relations that need each other are computed together; all others one after the other.  The units
are the strongly connected components of the graph head relation → body relation.  Tarjan's
algorithm finds a component after all that it reaches, so it finds them in evaluation order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from everlog.core.program import Atom, Program, Rule, Subsumption, atoms_of, draws_numbers
from everlog.core.program.strong import strong_components


@frozen
class Edge:
    """`head` needs `body`: its `use` is `positive`, `negative` or `aggregate`."""

    head: str
    body: str
    use: str


@frozen
class Unit:
    """Relations that are computed together; rules and subsumptions in program order."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool
    subsumptions: tuple[Subsumption, ...]

    @property
    def reads(self) -> set[str]:
        """The relations in the bodies of its rules and subsumptions."""
        bodies = [rule.body for rule in self.rules] + [each.body for each in self.subsumptions]
        return {atom.relation for body in bodies for atom, _ in atoms_of(body)}

    def positions(self, rule: Rule) -> list[int]:
        """Where the body of a rule has atoms of this unit."""
        return [n for n, x in enumerate(rule.body) if isinstance(x, Atom) and x.relation in self.relations]


def edges(program: Program) -> Iterator[Edge]:
    """The predicate graph: an edge per body atom.

    A subsumption's body counts as a positive use.  An auxiliary relation and the relation that it
    helps to keep change together, so each needs the other.
    """
    for name, relation in program.relations.items():
        if relation.auxiliary_of:
            yield Edge(name, relation.auxiliary_of, "positive")
            yield Edge(relation.auxiliary_of, name, "positive")
    for rule in program.rules:
        for atom, use in atoms_of(rule.body):
            yield Edge(rule.head.relation, atom.relation, use)
    for subsumption in program.subsumptions:
        for atom, _ in atoms_of(subsumption.body):
            yield Edge(subsumption.dominated.relation, atom.relation, "positive")


def units(program: Program) -> tuple[Unit, ...]:
    """Every declared relation in exactly one unit; a unit comes after those it needs.

    Otherwise units keep the order of the declarations.  Cost: linear in the program.
    """
    graph: dict[str, list[str]] = {name: [] for name in program.relations}
    for edge in edges(program):
        graph[edge.head].append(edge.body)
    groups = components(graph)
    home = {name: number for number, group in enumerate(groups) for name in group}
    rules: list[list[Rule]] = [[] for _ in groups]
    for rule in program.rules:
        rules[home[rule.head.relation]].append(rule)
    subsumptions: list[list[Subsumption]] = [[] for _ in groups]
    for subsumption in program.subsumptions:
        subsumptions[home[subsumption.dominated.relation]].append(subsumption)
    return tuple(
        Unit(tuple(group), tuple(own), _is_recursive(program, set(group), own), tuple(dominances))
        for group, own, dominances in zip(groups, rules, subsumptions, strict=True)
    )


def needed_part(program: Program) -> Program:
    """The part of a program that its `.output` and `.printsize` relations depend on.

    Where that part draws numbers, it is the whole program: the numbers depend on the order in which
    all of its relations are computed.  Cost: linear in the program.
    """
    graph: dict[str, list[str]] = {}
    for edge in edges(program):
        graph.setdefault(edge.head, []).append(edge.body)
    needed: set[str] = set()
    waiting = [directive.relation for directive in (*program.outputs, *program.printsizes)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += graph.get(name, ())
    rules = tuple(rule for rule in program.rules if rule.head.relation in needed)
    if any(map(draws_numbers, rules)):
        return program
    return evolve(
        program,
        relations={name: relation for name, relation in program.relations.items() if name in needed},
        rules=rules,
        facts={name: rows for name, rows in program.facts.items() if name in needed},
        subsumptions=tuple(s for s in program.subsumptions if s.dominated.relation in needed),
        inputs=tuple(d for d in program.inputs if d.relation in needed),
        limits={name: size for name, size in program.limits.items() if name in needed},
    )


def _is_recursive(program: Program, group: set[str], rules: list[Rule]) -> bool:
    return any(program.relations[name].equivalence for name in group) or any(
        use != "negative" and atom.relation in group for rule in rules for atom, use in atoms_of(rule.body)
    )


def components(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components, each after those it points to.

    Nodes are taken in the order of the mapping, also within a component and among successors,
    so the answer is the same when successors come as a set.

    >>> components({"even": ["odd", "zero"], "odd": ["even"], "zero": [], "one": ["zero"]})
    [['zero'], ['even', 'odd'], ['one']]

    Cost: O(nodes + edges), apart from sorting each node's successors.
    """
    ordered = _ordered(graph)
    rank = {name: number for number, name in enumerate(ordered)}
    found = strong_components(ordered, ordered.__getitem__)
    return [sorted(component, key=rank.__getitem__) for component in found]


def cycle_through(graph: Mapping[str, Iterable[str]], start: str, via: str) -> list[str]:
    """A shortest cycle through the edge start → via, as a list of nodes; [] if none.

    >>> cycle_through({"p": ["q", "r"], "q": ["r"], "r": ["p"]}, "p", "q")
    ['p', 'q', 'r', 'p']
    >>> cycle_through({"p": ["p"]}, "p", "p")
    ['p', 'p']
    """
    ordered = _ordered(graph)
    if via not in ordered.get(start, ()):
        return []
    came_from = {via: start}
    queue = deque([via])
    while queue and start not in came_from:
        node = queue.popleft()
        for successor in ordered[node]:
            if successor not in came_from:
                came_from[successor] = node
                queue.append(successor)
    if start not in came_from:
        return []
    backwards = [start, came_from[start]]
    while backwards[-1] != start:
        backwards.append(came_from[backwards[-1]])
    return backwards[::-1]


def _ordered(graph: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Every node with its distinct successors in node order; unlisted nodes have none."""
    successors = {name: set(needed) for name, needed in graph.items()}
    unlisted = set().union(*successors.values()) - successors.keys()
    names = [*successors, *sorted(unlisted)]
    rank = {name: number for number, name in enumerate(names)}
    return {name: sorted(successors.get(name, ()), key=rank.__getitem__) for name in names}
