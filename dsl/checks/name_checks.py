"""Checks names and places: relations exist, `_` and counters are allowed here.

One walk over a clause as it was written, before anything is rewritten.
"""

from __future__ import annotations

from typing import Any

from everlog.dsl import ast
from everlog.dsl.checks.declarations import Declarations, Signature
from everlog.dsl.diagnostics import Label, Report
from everlog.dsl.walk import MAX_ATOMS, too_many_atoms

_CONSTANTS = (ast.Number, ast.String, ast.Float, ast.Unsigned)


def check_names(
    clause: ast.Clause | ast.Subsumption, declared: Declarations, report: Report, *, parameters: bool = False
) -> bool:
    """Whether the clause can be checked further; a query may have `parameters`."""
    walk = _Walk(declared, report, parameters)
    if isinstance(clause, ast.Subsumption):
        walk.subsumption(clause)
    else:
        for head in clause.heads:
            walk.head(head)
        walk.in_head = set(walk.counts)
        if clause.body is not None:
            walk.formula(clause.body)
        elif not walk.failed:
            walk.fact(clause.heads[0])
    walk.singletons(clause)
    return not walk.failed


def is_ground(atom: ast.Atom, ranges: bool = False) -> bool:
    """Whether a fact has no variables; `ranges` allows ranges and aggregates."""

    def constant(term: ast.Term) -> bool:
        match term:
            case ast.Functor(name="range") if not ranges:
                return False
            case ast.Aggregate():
                return ranges
            case ast.Functor(args=args) | ast.UserFunctor(args=args):
                return all(constant(a) for a in args)
            case ast.Cast(term=inner):
                return constant(inner)
            case _:
                return isinstance(term, _CONSTANTS)

    return all(constant(a) for a in atom.args)


