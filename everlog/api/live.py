"""The text of a program whose statements change while it runs.

The text is the source of truth.  A dropped statement is overwritten with blanks, an added one goes
to the end, and the whole text is checked again.  So the checker finds every error, lines keep their
numbers, and a wrong change is refused as a whole with its diagnostics.

Rules keep their names: a rule in the same place is still `path#2` after `path#1` is dropped, and a
new one gets an unused number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from attrs import evolve, frozen

from everlog.core import program as core
from everlog.core.program import Program, Rule, Value, atoms_of
from everlog.dsl import ast
from everlog.dsl.check import diagnose_in_scope
from everlog.dsl.checks.query_check import Scope
from everlog.dsl.diagnostics import DatalogError, Report
from everlog.dsl.fact_text import is_fact
from everlog.dsl.parser import parse_text
from everlog.dsl.preprocess import Problem, load, preprocess_text
from everlog.dsl.printer import print_statement
from everlog.dsl.source import Source
from everlog.functors import bind, require_functors

Span: TypeAlias = tuple[int, int]
Place: TypeAlias = tuple[str, str, int, str]  # head's relation, file, line, text

_RULE_NAME = re.compile(r"\s*[?\w.]+#[0-9]+\s*")
_VISIBLE = re.compile(r"[^\n]")


class RuleError(ValueError):
    """A rule or relation does not exist, or cannot be dropped by itself."""


@frozen
class LiveText:
    """An immutable program with its text; a change returns another one.

    `scope` is what queries may name.  `numbers` is, for each relation, the highest number that one
    of its rules ever had; `report` holds the checker's warnings.
    """

    source: Source
    program: Program
    scope: Scope
    include_dirs: Sequence[Path]
    macros: Mapping[str, str]
    numbers: Mapping[str, int]
    report: Report
    added: int = 0

    # ── from text ────────────────────────────────────────────────────────────────────────────

    @staticmethod
    def from_text(text: str, file: str, include_dirs: Sequence[Path], macros: Mapping[str, str]) -> LiveText:
        return _read(*preprocess_text(text, file, include_dirs, macros), include_dirs, macros)

    @staticmethod
    def from_file(path: Path | str, include_dirs: Sequence[Path], macros: Mapping[str, str]) -> LiveText:
        """Raises OSError if the file cannot be read."""
        return _read(*load(path, include_dirs, macros), include_dirs, macros)

    @staticmethod
    def from_source(
        source: Source, problems: Sequence[Problem], include_dirs: Sequence[Path], macros: Mapping[str, str]
    ) -> LiveText:
        """Check a text that was preprocessed before; `problems` are those found then."""
        return _read(source, problems, include_dirs, macros)

    @property
    def digest(self) -> str:
        """A hash of the text, independent of its file name."""
        return sha256(self.source.text.encode("utf-8", "surrogatepass")).hexdigest()

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    def with_statements(self, text: str, files: bool = True) -> LiveText:
        """The program with more statements; `files` says whether they may include files."""
        file = f"<added {self.added + 1}>"
        more, problems = preprocess_text(text, file, self.include_dirs, self.macros, files=files)
        before = self.source.text if self.source.text.endswith("\n") else self.source.text + "\n"
        origins = [*_origins(self.source)[: before.count("\n")], *_origins(more)]
        source = Source(before + more.text, self.source.file, origins)
        moved = [evolve(problem, offset=problem.offset + len(before)) for problem in problems]
        return evolve(self._checked(source, moved), added=self.added + 1)

    def without_statement(self, name_or_text: str) -> LiveText:
        """The program without a rule such as `path#2`, or without this statement."""
        return self._without(self._spans_of(name_or_text))

    def with_replaced(self, name_or_text: str, text: str, files: bool = True) -> LiveText:
        """The program with other statements in place of one: only the result is checked."""
        return evolve(self, source=self._blanked(self._spans_of(name_or_text))).with_statements(text, files)

    def _spans_of(self, name_or_text: str) -> list[Span]:
        """The places of a rule by its name, or of a statement by its text."""
        if _RULE_NAME.fullmatch(name_or_text):
            return [self._span_of_rule(name_or_text.strip())]
        tree, report = parse_text(name_or_text, "<dropped>")
        report.raise_errors()
        if len(tree.statements) != 1:
            raise RuleError(f"`{name_or_text.strip()}` is not one statement, and not the name of a rule")
        wanted = print_statement(tree.statements[0])
        found = [(s.pos, _end(s)) for s in self._statements() if print_statement(s) == wanted]
        if not found:
            raise RuleError(f"the program has no statement `{wanted}`")
        return found

    def without_relation(self, name: str) -> LiveText:
        """The program without a relation, its rules, facts and directives."""
        spans: list[Span] = []
        declared = False
        for statement in self._statements():
            match statement:
                case ast.RelationDecl(names=names):
                    here = _spans(statement, names, name)
                    declared = declared or bool(here)
                    spans += here
                case ast.Directive(relations=relations):
                    spans += _spans(statement, relations, name)
                case ast.Clause(heads=heads):
                    spans += _spans(statement, heads, name)
                case ast.Subsumption(dominated=ast.Atom(name=head)) | ast.FactLine(name=head) if head == name:
                    spans.append((statement.pos, statement.end))
                case _:
                    pass
        if not declared:
            if name in self.program.relations:
                raise RuleError(f"relation `{name}` belongs to a component's instance; drop its `.init` instead")
            raise RuleError(f"undefined relation `{name}`")
        users = self._users(name)
        if users:
            raise RuleError(f"relation `{name}` is used by {', '.join(users)}: drop what uses it first")
        return self._without(spans)

    def _users(self, name: str) -> list[str]:
        """The rules of other relations that read this one."""
        return [
            rule.name
            for rule in self.program.rules
            if rule.head.relation != name and any(atom.relation == name for atom, _ in atoms_of(rule.body))
        ]

    def replaced_by(self, other: LiveText) -> LiveText:
        """Another text, in which the rules found here keep their names."""
        program, numbers = _with_known_names(other.program, self.program, self.numbers)
        return evolve(other, program=program, numbers=numbers)

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def statements(self, added: bool = False) -> list[ast.Statement]:
        """The statements except facts; with `added`, only those that were added later."""
        return [
            statement
            for statement in self._statements()
            if not is_fact(statement)
            and (not added or self.source.locate(statement.pos).file.startswith("<added "))
        ]

    def warnings(self, added: bool = False) -> list[str]:
        """The checker's warnings; with `added`, about the last added statements."""
        last = f"<added {self.added}>"
        return [
            self.report.render(remark)
            for remark in self.report.sorted()
            if not added or (remark.pos >= 0 and self.source.locate(remark.pos).file == last)
        ]

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _statements(self) -> list[ast.Statement]:
        return parse_text(self.source.text)[0].statements

    def _span_of_rule(self, name: str) -> Span:
        rule = next((rule for rule in self.program.rules if rule.name == name), None)
        if rule is None:
            raise RuleError(f"no rule is named `{name}`")
        together = [r for r in self.program.rules if _place(r)[1:] == _place(rule)[1:]]
        text = self.source.text
        for statement in self._statements():
            if text[statement.pos : statement.end] == rule.origin.text:
                where = self.source.locate(statement.pos)
                if (where.file, where.line) == (rule.origin.file, rule.origin.line):
                    break
        else:
            raise RuleError(f"`{name}` belongs to a component's instance; drop its `.init` instead")
        heads = {head.name for head in statement.heads} if isinstance(statement, ast.Clause) else set()
        if sum(r.head.relation in heads for r in together) > 1 or rule.head.relation not in heads:
            names = ", ".join(r.name for r in together)
            raise RuleError(
                f"`{name}` is one of several rules of one statement ({names});"
                f" drop them all with its text: {rule.written}"
            )
        return statement.pos, _end(statement)

    def _without(self, spans: Iterable[Span]) -> LiveText:
        return self._checked(self._blanked(spans))

    def _blanked(self, spans: Iterable[Span]) -> Source:
        """Replace the spans with blanks, so that the rest keeps its places.

        Lines that were added later are removed as a whole: otherwise the text would grow without
        end.  The lines after them keep their own numbers.
        """
        text, gone = self.source.text, list(spans)
        for start, stop in gone:
            text = text[:start] + _VISIBLE.sub(" ", text[start:stop]) + text[stop:]
        origins, lines = _origins(self.source), text.split("\n")
        blank = {
            number
            for start, stop in gone
            for number in range(text.count("\n", 0, start), text.count("\n", 0, stop) + 1)
            if not lines[number].strip() and number < len(origins) and origins[number][0].startswith("<added ")
        }
        if not blank:
            return Source(text, self.source.file, self.source.origins)
        kept = [number for number in range(len(lines)) if number not in blank]
        text = "\n".join(lines[number] for number in kept)
        return Source(text, self.source.file, [origins[n] for n in kept if n < len(origins)])

    def _checked(self, source: Source, problems: Sequence[Problem] = ()) -> LiveText:
        new = _read(source, problems, self.include_dirs, self.macros)
        program, numbers = _with_known_names(new.program, self.program, self.numbers)
        return evolve(self, source=source, program=program, scope=new.scope, numbers=numbers, report=new.report)


