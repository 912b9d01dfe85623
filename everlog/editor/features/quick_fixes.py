"""Code actions: what the hint of a diagnostic says, done.

A fix is a list of edits of the program's text.  Each hint that can be followed by rote has an entry
in `_FIXES`, and so has a message that needs no hint; the others stay advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from attrs import frozen
from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.dsl.diagnostics import Diagnostic
from everlog.dsl.walk import everything_below
from everlog.editor.analysis import Analysis
from everlog.editor.program_view import ProgramView

MOST_ITEMS = 100  # diagnostics whose fixes are offered at once
_QUOTED = re.compile(r"`([^`]+)`")


@frozen
class Edit:
    """A range of the program's text, and what to write there."""

    pos: int
    end: int
    new: str


@frozen
class Fix:
    title: str
    edits: list[Edit]


def code_actions(
    view: ProgramView, span: lsp.Range, told: list[lsp.Diagnostic] | None = None
) -> list[lsp.CodeAction]:
    """The fixes of all diagnostics that meet a range."""
    out: list[lsp.CodeAction] = []
    first, last = view.offset(span.start), view.offset(span.end)
    if first is None or last is None:
        return out
    near = [item for item in view.analysis.report.sorted() if 0 <= item.pos <= last and item.end >= first]
    for item in near[:MOST_ITEMS]:
        here = view.range_here(item.pos, item.end)
        for fix in fixes(view.analysis, item):
            changes: dict[str, list[lsp.TextEdit]] = {}
            for edit in fix.edits:
                location = view.location(edit.pos, edit.end)
                changes.setdefault(location.uri, []).append(lsp.TextEdit(location.range, edit.new))
            shown = [each for each in told or [] if each.code == item.code and each.range == here]
            edits = lsp.WorkspaceEdit(changes=changes)
            kind = lsp.CodeActionKind.QuickFix
            out.append(lsp.CodeAction(fix.title, kind, shown or None, is_preferred=True, edit=edits))
    return out


def fixes(analysis: Analysis, item: Diagnostic) -> Iterator[Fix]:
    """What would follow the hint of a diagnostic."""
    for pattern, make in _FIXES:
        found = pattern.match(item.hint or item.message)
        if found is not None:
            yield from make(analysis, item, found)


# ── one function for each kind of hint ───────────────────────────────────────────────────────


