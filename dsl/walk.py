"""Walks over the syntax tree: copies with replacements, and descendants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve

from everlog.dsl import ast

MAX_ATOMS = 1_000  # of a query or an aggregate
MAX_DEPTH = 200  # nested terms, formulas or components: three calls per level fit into Python's stack


def rebuilt(node: Any, go: Callable[[Any], Any]) -> Any:
    """A copy of a clause, formula or term with `go` applied to every child.

    >>> def double(node):
    ...     number = isinstance(node, ast.Number)
    ...     return ast.Number(node.text * 2) if number else rebuilt(node, double)
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
            start = None if node.start is None else go(node.start)
            target = None if node.target is None else go(node.target)
            return evolve(node, target=target, start=start, body=go(node.body))
        case ast.HeadAggregate():
            return evolve(node, target=None if node.target is None else go(node.target))
        case ast.Clause():
            return evolve(
                node, heads=[go(h) for h in node.heads], body=None if node.body is None else go(node.body)
            )
        case ast.Subsumption():
            return evolve(node, dominated=go(node.dominated), dominating=go(node.dominating), body=go(node.body))
        case _:
            return node


def replaced(node: Any, old: Any, new: Any) -> Any:
    """A copy in which one node, known by identity, is replaced."""
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
        case ast.Aggregate(target=target, body=body, start=start):
            return [part for part in (target, start, body) if part is not None]
        case ast.HeadAggregate(target=target):
            return [] if target is None else [target]
        case _:
            return []


def everything_below(node: Any, stop: type | None = None) -> Iterator[Any]:
    """A node and its descendants, left to right; not below nodes of type `stop`."""
    todo = [node]
    while todo:
        current = todo.pop()
        yield current
        if stop is None or not isinstance(current, stop):
            todo += reversed(children(current))


def too_many_atoms(body: Any) -> bool:
    """Whether a body has too many atoms to join with all variables kept."""
    return sum(isinstance(node, ast.Atom) for node in everything_below(body)) > MAX_ATOMS


def too_deep(node: Any) -> Any:
    """The node nested deeper than MAX_DEPTH; None if there is none.

    Other walks descend with Python's own stack, so this one comes first, and does not.
    """
    level = [node]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _parts(parent)]
        if not level:
            return None
    return level[0]


def _parts(node: Any) -> list[Any]:
    """The children of a node, statements included."""
    match node:
        case ast.Clause(heads=heads, body=body):
            return heads if body is None else [*heads, body]
        case ast.Subsumption(dominated=dominated, dominating=dominating, body=body):
            return [dominated, dominating, body]
        case ast.Component(items=items):
            return items
    return children(node)
