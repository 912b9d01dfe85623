"""The facts of a directive, whose parameters select format and rejects file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from everlog.core.program import Directive, Relation, Row
from everlog.core.program.fact_rows import shown
from everlog.core.runtime.collector import collector_paused
from everlog.files.formats import FORMATS, Format, check_parameters, format_of
from everlog.files.location import Place, Reading, write_bytes, write_stream
from everlog.files.rejects import BadRow, abort, reject_line
from everlog.files.text_values import FactsError, encoded_text

_ON_SPARK = frozenset({"orc", "spark", "table"})  # see everlog.spark.facts_in


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_facts(
    relation: Relation,
    params: Mapping[str, str],
    directory: Path,
    missing_ok: bool = False,
    stdin: TextIO | None = None,
    tell: Callable[[str], object] | None = None,
) -> list[Row]:
    """All facts of a relation, or FactsError: never some of them.

    With `missing_ok`, a missing file counts as empty.  Facts may repeat.  With the parameter
    `rejects`, wrong rows go to that file, which is overwritten each time; `tell` receives a message
    with their number.
    """
    chosen = _chosen(params, "read")
    check_parameters(relation.name, params, chosen.taken("read"), "read")
    read = chosen.read
    assert read is not None
    place = Place(relation, params, directory)
    bad: list[BadRow] = []
    refuse = bad.append if "rejects" in params else abort
    with collector_paused():
        rows = read(Reading(place, missing_ok, stdin, refuse))
    if "rejects" in params:
        rejects = place.path("", "rejects")
        write_bytes(rejects, encoded_text("".join(map(reject_line, bad))))
        if bad and tell is not None:
            tell(f"{len(bad)} row(s) of {bad[0].source} do not fit {relation.name}: see {rejects}")
    return rows


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_facts(
    relation: Relation, rows: Iterable[Row], params: Mapping[str, str], directory: Path, stdout: TextIO
) -> None:
    """Write all facts, sorted; after FactsError the file is unchanged."""
    chosen = _chosen(params, "write")
    check_parameters(relation.name, params, chosen.taken("write"), "write")
    assert chosen.write is not None
    place = Place(relation, params, directory)
    if place.mode != "overwrite" and (not chosen.knows_mode or (place.mode == "append" and not chosen.appends)):
        raise FactsError(
            f"relation {relation.name}: IO={format_of(params)} does not support mode={place.mode}: it replaces all"
        )
    with collector_paused():
        chosen.write(place, rows, stdout)


def write_size(relation: Relation, count: int, stdout: TextIO) -> None:
    write_stream(stdout, f"{relation.name}\t{count}\n")


def check_directives(inputs: Sequence[Directive], outputs: Sequence[Directive]) -> None:
    """Raise FactsError if a directive has an unknown format or parameter."""
    for verb, directives in (("read", inputs), ("write", outputs)):
        for directive in directives:
            taken = _chosen(directive.params, verb).taken(verb)
            check_parameters(directive.relation, directive.params, taken, verb)


# ── common ───────────────────────────────────────────────────────────────────────────────────


def _chosen(params: Mapping[str, str], verb: str) -> Format:
    name = params.get("IO") or format_of(params)
    known = {name for name, of in FORMATS.items() if getattr(of, verb) is not None}
    if name not in known:
        hint = "; that needs `--engine spark`" if name in _ON_SPARK else ""
        raise FactsError(f"cannot {verb} facts with IO={shown(name)}; use {', '.join(sorted(known))}{hint}")
    return FORMATS[name]
