"""Items of a system file to a System: which items are allowed, and how often.

The reductions build one small record for each item, in the order of the text; `assembled` puts them
together and reports missing and repeated items.  `ies.validation` checks types and names.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen
from lark import Token

from everlog.dsl.diagnostics import Diagnostic, Label, Report
from everlog.ies.nrc import terms as t
from everlog.ies.nrc.builder import TermBuilder, TypeAt, nodes, span
from everlog.ies.nrc.lexer import unquoted
from everlog.ies.nrc.types import NUM, SetOf
from everlog.ies.system import (
    Becomes,
    Change,
    Differs,
    Event,
    Example,
    Requirement,
    SriForm,
    Stored,
    System,
    Update,
)


@frozen
class Item:
    """One item: its keyword, the name it is about (if any), and its value."""

    kind: str
    name: str
    value: Any
    pos: int
    end: int


class SystemBuilder(TermBuilder):
    """The productions of system files, beside those of terms."""

    def header(self, children: list[Any]) -> Item:
        return self._item("system", children[1], self._string(children), children)

    def prose(self, children: list[Any]) -> Item:
        kind, said = children
        value = str(said) if said.type == "NAME" else unquoted(said, self.report)
        return self._item(kind.value, "", value, children)

    def growth(self, children: list[Any]) -> Item:
        exponential = any(child.type == "EXPONENTIAL" for child in children)
        return self._item("growth", "", (self._string(children), exponential), children)

    def stored(self, children: list[Any]) -> Item:
        stated: TypeAt = children[3]
        type_ = stated.type
        if not isinstance(type_, SetOf):
            self.error("NRC030", f"a relation has a set type, not {type_}", stated, hint=f"write `{{{type_}}}`")
            type_ = SetOf(NUM)
        value = Stored(str(children[1]), type_, self._string(children), **span(children[1:2]))
        return self._item(children[0].value, children[1], value, children)

    def initially(self, children: list[Any]) -> Item:
        return self._item("initially", children[1], children[3], children)

    def requirement(self, children: list[Any]) -> Item:
        value = Requirement(children[1], unquoted(children[3], self.report))
        return self._item("require", "", value, children)

    def binding(self, children: list[Any]) -> Item:
        pattern, value = nodes(children)
        self.check_pattern(pattern)
        return self._item("let", "", (pattern, value), children)

    def change(self, children: list[Any]) -> Item:
        return self._item(children[1].value, children[0], children[2], children)

    def update(self, children: list[Any]) -> Item:
        event: Event = "insert" if children[1].type == "INSERT" else "delete"
        pattern, *statements = nodes(children)
        self.check_pattern(pattern)
        relation = next(children[i + 1] for i, c in enumerate(children) if _type(c) in ("INTO", "FROM"))
        value = Update(
            event,
            str(relation),
            pattern,
            tuple(item.value for item in statements if item.kind == "let"),
            tuple(item.value for item in statements if item.kind == "require"),
            self._changes([item for item in statements if item.kind in (":=", "-=", "+=")]),
            any(_type(child) in ("NEW", "PRESENT") for child in children),
            **span([children[0], relation]),
        )
        return self._item("on", relation, value, children)

    def step(self, children: list[Any]) -> Item:
        expected = {item.name: item.value for item in children[1:]}
        return self._item("step", "", (str(children[0]), expected), children)

    def expectation(self, children: list[Any]) -> Item:
        return self._item("expectation", children[0], children[2], children)

    def example(self, children: list[Any]) -> Item:
        value = Example(tuple(item.value for item in nodes(children)))
        return self._item("example", "", value, children)

    def sri(self, children: list[Any]) -> Item:
        requirements = tuple(item.value for item in children[8:])
        value = SriForm(str(children[1]), str(children[3]), children[5], children[7], None, requirements)
        return self._item("sri", "", value, children)

    def shows(self, children: list[Any]) -> Item:
        return self._item("shows", "", (str(children[1]), children[3]), children)

    def system(self, children: list[Any]) -> list[Any]:
        return children

    def _changes(self, items: list[Item]) -> dict[str, Change]:
        found: dict[str, dict[str, Item]] = {}
        for item in items:
            seen = found.setdefault(item.name, {})
            clash = next((seen[sign] for sign in seen if ":=" in (sign, item.kind) or sign == item.kind), None)
            if clash is not None:
                label = Label(clash.pos, clash.end, "given here too")
                self.error("NRC015", f"two functions for `{item.name}` in one update", item, label)
            seen.setdefault(item.kind, item)
        changes: dict[str, Change] = {}
        for name, seen in found.items():
            if ":=" in seen:
                changes[name] = Becomes(seen[":="].value)
            else:
                gone, new = seen.get("-="), seen.get("+=")
                changes[name] = Differs(gone.value if gone else None, new.value if new else None)
        return changes

    def _string(self, children: list[Any]) -> str:
        return next((unquoted(child, self.report) for child in children if _type(child) == "STRING"), "")

    def _item(self, kind: str, name: str, value: Any, children: list[Any]) -> Item:
        return Item(kind, str(name), value, **span(children))


def _type(child: Any) -> str:
    return child.type if isinstance(child, Token) else ""


def assembled(items: list[Any], report: Report) -> System | None:
    """The system of the items, or None with the reasons in `report`."""
    by_kind: dict[str, list[Any]] = {}
    for item in items:
        by_kind.setdefault("def" if isinstance(item, t.Definition) else item.kind, []).append(item)
    for kind in ("system", "theorem", "about", "growth", "cost", "instead", "query", "answer", "sri", "shows"):
        _once(by_kind.get(kind, []), f"a second `{kind}`", report)
    stored = [item for item in items if isinstance(item, Item) and isinstance(item.value, Stored)]
    for what, group, key in (
        ("relation", stored, lambda item: item.name),
        ("function", by_kind.get("def", []), lambda item: item.name),
        ("initial value of", by_kind.get("initially", []), lambda item: item.name),
        ("update", by_kind.get("on", []), lambda item: f"on {item.value.event} … {item.name}"),
    ):
        for same in _grouped(group, key).values():
            _once(same, f"{what} `{key(same[0])}` a second time", report)
    for kind, example in (("input", "input edge : {node * node}"), ("answer", "answer path : {node * node}")):
        if kind not in by_kind:
            message = f"a system has {'an' if kind in ('input', 'answer') else 'a'} `{kind}`"
            report.items.append(Diagnostic("NRC015", message, 0, 1, hint=f"such as `{example}`"))
    sri = _sri(by_kind, report)
    if report.errors:
        return None
    growth, exponential = by_kind["growth"][0].value if "growth" in by_kind else ("", False)
    updates = [item.value for item in by_kind.get("on", [])]
    said = {
        kind: by_kind[kind][0].value
        for kind in ("theorem", "about", "cost", "query", "instead")
        if kind in by_kind
    }
    return System(
        name=by_kind["system"][0].name,
        title=by_kind["system"][0].value,
        theorem=said.pop("theorem", ""),
        inputs=tuple(item.value for item in by_kind["input"]),
        answer=by_kind["answer"][0].value,
        auxiliaries=tuple(item.value for item in by_kind.get("aux", [])),
        initial={item.name: item.value for item in by_kind.get("initially", [])},
        updates={(update.event, update.relation): update for update in updates},
        definitions=tuple(by_kind.get("def", [])),
        growth=growth,
        exponential=exponential,
        examples=tuple(item.value for item in by_kind.get("example", [])),
        sri=sri,
        **said,
    )


def _sri(by_kind: dict[str, list[Any]], report: Report) -> SriForm | None:
    """The sri form with its last step; items of the other form are errors."""
    forms, shows = by_kind.get("sri", []), by_kind.get("shows", [])
    if not forms:
        for item in shows:
            _error(report, "`shows` is the last step of `sri`, which is missing", item)
        return None
    for kind in ("on", "initially", "aux"):
        for item in by_kind.get(kind, []):
            label = Label(forms[0].pos, forms[0].end, "here")
            _error(report, f"`{kind}` cannot stand beside `sri`, which defines it", item, label)
    form: SriForm = forms[0].value
    last = shows[0].value if shows else None
    return SriForm(form.element, form.so_far, form.step, form.start, last, form.requirements)


def _grouped(items: list[Any], key: Any) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _once(items: list[Any], what: str, report: Report) -> None:
    for item in items[1:]:
        _error(report, what, item, Label(items[0].pos, items[0].end, "the first"))


def _error(report: Report, message: str, item: Any, *labels: Label) -> None:
    report.items.append(Diagnostic("NRC015", message, item.pos, item.end, labels))
