"""Debezium's change events as lines of JSON, with markers of transactions.

    {"status": "BEGIN", "id": "7"}
    {"before": null, "after": {"x": 1}, "source": {"table": "n"}, "op": "c",
     "transaction": {"id": "7"}}                                        (on one line)
    {"status": "END", "id": "7", "event_count": 1}

Events may be wrapped as `{"schema": …, "payload": …}`; `null` lines (tombstones) and messages (`op`
`m`) are ignored.  Floats without a form in JSON are the strings "NaN", "Infinity" and "-Infinity";
numbers may be strings, as Debezium can write decimals.

For any line, `decode` raises only ValueError.  Its result can be printed, written as JSON and
compared: its nesting is bounded, each name occurs once in its object, and ids are texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import field, frozen

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.program.fact_rows import shown
from everlog.core.program.values import SIGNED_MAX
from everlog.files.text.json import json_value
from everlog.files.text_values import PARSERS
from everlog.files.typed.typed_values import typed_value
from everlog.streams.model import RowChange

OPS = frozenset("crudt")
CONNECTOR = "everlog"
BEGINNING = '{"status": "BEGIN", "id": "'  # begins each transaction that we write
_DEEPEST = 100  # levels of nesting: Python can read deeper ones, but neither print nor write them
_UNWRITABLE = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


@frozen
class Marker:
    """The beginning or the end of a transaction.

    At the end, `event_count` is the number of its events, and `counts` the number for each table,
    if known.  `problem` says why these are contradictory.
    """

    id: str
    begins: bool
    counts: Mapping[str, int] | None = None
    positions: Mapping[str, str] = field(factory=dict)
    event_count: int | None = None
    problem: str = ""


@frozen
class Event:
    """A change, with its transaction and its place in it.

    `snapshot` is the state of Debezium's snapshot, and `connector` the name of the sender.
    """

    change: RowChange
    transaction: str | None
    snapshot: str = "false"
    connector: str = ""
    order: int | None = None


Entry: TypeAlias = Event | Marker


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def decode(line: str, number: int = 0) -> Entry | None:
    """Parse a line; None if it says nothing; ValueError if it is no change event.

    >>> line = '{"before": null, "after": {"x": 1}, "source": {"table": "n"}, "op": "c"}'
    >>> decode(line).change.after
    {'x': 1}
    >>> decode('{"status": "BEGIN", "id": "7", "event_count": null}')
    Marker(id='7', begins=True, counts=None, positions={}, event_count=None, problem='')
    """
    value = _parsed(line)
    if isinstance(value, dict) and "payload" in value and "op" not in value:
        value = value["payload"]
    match value:
        case None:
            return None
        case {"status": "BEGIN", "id": id_}:
            return Marker(_id(id_), True)
        case {"status": "END", "id": id_}:
            return _end(_id(id_), value)
        case {"op": "m"}:
            return None
        case {"op": str(op)} if op in OPS:
            return _event(value, op, number)
        case {"op": op}:
            raise ValueError(f"unknown operation {shown(op)}: use c, u, d, r, t or m")
    raise ValueError(f"expected a change event with `op`, found {shown(value)}")


def _parsed(line: str) -> Any:
    try:
        value = json_value(line, object_pairs_hook=_object)
    except (ValueError, RecursionError) as problem:
        what = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise ValueError(f"not JSON: {what}: {shown(line)}") from None
    if line.count("{") + line.count("[") > _DEEPEST and _is_deep(value):
        raise ValueError(f"more than {_DEEPEST} levels of objects and arrays: {shown(line)}")
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON; ValueError if a name occurs twice, which is ambiguous."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has the name {shown(next(n for n in names if names.count(n) > 1))} twice")
    return found


def _is_deep(value: object) -> bool:
    """Whether a value is nested too deeply.

    >>> _is_deep([[[]]] * 1000), _is_deep(json.loads("[" * 200 + "]" * 200))
    (False, True)
    """
    level = [value]
    for _ in range(_DEEPEST + 1):
        inner = [of for of in level if isinstance(of, dict | list)]
        level = [part for of in inner for part in (of.values() if isinstance(of, dict) else of)]
    return bool(inner)


def _id(value: object) -> str:
    """The name of a transaction, which may be a number in the text."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"the id of a transaction must be a text, not {shown(value)}")


def _event(value: Mapping[str, object], op: str, number: int) -> Event:
    source = value.get("source")
    if not isinstance(source, Mapping) or not isinstance(source.get("table"), str):
        raise ValueError(f"a change event needs `source.table`, found {shown(source)}")
    before, after = _row(value, "before"), _row(value, "after")
    if op in "cru" and after is None:
        raise ValueError(f"a change with op={op} needs `after`")
    schema = source.get("schema")
    if not isinstance(schema, str | None):
        raise ValueError(f"`source.schema` must be a text or null, not {shown(schema)}")
    snapshot = source.get("snapshot")
    if not isinstance(snapshot, str | bool | None):
        raise ValueError(f"`source.snapshot` must be a text, true, false or null, not {shown(snapshot)}")
    table = f"{schema}.{source['table']}" if schema else str(source["table"])
    change = RowChange(table, op, before, after if op in "cru" else None, number)
    connector = source.get("connector")
    id_, order = _transaction(value.get("transaction"))
    return Event(
        change, id_, str(snapshot or False).lower(), connector if isinstance(connector, str) else "", order
    )


