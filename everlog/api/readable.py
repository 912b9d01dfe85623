"""The reading half of a database: facts, reasons, costs.  Nothing here changes it.

`Database` (everlog.api.database) adds the methods that write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from everlog.api.facts.rows import fact
from everlog.api.live import LiveText
from everlog.api.parameters import given
from everlog.api.queries import Queries
from everlog.api.results import Result
from everlog.api.transactions import Writer
from everlog.core.engine import Engine, Statistics
from everlog.core.engine.explain import cost_of, explain_plan, explanation
from everlog.core.evaluate.seminaive import evaluate
from everlog.core.program import Kind, Program, Relation, Row, Value
from everlog.core.program.fact_rows import declared
from everlog.dsl.printer import print_statement
from everlog.files.text_values import sorted_rows

if TYPE_CHECKING:  # imported by the functions that need them
    from everlog.core.engine.advice import Advice
    from everlog.core.evaluate.reports.shown_plans import ShownPlan
    from everlog.core.proofs import Proof, WhyNot
    from everlog.notebook.rule_graph import RuleGraph

_T = TypeVar("_T")


class Readable:
    """The methods of `Database` that only read."""

    _engine: Engine
    _writer: Writer
    _queries: Queries
    _live: LiveText | None
    _strategies: Mapping[str, str]

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    def query(self, text: str, /, **parameters: object) -> Result:
        """The values of the variables for which a conjunction holds, as at the prompt.

        >>> from everlog import Database
        >>> db = Database.from_text('''.decl edge(x:number, y:number)
        ...   edge(1, 2).  edge(1, 3).  edge(4, 4).''')
        >>> db.query("edge(1, y)"), db.query("edge(x, x)"), db.query("edge(x, _)")
        ([(2,), (3,)], [(4,)], [(1,), (4,)])
        >>> db.query("edge(a, b), b > 2, !edge(b, b)")
        [(1, 3)]
        >>> db.query("n = count : { edge(1, _) }").columns
        ('n',)

        The columns are the variables, in the order of their first occurrence; `_` and variables
        that begin with it are not shown.  A query without variables has one row without columns if
        it holds, and none if not: `bool` says which.  The text may begin with `?-` and end with `.`
        or `?`.  `facts` gives the whole facts that match an atom.

        Pass values from outside as parameters, and never paste them into the text: a parameter
        stays a value, whatever it contains.

        >>> db.query("edge($from, x), x < $limit", **{"from": 1, "limit": 3})
        [(2,)]

        The result is lazy, and belongs to the state in which the query was asked: see `Result`.
        `QueryError` lists every error in the text, with its place.
        """
        return self._queries.ask(text, given(parameters))

    def facts(self, text: str, /, **parameters: object) -> Result:
        """The whole facts that match an atom, all columns of them.

        >>> from everlog import Database
        >>> db = Database.from_text('''.decl edge(x:number, y:number)
        ...   edge(1, 2).  edge(1, 3).  edge(4, 4).''')
        >>> db.facts("edge(1, _)"), db.facts("edge(x, x)"), db.facts("edge($a, _)", a=4)
        ([(1, 2), (1, 3)], [(4, 4)], [(4, 4)])

        An index finds constants; a variable that occurs twice means equal values; `_` and other
        variables match any value.
        """
        return self._queries.ask(text, given(parameters), whole=True)

    def view(self, relation: str) -> list[Row]:
        """All facts of a relation, as a sorted copy, which does not follow later steps."""
        return self._read(lambda: list(self.rows(relation)))

    def rows(self, relation: str) -> Iterable[Row]:
        """All facts of a relation, sorted; use them before the next step."""
        found = declared(self.relations, relation)
        if any(column.kind is Kind.FLOAT for column in found.columns):
            return self._read(lambda: sorted_rows(found, self._engine.view(relation)))  # gives NaN a place
        return self._read(lambda: self._engine.rows(relation))

    def given(self, relation: str) -> list[Row]:
        """The base facts of a relation, from the program's text or inserted, sorted."""
        found = declared(self.relations, relation)
        return self._read(lambda: sorted_rows(found, self._engine.given(relation)))

    def holds(self, relation: str, row: object = None, /, **parameters: object) -> bool:
        """Whether a fact holds.

        Write `db.holds("path", (1, 3))`, `db.holds("path(1, 3)")`, or
        `db.holds("path($x, 3)", x=1)`.
        """
        name, values = fact(self.relations, relation, row, given(parameters))
        found = self._read(lambda: next(iter(self._engine.lookup(name, dict(enumerate(values)))), None))
        return found is not None

    def lookup(self, relation: str, values: Mapping[int, Value]) -> list[Row]:
        """The facts with these values in these columns (counted from 0), unordered."""
        name = declared(self.relations, relation).name
        return self._read(lambda: list(self._engine.lookup(name, values)))

    def size(self, relation: str) -> int:
        """The number of facts in a relation."""
        name = declared(self.relations, relation).name
        return self._read(lambda: self._engine.size(name))

    def kept(self, relation: str) -> int:
        """The number of facts that are there now: of a relation on demand, those asked for."""
        name = declared(self.relations, relation).name
        return self._read(lambda: self._engine.kept(name))

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations with their columns, in the order of declaration."""
        return self._writer.relations

    def __iter__(self) -> Iterator[str]:
        """The names of the relations."""
        return iter(self.relations)

    def __contains__(self, relation: object) -> bool:
        return relation in self.relations

    # ── the program ──────────────────────────────────────────────────────────────────────────

    @property
    def program(self) -> Program:
        """The program as it runs now."""
        return self._engine.program

    @property
    def rules(self) -> Mapping[str, str]:
        """The text of each rule, by name."""
        return MappingProxyType({rule.name: rule.written for rule in self.program.rules})

    def statements(self, added: bool = False) -> list[str]:
        """The statements of the program except facts; with `added`, those of `add_rule`."""
        return [] if self._live is None else [print_statement(s) for s in self._live.statements(added)]

    def warnings(self, added: bool = False) -> list[str]:
        """The checker's warnings, as text; with `added`, about the last `add_rule`."""
        return [] if self._live is None else self._live.warnings(added)

    # ── reasons ──────────────────────────────────────────────────────────────────────────────

    def why(self, relation: str, row: object = None, /, **parameters: object) -> Proof:
        """A proof of a fact from base facts: `.text()`, `.to_json()` or `.to_dot()`.

        >>> from everlog import Database
        >>> text = ".decl n(x:number)  .decl m(x:number)  m(x + 1) :- n(x).  n(1)."
        >>> db = Database.from_text(text)
        >>> print(db.why("m(2)").text())
        m(2)   m#1 at <text>:1:  m(x + 1) :- n(x).
        └── n(1)   given

        Raises `NotDerived` if the fact does not hold: see `why_not`.  Pass values from outside as a
        row, or as parameters: `db.why("m($x)", x=2)`.
        """
        from everlog.core.proofs import why
        from everlog.core.proofs.demanded_facts import with_evidence
        from everlog.notebook.drawn_proofs import drawn_proof

        asked = fact(self.relations, relation, row, given(parameters))
        return drawn_proof(self._read(lambda: with_evidence(self._all_tables(), *asked, why)))

    def why_not(self, relation: str, row: object = None, /, **parameters: object) -> WhyNot:
        """What each rule lacks to derive a fact: `.text()`, `.to_json()` or `.to_dot()`."""
        from everlog.core.proofs import why_not
        from everlog.core.proofs.demanded_facts import with_everything
        from everlog.notebook.drawn_proofs import drawn_why_not

        asked = fact(self.relations, relation, row, given(parameters))
        return drawn_why_not(self._read(lambda: why_not(with_everything(self._all_tables()), *asked)))

    def _all_tables(self) -> Engine:
        """The engine, with auxiliary relations as tables."""
        self._engine.read_all()
        return self._engine

    def explain(self, name: str | None = None) -> str:
        """The strategy and the cost of updates, for all or for one relation or rule.

        For a query, the relations that are read instead of parts of its body, with the mapping that
        proves that they may be.

        >>> from everlog import Database
        >>> db = Database.from_text('''
        ...   .decl r(a:number, b:number)  .decl s(a:number, c:number)  .decl q(a:number)
        ...   q(a) :- r(a, b), s(a, c).''')
        >>> print(db.explain("q#1"))  # doctest: +ELLIPSIS
        q#1  q(a) :- r(a, b), s(a, c).
          class        hierarchical: ...
          widths       w = 1, ŵ = 1
          order        a
          one update   O(1), plus the facts that change
          in use       delta: hierarchical; of two atoms, the indexes of delta are the view tree
          run with     r without its second column
          run with     s without its second column
        """
        if name is not None and "(" in name:
            return self._read(lambda: self._queries.explained(name))
        engine = self._engine
        demands, moved, own = engine.demands.asked, engine.moved, engine.own_facts
        return explain_plan(self.program, False, self._strategies, name, moved, demands, own)

    def plans(self, name: str | None = None) -> list[ShownPlan]:
        """How rules join with the facts that are there: as a whole, and from a change of each atom.

        >>> from everlog import Database
        >>> db = Database.from_text('''
        ...   .decl e(x:number, y:number)  .decl q(x:number, z:number)
        ...   e(1, 2).  e(2, 3).  e(2, 4).  q(x, z) :- e(x, y), e(y, z).''')
        >>> print(*db.plans("q")[0].lines(), sep="\\n")
        q(x, z) :- e(x, y), e(y, z).
          scan e(x, y)          expected        3.0   tried          3   kept          3
          index on y: e(y, z)   expected        4.5   tried          2   kept          2
        """
        return self._read(lambda: list(self._engine.join_plans(name)))

    def explanation(self) -> dict[str, Any]:
        """The explanation as an object for JSON: see docs/costs.md."""
        return explanation(self.program, self._strategies, self._engine.moved, self._engine.own_facts)

    def graph(self) -> RuleGraph:
        """The relations with what each reads: a notebook draws them."""
        from everlog.notebook.rule_graph import RuleGraph

        return RuleGraph(self.explanation())

    def strategy_of(self, relation: str) -> str:
        """The strategy that maintains a relation: `given`, `counts`, `ranked`, …"""
        return self._engine.strategy_of(declared(self.relations, relation).name)[0]

    def cost(self, rule: str) -> str:
        """The class and the cost of one rule, in one line.

        >>> from everlog import Database
        >>> db = Database.from_text(".decl n(x:number)  .decl m(x:number)  m(x + 1) :- n(x).")
        >>> db.cost("m#1")
        'no join; one update costs O(1)'
        """
        return cost_of(self.program, rule, self._strategies, self._engine.own_facts)

    def stats(self) -> Statistics:
        """Facts, bytes and time of each relation, runs and time of each rule.

        `print` shows a table.
        """
        return self._read(self._engine.statistics)

    def advise(self) -> list[Advice]:
        """Which relations are worth their memory, from what was read and measured so far.

        >>> from everlog import Database
        >>> db = Database.from_text(".decl n(x:number)  .decl m(x:number)  m(x) :- n(x).  n(1).")
        >>> found = db.advise()[0]
        >>> found.name, found.action, found.change
        ('m', 'drop', '.drop m')
        """
        from everlog.core.engine.advice import advise

        heard = {each.relation for each in self._writer.subscribers.all if each.relation is not None}
        return self._read(lambda: advise(self._engine, heard))

    def check(self) -> list[str]:
        """The names of relations that differ from an evaluation from scratch: none.

        Cost: that of an evaluation of the whole program.
        """
        return self._read(self._checked)

    def _checked(self) -> list[str]:
        self._engine.check()
        given = {name: self._engine.given(name) for name in self.relations}
        scratch = evaluate(evolve(self.program, facts={}), given, limits=self._engine.guard.limits)
        own = [name for name, relation in self.relations.items() if not relation.auxiliary_of]
        return [name for name in own if scratch.relation(name) != self._engine.view(name)]

    def _read(self, find: Callable[[], _T]) -> _T:
        """Run `find` while no other thread writes."""
        return self._writer.state.read(find)

    def __repr__(self) -> str:
        facts = sum(map(self._engine.kept, self.relations))
        return f"<Database: {len(self.relations)} relations, {len(self.program.rules)} rules, {facts} facts>"