class _Walk:
    def __init__(self, declared: Declarations, report: Report, parameters: bool) -> None:
        self.declared, self.report, self.parameters = declared, report, parameters
        self.failed = False
        self.counts: dict[str, int] = {}
        self.last: dict[str, ast.Name] = {}
        self.in_head: set[str] = set()

    def error(self, code: str, message: str, node: Any, *labels: Label, hint: str = "") -> None:
        self.failed = True
        self.report.error(code, message, node, *labels, hint=hint)

    # ── atoms and formulas ───────────────────────────────────────────────────────────────────

    def atom(self, atom: ast.Atom, head: bool = False) -> None:
        signature = self.declared.relations.get(atom.name)
        if signature is None:
            self.error("DL050", f"undefined relation `{atom.name}`", atom, hint=self.declared.similar(atom.name))
        elif signature.arity != len(atom.args):
            node = signature.node
            self.error(
                "DL051",
                f"`{atom.name}` has {signature.arity} column(s), {len(atom.args)} given",
                atom,
                Label(node.pos, node.end, "declared here"),
            )
        elif not signature.sound:
            self.failed = True
        for arg in atom.args:
            if arg.__class__ is ast.Name:
                self.counts[arg.name] = self.counts.get(arg.name, 0) + 1
                self.last[arg.name] = arg
            elif head and isinstance(arg, ast.HeadAggregate):
                self.head_aggregate(arg)
            elif arg.__class__ is not ast.Underscore:
                self.term(arg)
                if not head:
                    self.no_underscore(arg, "DL054", "`_` stands inside a functor")

    def head(self, atom: ast.Atom) -> None:
        self.atom(atom, head=True)
        for arg in atom.args:
            self.no_underscore(arg, "DL052", "`_` stands in the head of a rule")

    def fact(self, atom: ast.Atom) -> None:
        for arg in atom.args:
            if isinstance(arg, ast.HeadAggregate):
                self.error("DL130", "a fact has nothing to aggregate", arg, hint="write the value itself")
            if not is_ground(ast.Atom("", [arg]), ranges=True) and not self.failed:
                self.error(
                    "DL053",
                    "a fact has constants only",
                    arg,
                    hint='write a symbol in quotes, such as "a"' if isinstance(arg, ast.Name) else "",
                )

    def formula(self, formula: ast.Formula) -> None:
        todo: list[Any] = [formula]
        while todo:
            current = todo.pop()
            match current:
                case ast.Atom():
                    self.atom(current)
                case ast.And(parts=parts) | ast.Or(parts=parts):
                    todo += reversed(parts)
                case ast.Not(formula=inner):
                    todo.append(inner)
                case ast.Constraint(left=left, right=right):
                    self.term(left)
                    self.term(right)
                    if not isinstance(left, ast.Aggregate) and not isinstance(right, ast.Aggregate):
                        self.no_underscore(left, "DL054", "`_` stands in a constraint")
                        self.no_underscore(right, "DL054", "`_` stands in a constraint")
                case _:
                    pass

    def subsumption(self, clause: ast.Subsumption) -> None:
        self.atom(clause.dominated)
        self.atom(clause.dominating)
        self.formula(clause.body)
        signature = self.declared.relations.get(clause.dominated.name)
        if signature is not None:
            self.deletable(signature)
        if clause.dominated.name != clause.dominating.name:
            self.error("DL055", "a subsumption compares facts of one relation", clause)

    def deletable(self, signature: Signature) -> None:
        if signature.arity == 0 and "btree_delete" not in signature.qualifiers:
            self.error("DL055", f"relation `{signature.name}` has a subsumption but no columns", signature.node)
        for structure in sorted({"brie", "btree", "eqrel"} & signature.qualifiers):
            message = f"relation `{signature.name}` has a subsumption but is `{structure}`, which keeps all facts"
            if not any(d.code == "DL055" and d.message == message for d in self.report.items):
                self.error("DL055", message, signature.node, hint="declare it `btree_delete`")
            self.failed = True

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def term(self, term: ast.Term) -> None:
        match term:
            case ast.Name(name=name):
                self.counts[name] = self.counts.get(name, 0) + 1
                self.last[name] = term
            case ast.Functor(args=args):
                for arg in args:
                    self.term(arg)
            case ast.UserFunctor(name=name, args=args):
                if name not in self.declared.functors:
                    self.error(
                        "DL056", f"undefined functor `@{name}`", term, hint=f"declare it: .functor {name}(…):…"
                    )
                for arg in args:
                    self.term(arg)
            case ast.Cast(term=inner, type_name=type_name):
                if type_name not in self.declared.types:
                    self.error(
                        "DL022",
                        f"undefined type `{type_name}`",
                        term,
                        hint=self.declared.types.suggestion(type_name),
                    )
                self.term(inner)
            case ast.Aggregate():
                self.aggregate(term)
            case ast.HeadAggregate(op=op):
                form = "count : { … }" if op == "count" else f"{op} x : {{ … }}"
                message = f"`{op}(…)` aggregates what a rule derives: it is a whole column of a rule's head"
                self.error("DL130", message, term, hint=f"inside a body or a term write `{form}`")
            case ast.Nonflat(what=what, args=args):
                hint = "use one column, or one variable, for each part"
                named = {"nil": "`nil`", "record": "a record", "branch": "a branch of an algebraic type"}[what]
                self.error("DL090", f"{named} is no flat value; relations are flat here", term, hint=hint)
            case ast.Parameter(name=name) if not self.parameters:
                hint = "write the value itself, or give it as a fact"
                self.error("DL120", f"parameter `${name}` stands in a program", term, hint=hint)
            case ast.IterationCounter():
                self.error("DL092", "`recursive_iteration_cnt` is not supported", term)
            case _:
                pass

    def aggregate(self, term: ast.Aggregate) -> None:
        base, _, several = term.op.partition("/")
        if several or (term.target is None) != (base == "count"):
            wanted, form = ("no target", "count : {…}") if base == "count" else ("one target", f"{base} x : {{…}}")
            shown = base if term.start is None else f"@{base}"
            form = form if term.start is None else f"{shown} x : start, {{…}}"
            self.error("DL057", f"`{shown}` takes {wanted}, as in `{form}`", term)
        if term.start is not None and base[1:] not in self.declared.functors:
            name = base[1:]
            hint = f"declare it: .functor {name}(…):…"
            self.error("DL056", f"undefined functor `@{name}`", term, hint=hint)
        if term.target is not None:
            self.term(term.target)
            self.no_underscore(term.target, "DL054", "`_` stands in the target of an aggregate")
        if too_many_atoms(term.body):
            self.error("DL017", f"an aggregate over more than {MAX_ATOMS} atoms", term)
            return
        self.formula(term.body)

    def head_aggregate(self, term: ast.HeadAggregate) -> None:
        if (term.target is None) != (term.op == "count"):
            wanted, form = ("nothing", "count()") if term.op == "count" else ("one term", f"{term.op}(x)")
            self.error("DL057", f"`{term.op}` in a head takes {wanted}, as in `{form}`", term)
        elif term.target is not None:
            self.term(term.target)
            self.no_underscore(term.target, "DL054", "`_` stands in the target of an aggregate")

    def no_underscore(self, term: ast.Term, code: str, message: str) -> None:
        match term:
            case ast.Underscore():
                self.error(code, message, term, hint="give the value a name")
            case ast.Functor(args=args) | ast.UserFunctor(args=args):
                for arg in args:
                    self.no_underscore(arg, code, message)
            case ast.Cast(term=inner):
                self.no_underscore(inner, code, message)
            case _:
                pass

    # ── the clause as a whole ────────────────────────────────────────────────────────────────

    def singletons(self, clause: ast.Clause | ast.Subsumption) -> None:
        if isinstance(clause, ast.Clause) and clause.body is None:
            return
        for name, count in self.counts.items():
            if count == 1 and name[0] != "_":
                in_head = name in self.in_head
                hint = "" if in_head else "write `_`"
                self.report.warn("DL061", f"variable `{name}` occurs only once", self.last[name], hint=hint)
            elif count > 1 and name[0] == "_":
                self.report.warn("DL061", f"variable `{name}` is marked single but occurs again", self.last[name])
