"""Checks a system: types of all functions, names, and completeness.

A checked system can fail later only by a division by zero: each function gives a set of its
relation's type for every state of the right types.  All errors are reported at once, each at its
place if there is a text.

Source: Libkin and Wong, Section 3 (the types of the functions of F_Q).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from everlog.dsl.diagnostics import Label, Report
from everlog.dsl.source import Source
from everlog.ies.nrc.check import type_of
from everlog.ies.nrc.prelude import with_prelude
from everlog.ies.nrc.terms import Bind, Call, Definition, Parts, Pattern, Term
from everlog.ies.nrc.types import BOOL, Product, SetOf, Type, height
from everlog.ies.nrc.walk import everywhere, free_variables
from everlog.ies.sri import expanded
from everlog.ies.system import Becomes, Differs, Event, Stored, System, Update

EVENTS: tuple[Event, ...] = ("insert", "delete")


def make(system: System, report: Report | None = None) -> System:
    """The checked system.  Raises DatalogError.

    A structural recursion becomes the system of Theorem 5.
    """
    report = Report(Source("", system.name)) if report is None else report
    if system.sri is not None:
        system = expanded(system, definitions_of(system), report)
    report.raise_errors()
    _check_relations(system, report)
    report.raise_errors()
    definitions = definitions_of(system)
    for term, scope, want in typed_terms(system, report):
        if want is not None:
            type_of(term, scope, definitions, report, want)
    _check_examples(system, definitions, report)
    report.raise_errors()
    return system


def definitions_of(system: System) -> dict[str, Definition]:
    """The functions that a system's terms may call: its own, then the prelude's."""
    return with_prelude(system.definitions)


def needed(term: Term, definitions: Mapping[str, Definition]) -> frozenset[str]:
    """The variables that a term and the functions it calls take from outside."""
    found, met = free_variables(term), set[str]()
    waiting = [term]
    while waiting:
        for node in everywhere(waiting.pop()):
            if isinstance(node, Call) and node.function in definitions and node.function not in met:
                met.add(node.function)
                called = definitions[node.function]
                found |= free_variables(called.body) - set(called.parameters)
                waiting.append(called.body)
    return found


def typed_terms(system: System, report: Report) -> Iterator[tuple[Term, dict[str, Type], Type | None]]:
    """Every term of a system, with the types in its scope and its required type.

    The types of bindings are inferred on the way, so errors of bindings are reported here.  Terms
    after a wrong binding are skipped: they would only report unknown names.
    """
    types: dict[str, Type] = {stored.name: stored.type for stored in system.stored}
    definitions = definitions_of(system)
    for name, term in system.initial.items():
        if name in types:
            yield term, {}, types[name]
    for update in system.updates.values():
        if update.relation not in types:
            continue
        relation = types[update.relation]
        assert isinstance(relation, SetOf)
        scope = types | bound(update.tuple_, relation.element, report)
        for pattern, term in update.bindings:
            yield term, dict(scope), None
            found = type_of(term, scope, definitions, report)
            if found is None:
                break
            scope |= bound(pattern, found, report)
        else:
            yield from ((term, scope, want) for term, want in _last_terms(update, types))


def _last_terms(update: Update, types: Mapping[str, Type]) -> Iterator[tuple[Term, Type | None]]:
    for requirement in update.requirements:
        yield requirement.condition, BOOL
    for name, change in update.changes.items():
        match change:
            case Becomes(value):
                yield value, types.get(name)
            case Differs(gone, new):
                yield from ((term, types.get(name)) for term in (gone, new) if term is not None)


def bound(pattern: Pattern, type_: Type, report: Report) -> dict[str, Type]:
    """The types of a pattern's variables; reports a pattern that does not fit."""
    match pattern:
        case Bind(name):
            return {} if name == "_" else {name: type_}
        case Parts(parts):
            if not isinstance(type_, Product) or len(type_.parts) != len(parts):
                report.error("NRC033", f"a pattern of {len(parts)} parts does not match {type_}", pattern)
                return {}
            found: dict[str, Type] = {}
            for part, of in zip(parts, type_.parts, strict=True):
                found |= bound(part, of, report)
            return found


# ── what is checked ──────────────────────────────────────────────────────────────────────────────


def _check_relations(system: System, report: Report) -> None:
    """Check names and kinds of relations, and that each has its functions."""
    first: dict[str, Stored] = {}
    for stored in system.stored:
        same = first.setdefault(stored.name, stored)
        if same is not stored:
            labels = [Label(same.pos, same.end, "the first")] if same.pos >= 0 else []
            report.error("NRC050", f"two relations of {system.name} are called `{stored.name}`", stored, *labels)
    for stored in (*system.inputs, system.answer):
        if height(stored.type) != 1:
            what = "answer" if stored is system.answer else "input"
            hint = "only auxiliary relations may be nested; `powerset_sri` stores a nested set flat"
            message = f"the {what} `{stored.name}` must be flat, and is {stored.type}"
            report.error("NRC051", message, stored, hint=hint)
    inputs = {stored.name: stored for stored in system.inputs}
    kept = first.keys() - inputs.keys()
    for name, term in system.initial.items():
        if name not in kept:
            what = "an input, which begins empty" if name in inputs else "no relation of the system"
            report.error("NRC052", f"an initial value of `{name}`, which is {what}", term)
    for name, stored in inputs.items():
        for event in EVENTS:
            if (event, name) not in system.updates:
                preposition = "into" if event == "insert" else "from"
                message = f"{system.name} does not say what {event} does for the input `{name}`"
                report.error("NRC053", message, stored, hint=f"add `on {event} … {preposition} {name}`")
    for (event, name), update in system.updates.items():
        if (event, name) != (update.event, update.relation) or name not in inputs:
            report.error("NRC054", f"`on {event}` is for inputs, and `{name}` is none", update)
        for changed, change in update.changes.items():
            if changed not in kept:
                what = "an input, which the update changes itself" if changed in inputs else "no relation of it"
                at = change.value if isinstance(change, Becomes) else change.gone or change.new
                report.error("NRC055", f"a function for `{changed}` on {event} of `{name}`, which is {what}", at)


def _check_examples(system: System, definitions: Mapping[str, Definition], report: Report) -> None:
    """Check names and types in examples; `ies.files.mismatches` runs them."""
    types = {stored.name: stored.type for stored in system.stored}
    for example in system.examples:
        for _, expected in example.steps:
            for name, term in expected.items():
                if name in types:
                    type_of(term, {}, definitions, report, types[name])
                else:
                    report.error("NRC020", f"an example expects `{name}`, which is no relation of it", term)
