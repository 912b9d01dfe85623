"""A workload of one size as a folder: every side reads the same files."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path

from everlog.bench.harness.streams import make_stream
from everlog.bench.harness.workload import Case, Workload


def make_case(folder: Path, workload: Workload, size: int, streams: Mapping[str, int] | None = None) -> Case:
    """Write the files; `streams` maps each stream to its number of updates."""
    folder.mkdir(parents=True)
    facts = workload.make(size)
    for relation, rows in facts.items():
        (folder / f"{relation}.facts").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    made = {kind: make_stream(kind, workload, facts, size, number) for kind, number in (streams or {}).items()}
    with (folder / "streams.pickle").open("wb") as file:
        pickle.dump(made, file)
    (folder / "program.dl").write_text(workload.program, encoding="utf-8")
    base = {relation: arity(workload.program, relation) for relation in facts}
    told = {"workload": workload.name, "query": workload.query, "answers": workload.answers, "base": base}
    (folder / "case.json").write_text(json.dumps(told))
    return Case.read(folder)


def arity(program: str, relation: str) -> int:
    """The number of columns that the program declares; a relation may be empty.

    >>> arity(".decl edge(x:number, y:number)", "edge")
    2
    """
    declaration = program.split(f".decl {relation}(", 1)[1].split(")", 1)[0]
    return declaration.count(":")
