"""The LALR(1) automaton that lark makes of `grammar.lark`, in a fast form.

Lark analyses the grammar and gives the table of states.  Its own driver calls several functions for
each token, and a program may have millions of tokens.  This module resolves every action once. A
shift is the number of the next state.  A reduction is a tuple: the number of values it takes, the
next states, and the function that builds the node.  A production that passes on its only child
builds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from lark import Lark
from lark.lexer import Lexer
from lark.parse_tree_builder import ExpandSingleChild
from lark.parsers.lalr_analysis import Shift

from everlog.dsl.builder import Builder

Reduction: TypeAlias = tuple[int, dict[int, int], Callable[[list[Any]], Any] | None]
Action: TypeAlias = int | Reduction


class Automaton:
    """The table of actions: `table[state][terminal]`.

    A stack is a list of states with `start` at its bottom.
    """

    def __init__(self, lark: Lark) -> None:
        conf = lark.parse_interactive("").parser_state.parse_conf
        self.start: int = conf.start_state
        self.end: int = conf.end_state
        gotos: dict[str, dict[int, int]] = {}
        for state, actions in conf.states.items():
            for symbol, (_, target) in actions.items():
                if not symbol.isupper() and symbol != "$END":
                    gotos.setdefault(symbol, {})[state] = target
        self.table: dict[int, dict[str, Any]] = {}  # of `Action`; Any avoids a type test in the parser's loop
        for state, actions in conf.states.items():
            row: dict[str, Action] = {}
            self.table[state] = row
            for symbol, (kind, target) in actions.items():
                if symbol.isupper() or symbol == "$END":
                    row[symbol] = target if kind is Shift else self._reduction(target, gotos, conf.callbacks)

    @staticmethod
    def _reduction(rule: Any, gotos: dict[str, dict[int, int]], callbacks: Any) -> Reduction:
        build = callbacks[rule]
        size = len(rule.expansion)
        passes_on = size == 1 and isinstance(build, ExpandSingleChild)
        return size, gotos[rule.origin.name], None if passes_on else build

    def accepts(self, stack: list[int], terminal: str) -> bool:
        """Whether the parser would shift `terminal` after its reductions: a dry run.

        Cost: the reductions, independent of the depth of the stack.
        """
        kept, above = len(stack), list[int]()  # the trial stack is stack[:kept] + above
        state = stack[-1]
        while True:
            action = self.table[state].get(terminal)
            if action is None or isinstance(action, int):
                return action is not None
            size, goto, _ = action
            kept -= max(0, size - len(above))
            above = above[: max(0, len(above) - size)]
            state = goto[above[-1] if above else stack[kept - 1]]
            above.append(state)
            if terminal == "$END" and state == self.end:
                return True

    def expected(self, stack: list[int]) -> set[str]:
        """The terminals that can follow this stack."""
        return {terminal for terminal in self.table[stack[-1]] if self.accepts(stack, terminal)}


class _NoLexer(Lexer):
    """Lexes nothing: the parser feeds the automaton token by token."""

    def __init__(self, lexer_conf: Any) -> None: ...

    def lex(self, *_: Any) -> Iterator[Any]:
        return iter(())


@lru_cache(maxsize=1)
def automaton() -> Automaton:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    return Automaton(Lark(grammar, parser="lalr", lexer=_NoLexer, keep_all_tokens=True, transformer=Builder()))
