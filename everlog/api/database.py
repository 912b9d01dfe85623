"""The front door: a program, its base facts, and relations that stay current.

A `Database` holds a checked program and the engine that runs it.  Input is checked first (`rows`),
then applied as one step (`transactions`); then subscribers receive the changes (`subscriptions`).
The program itself can change (`live`).  The read-only methods are in `readable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, overload

from everlog.api.changes import Changes
from everlog.api.facts.rows import Step, checked_rows, step_updates, updates
from everlog.api.live import LiveText, RuleError, with_functors
from everlog.api.matching import deletes, sets, stays, upserts
from everlog.api.queries import Queries
from everlog.api.readable import Readable
from everlog.api.relation_view import RelationView
from everlog.api.saved import load_facts, save_facts
from everlog.api.subscriptions import Callback, Subscription, Wanted
from everlog.api.transactions import Transaction, Writer
from everlog.core.engine import Engine
from everlog.core.program import Program, Row, Value
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import declared, plain_test
from everlog.core.runtime.guards import Limits, Progress
from everlog.dsl.checks.query_check import Scope
from everlog.files import connect
from everlog.files.connect import Parameter, Where
from everlog.functors import functors_beside
from everlog.initial_facts import Facts, facts_to_begin_with

if TYPE_CHECKING:  # imported by the functions that need them
    from everlog.api.how import Answers
    from everlog.api.watching import Watch
    from everlog.store.durable_database import DurableDatabase

Functions: TypeAlias = Mapping[str, Callable[..., Value]]

_NO_TEXT = "this database has no text to change: make it with `Database.from_text` or `from_file`"


class Database(Readable):
    """A program and its relations, which follow every insert and delete.

    >>> db = Database.from_text('''
    ...   .decl edge(x:number, y:number)
    ...   .decl path(x:number, y:number)
    ...   path(x, y) :- edge(x, y).
    ...   path(x, z) :- path(x, y), edge(y, z).''')
    >>> print(db.insert("edge", [(1, 2), (2, 3)]))
    +edge(1, 2).
    +edge(2, 3).
    +path(1, 2).
    +path(1, 3).
    +path(2, 3).
    >>> db.query("path(1, x)")
    [(2,), (3,)]
    >>> print(db.delete("edge", (2, 3)))
    -edge(2, 3).
    -path(1, 3).
    -path(2, 3).

    Every method that writes is one step: it is applied as a whole, or raises and changes nothing.
    `FactError` means that a fact does not fit its relation, `EvaluationError` that a rule cannot be
    evaluated on some values, and its subclass `LimitExceeded` that the step exceeded a limit.

    Base facts may be inserted into any relation, also into one with rules; the facts in the
    program's text are base facts.  A delete removes base facts: a fact that rules derive stays.

    A database belongs to one thread at a time: if two use it at once, the second gets
    `OtherThread`.  Use `SharedDatabase` for several threads.
    """

    def __init__(
        self,
        program: Program,
        *,
        functors: Functions | None = None,
        facts: Facts | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
        strategies: Mapping[str, str] | None = None,
    ) -> None:
        """A database of a checked program.

        `functors` are Python functions for the functors that it declares.  `facts` are the initial
        base facts: rows by relation, or the folder of the `.input` files (which are not read
        otherwise).  `limits` hold for each step; `progress` is called during long steps with
        relations, iteration and facts so far.  `strategies` selects how to maintain relations or
        rules, such as {"q": "view_tree", "path#2": "ranked"}, or {"*": "calibrated"} for all that
        a strategy can serve; it overrides the program's text.  `NoSuchStrategy` reports a strategy
        that cannot serve its relation.

        Such a database has no text, so its rules cannot be changed: see `from_text`.
        """
        program = with_functors(program, functors or {})
        engine = Engine(program, limits=limits, progress=progress, strategies=strategies)
        self._begin(engine, None, functors, strategies)
        if facts is not None:
            self._writer.commit_rows(facts_to_begin_with(engine.program, facts))
            self._writer.changes = Changes({}, self._writer.relations)

    def _begin(
        self,
        engine: Engine,
        live: LiveText | None,
        functors: Functions | None,
        strategies: Mapping[str, str] | None,
    ) -> None:
        """Initialize from an engine."""
        self._functors, self._strategies = dict(functors or {}), dict(strategies or {})
        self._live = live
        self._engine = engine
        self._writer = Writer(engine)
        self._prepare()

    @classmethod
    def _of(
        cls,
        engine: Engine,
        live: LiveText | None,
        functors: Functions | None,
        strategies: Mapping[str, str] | None,
    ) -> Database:
        database = cls.__new__(cls)
        database._begin(engine, live, functors, strategies)
        return database

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        functors: Functions | None = None,
        facts: Facts | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
        strategies: Mapping[str, str] | None = None,
        file: str = "<text>",
        include_dirs: Sequence[Path] = (),
        macros: Mapping[str, str] | None = None,
    ) -> Database:
        """A database of a program's text.  Raises `DatalogError` with every error in it."""
        live = LiveText.from_text(text, file, include_dirs, macros or {})
        database = cls(
            live.program, functors=functors, facts=facts, limits=limits, progress=progress, strategies=strategies
        )
        database._live = live
        return database

    @classmethod
    def open(
        cls,
        path: Path | str,
        program: Program | None = None,
        *,
        text: str | None = None,
        file: Path | str | None = None,
        read_only: bool = False,
        history: int | str | None = None,
        functors: Functions | None = None,
        facts: Facts | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
        strategies: Mapping[str, str] | None = None,
        include_dirs: Sequence[Path] = (),
        macros: Mapping[str, str] | None = None,
    ) -> DurableDatabase:
        """The database in a file; each step is on disk before it is reported.

        A new file needs a checked `program`, or the `text` or the `file` of one; it starts with the
        facts of the program and `facts`, as step 0.  An existing file continues where it was; pass
        a program only to replace the one in the file.

        A `read_only` database can be opened while another process writes to it.  `history` is the
        number of steps that `checkpoint` keeps, or "all".  Functors are not stored: pass them
        whenever you open the database.  docs/durable.md says what is guaranteed.
        """
        from everlog.store.opening import opened

        if sum(source is not None for source in (program, text, file)) > 1:
            raise ValueError("pass the program only once: as program=…, text=… or file=…")
        live: LiveText | None = None
        if text is not None:
            live = LiveText.from_text(text, "<text>", include_dirs, macros or {})
        elif file is not None:
            live = LiveText.from_file(file, include_dirs, macros or {})
            functors = functors_beside(live.program, file) if functors is None else functors
        return opened(
            path,
            written=program if live is None else live,
            functors=functors or {},
            strategies=strategies or {},
            limits=limits,
            progress=progress,
            facts=facts,
            history=history,
            read_only=read_only,
        )

    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        functors: Functions | None = None,
        facts: Facts | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
        strategies: Mapping[str, str] | None = None,
        include_dirs: Sequence[Path] = (),
        macros: Mapping[str, str] | None = None,
    ) -> Database:
        """A database of a program in a file.

        Without `functors`, they come from `functors.py` beside the program, as in `everlog run`.
        """
        live = LiveText.from_file(path, include_dirs, macros or {})
        if functors is None:
            functors = functors_beside(live.program, path)
        database = cls(
            live.program, functors=functors, facts=facts, limits=limits, progress=progress, strategies=strategies
        )
        database._live = live
        return database

    def _prepare(self) -> None:
        """Reset the caches of the program: row checks and compiled queries."""
        kinds = {name: tuple(c.kind for c in relation.columns) for name, relation in self.relations.items()}
        self._plain = {name: plain_test(of) for name, of in kinds.items()}
        self._queries = Queries(self._engine, self._scope, self.relations, self._writer.state)

    def _scope(self) -> Scope | None:
        return None if self._live is None else self._live.scope

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def insert(self, relation: str, rows: object = None) -> Changes:
        """Insert a row, rows or a fact as text, and update what follows from them.

        >>> db = Database.from_text(".decl age(who:symbol, years:number)")
        >>> db.insert("age", ("Ada", 36))
        Changes({'age': {('Ada', 36): 1}})
        >>> db.insert("age", [("Alan", 41)])["age"]
        {('Alan', 41): 1}
        >>> print(db.insert('age("Ada", 36)'))
        (no change)
        >>> db.insert("age", ("Ada", "36"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        everlog.core.program.fact_rows.FactError: age: column 2 (`years`:number): '36' is not ...

        A row is a tuple or a list of values; rows are any iterable of such.  A float column takes
        ints.  Rows may also be a table of pandas, Polars or Arrow, a dict of columns, or an array
        of numpy: columns are matched by name, or by position if no name is the relation's.
        """
        if rows.__class__ is tuple:
            plain = self._plain.get(relation)
            if plain is not None and plain(rows):
                return self._writer.update(relation, rows, True)
        if rows is None:
            return self._writer.apply(updates(self.relations, relation, rows, True))
        return self._writer.insert({relation: checked_rows(declared(self.relations, relation), rows)})

    def delete(self, relation: str, rows: object = None, /, **columns: object) -> Changes:
        """Delete base facts, and what follows from them alone.

        A row, rows or a fact as text; all facts that have certain values in certain columns; or all
        that match a text with `_`.

        >>> db = Database.from_text('''.decl emp(name:symbol, dept:symbol)
        ...   emp("ann", "it"). emp("bob", "it"). emp("cy", "hr").''')
        >>> print(db.delete("emp", dept="hr"))
        -emp("cy", "hr").
        >>> print(db.delete('emp(_, "it")'))
        -emp("ann", "it").
        -emp("bob", "it").
        >>> print(db.delete("emp", name="zed"))
        (no change: no base fact of `emp` matches)

        If nothing changes, `note` of the changes says why: no fact matches, or rules derive it.
        """
        if rows.__class__ is tuple and not columns:
            plain = self._plain.get(relation)
            if plain is not None and plain(rows):
                changes = self._writer.update(relation, rows, False)
                return changes if changes else self._noted(changes, relation, [rows])
        step, note = deletes(self._writer, relation, rows, columns)
        changes = self._writer.apply(step)
        if note:
            changes.note = note
            return changes
        return changes if changes or not step else self._noted(changes, step[0].relation, [u.row for u in step])

    def update(self, relation: str, values: Mapping[str, object], /, **columns: object) -> Changes:
        """Set columns of all base facts that have certain values in other columns.

        >>> db = Database.from_text('.decl emp(name:symbol, salary:number)  emp("bob", 2).')
        >>> print(db.update("emp", {"salary": 3}, name="bob"))
        -emp("bob", 2).
        +emp("bob", 3).
        >>> print(db.update("emp", {"salary": 3}, name="zed"))
        (no change: no base fact of `emp` matches)

        Without columns, all base facts are set.
        """
        step, note = sets(self._writer, relation, values, columns)
        changes = self._writer.apply(step)
        changes.note = note
        return changes

    def upsert(self, relation: str, rows: object, *, key: str | Iterable[str] | None = None) -> Changes:
        """Insert rows, and delete the base facts that have the same key.

        >>> db = Database.from_text('.decl emp(name:symbol, salary:number)  emp("bob", 2).')
        >>> print(db.upsert("emp", {"name": "bob", "salary": 3}, key="name"))
        -emp("bob", 2).
        +emp("bob", 3).

        The key is a column or several.  A relation that declares one `choice-domain` has it as its
        key: `.decl emp(name:symbol, salary:number) choice-domain name`.
        """
        return self._writer.apply(upserts(self._writer, relation, rows, key))

    def _noted(self, changes: Changes, relation: str, rows: list[Row]) -> Changes:
        """Say of deletes that changed nothing which facts are derived."""
        if not self._writer.joins():
            changes.note = self._read(lambda: stays(self._engine, self.relations[relation], rows))
        return changes

    def apply(self, step: Step, *, positions: Mapping[str, str] | None = None) -> Changes:
        """Apply inserts and deletes in order, as one step.

        >>> db = Database.from_text(".decl n(x:number)")
        >>> print(db.apply("+n(1).  // lines of a text\\n+n(2)."))
        +n(1).
        +n(2).
        >>> print(db.apply(["-n(1).", ("n", (3,), +1), Update("n", (2,), insert=False)]))
        -n(1).
        -n(2).
        +n(3).

        An update is an `Update`, a line `+fact.` or `-fact.`, or a tuple (relation, row, +1 or -1).

        `positions` say how far each source of changes has been read, by name.  They are stored with
        the step, all or nothing, also in a file: after a crash, a reader continues exactly where
        the last step ended.  A step that changes nothing stores them too.
        """
        return self._writer.apply(list(step_updates(self.relations, step)), positions)

    def what_if(self, step: Step = ()) -> Changes:
        """The changes that a step would cause, without making it.

        >>> text = ".decl n(x:number)  .decl m(x:number)  m(x) :- n(x), x > 1.  n(1)."
        >>> db = Database.from_text(text)
        >>> print(db.what_if("+n(2)."))
        +n(2).
        +m(2).
        >>> db.view("n"), db.view("m")
        ([(1,)], [])

        The step is applied and undone: nothing is stored, and no subscriber hears of it.  An error
        of the step, or a limit that it exceeds, is raised as by `apply`.  In an open transaction,
        the answer is what the transaction would change with this step at its end.  A database that
        was opened with `read_only=True` answers too.

        Cost: at most twice that of the step.
        """
        return self._writer.what_if(step_updates(self.relations, step))

    def how(
        self,
        goal: Step,
        *,
        change: Iterable[str] | None = None,
        keep: Iterable[str] = (),
        most: int | None = None,
        answers: int = 20,
        trials: int = 1000,
    ) -> Answers:
        """The least steps that make a fact come (`+fact`) or go (`-fact`).

        >>> db = Database.from_text('''
        ...   .decl edge(x:number, y:number)  .decl path(x:number, y:number)
        ...   path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).
        ...   edge(1, 2).  edge(2, 3).  edge(3, 4).''')
        >>> print(db.how("-path(1, 3)", keep=["path(2, x)"]))
        1  -edge(1, 2).
             also -path(1, 2).
             also -path(1, 4).
        (1 answer; there may be others: answers of more than 1 change were not searched)
        >>> print(db.apply(db.how("+path(4, 3)", most=1)[0].step).inserted("edge"))
        [(4, 3)]

        Each answer is minimal: no part of its step reaches the goal.  Each was tried, and tells
        its side effects; those with the fewest come first.  Nothing changes.

        `change` names the relations whose base facts may change.  By default any base fact may go,
        and facts may come into relations without rules.  Facts that match an atom of `keep` stay.
        `most` bounds the changes of one answer: by default, it is the number that the smallest
        answers have.  `answers` bounds their number, and `trials` the steps that are tried.  If the
        search stops there, `complete` is False and `remarks` say so.
        Values for new facts are those that occur somewhere in a column of the same type.
        """
        from everlog.api.how import answers as found
        from everlog.core.proofs.demanded_facts import with_everything
        from everlog.core.repairs import Bounds

        self._writer.require_no_transaction()
        engine = with_everything(self._engine)
        writer = self._writer if engine is self._engine else Writer(engine)
        return found(writer, goal, change, keep, Bounds(most, answers, trials))

    @property
    def positions(self) -> Mapping[str, str]:
        """The position of each source of changes at the last step: see `apply`."""
        return MappingProxyType(self._writer.positions)

    def insert_all(self, rows: Mapping[str, Iterable[Row]]) -> Changes:
        """Insert rows of several relations as one step.

        >>> db = Database.from_text(".decl n(x:number)  .decl m(x:number)")
        >>> print(db.insert_all({"n": [(1,)], "m": [(2,)]}))
        +n(1).
        +m(2).
        """
        return self._writer.insert(facts_to_begin_with(self.program, rows))

    def transaction(self) -> Transaction:
        """Collect inserts and deletes in a `with` block, and apply them as one step.

        >>> db = Database.from_text(".decl n(x:number)  n(1).")
        >>> with db.transaction() as tx:
        ...     tx.delete("n", (1,))
        ...     tx.insert("n", (2,))
        ...     db.view("n")                     # still the old state
        [(1,)]
        >>> print(tx.changes)
        -n(1).
        +n(2).

        An exception inside discards everything.  While it is open, writes of this thread to the
        database itself are collected as well: `db.insert("n", (3,))` acts as `tx.insert("n", (3,))`
        and returns no changes.  Queries see the old state.  Rules cannot be changed inside
        (`NestedWrite`), and other threads cannot write at all (`OtherThread`).
        """
        return Transaction(self._writer)

    @property
    def changes(self) -> Changes:
        """What the last step changed."""
        return self._writer.changes

    # ── as a mapping ─────────────────────────────────────────────────────────────────────────

    def __getitem__(self, relation: str) -> RelationView:
        """A view of a relation, to be read and written like a set of rows.

        >>> db = Database.from_text(".decl edge(x:number, y:number)")
        >>> db["edge"] += [(1, 2), (2, 3)]
        >>> db["edge"] -= [(1, 2)]
        >>> (2, 3) in db["edge"], len(db["edge"])
        (True, 1)
        """
        return RelationView(self, relation)

    def __setitem__(self, relation: str, rows: object) -> None:
        """Replace the base facts of a relation by these, as one step."""
        found = declared(self.relations, relation)
        if isinstance(rows, RelationView):
            if rows._database is self and rows.name == relation:
                return  # the end of `db[relation] += …`
            rows = rows.rows()
        self._replace_base_facts({found.name: checked_rows(found, rows)})

    # ── notifications ────────────────────────────────────────────────────────────────────────

    def subscribe(self, relation: str | None, callback: Callback) -> Subscription:
        """Call `callback(changes)` after each step that changes the relation.

        The relation None or "*" means any; an atom such as `path(1, x)` means the facts that match.
        Facts of a relation on demand (`magic`) are computed only for those who ask: such a
        subscription asks for its facts.

        >>> db = Database.from_text('''
        ...   .decl n(x:number)  .decl even(x:number)  even(x) :- n(x), x % 2 = 0.''')
        >>> with db.subscribe("even", print):
        ...     _ = db.insert("n", [(1,), (2,)])
        +even(2).
        >>> _ = db.insert("n", (4,))             # no longer subscribed

        Callbacks run in the order of subscription, each with the changes of its relation.  If some
        raise, all others are still called, and the step stays applied; then the caller gets an
        `ExceptionGroup`.  A callback reads the state after the step; if it writes, it gets
        `NestedWrite`.
        """
        return self._writer.subscribers.add(*self._subscribable(relation, callback))

    def _subscribable(self, wanted: str | None, callback: Callback) -> tuple[str | None, Callback, Wanted | None]:
        from everlog.api.wanted import WantedFacts, pattern_wanted

        if wanted is None or wanted == "*":
            return None, callback, None
        pattern = pattern_wanted(self._writer, wanted)
        relation = pattern.relation
        if relation.auxiliary_of:
            self.size(relation.name)  # makes a lazy relation be maintained from now on
        return relation.name, callback, WantedFacts(self._writer, pattern)

    def watch(self, relation: str | None = None, *, limit: int = 1000) -> Watch:
        """The changes of a relation, of facts that match an atom, or of all, as an async iterator.

        >>> import asyncio
        >>> db = Database.from_text(".decl n(x:number)")
        >>> async def main():
        ...     async with db.watch("n") as steps:
        ...         db.insert("n", (1,))
        ...         db.insert("n", (2,))
        ...         print(await anext(steps), await anext(steps))
        >>> asyncio.run(main())
        +n(1). +n(2).

        It yields one `Changes` for each step from now on.  A step never waits for a reader: if
        `limit` steps are unread, the latest two become one, with their net change (`merged` counts
        these).  `close()`, or the end of an `async with` block, ends it.  Another thread than the
        reader's may write to the database.
        """
        from everlog.api.watching import Watch

        return Watch(lambda hear: self.subscribe(relation, hear), limit)

    # ── the program ──────────────────────────────────────────────────────────────────────────

    def add_rule(self, text: str, *, functors: Functions | None = None) -> Changes:
        """Add statements to the program: rules, facts, declarations, directives.

        >>> db = Database.from_text(".decl edge(x:number, y:number)  edge(1, 2).")
        >>> print(db.add_rule(".decl back(x:number, y:number)  back(y, x) :- edge(x, y)."))
        +back(2, 1).
        >>> print(db.drop_rule("back#1"))
        -back(2, 1).

        The whole program is checked; if it has errors, `DatalogError` lists them, and nothing has
        changed.  Only what depends on the new statements is recomputed.
        """
        return self._change(partial(LiveText.with_statements, text=text), functors)

    def relation(self, name: str, table: object) -> RelationView:
        """Declare a relation for a table, with inferred columns, and insert its rows.

        >>> db = Database.from_text("")
        >>> db.relation("person", [{"name": "ada", "born": 1815}, {"name": "alan", "born": 1912}])
        <person(name:symbol, born:number): 2 facts>
        >>> db.query("person(who, year), year > 1900")
        [('alan', 1912)]

        See `everlog.over` for tables, and docs/own-data.md for what nulls, dates and others become.
        """
        from everlog.tables.inferred import infer, known_types

        found = infer(name, table)
        self.add_rule(found.declaration(known_types("\n".join(self.statements()))))
        self.insert_all({found.relation.name: found.rows})
        return self[found.relation.name]

    def drop_rule(self, name_or_text: str) -> Changes:
        """Drop a rule by its name, such as `path#2`, or any statement by its text.

        Base facts that were inserted stay: only facts that the dropped text states go with it.
        The other rules keep their names.
        """
        return self._change(partial(LiveText.without_statement, name_or_text=name_or_text))

    def drop_relation(self, name: str) -> Changes:
        """Drop a relation with its declaration, rules, facts and directives.

        Raises if another statement uses it.
        """
        return self._change(partial(LiveText.without_relation, name=name))

    def replace_program(self, path: Path | str, *, functors: Functions | None = None) -> Changes:
        """Replace the program by the text of a file.

        Inserted base facts stay, and rules in the same place keep their names.  The facts that the
        old text states go with it.  If the text has errors, `DatalogError` lists them, and nothing
        has changed.
        """
        if self._live is None:
            raise RuleError(_NO_TEXT)
        other = LiveText.from_file(path, self._live.include_dirs, self._live.macros)
        found = functors_beside(other.program, path) if functors is None else functors
        return self._switch_program(self._live.replaced_by(other), self._functors | dict(found), other.digest)

    def _change(self, edit: Callable[[LiveText], LiveText], more: Functions | None = None) -> Changes:
        if self._live is None:
            raise RuleError(_NO_TEXT)
        return self._switch_program(edit(self._live), self._functors | dict(more or {}))

    def _switch_program(self, live: LiveText, functors: Functions, digest: str | None = None) -> Changes:
        """Switch to another program; `digest` is that of a text that replaces it all."""
        from everlog.store.program_text import saved

        program = with_functors(live.program, functors)
        with self._engine.guard:  # Ctrl-C waits until all parts agree again
            changes = self._writer.commit_program(program, partial(saved, live), digest)
            self._live, self._functors = live, dict(functors)
            self._prepare()
        self._writer.notify(changes)
        return changes

    # ── facts in files ───────────────────────────────────────────────────────────────────────

    def save(self, path: Path | str) -> None:
        """Write the base facts of every relation to a folder, or create a database file.

        A folder, created if necessary, gets one file per relation: `NAME.facts`, tab separated, or
        `NAME.json` if symbols contain tabs or line breaks.  Either all files are written or, after
        `FactsError`, none.

        A name that ends in `.db`, `.sqlite` or `.everlog` is a file that `Database.open` reads,
        with the program in it; `StoreError` if it exists.
        """
        from everlog.store.copying import is_file_name

        if is_file_name(path):
            from everlog.store.opening import begin_file

            begin_file(Path(path).absolute(), self._engine, self._live if self._live is not None else self.program)
            return
        given = {name: self._engine.given(name) for name in self.relations}
        self._read(lambda: save_facts(Path(path), self.relations, given))

    @overload
    def load(self, folder: Path | str, /) -> Changes: ...

    @overload
    def load(
        self, relation: str, source: Where, /, *, replace: bool = False, **parameters: Parameter
    ) -> Changes: ...

    def load(
        self,
        relation: Path | str,
        source: Where | None = None,
        /,
        *,
        replace: bool = False,
        **parameters: Parameter,
    ) -> Changes:
        """Load base facts from a file, a table or a folder, as one step.

        `load("edge", "edges.parquet")` inserts all facts of a file or a URL; see
        `everlog.files.connect` for sources and parameters.  With `replace=True` they replace the
        relation's base facts.  After `FactsError` nothing has changed.

        `load(folder)` replaces the base facts of each relation that has a file in the folder, as
        `save` writes them.  Relations without a file there stay as they are; files without a
        relation are ignored.
        """
        if source is None:
            return self._replace_base_facts(load_facts(Path(relation), self.relations))
        found = declared(self.relations, relation)
        rows = connect.read_facts(found, source, **parameters)
        return self._replace_base_facts({found.name: rows}) if replace else self._writer.insert({found.name: rows})

    def _replace_base_facts(self, facts: Mapping[str, Iterable[Row]]) -> Changes:
        """Replace the base facts of these relations."""
        step: list[Update] = []
        for name, rows in facts.items():
            now, then = self._writer.given(name), set(rows)
            step += [Update(name, row, False) for row in now if row not in then]
            step += [Update(name, row) for row in then if row not in now]
        return self._writer.apply(step)

    def export(self, relation: str, target: Where, **parameters: Parameter) -> None:
        """Write all facts of a relation to a file or a table.

        For example `export("path", "paths.parquet")`; see `everlog.files.connect`.  Either all
        facts are written or, after `FactsError`, none, and the old content stays.
        """
        found = declared(self.relations, relation)
        self._read(lambda: connect.write_facts(found, self.rows(relation), target, **parameters))

    # ── limits and progress ──────────────────────────────────────────────────────────────────

    @property
    def limits(self) -> Limits:
        """The limits of one step; may be set."""
        return self._engine.guard.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._engine.guard.limits = limits

    @property
    def progress(self) -> Progress | None:
        """The callback for long steps; may be set.  Single updates are faster without it."""
        return self._engine.guard.progress

    @progress.setter
    def progress(self, progress: Progress | None) -> None:
        self._engine.guard.progress = progress

    def _repr_html_(self) -> str:
        from everlog.html import database_html

        return database_html(self)
