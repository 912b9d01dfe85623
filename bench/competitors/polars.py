"""Polars: joins of data frames; recursion as a loop that joins new rows.

It has programs for work that suits data frames; recursion through several relations is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everlog.bench.harness.workload import Case, Row, Side, Static, installed_version, only

Frames = dict[str, Any]


class Polars:
    def __init__(self, case: Case) -> None:
        import polars

        self.case, self.pl = case, polars
        self.found: Frames = {}

    def load(self) -> None:
        self.frames = {
            relation: self.pl.read_csv(
                self.case.facts(relation),
                separator="\t",
                has_header=False,
                schema={f"c{n}": self.pl.Int64 for n in range(arity)},
            )
            for relation, arity in self.case.base.items()
        }

    def solve(self) -> None:
        self.found = QUERIES[self.case.query](self.pl, self.frames)

    def size(self, relation: str) -> int:
        return int(self.found[relation].height)

    def answer(self, relation: str) -> Iterable[Row]:
        rows: list[Row] = self.found[relation].rows()
        return rows

    def close(self) -> None:
        pass


def grown(pl: Any, first: Any, more: Callable[[Any], Any]) -> Any:
    """All rows that `more` derives from the first ones, round by round."""
    columns = first.columns
    known = new = first.unique()
    while new.height:
        new = more(new).unique().join(known, on=columns, how="anti")
        known = pl.concat([known, new])
    return known


def _closure(pl: Any, f: Frames) -> Frames:
    edge = f["edge"].rename({"c0": "c1", "c1": "to"})
    step: Callable[[Any], Any] = lambda new: new.join(edge, on="c1").select("c0", c1="to")  # noqa: E731
    return {"path": grown(pl, f["edge"], step)}


def _same_generation(pl: Any, f: Frames) -> Frames:
    left = f["parent"].rename({"c0": "x", "c1": "c0"})
    right = f["parent"].rename({"c0": "y", "c1": "c1"})
    first = left.join(right.rename({"c1": "c0"}), on="c0").filter(pl.col("x") != pl.col("y"))

    def step(new: Any) -> Any:
        both = new.join(left, on="c0").join(right, on="c1").filter(pl.col("x") != pl.col("y"))
        return both.select(c0="x", c1="y")

    return {"same_generation": grown(pl, first.select(c0="x", c1="y"), step)}


def _components(pl: Any, f: Frames) -> Frames:
    """Each node takes the least label of its neighbours, until none changes."""
    edge = f["edge"]
    both = pl.concat([edge, edge.select(c0="c1", c1="c0")]).unique()
    label = both.select("c0").unique().with_columns(least="c0")
    while True:
        near = both.join(label, left_on="c1", right_on="c0").group_by("c0").agg(near=pl.col("least").min())
        better = label.join(near, on="c0").with_columns(now=pl.min_horizontal("least", "near"))
        changed = better.filter(pl.col("now") < pl.col("least")).height
        label = better.select("c0", least="now")
        if not changed:
            return {"component": label.select("c0", c1="least")}


def _negation(pl: Any, f: Frames) -> Frames:
    off = f["off"]
    root = f["root"].join(off, on="c0", how="anti")

    def step(new: Any) -> Any:
        return new.join(f["call"], on="c0").select(c0="c1").join(off, on="c0", how="anti")

    return {"dead": f["function"].join(grown(pl, root, step), on="c0", how="anti")}


def _triangle(pl: Any, r: Any, s: Any, t: Any) -> Any:
    two = r.join(s.rename({"c0": "c1", "c1": "c2"}), on="c1")
    return two.join(t.rename({"c1": "c2"}), on=["c0", "c2"], how="semi").select("c0", "c1", "c2")


def _triangles(pl: Any, f: Frames) -> Frames:
    return {"triangle": _triangle(pl, f["edge"], f["edge"], f["edge"])}


def _three_triangles(pl: Any, f: Frames) -> Frames:
    return {"q": _triangle(pl, f["r"], f["s"], f["t"])}


def _four_cycles(pl: Any, f: Frames) -> Frames:
    edge, a = f["edge"], pl.col("c0")
    three = (
        edge.filter(a < pl.col("c1")).join(edge.rename({"c0": "c1", "c1": "c2"}), on="c1").filter(a < pl.col("c2"))
    )
    four = three.join(edge.rename({"c0": "c2", "c1": "c3"}), on="c2").filter(a < pl.col("c3"))
    back = edge.rename({"c0": "c3", "c1": "c0"})
    return {"cycle": four.join(back, on=["c3", "c0"], how="semi").select("c0", "c1", "c2", "c3")}


def _three_path(pl: Any, f: Frames) -> Frames:
    two = f["r"].join(f["s"].rename({"c0": "c1", "c1": "c2"}), on="c1")
    return {"q": two.join(f["t"].rename({"c0": "c2", "c1": "c3"}), on="c2").select("c0", "c1", "c2", "c3")}


def _join_count(pl: Any, f: Frames) -> Frames:
    q = f["r"].join(f["s"].rename({"c0": "c1", "c1": "c2"}), on="c1").select("c0", c1="c2").unique()
    return {"q": q, "n": q.group_by("c0").agg(c1=pl.len().cast(pl.Int64))}


def _aggregates(pl: Any, f: Frames) -> Frames:
    amount = pl.col("c2")
    total = (
        f["sale"]
        .group_by("c1")
        .agg(sales=pl.len().cast(pl.Int64), amount=amount.sum(), least=amount.min(), most=amount.max())
    )
    return {"total": total.select("c1", "sales", "amount", "least", "most")}


QUERIES: dict[str, Callable[[Any, Frames], Frames]] = {
    "closure": _closure,
    "same_generation": _same_generation,
    "components": _components,
    "negation": _negation,
    "triangles": _triangles,
    "three_triangles": _three_triangles,
    "four_cycles": _four_cycles,
    "three_path": _three_path,
    "join_count": _join_count,
    "aggregates": _aggregates,
}


def _static(case: Case) -> Static:
    return Polars(case)


_why = "recursion through several relations does not suit data frames"
SIDES = [Side("polars", "Polars", installed_version("polars"), _static, None, only(*QUERIES, why=_why))]
