"""The change of a rule when relations change: signed terms of a product.

A body is a product of indicators.  On Spark the old and the new facts of every relation are both
available, so the change of the product is written directly: one term for each literal whose
relation changed, in which the literals before it read new facts, it reads the signed change, and
those after it read old facts.  Under `!` the sign is inverted.

A wildcard asks only whether a fact exists, so an atom with wildcards is an atom of a projection,
whose change is found by comparing the touched keys before and after.  Terms that read an empty
relation are omitted: so the first batch, into an empty state, runs each rule once.

Source: Budiu, Chajed, McSherry, Ryzhyk, Tannen, DBSP, PVLDB 16(7), 2023, Theorem 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Column,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Variable,
    Wildcard,
)
from everlog.spark_backend.column_types import HOLDS, names_of
from everlog.spark_backend.cyclic.cyclic_joins import cyclic_join
from everlog.spark_backend.frames.bindings import Facts
from everlog.spark_backend.frames.rule_frames import Rules, distinct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIGN = "sign"
_SIGN = Variable("?sign")
OLD, NEW, DELTA = "old", "new", "Δ"


@frozen
class Versions:
    """A relation before and after, or None if empty.

    `delta` has its columns and `sign`, or is None if nothing has changed.
    """

    old: DataFrame | None
    new: DataFrame | None
    delta: DataFrame | None = None

    def signed(self, sign: int) -> DataFrame | None:
        """The inserted (+1) or deleted (-1) facts."""
        from pyspark.sql import functions as F

        if self.delta is None:
            return None
        return self.delta.where(F.col(SIGN) == sign).drop(SIGN)


def projected(versions: Versions, columns: Sequence[int]) -> Versions:
    """The projection of a relation to some columns, as sets."""
    from pyspark.sql import functions as F

    names = names_of(len(columns))

    def some(frame: DataFrame) -> DataFrame:
        picked = [F.col(f"c{c}").alias(n) for c, n in zip(columns, names, strict=False)]
        return frame.select(*picked) if picked else frame.select(F.lit(True).alias(HOLDS))

    old, new = (None if f is None else some(f).distinct() for f in (versions.old, versions.new))
    if versions.delta is None:
        return Versions(old, new)
    keys = some(versions.delta).distinct()
    parts = [
        some(frame).join(keys, names, "left_semi").distinct().withColumn(SIGN, F.lit(sign))
        for frame, sign in ((versions.new, 1), (versions.old, -1))
        if frame is not None
    ]
    both = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    delta = both.groupBy(*names).agg(F.sum(SIGN).cast("int").alias(SIGN)).where(F.col(SIGN) != 0)
    return Versions(old, new, delta)


class Deltas:
    """The changes of rules, from the versions of their relations."""

    def __init__(self, spark: SparkSession, program: Program, versions: Callable[[str], Versions]) -> None:
        self._spark, self._program, self._versions = spark, program, versions

    def normal(self, rule: Rule) -> tuple[Rule, dict[str, Relation], dict[str, Versions]]:
        """The rule with projections instead of wildcards, and all its relations."""
        relations: dict[str, Relation] = {}
        versions: dict[str, Versions] = {}

        def of(atom: Atom) -> Atom:
            declared = self._program.relations[atom.relation]
            columns = [n for n, arg in enumerate(atom.args) if not isinstance(arg, Wildcard)]
            name = atom.relation
            if len(columns) < len(atom.args):
                name = f"{atom.relation}/{','.join(map(str, columns))}"
            if name not in relations:
                relations[name] = Relation(name, tuple(declared.columns[n] for n in columns))
                whole = self._versions(atom.relation)
                versions[name] = whole if name == atom.relation else projected(whole, columns)
            return Atom(name, tuple(atom.args[n] for n in columns))

        body: list[Literal] = []
        for literal in rule.body:
            assert not isinstance(literal, Aggregate)
            match literal:
                case Atom():
                    body.append(of(literal))
                case Negation(atom):
                    body.append(Negation(of(atom)))
                case _:
                    body.append(literal)
        return evolve(rule, body=tuple(body)), relations, versions

    def counted(self, rule: Rule) -> Iterator[DataFrame]:
        """The gained and lost derivations of a rule, as rows with a `sign`."""
        normal, relations, versions = self.normal(rule)
        for place, literal in enumerate(normal.body):
            atom = _atom(literal)
            if atom is not None and versions[atom.relation].delta is not None:
                when = [NEW] * place + [DELTA] + [OLD] * (len(normal.body) - place - 1)
                made = self._term(normal, relations, versions, when)
                if made is not None:
                    yield made

    def touched(self, rule: Rule, losing: bool) -> Iterator[DataFrame]:
        """Facts that lost (or gained) a derivation through a change of another relation.

        Lost ones are found with old facts only, gained ones with new ones: without counts, each
        term may use one version.
        """
        normal, relations, versions = self.normal(rule)
        other = OLD if losing else NEW
        for place, literal in enumerate(normal.body):
            atom = _atom(literal)
            if atom is None or versions[atom.relation].delta is None:
                continue
            wanted = -1 if losing == isinstance(literal, Atom) else 1
            part = versions[atom.relation].signed(wanted)
            assert part is not None
            from pyspark.sql import functions as F

            own = evolve(versions[atom.relation], delta=part.withColumn(SIGN, F.lit(1)))
            when = [other] * place + [DELTA] + [other] * (len(normal.body) - place - 1)
            made = self._term(normal, relations, {**versions, f"{atom.relation} Δ": own}, when)
            if made is not None:
                yield made.drop(SIGN)

    def derived(self, rule: Rule, among: DataFrame | None = None) -> DataFrame | None:
        """The facts that a rule derives from new facts; with `among`, only these."""
        normal, relations, versions = self.normal(rule)
        post = among is not None
        if among is not None and not any(isinstance(arg, Call) for arg in normal.head.args):
            name = f"{normal.head.relation} among"
            relations = {**relations, name: evolve(self._program.relations[normal.head.relation], name=name)}
            versions = {**versions, name: Versions(among, among)}
            normal, post = evolve(normal, body=(Atom(name, normal.head.args), *normal.body)), False
        made = self._term(normal, relations, versions, [NEW] * len(normal.body))
        if made is None:
            return None
        made = made.drop(SIGN)
        return made.join(among, made.columns, "left_semi") if post and among is not None else made

    def _term(
        self, rule: Rule, relations: Mapping[str, Relation], versions: Mapping[str, Versions], when: Sequence[str]
    ) -> DataFrame | None:
        """One term; each literal reads the version in `when`.  None if it is empty."""
        frames: dict[str, DataFrame] = {}
        declared: dict[str, Relation] = {}
        body: list[Literal] = []
        negative = False
        for literal, which in zip(rule.body, when, strict=True):
            atom = _atom(literal)
            if atom is None:
                body.append(literal)
                continue
            held = (
                versions.get(f"{atom.relation} Δ", versions[atom.relation])
                if which == DELTA
                else versions[atom.relation]
            )
            frame = {OLD: held.old, NEW: held.new, DELTA: held.delta}[which]
            if frame is None and isinstance(literal, Atom):
                return None
            if frame is None:
                continue  # the relation is empty: `!` holds
            name = f"{atom.relation} {which}"
            columns = relations[atom.relation].columns
            frames[name] = frame
            if which == DELTA:
                negative = isinstance(literal, Negation)
                declared[name] = Relation(name, (*columns, Column(SIGN, Kind.NUMBER)))
                body.insert(0, Atom(name, (*atom.args, _SIGN)))
            else:
                declared[name] = Relation(name, columns)
                read = Atom(name, atom.args)
                body.append(read if isinstance(literal, Atom) else Negation(read))
        head = self._program.relations[rule.head.relation]
        target = Relation(f"{head.name} change", (*head.columns, Column(SIGN, Kind.NUMBER)))
        declared[target.name] = target
        sign = Call("neg", (_SIGN,), Kind.NUMBER, Kind.NUMBER) if negative else _SIGN
        if DELTA not in when:
            from everlog.core.program import Constant

            sign = Constant(1, Kind.NUMBER)  # type: ignore[assignment] # any term
        made = evolve(rule, head=Atom(target.name, (*rule.head.args, sign)), body=tuple(body))
        program = evolve(self._program, relations={**self._program.relations, **declared})
        join = cyclic_join(made)  # of a rule that is made for this batch
        rules = Rules(self._spark, program, {} if join is None else {made: join})
        found = rules.derived(made, lambda atom, _: Facts(_widened(frames[atom.relation])))
        return _narrowed(found.frame, head.arity)


def _atom(literal: Literal) -> Atom | None:
    match literal:
        case Atom():
            return literal
        case Negation(atom):
            return atom
    return None


def _widened(frame: DataFrame) -> DataFrame:
    """Columns by position, as rules read them, with the sign last."""
    from pyspark.sql import functions as F

    if SIGN not in frame.columns:
        return frame
    others = [name for name in frame.columns if name not in (SIGN, HOLDS)]
    return frame.select(*others, F.col(SIGN).cast("bigint").alias(f"c{len(others)}"))


def _narrowed(frame: DataFrame, arity: int) -> DataFrame:
    from pyspark.sql import functions as F

    names = names_of(arity)
    shown = [F.col(n) for n in names] if arity else [F.lit(True).alias(HOLDS)]
    return frame.select(*shown, F.col(f"c{arity}").cast("int").alias(SIGN))


__all__ = ["SIGN", "Deltas", "Versions", "distinct", "projected"]
