"""The names of sources and sinks (a path, `-` or a URL), and `follow`.

| name | source | sink |
|---|---|---|
| `-` | standard input | standard output |
| a path | a file, or a named pipe | a file to append to, or a named pipe |
| `tcp://127.0.0.1:9000`, `unix:///run/x.sock` | connect there and read | connect there and write |
| `tcp-listen://…`, `unix-listen://…` | accept clients that send | accept clients that read |
| `postgresql://…` | the tables of a database, live | tables that follow |
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from attrs import field, frozen

from everlog.api.database import Database
from everlog.files.location import reason
from everlog.files.rejects import BadRow, Refuse, abort, reject_line
from everlog.files.text_values import FactsError
from everlog.files.typed.typed_values import Convert
from everlog.stream import relations_of_interest
from everlog.streams.debezium import event_value
from everlog.streams.jsonsink import FileSink, ListenSink, PipeSink
from everlog.streams.jsonsource import JsonSource
from everlog.streams.lines import Lines, PipeLines, SocketLines
from everlog.streams.model import Sink, Source
from everlog.streams.naming import Naming
from everlog.streams.pipeline import Follower
from everlog.streams.postgres_tables import text_value
from everlog.streams.resolve import Resolver
from everlog.streams.sockets import SCHEMES, address_of

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_POSTGRES = ("postgresql", "postgres")
Tell: TypeAlias = Callable[[str], object]


@frozen
class Options:
    """The options of `follow`."""

    live: bool = False
    tables: Mapping[str, str] = field(factory=dict)
    keys: Mapping[str, Sequence[str]] = field(factory=dict)
    nulls: Mapping[str, str] = field(factory=dict)
    relations: Sequence[str] | None = None
    rejects: Path | None = None
    snapshot: bool = True
    slot: str | None = None
    via: str = "auto"
    tell: Tell | None = None


def follow(database: Database, sources: Sequence[str], sinks: Sequence[str], **options: Any) -> int:
    """Apply changes from sources and write results to sinks; the number of steps.

    >>> import json, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> event = {"before": None, "after": {"x": 1}, "source": {"table": "n"}, "op": "c"}
    >>> _ = (folder / "in.jsonl").write_text(json.dumps(event))
    >>> db = Database.from_text(".decl n(x:number)  .decl m(x:number)  m(x + 1) :- n(x).")
    >>> follow(db, [f"{folder}/in.jsonl"], [f"{folder}/out.jsonl"])
    1
    >>> [json.loads(line).get("after") for line in (folder / "out.jsonl").read_text().splitlines()]
    [None, {'x': 2}, None]

    It returns when all sources have ended; with `live=True` they do not end: a file may grow, a
    pipe may get another writer, tables change.  `tables` maps relations to tables with other names,
    `keys` maps relations to their key columns, `nulls` maps relations, or columns as
    "relation.column", to the value for null, as text.  `relations` are those whose changes are
    written; by default the `.output` relations, or those with rules.  With `rejects`, rows that do
    not fit go to that file, and the rest is applied; without, they raise `FactsError`.  With
    `snapshot=False`, readers of pipes and sockets get only changes.  For PostgreSQL, `slot` names a
    permanent replication slot, and `via` is "replication", "triggers" or "auto".  `tell` receives
    notes.

    docs/streams.md says what is guaranteed.
    """
    chosen = Options(**options)
    twice = [name for name in (*sources, *sinks) if sources.count(name) > 1 or sinks.count(name) > 1]
    if twice:
        raise FactsError(f"{twice[0]} occurs twice")
    with ExitStack() as closing:
        refuse = closing.enter_context(_rejecting(chosen.rejects, (*sources, *sinks)))
        opened: list[tuple[Source, Resolver]] = []
        for name in sources:
            source, naming, convert = open_source(name, database, chosen, refuse)
            opened.append((source, Resolver(database, naming, convert, refuse)))
            closing.callback(source.close)
        targets = []
        for name in sinks:
            targets.append(open_sink(name, database, chosen, sources))
            closing.callback(targets[-1].close)
        follower = Follower(database, opened, targets, refuse)
        follower.run()
    return follower.steps


def open_source(name: str, database: Database, options: Options, refuse: Refuse) -> tuple[Source, Naming, Convert]:
    """A source, the names of its tables, and the conversion of its values."""
    naming = Naming(database.relations, options.tables, options.keys, options.tell, options.nulls)
    scheme = _scheme(name)
    if scheme in _POSTGRES:
        from everlog.streams.postgres_source import PostgresSource

        postgres = PostgresSource(
            name, naming, refuse, live=options.live, slot=options.slot, via=options.via, tell=options.tell
        )
        return postgres, naming, text_value
    live, tell, path = options.live, options.tell, Path(name)
    opened: Callable[[], Lines] | None = None
    if scheme in SCHEMES:
        address = address_of(name)
        opened = partial(SocketLines, address, live)
    elif name == "-" or (path.exists() and not path.is_file()):
        opened = partial(PipeLines, None if name == "-" else path, live)
    source = JsonSource(name, naming, refuse, opened=opened, path=path, live=live, tell=tell)
    return source, naming, event_value


def open_sink(name: str, database: Database, options: Options, sources: Sequence[str] = ()) -> Sink:
    naming = Naming(database.relations, options.tables, options.keys)
    relations = options.relations
    if relations is None:
        interesting = relations_of_interest(database.program)
        relations = [name for name in database.relations if name in interesting]
    for relation in relations:
        database.size(relation)  # checks that it exists, and makes a lazy relation be maintained
    scheme = _scheme(name)
    if scheme in _POSTGRES:
        from everlog.streams.postgres_sink import PostgresSink

        derived = {rule.head.relation for rule in database.program.rules}
        circle = [relation for relation in relations if relation not in derived and name in sources]
        if circle:
            raise FactsError(f"relation {circle[0]} would be written to the table that it is read from")
        return PostgresSink(name, relations, naming)
    if scheme in SCHEMES:
        address = address_of(name)
        if address.listens:
            return ListenSink(address, relations, naming, options.snapshot)
        return PipeSink(lambda: address.connect().detach(), name, relations, naming, options.snapshot)
    path = Path(name)
    if any(path.exists() and Path(source).exists() and path.samefile(source) for source in sources):
        raise FactsError(f"{name} cannot be both a source and a sink")
    if name == "-":
        return PipeSink(lambda: 1, "standard output", relations, naming, options.snapshot)
    if path.exists() and not path.is_file():
        return PipeSink(lambda: _opened(path), name, relations, naming, options.snapshot)
    return FileSink(path, relations, naming)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY)
    except OSError as problem:
        raise FactsError(f"cannot write to {path}: {reason(problem)}") from None


def _scheme(name: str) -> str:
    found = _SCHEME.match(name)
    scheme = found[1] if found is not None else ""
    if scheme and "//" in name and scheme not in SCHEMES and scheme not in _POSTGRES:
        known = ", ".join(f"{one}://" for one in (*sorted(SCHEMES), "postgresql"))
        raise FactsError(f"{name}: {scheme}:// is not supported; use {known}, paths or -")
    return scheme


@contextmanager
def _rejecting(path: Path | None, others: Sequence[str]) -> Iterator[Refuse]:
    """The handler of rows that do not fit: raises an error, or appends to a file."""
    if path is None:
        yield abort
        return
    if any(_is_same(path, Path(other)) for other in others):
        raise FactsError(f"{path} cannot be both the rejects file and a source or sink")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as problem:
        raise FactsError(f"cannot write {path}: {reason(problem)}") from None

    def refuse(bad: BadRow) -> None:
        line = memoryview(reject_line(bad).encode())
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        except OSError as problem:
            raise FactsError(f"cannot write {path}: {reason(problem)}") from None

    try:
        yield refuse
    finally:
        os.close(descriptor)


def _is_same(path: Path, other: Path) -> bool:
    return path.absolute() == other.absolute() or (path.exists() and other.exists() and path.samefile(other))
