"""Terms and systems as text, with few parentheses; parsing gives them back.

A text that is too long for a line is broken at the outermost construct: before `union`, after `in`
of a `let`, at the `|` of a comprehension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import assert_never

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.walk import elements_of
from everlog.ies.system import Becomes, Differs, Example, Stored, System, Update

WIDTH = 110
# How tightly a construct binds; one that binds more loosely than its context gets parentheses.
_LOOSE, _OR, _AND, _NOT, _COMPARE, _SETS, _SUM, _PRODUCT, _UNARY, _TIGHT = range(10)


def term_text(term: t.Term, indent: int | None = None) -> str:
    """The text of a term: on one line, or broken into lines with this indent.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> term_text(parse_term("((not (x = (y)))) or ({(x) | x in (X), (x in Y)}) = {}"))
    'x != y or {x | x in X, (x in Y)} = {}'
    """
    text = _text(term, _LOOSE)
    if indent is None or indent + len(text) <= WIDTH:
        return text
    return _broken(term, indent)


def pattern_text(pattern: t.Pattern) -> str:
    match pattern:
        case t.Bind(name):
            return name
        case t.Parts(parts):
            return f"({', '.join(map(pattern_text, parts))})"


def definition_text(definition: t.Definition) -> str:
    head = f"def {definition.name}({', '.join(definition.parameters)}) ="
    body = term_text(definition.body)
    if len(head) + len(body) < WIDTH:
        return f"{head} {body}"
    return f"{head}\n  {term_text(definition.body, 2)}"


# ── on one line ──────────────────────────────────────────────────────────────────────────────────


def _text(term: t.Term, level: int) -> str:
    text, binds = _shown(term)
    return text if binds >= level else f"({text})"


def _infix(left: t.Term, sign: str, right: t.Term, level: int, first: int, second: int) -> tuple[str, int]:
    return f"{_text(left, first)} {sign} {_text(right, second)}", level


def _shown(term: t.Term) -> tuple[str, int]:
    """The text, and how tightly it binds."""
    match term:
        case t.Var(name):
            return name, _TIGHT
        case t.Const(value):
            return _constant(value)
        case t.Tuple(parts):
            return f"({_listed(parts)})", _TIGHT
        case t.Project(of, index):
            return f"{_text(of, _TIGHT)}.{index}", _TIGHT
        case t.Empty(None):
            return "{}", _TIGHT
        case t.Empty(element):
            return f"({{}} : {{{element}}})", _TIGHT
        case t.Single(of):
            return f"{{{_text(of, _LOOSE)}}}", _TIGHT
        case t.Union(left, right):
            elements = elements_of(term)
            if elements is not None:
                return f"{{{_listed(elements)}}}", _TIGHT
            return _infix(left, "union", right, _SETS, _SETS, _SUM)
        case t.BigUnion(body, pattern, source):
            return f"union{{{_text(body, _LOOSE)} | {_generator(pattern, source)}}}", _TIGHT
        case t.Sum(body, pattern, source):
            return f"sum{{| {_text(body, _LOOSE)} | {_generator(pattern, source)} |}}", _TIGHT
        case t.Equal(left, right):
            return _infix(left, "=", right, _COMPARE, _SETS, _SETS)
        case t.AtMost(left, right):
            return _infix(left, "<=", right, _COMPARE, _SETS, _SETS)
        case t.Arith(op, left, right, modulus):
            level = _SUM if op in "+-" else _PRODUCT
            return _infix(left, f"{op}[{modulus}]" if modulus else op, right, level, level, level + 1)
        case t.If(condition, then, other):
            words = f"if {_text(condition, _LOOSE)} then {_text(then, _LOOSE)} else {_text(other, _LOOSE)}"
            return words, _LOOSE
        case _:
            return _shown_short(term)


def _shown_short(term: t.Short) -> tuple[str, int]:
    match term:
        case t.Comprehension(head, qualifiers):
            return f"{{{_text(head, _LOOSE)} | {_qualifiers(qualifiers)}}}", _TIGHT
        case t.SumOf(head, qualifiers):
            return f"sum{{| {_text(head, _LOOSE)} | {_qualifiers(qualifiers)} |}}", _TIGHT
        case t.Exists(qualifiers):
            return f"exists{{{_qualifiers(qualifiers)}}}", _TIGHT
        case t.ForAll(condition, qualifiers):
            return f"all{{{_text(condition, _LOOSE)} | {_qualifiers(qualifiers)}}}", _TIGHT
        case t.Minus(left, right):
            return _infix(left, "minus", right, _SETS, _SETS, _SUM)
        case t.Intersect(left, right):
            return _infix(left, "intersect", right, _SETS, _SETS, _SUM)
        case t.Not(t.Equal(left, right)):
            return _infix(left, "!=", right, _COMPARE, _SETS, _SETS)
        case t.Not(t.In(element, of)):
            return _infix(element, "not in", of, _COMPARE, _SETS, _SETS)
        case t.In(left, right):
            return _infix(left, "in", right, _COMPARE, _SETS, _SETS)
        case t.Subset(left, right):
            return _infix(left, "subset", right, _COMPARE, _SETS, _SETS)
        case t.Less(left, right):
            return _infix(left, "<", right, _COMPARE, _SETS, _SETS)
        case t.Not(of):
            return f"not {_text(of, _NOT)}", _NOT
        case t.And(left, right):
            return _infix(left, "and", right, _AND, _AND, _NOT)
        case t.Or(left, right):
            return _infix(left, "or", right, _OR, _OR, _AND)
        case t.Let(pattern, value, body):
            return f"let {pattern_text(pattern)} = {_value(value)} in {_text(body, _LOOSE)}", _LOOSE
        case t.Call(function, arguments):
            return f"{function}({_listed(arguments)})", _TIGHT
    assert_never(term)


def _constant(value: bool | int | Fraction | str) -> tuple[str, int]:
    match value:
        case bool():
            return str(value).lower(), _TIGHT
        case str():
            return quoted(value), _TIGHT
        case int():
            return str(value), _TIGHT if value >= 0 else _UNARY
        case Fraction():
            return f"{value.numerator} / {value.denominator}", _PRODUCT


def quoted(text: str) -> str:
    """A text as a literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _listed(terms: tuple[t.Term, ...] | list[t.Term]) -> str:
    return ", ".join(_text(term, _LOOSE) for term in terms)


