"""Which relations can be views, whose facts are not stored."""

from __future__ import annotations

from everlog.core.program.bodies import rule_may_fail
from everlog.core.program.program import Atom, Comparison, Program, Rule, draws_numbers


def why_no_view(program: Program, name: str) -> str:
    """Why the facts of a relation have to be stored; nothing if they need not be.

    A view has rules that join positive atoms and compare, and nothing else.  No rule of it may
    fail: an error is that of the step which meets it, and here no step would.
    """
    relation, rules = program.relations[name], program.rules_of(name)
    if relation.equivalence:
        return "it is an equivalence relation"
    if relation.choices:
        return "it has a choice domain"
    if relation.on_demand:
        return "it is `magic`"
    if relation.insert_only:
        return "it is `.insert_only`, and a view has no facts of its own"
    if name in program.limits:
        return "it has a size limit"
    if relation.lattices or any(each.dominated.relation == name for each in program.subsumptions):
        return "its facts replace each other"
    if program.facts.get(name) or any(directive.relation == name for directive in program.inputs):
        return "it has facts of its own"
    if not rules:
        return "it has no rules"
    return next(filter(None, map(_unfit, rules)), "")


def _unfit(rule: Rule) -> str:
    """Why a view has not this rule; nothing if it may have it."""
    odd = next((literal for literal in rule.body if not isinstance(literal, Atom | Comparison)), None)
    if odd is not None:
        return f"`{odd}` is neither an atom nor a comparison"
    if not any(isinstance(literal, Atom) for literal in rule.body):
        return "it has facts of its own"
    if draws_numbers(rule):
        return "`autoinc()` numbers its facts"
    return "a rule of it may fail, and no step would say so" if rule_may_fail(rule) else ""
