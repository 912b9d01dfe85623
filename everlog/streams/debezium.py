"""Debezium's change events as lines of JSON: one row per line, and markers where transactions begin and end.

    {"status": "BEGIN", "id": "7"}
    {"before": null, "after": {"x": 1}, "source": {"table": "n"}, "op": "c", "transaction": {"id": "7"}}
    {"status": "END", "id": "7", "event_count": 1}

Events may be wrapped as `{"schema": …, "payload": …}`; `null` lines (tombstones) and messages (`op` `m`) say
nothing.  Floats that JSON has no form for are the strings "NaN", "Infinity" and "-Infinity"; numbers may come as
strings, as Debezium writes decimals when it is asked to.

Reads: streams.model, files.typed.  Read by: jsonsource, jsonsink.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import field, frozen

from everlog.core.fact_rows import shown
from everlog.core.program import Kind, Relation, Row, Value
from everlog.files.json import json_value
from everlog.files.typed import typed_value
from everlog.files.values import PARSERS
from everlog.streams.model import RowChange

OPS = frozenset("crudt")
CONNECTOR = "everlog"
BEGINNING = '{"status": "BEGIN", "id": "'  # of each transaction that we write
_UNWRITABLE = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


@frozen
class Marker:
    """A transaction begins or ends; at its end `counts` may say how many events each table has had."""

    id: str
    begins: bool
    counts: Mapping[str, int] = field(factory=dict)
    positions: Mapping[str, str] = field(factory=dict)


@frozen
class Event:
    """A change, with the transaction that it belongs to; `snapshot` says what Debezium's snapshot is at, and
    `connector` who has told it."""

    change: RowChange
    transaction: str | None
    snapshot: str = "false"
    connector: str = ""


Entry: TypeAlias = Event | Marker


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def decode(line: str, number: int = 0) -> Entry | None:
    """What a line says; None if it says nothing; ValueError if it is no change event.

    >>> decode('{"before": null, "after": {"x": 1}, "source": {"table": "n"}, "op": "c"}').change.after
    {'x': 1}
    >>> decode('{"status": "BEGIN", "id": "7", "event_count": null}')
    Marker(id='7', begins=True, counts={}, positions={})
    """
    try:
        value = json_value(line)
    except (ValueError, RecursionError) as problem:
        what = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise ValueError(f"not JSON: {what}: {shown(line)}") from None
    if isinstance(value, dict) and "payload" in value and "op" not in value:
        value = value["payload"]
    match value:
        case None:
            return None
        case {"status": "BEGIN", "id": id_}:
            return Marker(str(id_), True)
        case {"status": "END", "id": id_}:
            return Marker(str(id_), False, _counts(value.get("data_collections")), _texts(value.get("positions")))
        case {"op": "m"}:
            return None
        case {"op": str(op)} if op in OPS:
            return _event(value, op, number)
        case {"op": op}:
            raise ValueError(f"the operation {shown(op)} is not known: there are c, u, d, r, t and m")
    raise ValueError(f"expected a change event with `op`, found {shown(value)}")


def _event(value: Mapping[str, object], op: str, number: int) -> Event:
    source = value.get("source")
    if not isinstance(source, Mapping) or not isinstance(source.get("table"), str):
        raise ValueError(f"a change event needs `source.table`, found {shown(source)}")
    before, after = _row(value, "before"), _row(value, "after")
    if op in "cru" and after is None:
        raise ValueError(f"a change with op={op} needs `after`")
    schema = source.get("schema")
    table = f"{schema}.{source['table']}" if isinstance(schema, str) and schema else str(source["table"])
    transaction = value.get("transaction")
    id_ = transaction.get("id") if isinstance(transaction, Mapping) else None
    snapshot = str(source.get("snapshot", "false")).lower()
    change = RowChange(table, op, before, after if op in "cru" else None, number)
    return Event(change, None if id_ is None else str(id_), snapshot, str(source.get("connector", "")))


def _row(value: Mapping[str, object], key: str) -> Mapping[str, object] | None:
    row = value.get(key)
    if row is None or isinstance(row, Mapping):
        return row
    raise ValueError(f"`{key}` is an object or null, not {shown(row)}")


def _counts(value: object) -> Mapping[str, int]:
    entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    pairs = [(entry.get("data_collection"), entry.get("event_count")) for entry in entries]
    return {table: count for table, count in pairs if isinstance(table, str) and isinstance(count, int)}


def _texts(value: object) -> Mapping[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, Mapping) else {}


def event_value(kind: Kind, value: object) -> Value:
    """A value of an event as a column of this kind stores it.

    >>> event_value(Kind.FLOAT, "Infinity"), event_value(Kind.UNSIGNED, "7"), event_value(Kind.SYMBOL, "7")
    (inf, 7, '7')
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
    """What a relation lost and won, as events; with a key, a row in the place of another is an update."""
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
    except UnicodeEncodeError:  # bytes that are no UTF-8 go as escapes, and come back as they were
        text = json.dumps(value)
    return text + "\n"
