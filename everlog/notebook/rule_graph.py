"""The rule graph of a database: relations as boxes, with an arrow to each reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from everlog.explain.drawing import graph, graph_lines
from everlog.explain.markup import element
from everlog.explain.page import whole
from everlog.explain.style import scoped
from everlog.notebook.drawn_proofs import SCOPE


@frozen(repr=False)
class RuleGraph:
    """The relations with what each reads; a notebook draws it.

    >>> from everlog import Database
    >>> db = Database.from_text('''
    ...   .decl n(x:number)  .decl m(x:number)  m(x) :- n(x).''')
    >>> db.graph()
    m reads n
    """

    explanation: Mapping[str, Any]

    def __repr__(self) -> str:
        return "\n".join(graph_lines(whole(self.explanation))) or "no relation reads another"

    def _repr_html_(self) -> str:
        relations = whole(self.explanation)
        if not relations:
            return "the program has no relations"
        return element("div", element("style", scoped(SCOPE)), graph(relations), class_=SCOPE)