def _read(
    source: Source, problems: Sequence[Problem], include_dirs: Sequence[Path], macros: Mapping[str, str]
) -> LiveText:
    program, report, scope = diagnose_in_scope(source, problems)
    report.items = [d for d in report.items if d.code != "DL060"]  # "relation is empty": it may fill up
    if program is None or scope is None:
        raise DatalogError(report)
    return LiveText(source, program, scope, include_dirs, macros, _highest(program.rules), report)


def _origins(source: Source) -> list[tuple[str, int]]:
    return source.origins or [(source.file, number) for number in range(1, source.text.count("\n") + 2)]


def _end(statement: ast.Statement) -> int:
    """The end of a statement, including the `.strategy` of a rule."""
    wish = statement.strategy if isinstance(statement, ast.Clause) else None
    return statement.end if wish is None else wish.end


def _spans(statement: Any, parts: Sequence[Any], name: str) -> list[Span]:
    """The spans to blank so that a statement no longer names one of its relations."""
    kept = [part for part in parts if part.name != name]
    if len(kept) == len(parts):
        return []
    if not kept:
        return [(statement.pos, _end(statement))]
    spans, first = [], parts.index(kept[0])
    for number, part in enumerate(parts):
        if part.name == name:  # with the comma after it, or before it
            spans.append(
                (part.pos, parts[number + 1].pos) if number < first else (parts[number - 1].end, part.end)
            )
    return spans


