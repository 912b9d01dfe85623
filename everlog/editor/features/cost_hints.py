"""Beside each rule what an update of it costs, and above it what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import define, field
from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.editor.features.cost_words import label, paragraph
from everlog.editor.program_view import ProgramView

RUN, EXPLAIN, WHY = "everlog.run", "everlog.explain", "everlog.why"

Rule = ast.Clause | ast.Subsumption


@define(eq=False)
class CostMemory:
    """The last known costs of rules by their text: they stay shown while there are errors."""

    shown: dict[str, tuple[str, str]] = field(factory=dict)

    def of(self, view: ProgramView, clause: Rule) -> tuple[str, str] | None:
        """The label of a rule and what it means; None if nothing is known."""
        costs = view.analysis.costs(clause)
        text = view.analysis.text_of(clause)
        if costs:
            labels = dict.fromkeys(label(cost) for cost in costs)
            self.shown[text] = " · ".join(labels), "\n\n".join(paragraph(cost) for cost in costs[:8])
        return self.shown.get(text) if costs or view.analysis.program is None else None


def rules_here(view: ProgramView, first: int = 0, last: int = 1 << 30) -> Iterator[tuple[Rule, lsp.Range]]:
    """The rules of the document whose lines meet a range."""
    for clause in view.analysis.clauses():
        if isinstance(clause, ast.Clause) and clause.body is None:
            continue
        span = view.range_here(clause.pos, clause.end)
        if span is not None and span.start.line <= last and span.end.line >= first:
            yield clause, span


def inlay_hints(
    view: ProgramView, memory: CostMemory, first: int, last: int, counts: Callable[[str], int | None]
) -> list[lsp.InlayHint]:
    """The promised cost at the end of each rule; the number of facts behind each declaration."""
    out = []
    for clause, span in rules_here(view, first, last):
        known = memory.of(view, clause)
        if known is not None:
            out.append(_hint(span.end, f"⟨{known[0]}⟩", known[1]))
    for each in view.analysis.names.found:
        if each.symbol.kind == "relation" and each.pos == each.symbol.pos:
            count = counts(each.symbol.name)
            here = view.range_here(each.pos, each.end) if count is not None else None
            if here is not None and first <= here.start.line <= last:
                facts = "fact" if count == 1 else "facts"
                out.append(_hint(here.end, f"{count:,} {facts}", "in the database that is open"))
    return out


def _hint(at: lsp.Position, text: str, meaning: str) -> lsp.InlayHint:
    tooltip = lsp.MarkupContent(lsp.MarkupKind.Markdown, meaning)
    return lsp.InlayHint(at, text, padding_left=True, tooltip=tooltip)


def code_lenses(view: ProgramView) -> list[lsp.CodeLens]:
    """`run` above the first rule of a relation, `explain` above each rule."""
    out: list[lsp.CodeLens] = []
    seen: set[str] = set()
    uri = view.document.uri
    for clause, span in rules_here(view):
        names = view.analysis.rule_names(clause)
        if not names:
            continue
        at = lsp.Range(span.start, span.start)
        for name in names:
            relation = name.partition("#")[0]
            if relation not in seen:
                seen.add(relation)
                run = lsp.Command(f"▶ run {relation}", RUN, arguments=[uri, relation])
                out.append(lsp.CodeLens(at, command=run))
        shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
        explain = lsp.Command(f"explain {shown}", EXPLAIN, arguments=[uri, *names])
        out.append(lsp.CodeLens(at, command=explain))
    return out
