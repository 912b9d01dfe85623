"""The checker: a syntax tree to a `core.Program`, or to all its errors.

Each check has its module: components, declarations, scopes, kinds, inlining, stratification.
`_Checker` runs them in order, clause by clause, and lowers a clause that passed them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import evolve, frozen

from everlog.core import program as core
from everlog.core.program import Kind
from everlog.core.program.views import why_no_view
from everlog.core.runtime.collector import collector_paused
from everlog.dsl import ast
from everlog.dsl.checks.auxiliaries import declare_auxiliaries
from everlog.dsl.checks.clauses import FlatClause, flat_clauses, restart_fresh_names
from everlog.dsl.checks.components import flatten
from everlog.dsl.checks.declarations import Declarations, declarations
from everlog.dsl.checks.directives import Directives, check_directives
from everlog.dsl.checks.head_aggregates import Best, settle_aggregates
from everlog.dsl.checks.inline import expand
from everlog.dsl.checks.join_orders import warn_of_subsumption, with_orders
from everlog.dsl.checks.kinds import ClauseKinds
from everlog.dsl.checks.lower import Lowering
from everlog.dsl.checks.monotone import check_monotone
from everlog.dsl.checks.name_checks import check_names, is_ground
from everlog.dsl.checks.query_check import Scope, scope_of
from everlog.dsl.checks.scopes import resolve
from everlog.dsl.checks.stratify import check_strata, may_count
from everlog.dsl.diagnostics import Diagnostic, Report, deep_nesting
from everlog.dsl.parser import parse
from everlog.dsl.preprocess import Problem, load, preprocess_text
from everlog.dsl.source import Source

_UNREAD = ("DL00", "DL01", "DL1")  # codes of text that could not be parsed


@frozen
class Checked:
    """What is known of a program after its checks, sound or not."""

    declared: Declarations | None = None  # None if it was nested too deeply to be checked
    clauses: tuple[FlatClause, ...] = ()  # those that are sound
    _lowered: Callable[[], core.Program | None] = lambda: None

    @cached_property
    def program(self) -> core.Program | None:
        """The program; None if there are errors.  It is made when it is first asked for."""
        with collector_paused():
            return self._lowered()

    @property
    def scope(self) -> Scope | None:
        """The scope of queries; None if the program has errors."""
        if self.program is None or self.declared is None:
            return None
        return scope_of(self.declared, self.clauses)


def check(program: ast.Program, report: Report) -> core.Program | None:
    """The checked program; None if `report` has errors.

    Cost: linear in the program.
    """
    return examine(program, report).program


def examine(program: ast.Program, report: Report, lazy: bool = False) -> Checked:
    """Like `check`, with everything that the checker found.

    If it is `lazy`, a program is made when it is first asked for, unless that may find errors.
    """
    with collector_paused(), deep_nesting(report):
        restart_fresh_names()
        checker = _Checker(flatten(program, report), report)
        directives = checker.run()
        if any(not d.warning for d in report.items):
            return Checked(checker.declared, tuple(checker.flat))
        checked = Checked(checker.declared, tuple(checker.flat), lambda: checker.lowered(directives))
        if not lazy or checker.lowering_may_report:
            checked.program  # noqa: B018  # its errors belong to the report
        return checked
    return Checked()


def compile_text(text: str, file: str = "<text>", macros: Mapping[str, str] | None = None) -> core.Program:
    """The program of a text.

    >>> program = compile_text(".decl p(x:number)  p(1).  p(x + 1) :- p(x), x < 3.")
    >>> print(program.rules[0])
    p((x + 1)) :- p(x), x < 3.

    Raises `DatalogError` with every error.
    """
    source, problems = preprocess_text(text, file, macros=macros)
    return _compiled(source, report_of(source, problems))


def compile_file(
    path: Path | str,
    include_dirs: Sequence[Path] = (),
    macros: Mapping[str, str] | None = None,
    preprocess: bool = True,
) -> tuple[core.Program, Report]:
    """The program of a file and its warnings.

    Raises `DatalogError` with every error.
    """
    source, problems = load(path, include_dirs, macros, preprocess)
    report = report_of(source, problems)
    return _compiled(source, report), report


def diagnose(
    source: Source, problems: Sequence[Problem] = (), pragmas: Mapping[str, str] | None = None
) -> tuple[core.Program | None, Report]:
    """The program if it is correct, and in any case the report.

    `pragmas` come before those of the text.
    """
    program, report, _ = diagnose_in_scope(source, problems, pragmas)
    return program, report


def diagnose_in_scope(
    source: Source, problems: Sequence[Problem] = (), pragmas: Mapping[str, str] | None = None
) -> tuple[core.Program | None, Report, Scope | None]:
    """Like `diagnose`, with the scope that queries need."""
    report = report_of(source, problems)
    given: list[ast.Statement] = [ast.Pragma(key, value) for key, value in (pragmas or {}).items()]
    with collector_paused():
        tree = parse(source, report)
        checked = examine(ast.Program(given + tree.statements), report)
        return checked.program, report, checked.scope


def _compiled(source: Source, report: Report) -> core.Program:
    program = check(parse(source, report), report)
    report.raise_errors()
    assert program is not None
    return program


def report_of(source: Source, problems: Sequence[Problem]) -> Report:
    """A report that begins with the problems of the preprocessor."""
    report = Report(source)
    for p in problems:
        code, message, offset = p.code, p.message, p.offset
        stop = source.text.find("\n", offset)
        end = stop if stop >= 0 else len(source.text)
        report.items.append(Diagnostic(code, message, offset, max(end, offset + 1), hint=p.hint))
    return report


class _Checker:
    def __init__(self, statements: list[ast.Statement], report: Report) -> None:
        self.report = report
        self.statements = statements
        self.declared: Declarations = declarations(statements, report)
        declare_auxiliaries(statements, self.declared)
        self.facts: dict[str, list[core.Row]] = {}
        self.flat: list[FlatClause] = []
        self.maps: list[Best] = []
        self.defined: set[str] = set()
        self.origins: dict[tuple[int, int], core.Origin] = {}

    def run(self) -> Directives:
        """Check everything; only `lowered` may find more, if `lowering_may_report`."""
        syntax_errors = any(d.code.startswith(_UNREAD) for d in self.report.items)
        known = len(self.report.items)
        for statement in self.statements:
            match statement:
                case ast.FactLine():
                    self._fact_line(statement)
                case ast.Clause() | ast.Subsumption():
                    self._clause(statement)
                case _:
                    pass
        directives = check_directives(self.declared, self.report)
        self._warn_empty(directives)
        check_strata(self.flat, self.declared, self.report)
        self._aggregate_heads(directives)
        if syntax_errors:  # a statement that could not be parsed may declare what seems to be missing
            self.report.items[known:] = [d for d in self.report.items[known:] if d.code != "DL050"]
        return directives

    @property
    def lowering_may_report(self) -> bool:
        """Whether `lowered` can find errors: it inlines relations, and asks if strategies serve."""
        asked = any(getattr(flat.origin, "strategy", None) is not None for flat in self.flat)
        return asked or any(signature.unfolded for signature in self.declared.relations.values())

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    def _fact_line(self, fact: ast.FactLine) -> None:
        signature = self.declared.relations.get(fact.name)
        if signature is not None and signature.sound and not signature.inline:
            row = _converted(fact.values, signature.kinds)
            if row is not None:
                self.facts.setdefault(fact.name, []).append(row)
                return
        self._clause(_as_clause(fact, self.report.source))

    # ── clauses ──────────────────────────────────────────────────────────────────────────────

    def _clause(self, statement: ast.Clause | ast.Subsumption) -> None:
        """Check a clause by itself; keep its flat clauses if it is sound."""
        heads = [statement.dominated] if isinstance(statement, ast.Subsumption) else statement.heads
        self.defined |= {head.name for head in heads}
        if not check_names(statement, self.declared, self.report):
            return
        if isinstance(statement, ast.Clause) and statement.body is None and is_ground(statement.heads[0]):
            before = len(self.report.items)
            flat = FlatClause(statement.heads[0], [], statement)
            ClauseKinds(self.declared, self.report).infer(flat)
            if len(self.report.items) == before:
                self._ground_fact(flat)
            return
        for flat in flat_clauses(statement, self.report):
            inline = self.declared.relations[flat.head.name].inline
            sound = resolve(flat, self.report, head_grounded=inline)
            ClauseKinds(self.declared, self.report).infer(flat)
            if sound:
                self.flat.append(flat)

    def _aggregate_heads(self, directives: Directives) -> None:
        """Move the aggregates of heads into bodies, and note the relations that are maps."""
        given = {*self.facts, *(directive.relation for directive in directives.inputs)}
        self.flat, new, self.maps = settle_aggregates(self.flat, self.declared, given, self.report)
        for flat in new:
            resolve(flat, self.report)
            ClauseKinds(self.declared, self.report).infer(flat)

    def _ground_fact(self, flat: FlatClause) -> None:
        """Store a fact of literals.

        A fact that computes, or that is inlined, stays a rule without body.
        """
        atom = Lowering(ClauseKinds(self.declared, self.report)).atom(flat.head)
        literal = all(isinstance(a, core.Constant) for a in atom.args)
        if literal and not self.declared.relations[atom.relation].inline:
            row = tuple(a.value for a in atom.args if isinstance(a, core.Constant))
            self.facts.setdefault(atom.relation, []).append(row)
        else:
            self.flat.append(flat)

    # ── the program as a whole ───────────────────────────────────────────────────────────────

    def _warn_empty(self, directives: Directives) -> None:
        if any(d.code.startswith(_UNREAD) for d in self.report.items):
            return  # a statement that could not be parsed may define it
        defined = self.defined | set(self.facts) | {d.relation for d in directives.inputs}
        for name, signature in self.declared.relations.items():
            if name not in defined and not signature.auxiliary_of:
                message = f"relation `{name}` has no rules, no facts and no `.input`: it is empty"
                self.report.warn("DL060", message, signature.node)

    def lowered(self, directives: Directives) -> core.Program | None:
        expanded = expand(self.flat, self.declared, self.report)
        quiet = Report(self.report.source)
        counting = may_count(self.report)
        inlining = any(s.unfolded for s in self.declared.relations.values())
        rules: list[core.Rule] = []
        subsumptions: list[core.Subsumption] = []
        counts: dict[str, int] = {}
        clauses: dict[str, FlatClause] = {}
        requested: dict[str, ast.Strategy] = {}
        for flat in expanded:
            if inlining and not resolve(flat, self.report):
                continue
            kinds = flat.kinds
            if inlining:
                kinds = ClauseKinds(self.declared, quiet)
                kinds.infer(flat)
            origin = self._origin(flat)
            if flat.dominating is not None:
                warn_of_subsumption(flat, self.report)
                subsumptions.append(Lowering(kinds).subsumption(flat, origin))
                continue
            number = counts[flat.head.name] = counts.get(flat.head.name, 0) + 1
            if not flat.false:
                rule = Lowering(kinds, counting).rule(flat, f"{flat.head.name}#{number}", origin)
                clauses[rule.name] = flat
                strategy = flat.origin.strategy if isinstance(flat.origin, ast.Clause) else None
                if strategy is not None:
                    requested[rule.name] = strategy
                    rule = evolve(rule, strategy=strategy.name)
                rules.append(rule)
        if any(not d.warning for d in self.report.items):
            return None
        subsumptions += [self._map(best, directives) for best in self.maps]
        inlined = {n for n, s in self.declared.relations.items() if s.inline}
        program = core.Program(
            relations={n: self._relation(n, directives) for n in self.declared.relations if n not in inlined},
            rules=tuple(rules),
            facts={n: tuple(rows) for n, rows in self.facts.items()},
            subsumptions=tuple(subsumptions),
            inputs=directives.inputs,
            outputs=directives.outputs,
            printsizes=directives.printsizes,
            limits=directives.limits,
            functors=self.declared.functors,
            pragmas=self.declared.pragmas,
        )
        program = with_orders(program, clauses, self.report)
        sound = check_monotone(program, self.maps, clauses, self.declared, self.report)
        sound = self._views_serve(program) and sound
        return program if sound and self._strategies_serve(program, requested) else None

    def _views_serve(self, program: core.Program) -> bool:
        """Whether each relation that is declared a view can be one."""
        before = len(self.report.items)
        for directive in self.declared.directives:
            for node in directive.relations if directive.kind == "view" else ():
                why = why_no_view(program, node.name)
                if why:
                    self.report.error("DL085", f"`{node.name}` cannot be a view: {why}", node)
        return len(self.report.items) == before

    def _map(self, best: Best, directives: Directives) -> core.Subsumption:
        where = self.report.source.locate(self.declared.relations[best.relation].node.pos)
        return best.subsumption(self._relation(best.relation, directives), core.Origin("", where.file, where.line))

    def _strategies_serve(self, program: core.Program, requested: dict[str, ast.Strategy]) -> bool:
        """Whether each strategy that a rule names exists and can maintain the rule."""
        if not requested:
            return True
        from everlog.core.engine.planning.plan import refusals  # loaded lazily: few programs need it

        refused = refusals(program)
        for name, (message, hint) in refused.items():
            self.report.error("DL110", message, requested.get(name), hint=hint)
        return not refused

    def _origin(self, flat: FlatClause) -> core.Origin:
        """Where a clause stands; all clauses of one statement share its text."""
        node = flat.origin
        known = self.origins.get((node.pos, node.end))
        if known is None:
            where = self.report.source.locate(node.pos)
            known = core.Origin(self.report.source.text[node.pos : node.end], where.file, where.line)
            self.origins[node.pos, node.end] = known
        return known

    def _relation(self, name: str, directives: Directives) -> core.Relation:
        signature = self.declared.relations[name]
        columns = tuple(
            core.Column(a.name, k, a.type_name.removesuffix("<>"))
            for a, k in zip(signature.attributes, signature.kinds, strict=True)
        )
        position = {a.name: i for i, a in enumerate(signature.attributes)}
        choices = tuple(tuple(position[k.name] for k in c.keys) for c in signature.choices)
        insert_only = name in directives.insert_only
        eqrel = "eqrel" in signature.qualifiers
        magic = signature.qualifiers >= {"magic"}
        auxiliary_of, lattices, view = signature.auxiliary_of, signature.lattices, signature.view
        return core.Relation(name, columns, eqrel, choices, insert_only, auxiliary_of, lattices, magic, view)


def _converted(values: list[int | str], kinds: list[Kind]) -> core.Row | None:
    """The row of a fact line; None if it needs the full checker."""
    if len(values) != len(kinds):
        return None
    row: list[core.Value] = []
    value: core.Value
    for value, kind in zip(values, kinds, strict=True):
        if kind is Kind.SYMBOL:
            if value.__class__ is not str:
                return None
        elif not isinstance(value, int):
            return None
        elif kind is Kind.NUMBER:
            if not -(2**63) <= value < 2**63:
                return None
        elif kind is Kind.FLOAT:
            if not -(2**53) <= value <= 2**53:
                return None
            value = float(value)
        elif not 0 <= value < 2**64:
            return None
        row.append(value)
    return tuple(row)


def _as_clause(fact: ast.FactLine, source: Source) -> ast.Clause:
    """The same fact parsed by the grammar, for diagnostics with positions."""
    text = source.text[fact.pos : fact.end] + " //"  # the comment keeps it from being a fact line
    tree = parse(Source(text), Report(Source(text)))
    clause = tree.statements[0]
    assert isinstance(clause, ast.Clause)
    for node in (clause, clause.heads[0], *clause.heads[0].args):
        node.pos, node.end = node.pos + fact.pos, node.end + fact.pos
    return clause


__all__ = ["check", "compile_file", "compile_text", "diagnose"]