# ── ready to run ─────────────────────────────────────────────────────────────────────────────


def with_functors(program: Program, functors: Mapping[str, Callable[..., Value]]) -> Program:
    """The program with its functors; FunctorError if one that it uses is missing."""
    program = bind(program, functors)
    require_functors(program.functors, program.rules, program.relations.values())
    return program


# ── names ────────────────────────────────────────────────────────────────────────────────────


def _with_known_names(new: Program, old: Program, numbers: Mapping[str, int]) -> tuple[Program, Mapping[str, int]]:
    """The new program, whose rules keep the names of rules in the same place.

    If such a rule also has the same meaning, it *is* the old one: the checker numbers generated
    variables through the whole program, and rules must not differ by these numbers.
    """
    known: dict[Place, list[Rule]] = defaultdict(list)
    for rule in reversed(old.rules):
        known[_place(rule)].append(rule)
    used = {name: number for name, number in numbers.items() if name in new.relations}
    rules = []
    for rule in new.rules:
        before = known[_place(rule)].pop() if known[_place(rule)] else None
        if before is None:
            relation = rule.head.relation
            used[relation] = used.get(relation, 0) + 1
            rules.append(evolve(rule, name=f"{relation}#{used[relation]}"))
        else:
            same = _plain(before) == _plain(evolve(rule, name=before.name))
            rules.append(before if same else evolve(rule, name=before.name))
    return evolve(new, rules=tuple(rules)), used


def _highest(rules: Iterable[Rule]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for rule in rules:
        relation, _, number = rule.name.rpartition("#")
        numbers[relation] = max(int(number), numbers.get(relation, 0))
    return numbers


def _place(rule: Rule) -> Place:
    return rule.head.relation, rule.origin.file, rule.origin.line, rule.origin.text


def _plain(rule: Rule) -> Any:
    """The rule with its variables renumbered in the order of occurrence."""
    order: dict[str, int] = {}

    def walk(node: Any) -> Any:
        if isinstance(node, core.Variable):
            return ("variable", order.setdefault(node.name, len(order)))
        if isinstance(node, tuple):
            return tuple(map(walk, node))
        if isinstance(node, core.Origin) or not attrs.has(node.__class__):
            return node
        return (node.__class__, *(walk(getattr(node, a.name)) for a in attrs.fields(node.__class__) if a.eq))

    return walk(rule)
