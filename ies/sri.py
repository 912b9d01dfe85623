"""Structural recursion sri(f, i) as an incremental evaluation system.

    sri(f, i)({}) = i        sri(f, i)({x} ∪ Y) = f(x, sri(f, i)(Y))

The value for a set is not enough to undo an element, so the system stores the value for *every*
subset: an auxiliary relation `subsets` holds (X, O) for each O ⊆ I, where X = sri(f, i)(O).  An
insert of x adds (f(x, X), O ∪ {x}) for each pair, a delete of x drops the pairs whose O has x, and
the pair of the whole input gives the answer.

The syntax in a file:

    sri x, X => f from i      -- x is the element, X the value for the others
    require c else "reason"   -- any number: which x may join; X is the value for the whole input
    shows X => g              -- a last step, where X is not yet the answer (or is not flat)

Theorem 5 has no `shows`: there X is the answer.  A last step costs no more to maintain, and lets X
be nested. f must satisfy f(x, f(x, y)) = f(x, y) and f(x, f(y, z)) = f(y, f(x, z)) on the values
that the recursion reaches: `law_broken` searches for counterexamples, and the tests call it for
each file.

Source: Libkin and Wong, Theorem 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from attrs import evolve

from everlog.dsl.diagnostics import Report
from everlog.ies.nrc.check import type_of
from everlog.ies.nrc.compiled_terms import compile_term
from everlog.ies.nrc.terms import (
    Bind,
    Comprehension,
    Definition,
    Empty,
    Equal,
    ForAll,
    Generator,
    In,
    Let,
    Minus,
    Parts,
    Pattern,
    Single,
    Tuple,
    Union,
    Var,
)
from everlog.ies.nrc.types import BOOL, Product, SetOf, Value
from everlog.ies.system import Becomes, Differs, Requirement, SriForm, Stored, System, Update

SUBSETS = "subsets"


def expanded(system: System, definitions: Mapping[str, Definition], report: Report) -> System:
    """The system of Theorem 5 for a structural recursion; errors go to `report`."""
    form = system.sri
    assert form is not None
    if len(system.inputs) != 1:
        message = f"structural recursion goes over one input, and {system.name} has {len(system.inputs)}"
        report.error("NRC056", message, next(iter(system.inputs[1:]), None))
        return system
    input_ = system.inputs[0]
    start = type_of(form.start, {}, definitions, report)
    if start is None:
        return system
    scope = {form.element: input_.type.element, form.so_far: start}
    type_of(form.step, scope, definitions, report, start)
    for requirement in form.requirements:
        type_of(requirement.condition, scope, definitions, report, BOOL)
    shown, last = form.shows or (form.so_far, Var(form.so_far, pos=form.step.pos, end=form.step.end))
    type_of(last, {shown: start}, definitions, report, system.answer.type)
    subsets = Stored(
        SUBSETS,
        SetOf(Product((start, input_.type))),
        f"(X, O): X is the value of the recursion for O, for each subset O of {input_.name}",
    )
    if SUBSETS in (input_.name, system.answer.name):
        message = f"`{SUBSETS}` is the auxiliary relation of the recursion; rename the other relation"
        report.error("NRC050", message, input_ if input_.name == SUBSETS else system.answer)
    insert, delete = _updates(form, input_.name, system.answer.name)
    return evolve(
        system,
        sri=None,
        auxiliaries=(subsets,),
        initial={
            SUBSETS: Single(Tuple((form.start, Empty()))),
            system.answer.name: Let(Bind(shown), form.start, last),
        },
        updates={("insert", input_.name): insert, ("delete", input_.name): delete},
    )


def _updates(form: SriForm, input_: str, answer: str) -> tuple[Update, Update]:
    """The functions of the proof of Theorem 5, for every update.

    The laws of f make them correct.
    """
    x, X = form.element, form.so_far
    part, u = _fresh("O", x, X), _fresh("u", x, X)
    whole = _fresh("whole", x, X, input_)  # the input after the update
    after = _fresh("after", x, X, input_)  # the auxiliary relation after the update
    gone = _fresh("gone", x, X, input_)
    pair: Pattern = Parts((Bind(X), Bind(part)))
    pairs = Generator(pair, Var(SUBSETS))
    element = Single(Var(x))

    # {u | (X, O) in after, O = whole, u in g(X)}
    shown, last = form.shows or (X, Var(X))
    value = last if shown == X else Let(Bind(shown), Var(X), last)
    is_whole = Equal(Var(part), Var(whole))
    read = Comprehension(Var(u), (Generator(pair, Var(after)), is_whole, Generator(Bind(u), value)))

    more = Comprehension(Tuple((form.step, Union(Var(part), element))), (pairs,))
    fewer = Comprehension(Tuple((Var(X), Var(part))), (pairs, In(Var(x), Var(part))))
    whole_so_far = (pairs, Equal(Var(part), Var(input_)))
    requirements = tuple(Requirement(ForAll(r.condition, whole_so_far), r.otherwise) for r in form.requirements)
    insert = Update(
        "insert",
        input_,
        Bind(x),
        ((Bind(whole), Union(Var(input_), element)), (Bind(after), Union(Var(SUBSETS), more))),
        requirements,
        {SUBSETS: Becomes(Var(after)), answer: Becomes(read)},
    )
    delete = Update(
        "delete",
        input_,
        Bind(x),
        (
            (Bind(whole), Minus(Var(input_), element)),
            (Bind(gone), fewer),
            (Bind(after), Minus(Var(SUBSETS), Var(gone))),
        ),
        (),
        {SUBSETS: Differs(gone=Var(gone)), answer: Becomes(read)},
    )
    return insert, delete


def _fresh(name: str, *taken: str) -> str:
    while name in taken or name in (SUBSETS,):
        name += "'"
    return name


def law_broken(
    form: SriForm, definitions: Mapping[str, Definition], elements: Sequence[Value]
) -> tuple[str, tuple[Value, ...]] | None:
    """Elements that break one of the two laws of f, or None.

    The laws are f(x, f(x, y)) = f(x, y) and f(x, f(y, z)) = f(y, f(x, z)).  y and z range over the
    values of the recursion for the other elements, in the order given. Cost: about n^2 2^n calls of
    f.
    """
    step = compile_term(form.step, (form.element, form.so_far), definitions)
    start = compile_term(form.start, (), definitions)()
    for size in range(len(elements) + 1):
        for others in combinations(elements, size):
            value = start
            for element in others:
                value = step(element, value)
            for x in elements:
                once = step(x, value)
                if step(x, once) != once:
                    return "f(x, f(x, y)) = f(x, y)", (x, *others)
                for y in elements:
                    if step(y, once) != step(x, step(y, value)):
                        return "f(x, f(y, z)) = f(y, f(x, z))", (x, y, *others)
    return None