def _generator(pattern: t.Pattern, source: t.Term) -> str:
    return f"{pattern_text(pattern)} in {_text(source, _SETS)}"


def _qualifiers(qualifiers: tuple[t.Qualifier, ...]) -> str:
    return ", ".join(map(_qualifier, qualifiers)) or "true"


def _qualifier(qualifier: t.Qualifier) -> str:
    if isinstance(qualifier, t.Generator):
        return _generator(qualifier.pattern, qualifier.source)
    text = _text(qualifier, _LOOSE)
    return f"({text})" if isinstance(qualifier, t.In) and _like_a_pattern(qualifier.element) else text


def _like_a_pattern(term: t.Term) -> bool:
    match term:
        case t.Var():
            return True
        case t.Tuple(parts):
            return all(map(_like_a_pattern, parts))
        case _:
            return False


def _value(value: t.Term) -> str:
    """The value of a `let`: a bare `in` would end it."""
    text = _text(value, _LOOSE)
    return f"({text})" if _has_bare_in(value) else text


def _has_bare_in(term: t.Term) -> bool:
    match term:
        case t.In():
            return True
        case t.Not(of):
            return _has_bare_in(of)
        case t.And(left, right) | t.Or(left, right):
            return _has_bare_in(left) or _has_bare_in(right)
        case t.If(_, _, other):
            return _has_bare_in(other)
        case t.Let(_, _, body):
            return _has_bare_in(body)
        case _:
            return False


# ── on several lines ─────────────────────────────────────────────────────────────────────────────


def _broken(term: t.Term, indent: int) -> str:
    """The text in several lines; those after the first are indented by `indent`."""
    text = _text(term, _LOOSE)
    if indent + len(text) <= WIDTH:
        return text
    line = "\n" + " " * indent
    match term:
        case t.Let(pattern, value, body):
            inner = _broken(value, indent + 2)
            if _has_bare_in(value):
                inner = f"({inner})"
            return f"let {pattern_text(pattern)} = {inner} in{line}{_broken(body, indent)}"
        case t.If(condition, then, other):
            first = f"if {_broken(condition, indent + 2)}{line}then {_broken(then, indent + 2)}"
            return f"{first}{line}else {_broken(other, indent)}"
        case t.Union(left, right) | t.Minus(left, right) | t.Intersect(left, right) if elements_of(term) is None:
            sign = type(term).__name__.lower()
            return f"{_within(left, _SETS, indent)}{line}{sign} {_within(right, _SUM, indent + 2)}"
        case t.And(left, right):
            return f"{_within(left, _AND, indent)}{line}and {_within(right, _NOT, indent + 2)}"
        case t.Or(left, right):
            return f"{_within(left, _OR, indent)}{line}or {_within(right, _AND, indent + 2)}"
        case t.Comprehension(head, qualifiers):
            return _bracketed("{", head, list(map(_qualifier, qualifiers)), "}", indent)
        case t.SumOf(head, qualifiers):
            return _bracketed("sum{| ", head, list(map(_qualifier, qualifiers)), " |}", indent)
        case t.BigUnion(head, pattern, source):
            return _bracketed("union{", head, [_generator(pattern, source)], "}", indent)
        case t.Sum(head, pattern, source):
            return _bracketed("sum{| ", head, [_generator(pattern, source)], " |}", indent)
        case _:
            return text


