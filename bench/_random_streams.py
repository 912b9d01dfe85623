"""Random rules with facts and streams that are hostile to them, for `promise.py --random`.

A rule joins two to six atoms, some of one relation, with wildcards, constants, hidden variables, a
negation, a comparison, or an aggregate around it.  Facts are *fans*: in each group of rows some
columns have one of a few hubs, and the others count through partners, of which atoms mostly have
none in common.  Rows of hubs are then toggled, and partners come and go.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle

from attrs import frozen

Row = tuple[int, ...]
Facts = dict[str, list[Row]]
Update = tuple[str, Row]  # a fact that is toggled
Stream = Iterator[Update]
VARIABLES = "abcdefg"


@frozen
class Case:
    """A stream: rules, the facts of a size, and the facts that are then toggled, without end."""

    name: str
    rules: str
    facts: Callable[[int], Facts]
    stream: Callable[[int], Stream]
    batch: int = 1


@frozen
class Joined:
    """An atom: its relation, its variables, and a wildcard or a constant as its last column."""

    relation: str
    variables: tuple[str, ...]
    last: str = ""

    def __str__(self) -> str:
        return f"{self.relation}({', '.join([*self.variables, *filter(None, [self.last])])})"

    def row(self, values: list[int]) -> Row:
        return (*values, *({"_": (0,), "7": (7,)}.get(self.last, ())))


@frozen
class Fan:
    """Rows of an atom: where `partners` holds, columns count; else they have one of some hubs."""

    atom: Joined
    partners: tuple[bool, ...]
    hubs: int
    offset: int

    def rows(self, number: int) -> Iterator[Row]:
        for n in range(number):
            yield self.atom.row([10 + 16 * n + self.offset if p else n % self.hubs for p in self.partners])


def random_case(seed: int) -> Case | None:
    """A case; None where no fact would be hostile."""
    draw = random.Random(seed)
    atoms = _atoms(draw)
    fans = [
        Fan(atom, partners, draw.choice([1, 1, 1, 2, 10]), number * 2 + draw.randrange(2))
        for number, atom in enumerate(atoms)
        for _ in range(draw.choice([0, 1, 1, 2]))
        for partners in [tuple(draw.random() < 0.5 for _ in atom.variables)]
        if any(partners)
    ]
    if not fans:
        return None
    apart = draw.random() < 0.8
    if not apart:
        fans = [Fan(fan.atom, fan.partners, fan.hubs, 0) for fan in fans]
    rule, others = _rule(draw, atoms)

    def facts(size: int) -> Facts:
        names = [*(atom.relation for atom in atoms), *others]
        found: dict[str, set[Row]] = {name: set() for name in names}
        for fan in fans:
            found[fan.atom.relation].update(fan.rows(max(4, size // len(fans))))
        if "dom" in found:
            found["dom"].add((0,))
        return {name: sorted(rows) for name, rows in found.items()}

    toggled = draw.sample(atoms, draw.choice([1, 1, 2, len(atoms)]) if len(atoms) > 1 else 1)
    manner = draw.choice(["toggled", "rare", "mixed with partners", "LIFO", "partners"])
    batch = draw.choice([1, 1, 1, 1, 10])
    name = f"{seed}, {manner}{', in batches' if batch > 1 else ''}: {rule}"
    return Case(name, rule, facts, lambda size: _stream(manner, atoms, toggled, facts(size)), batch)


def _atoms(draw: random.Random) -> list[Joined]:
    number = draw.choice([2, 3, 3, 3, 4, 4, 4, 5, 5, 6])
    names = VARIABLES[: draw.randint(2, min(7, number + 2))]
    again, last = draw.random() < 0.25, draw.choice(["", "", "", "", "_", "7"])
    atoms: list[Joined] = []
    seen: set[str] = set()
    while len(atoms) < number:
        own = again and draw.random() < 0.7
        variables = tuple(draw.sample(names, 2 if own else min(len(names), draw.choice([1, 2, 2, 2, 2, 3]))))
        if seen and seen.isdisjoint(variables):
            continue
        seen.update(variables)
        plain = own or draw.random() < 0.5
        atoms.append(Joined("e" if own else f"r{len(atoms)}", variables, "" if plain else last))
    return atoms


def _rule(draw: random.Random, atoms: list[Joined]) -> tuple[str, list[str]]:
    """The text of a rule, and its relations that are not joined."""
    seen = sorted({v for atom in atoms for v in atom.variables})
    body, others = ", ".join(map(str, atoms)), []
    above = draw.random()
    if above < 0.1:
        body, others = f"{body}, !neg({draw.choice(seen)})", ["neg"]
    elif above < 0.2 and len(seen) > 1:
        body = f"{body}, {' != '.join(draw.sample(seen, 2))}"
    form = draw.random()
    if form < 0.25:
        key, target = draw.choice(seen), draw.choice(seen)
        op = draw.choice(["count", f"sum {target}", f"max {target}"])
        if draw.random() < 0.5 and not op.startswith("max"):
            return f"q(n) :- n = {op} : {{ {body} }}.", others
        return f"q({key}, n) :- dom({key}), n = {op} : {{ {body} }}.", [*others, "dom"]
    head = seen if form < 0.65 else sorted(draw.sample(seen, draw.randint(1, len(seen))))
    return f"q({', '.join(head)}) :- {body}.", others


def _stream(manner: str, atoms: list[Joined], toggled: list[Joined], facts: Facts) -> Stream:
    draw = random.Random(3)
    hot = [(atom.relation, atom.row([0] * len(atom.variables))) for atom in toggled]
    hot += [(atom.relation, atom.row([draw.choice([0, 0, 1]) for _ in atom.variables])) for atom in toggled]
    cold = [
        (atom.relation, atom.row([-1 - draw.randrange(50) for _ in atom.variables]))
        for atom in atoms
        for _ in range(20)
    ]
    partners = [(name, row) for name, rows in facts.items() for row in draw.sample(rows, min(len(rows), 50))]
    match manner:
        case "toggled":
            yield from cycle(hot)
        case "LIFO":
            yield from cycle([*hot, *reversed(hot)])
        case "rare":
            while True:
                yield draw.choice(hot if draw.random() < 0.15 else cold)
        case "partners":
            while True:
                yield draw.choice(partners)
        case _:
            while True:
                yield draw.choice(hot if draw.random() < 0.7 else partners)