def _transaction(value: object) -> tuple[str | None, int | None]:
    """The id of an event's transaction, and its place there, if present."""
    match value:
        case None:
            return None, None
        case {"id": None}:
            return None, None
        case {"id": id_, **others}:
            order = others.get("total_order")
            return _id(id_), order if isinstance(order, int) and not isinstance(order, bool) else None
    raise ValueError(f"`transaction` must be null or have an `id`, not {shown(value)}")


def _row(value: Mapping[str, object], key: str) -> Mapping[str, object] | None:
    row = value.get(key)
    if row is None or isinstance(row, Mapping):
        return row
    raise ValueError(f"`{key}` must be an object or null, not {shown(row)}")


def _end(id_: str, value: Mapping[str, object]) -> Marker:
    """The end of a transaction, even if its counts are wrong."""
    try:
        counts, count = _counts(value.get("data_collections")), value.get("event_count")
        event_count = None if count is None else _count(count)
        if counts is not None and event_count is not None and sum(counts.values()) != event_count:
            raise ValueError(f"`event_count` is {event_count}, but its tables have {sum(counts.values())}")
    except ValueError as problem:
        return Marker(id_, False, problem=f"is contradictory: {problem}")
    return Marker(id_, False, counts, _texts(value.get("positions")), event_count)


def _counts(value: object) -> Mapping[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError(f"`data_collections` must be an array or null, not {shown(value)}")
    counts: dict[str, int] = {}
    for entry in value:
        match entry:
            case {"data_collection": str(table), "event_count": count} if table not in counts:
                counts[table] = _count(count)
            case _:
                raise ValueError(
                    f"`data_collections` must have each table once, with its count, not {shown(entry)}"
                )
    return counts


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SIGNED_MAX:
        return value
    raise ValueError(f"`event_count` must be a number of events, not {shown(value)}")


def _texts(value: object) -> Mapping[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, Mapping) else {}


def event_value(kind: Kind, value: object) -> Value:
    """A value of an event in the stored form of this kind.

    >>> event_value(Kind.FLOAT, "Infinity"), event_value(Kind.UNSIGNED, "7")
    (inf, 7)
    >>> event_value(Kind.SYMBOL, "7")
    '7'
    """
    if isinstance(value, str) and kind is not Kind.SYMBOL:
        return PARSERS[kind](value)
    return typed_value(kind, value)


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def transaction_text(
    id_: str, changes: Iterable[tuple[Relation, RowChange]], positions: Mapping[str, str], snapshot: bool = False
) -> str:
    """A transaction as lines: its beginning, its changes, its end."""
    counts: dict[str, int] = {}
    lines = [_line({"status": "BEGIN", "id": id_, "event_count": None, "data_collections": None})]
    for order, (relation, change) in enumerate(changes, start=1):
        name = relation.name
        counts[name] = counts.get(name, 0) + 1
        source = {"connector": CONNECTOR, "table": name}
        event = {
            "before": change.before,
            "after": change.after,
            "source": {**source, "snapshot": "true" if snapshot else "false"},
            "op": change.op,
            "transaction": {"id": id_, "total_order": order, "data_collection_order": counts[name]},
        }
        lines.append(_line(event))
    collections = [{"data_collection": name, "event_count": count} for name, count in counts.items()]
    end = {"status": "END", "id": id_, "event_count": sum(counts.values()), "data_collections": collections}
    return "".join([*lines, _line({**end, "positions": dict(positions)})])


def row_changes(
    relation: Relation, gone: Sequence[Row], new: Sequence[Row], key: Sequence[int], op: str = "c"
) -> Iterator[RowChange]:
    """The deletions and insertions of a relation as events.

    With a key, a row that replaces another one is an update.
    """
    instead = {tuple(row[c] for c in key): row for row in new} if key else {}
    replaced = set()
    for row in gone:
        other = instead.get(tuple(row[c] for c in key)) if key else None
        if other is None:
            yield RowChange(relation.name, "d", row_object(relation, row))
        else:
            replaced.add(other)
            yield RowChange(relation.name, "u", row_object(relation, row), row_object(relation, other))
    for row in new:
        if row not in replaced:
            yield RowChange(relation.name, op, None, row_object(relation, row))


def row_object(relation: Relation, row: Row) -> dict[str, object]:
    return {column.name: _plain(value) for column, value in zip(relation.columns, row, strict=True)}


def _plain(value: Value) -> object:
    if isinstance(value, float) and (value != value or value in _UNWRITABLE):
        return _UNWRITABLE.get(value, "NaN")
    return value


def _line(value: Mapping[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8 become escapes, and are read back
        text = json.dumps(value)
    return text + "\n"