def _within(term: t.Term, level: int, indent: int) -> str:
    return _broken(term, indent) if _shown(term)[1] >= level else f"({_broken(term, indent + 1)})"


def _bracketed(opening: str, head: t.Term, qualifiers: list[str], closing: str, indent: int) -> str:
    """A bracket over two lines: the head, then as many qualifiers as fit."""
    lines = [""]
    for qualifier in qualifiers:
        if lines[-1] and indent + 4 + len(lines[-1]) + len(qualifier) > WIDTH:
            lines.append("")
        lines[-1] += f"{qualifier}, "
    inner = ("\n" + " " * (indent + 4)).join(line.rstrip() for line in lines).rstrip(", ")
    return f"{opening}{_broken(head, indent + 2)} |\n{' ' * (indent + 4)}{inner}{closing}"


# ── systems ──────────────────────────────────────────────────────────────────────────────────────


def system_text(system: System) -> str:
    """The text of a system's file.

    Parsing it gives the system back.
    """
    return "\n".join(_system_lines(system)) + "\n"


def _system_lines(system: System) -> Iterator[str]:
    yield f"system {system.name} {quoted(system.title)}"
    for word, said in (("theorem", system.theorem), ("about", system.about)):
        if said:
            yield f"{word} {quoted(said)}"
    if system.growth:
        yield f"growth {'exponential ' * system.exponential}{quoted(system.growth)}"
    if system.cost:
        yield f"cost {quoted(system.cost)}"
    if system.instead:
        yield f"instead {system.instead}"
    if system.query:
        yield f"query {quoted(system.query)}"
    yield ""
    yield from (_stored("input", stored) for stored in system.inputs)
    yield _stored("answer", system.answer)
    if system.sri is None:
        yield from (_stored("aux", stored) for stored in system.auxiliaries)
    if system.definitions:
        yield ""
    yield from map(definition_text, system.definitions)
    if system.sri is not None:
        yield ""
        form = system.sri
        yield f"sri {form.element}, {form.so_far} => {term_text(form.step, 2)}\nfrom {term_text(form.start, 2)}"
        for requirement in form.requirements:
            yield f"  require {term_text(requirement.condition, 4)} else {quoted(requirement.otherwise)}"
        if form.shows is not None:
            yield f"shows {form.shows[0]} =>\n  {term_text(form.shows[1], 2)}"
    else:
        if system.initial:
            yield ""
        for name, value in system.initial.items():
            yield f"initially {name} = {term_text(value, 2)}"
        for update in system.updates.values():
            yield ""
            yield from _update_lines(update)
    for example in system.examples:
        yield ""
        yield from _example_lines(example)


def _stored(word: str, stored: Stored) -> str:
    meaning = f" {quoted(stored.meaning)}" if stored.meaning else ""
    return f"{word} {stored.name} : {stored.type}{meaning}"


def _update_lines(update: Update) -> Iterator[str]:
    word, to = ("new", "into") if update.event == "insert" else ("present", "from")
    effective = f"{word} " * update.effective
    yield f"on {update.event} {effective}{pattern_text(update.tuple_)} {to} {update.relation}"
    for pattern, value in update.bindings:
        yield f"  let {pattern_text(pattern)} = {term_text(value, 4)}"
    for requirement in update.requirements:
        yield f"  require {term_text(requirement.condition, 4)} else {quoted(requirement.otherwise)}"
    shown: Callable[[str, str, t.Term], str] = lambda name, sign, term: f"  {name} {sign} {term_text(term, 4)}"  # noqa: E731
    for name, change in update.changes.items():
        match change:
            case Becomes(value):
                yield shown(name, ":=", value)
            case Differs(gone, new):
                if gone is not None:
                    yield shown(name, "-=", gone)
                if new is not None:
                    yield shown(name, "+=", new)


def _example_lines(example: Example) -> Iterator[str]:
    yield "example"
    for step, expected in example.steps:
        yield f"  {step}"
        for name, value in expected.items():
            yield f"  {name} = {term_text(value, 4)}"
    yield "end"
