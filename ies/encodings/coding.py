"""A system whose auxiliary relations are stored encoded.

For a relation R that is stored as R', with q(p(R)) = R, an update binds R = q(R') and then computes
as before:  f(q(R')) for the answer, p(f(q(R'))) for R' itself.  The terms of the original system
need no change, because R is bound by its own name.  Encodings number elements by rank, so the
system also maintains a linear order on the constants of every named base type that needs one. Each
update first appends the constants of its tuple.  At the end it drops the constants that are not in
the input, the answer, an auxiliary relation, or the text of the system.

Source: Libkin and Wong, Proposition 8, the proof of Theorem 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from attrs import evolve, frozen

from everlog.dsl.diagnostics import Report
from everlog.dsl.source import Source
from everlog.ies.encodings.orders import PLAIN, Names, Ordering, appended, chain, constants_in, restricted, united
from everlog.ies.nrc.check import check
from everlog.ies.nrc.terms import (
    Bind,
    Const,
    Empty,
    If,
    Let,
    Minus,
    Parts,
    Pattern,
    Project,
    Single,
    Term,
    Tuple,
    Union,
    Var,
)
from everlog.ies.nrc.types import Base, Product, SetOf, Type, base_types
from everlog.ies.nrc.walk import everywhere, finite_set, names
from everlog.ies.system import Becomes, Change, Differs, Example, Stored, System, Update
from everlog.ies.validation import definitions_of, make, typed_terms


@frozen
class Coded:
    """How one auxiliary relation is stored: in which relations, and by which terms.

    `encode` takes a variable that holds the relation and gives the value of each relation that
    stores it; `shared` is their common part, bound to the variable that `encode` then gets in its
    place.
    """

    relation: Stored
    stored: tuple[Stored, ...]
    decode: Term
    encode: Callable[[Term], Mapping[str, Term]]
    shared: Callable[[Term], Term] | None = None


@frozen
class Note:
    """The description of an encoded system, beside that of the original."""

    said: str
    theorem: str
    growth: str
    cost: str


Codes = Callable[[System, Names, Ordering], Sequence[Coded]]


def coded_system(system: System, of: Iterable[Stored], codes: Codes, prefix: str, note: Note) -> System:
    """The system with some auxiliary relations encoded; `codes` gives the encodings."""
    return _Coder(system, tuple(of), codes).system(prefix, note)


class _Coder:
    def __init__(self, system: System, of: tuple[Stored, ...], codes: Codes) -> None:
        self.original = system
        self.names = Names(_names_in(system))
        self.types = {stored.name: stored.type for stored in system.stored}
        needed = {base.name for stored in of for base in base_types(stored.type)} - PLAIN
        bases = sorted(needed)
        self.kept = {base: self.names.new(f"upto_{base}") for base in bases}  # relations with the orders
        self.orders = {base: self.names.new(f"order_{base}") for base in bases}  # and their extended values
        self.constants = {base: _constants_in(system, base) for base in bases}
        self.ordering = Ordering(self.orders, self.names)
        self.coded = {code.relation.name: code for code in codes(system, self.names, self.ordering)}
        self.active = {base: self.names.new(f"active_{base}") for base in bases}
        self.next = {stored.name: self.names.new(f"next_{stored.name}") for stored in system.stored}
        self.gone = {stored.name: self.names.new(f"gone_{stored.name}") for stored in system.stored}
        self.new = {stored.name: self.names.new(f"new_{stored.name}") for stored in system.stored}
        self.shared = {name: self.names.new(f"coded_{name}") for name in self.coded}
        self.old = {stored.name: self.names.new(f"old_{stored.name}") for stored in system.stored}
        self.row = self.names.new("row")

    def system(self, prefix: str, note: Note) -> System:
        original = self.original
        auxiliaries: list[Stored] = []
        for stored in original.auxiliaries:
            auxiliaries += self.coded[stored.name].stored if stored.name in self.coded else [stored]
        for base, name in self.kept.items():
            pair = SetOf(Product((Base(base), Base(base))))
            meaning = f"a linear order on the constants of type {base}, with its diagonal"
            auxiliaries.append(Stored(name, pair, meaning))
        there = {stored.name for stored in (*original.inputs, original.answer, *auxiliaries)}
        return make(
            evolve(
                original,
                name=f"{prefix}_{original.name}",
                title=f"{original.title}, {note.said}",
                theorem=f"{original.theorem}; {note.theorem}",
                growth=f"{original.growth}; {note.growth}",
                cost=f"{original.cost}; and {note.cost}",
                auxiliaries=tuple(auxiliaries),
                initial=self._initial(),
                updates={key: self._update(update) for key, update in original.updates.items()},
                definitions=(*original.definitions, *self.ordering.definitions),
                examples=tuple(_about(example, there) for example in original.examples),
            )
        )

    # ── initial values ───────────────────────────────────────────────────────────────────────

    def _initial(self) -> dict[str, Term]:
        initial = {name: term for name, term in self.original.initial.items() if name not in self.coded}
        for name, code in self.coded.items():
            empty = Empty(self.types[name].element)
            value = self.original.initial.get(name, empty)
            for stored, term in self._encoded(code, Var(self.next[name])).items():
                body: Term = Let(Bind(self.next[name]), value, term)
                for base, order in self.orders.items():
                    body = Let(Bind(order), self._start(base), body)
                initial[stored] = body
        for base, kept in self.kept.items():
            initial[kept] = self._start(base)
        return initial

    def _start(self, base: str) -> Term:
        constants = self.constants[base]
        return chain(constants) if constants else Empty(Product((Base(base), Base(base))))

    def _encoded(self, code: Coded, value: Var) -> dict[str, Term]:
        if code.shared is None:
            return dict(code.encode(value))
        shared = Var(self.shared[code.relation.name])
        return {
            name: Let(Bind(shared.name), code.shared(value), term) for name, term in code.encode(shared).items()
        }

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def _update(self, update: Update) -> Update:
        row = Var(self.row)
        hidden = {name for pattern, _ in ((update.tuple_, row), *update.bindings) for name in names(pattern)}
        bindings: list[tuple[Pattern, Term]] = []
        for base, order in self.orders.items():
            bindings.append((Bind(order), Var(self.kept[base])))
            for leaf, constant in leaf_terms(self.types[update.relation].element, row):
                if leaf.name == base:
                    bindings.append((Bind(order), appended(Var(order), constant)))
        bindings += [(Bind(name), code.decode) for name, code in self.coded.items()]
        old = {name: self.old[name] if name in hidden else name for name in self.types}
        bindings += [(Bind(alias), Var(name)) for name, alias in old.items() if alias != name]
        bindings += [(update.tuple_, row), *update.bindings]
        changes: dict[str, Change] = {}
        for name, change in update.changes.items():
            bindings += self._next(name, old[name], change)
            code = self.coded.get(name)
            if code is None:
                changes[name] = self._same(name, change)
                continue
            value = Var(self.next[name])
            if code.shared is not None:
                bindings.append((Bind(self.shared[name]), code.shared(value)))
                value = Var(self.shared[name])
            changes |= {stored: Becomes(term) for stored, term in code.encode(value).items()}
        for base, kept in self.kept.items():
            bindings.append((Bind(self.active[base]), self._active(base, update, old, row)))
            changes[kept] = Becomes(restricted(Var(self.orders[base]), Var(self.active[base])))
        return evolve(update, tuple_=Bind(self.row), bindings=tuple(bindings), changes=changes)

    def _next(self, name: str, old: str, change: Change) -> list[tuple[Pattern, Term]]:
        """The next value of a relation, under a name.

        The encoding and the collection of its constants use the name.
        """
        element = self.types[name].element
        match change:
            case Becomes(value):
                return [(Bind(self.next[name]), _typed(value, element))]
            case Differs(gone, new):
                found: list[tuple[Pattern, Term]] = []
                after: Term = Var(old)
                if gone is not None:
                    found.append((Bind(self.gone[name]), _typed(gone, element)))
                    after = Minus(after, Var(self.gone[name]))
                if new is not None:
                    found.append((Bind(self.new[name]), _typed(new, element)))
                    after = Union(after, Var(self.new[name]))
                return [*found, (Bind(self.next[name]), after)]

    def _same(self, name: str, change: Change) -> Change:
        """The change of an unencoded relation, by the names that `_next` gave."""
        match change:
            case Becomes():
                return Becomes(Var(self.next[name]))
            case Differs(gone, new):
                return Differs(gone and Var(self.gone[name]), new and Var(self.new[name]))

    def _active(self, base: str, update: Update, old: Mapping[str, str], row: Term) -> Term:
        """The constants of a base type after the update."""
        found: list[Term] = [finite_set(self.constants[base])] if self.constants[base] else []
        for stored in self.original.stored:
            value: Term = Var(self.next[stored.name] if stored.name in update.changes else old[stored.name])
            if stored.name == update.relation:
                value = (Union if update.event == "insert" else Minus)(value, Single(row))
            constants = constants_in(base, stored.type, value)
            if constants is not None:
                found.append(constants)
        active = united(found)
        assert active is not None, "an order is kept on a type that an auxiliary relation has"
        return active


# ── small things ─────────────────────────────────────────────────────────────────────────────────


def leaf_terms(type_: Type, term: Term) -> list[tuple[Base, Term]]:
    """The base types of a flat type, left to right, each with the term of its part."""
    match type_:
        case Base():
            return [(type_, term)]
        case Product(parts):
            return [leaf for n, part in enumerate(parts, 1) for leaf in leaf_terms(part, Project(term, n))]
        case SetOf():
            raise AssertionError(f"{type_} is not flat")


def tuple_of(parts: Sequence[Term]) -> Term:
    """A tuple of terms; a single term stays itself."""
    return parts[0] if len(parts) == 1 else Tuple(tuple(parts))


def pattern_of(parts: Sequence[str]) -> Pattern:
    """A pattern of variables; a single variable stays itself."""
    return Bind(parts[0]) if len(parts) == 1 else Parts(tuple(map(Bind, parts)))


def _typed(term: Term, element: Type) -> Term:
    """A set with its type stated: bound by a name, `{}` has no context to infer it."""
    if any(isinstance(node, Empty) and node.element is None for node in everywhere(term)):
        return If(Const(True), term, Empty(element))
    return term


def _terms_of(system: System) -> Iterator[Term]:
    yield from system.initial.values()
    yield from (definition.body for definition in system.definitions)
    for update in system.updates.values():
        yield from (term for _, term in update.bindings)
        yield from (requirement.condition for requirement in update.requirements)
        for change in update.changes.values():
            match change:
                case Becomes(value):
                    yield value
                case Differs(gone, new):
                    yield from (term for term in (gone, new) if term is not None)


def _constants_in(system: System, base: str) -> list[Const]:
    """The constants of a named base type in the text of a system."""
    definitions = definitions_of(system)
    report = Report(Source("", system.name))
    found: set[bool | int | Fraction | str] = set()
    for term, scope, want in typed_terms(system, report):
        checked = check(term, scope, definitions, report, want)
        assert checked is not None, report.text()
        found |= {value for type_, value in checked.constants if type_ == Base(base)}
    return [Const(value) for value in sorted(found, key=lambda value: (isinstance(value, str), value))]


def _names_in(system: System) -> set[str]:
    """Every name that a system uses, bound or free."""
    found = {stored.name for stored in system.stored} | set(definitions_of(system))
    for definition in system.definitions:
        found |= set(definition.parameters)
    for update in system.updates.values():
        found |= names(update.tuple_)
        found |= {name for pattern, _ in update.bindings for name in names(pattern)}
    for term in _terms_of(system):
        for node in everywhere(term):
            found |= {node.name} if isinstance(node, Var) else set()
    return found


def _about(example: Example, there: set[str]) -> Example:
    """An example without its expectations about relations that no longer exist."""
    steps = [(step, {name: term for name, term in said.items() if name in there}) for step, said in example.steps]
    return evolve(example, steps=tuple(steps))