def _did_you_mean(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    wrong = _QUOTED.search(item.message)
    text = analysis.source.text[item.pos : item.end]
    at = re.search(rf"(?<![\w?]){re.escape(wrong[1])}(?![\w?])", text) if wrong else None
    if at is not None:
        edit = Edit(item.pos + at.start(), item.pos + at.end(), found[1])
        yield Fix(f"Change to `{found[1]}`", [edit])


def _declare(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    name = found[1]
    clause = analysis.clause_at(item.pos)
    atoms = [node for node in _nodes(clause) if isinstance(node, ast.Atom) and node.pos == item.pos]
    if not atoms:
        return
    types = _types_in(analysis, clause)
    columns: dict[str, str] = {}
    for number, arg in enumerate(atoms[0].args, 1):
        column = arg.name if isinstance(arg, ast.Name) and arg.name not in columns else f"x{number}"
        columns[column] = types.get(getattr(arg, "name", ""), _kind(arg))
    shown = ", ".join(f"{column}:{type}" for column, type in columns.items())
    yield Fix(f"Declare `{name}`", [_line_before(analysis, item.pos, f".decl {name}({shown})")])


def _declare_functor(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    nodes = list(_nodes(analysis.clause_at(item.pos)))
    used = [node for node in nodes if isinstance(node, ast.UserFunctor) and node.pos == item.pos]
    folded = [node for node in nodes if isinstance(node, ast.Aggregate) and node.pos == item.pos]
    for node in folded:
        if node.start is not None and node.target is not None:
            kind = _kind(node.start)
            line = f".functor {found[1]}(value:{kind}, x:{_kind(node.target)}):{kind}"
            yield Fix(f"Declare `@{found[1]}`", [_line_before(analysis, item.pos, line)])
    if used:
        params = ", ".join(f"x{number}:{_kind(arg)}" for number, arg in enumerate(used[0].args, 1))
        line = f".functor {found[1]}({params}):number"
        yield Fix(f"Declare `@{found[1]}`", [_line_before(analysis, item.pos, line)])


def _declare_type(analysis: Analysis, item: Diagnostic, _: re.Match[str]) -> Iterator[Fix]:
    name = _QUOTED.search(item.message)
    if name is not None and name[1].isidentifier():
        line = f".type {name[1]} <: symbol"
        yield Fix(f"Declare type `{name[1]}`", [_line_before(analysis, item.pos, line)])


def _write(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    yield Fix(f"Change to `{found[1]}`", [Edit(item.pos, item.end, found[1])])


def _quote(analysis: Analysis, item: Diagnostic, _: re.Match[str]) -> Iterator[Fix]:
    word = analysis.source.text[item.pos : item.end]
    yield Fix(f'Change to `"{word}"`', [Edit(item.pos, item.end, f'"{word}"')])


def _separate_directive(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    """`.decl r(…) input` becomes `.decl r(…)` and `.input r`."""
    text = analysis.source.text
    start = item.pos - len(text[: item.pos]) + len(text[: item.pos].rstrip(" \t"))
    stop = text.find("\n", item.end)
    stop = len(text) if stop < 0 else stop
    yield Fix(f"Write `{found[1]}`", [Edit(start, item.end, ""), Edit(stop, stop, f"\n{found[1]}")])


def _end_clause(analysis: Analysis, item: Diagnostic, _: re.Match[str]) -> Iterator[Fix]:
    yield Fix("End the statement with `.`", [Edit(item.pos, item.pos, ".")])


def _close(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    end = len(analysis.source.text.rstrip("\n")) if found[1] == "*/" else item.end
    yield Fix(f"Close it with `{found[1]}`", [Edit(end, end, found[1])])


def _close_parenthesis(analysis: Analysis, item: Diagnostic, _: re.Match[str]) -> Iterator[Fix]:
    yield Fix("Close the parenthesis", [Edit(item.pos, item.pos, ")")])


def _qualify(analysis: Analysis, item: Diagnostic, found: re.Match[str]) -> Iterator[Fix]:
    """Add a qualifier to the declaration that the diagnostic names or points to."""
    places = [item.pos, *(label.pos for label in item.labels if label.text == "declared here")]
    for node in _declarations(analysis.tree.statements):
        if any(name.pos in places for name in node.names):
            kept = [each for each in node.qualifiers if f"`{each.name}`" in item.message]
            if kept:
                edit = Edit(kept[0].pos, kept[0].end, found[1])
            else:
                edit = Edit(node.end, node.end, f" {found[1]}")
            yield Fix(f"Add `{found[1]}`", [edit])
            return


_Make = Callable[[Analysis, Diagnostic, "re.Match[str]"], Iterator[Fix]]
_FIXES: list[tuple[re.Pattern[str], _Make]] = [
    (re.compile(r"did you mean `([^`#]+)`\?"), _did_you_mean),
    (re.compile(r"declare it: \.decl ([\w?]+)\("), _declare),
    (re.compile(r"declare it: \.functor ([\w?]+)\("), _declare_functor),
    (re.compile(r"declare it with `\.type`"), _declare_type),
    (re.compile(r"write a symbol in quotes"), _quote),
    (re.compile(r"write `(_)`"), _write),
    (re.compile(r'write ("[^"]*")'), _write),
    (re.compile(r"write (\.limitsize .*)"), _write),
    (re.compile(r"convert it with (as\(.*\))$"), _write),
    (re.compile(r"write (\.(?:input|output|printsize) .*)"), _separate_directive),
    (re.compile(r"missing `\.` at the end"), _end_clause),
    (re.compile(r'close it with `("|\*/)`'), _close),
    (re.compile(r"a parenthesis is still open"), _close_parenthesis),
    (re.compile(r"declare it `(btree_delete)`"), _qualify),
    (re.compile(r"add `(overridable)` to its declaration"), _qualify),
]


# ── what they need ───────────────────────────────────────────────────────────────────────────


def _line_before(analysis: Analysis, pos: int, line: str) -> Edit:
    """A new line above the statement of an offset, with its indentation."""
    statements = analysis.tree.statements
    start = next((each.pos for each in statements if each.pos <= pos <= each.end), pos)
    text = analysis.source.text
    margin = text.rfind("\n", 0, start) + 1
    indent = text[margin:start] if not text[margin:start].strip() else ""
    return Edit(margin, margin, f"{indent}{line}\n")


def _nodes(clause: ast.Clause | ast.Subsumption | None) -> Iterator[ast.Node]:
    if clause is None:
        return
    heads = [clause.dominated, clause.dominating] if isinstance(clause, ast.Subsumption) else clause.heads
    for part in (*heads, clause.body):
        if part is not None:
            yield from everything_below(part)


def _types_in(analysis: Analysis, clause: ast.Clause | ast.Subsumption | None) -> dict[str, str]:
    """The types of variables that stand in columns of relations that are declared."""
    declared = analysis.checked.declared
    out: dict[str, str] = {}
    for node in _nodes(clause) if declared is not None else ():
        signature = declared.relations.get(node.name) if isinstance(node, ast.Atom) and declared else None
        if signature is not None and isinstance(node, ast.Atom):
            for arg, attribute in zip(node.args, signature.attributes, strict=False):
                if isinstance(arg, ast.Name):
                    out.setdefault(arg.name, attribute.type_name)
    return out


def _kind(arg: ast.Term) -> str:
    kinds: dict[type, str] = {ast.String: "symbol", ast.Float: "float", ast.Unsigned: "unsigned"}
    return kinds.get(type(arg), "number")


def _declarations(items: list[ast.Statement]) -> Iterator[ast.RelationDecl]:
    for item in items:
        if isinstance(item, ast.RelationDecl):
            yield item
        elif isinstance(item, ast.Component):
            yield from _declarations(item.items)
