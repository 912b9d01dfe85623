"""Walks over the syntax tree: copies with something replaced, and everything below a node.

Reads: dsl.ast.  Read by: dsl.components, dsl.clauses, dsl.scopes, dsl.inline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve

from everlog.dsl import ast


def rebuilt(node: Any, go: Callable[[Any], Any]) -> Any:
    """A copy of a clause, formula or term in which every child is what `go` makes of it.

    >>> double = lambda node: ast.Number(node.text * 2) if isinstance(node, ast.Number) else rebuilt(node, double)
    >>> double(ast.Functor("+", [ast.Name("x"), ast.Number("1")])).args
    [Name(name='x'), Number(text='11')]
    """
    match node:
        case ast.Atom() | ast.Functor() | ast.UserFunctor() | ast.Nonflat():
            return evolve(node, args=[go(a) for a in node.args])
        case ast.Constraint():
            return evolve(node, left=go(node.left), right=go(node.right))
        case ast.Not():
            return evolve(node, formula=go(node.formula))
        case ast.And() | ast.Or():
            return evolve(node, parts=[go(p) for p in node.parts])
        case ast.Cast():
            return evolve(node, term=go(node.term))
        case ast.Aggregate():
            return evolve(node, target=None if node.target is None else go(node.target), body=go(node.body))
        case ast.Clause():
            return evolve(
                node, heads=[go(h) for h in node.heads], body=None if node.body is None else go(node.body)
            )
        case ast.Subsumption():
            return evolve(node, dominated=go(node.dominated), dominating=go(node.dominating), body=go(node.body))
        case _:
            return node


def replaced(node: Any, old: Any, new: Any) -> Any:
    """A copy in which one node, known by identity, is another."""
    return new if node is old else rebuilt(node, lambda child: replaced(child, old, new))


def children(node: Any) -> list[Any]:
    """The formulas and terms right below a node, from left to right."""
    match node:
        case ast.Atom(args=args) | ast.Functor(args=args) | ast.UserFunctor(args=args) | ast.Nonflat(args=args):
            return args
        case ast.Constraint(left=left, right=right):
            return [left, right]
        case ast.Not(formula=inner):
            return [inner]
        case ast.And(parts=parts) | ast.Or(parts=parts):
            return parts
        case ast.Cast(term=term):
            return [term]
        case ast.Aggregate(target=target, body=body):
            return [body] if target is None else [target, body]
        case _:
            return []


def everything_below(node: Any, stop: type | None = None) -> Iterator[Any]:
    """A node and all below it, from left to right; below a node of type `stop` it does not look."""
    todo = [node]
    while todo:
        current = todo.pop()
        yield current
        if stop is None or not isinstance(current, stop):
            todo += reversed(children(current))
