"""A few rows, joined while a body is being planned.

Estimates multiply shares as if columns had nothing to do with each other, and where a table is
known by a sample, what few rows of another one find in it is a guess.  So a prefix that begins with
few rows is not estimated: its rows are looked up, and stand for the prefix from then on.  Where
they become many, some of them do, each with a weight.  That an order ends early, because nothing
matches, is seen before it is chosen.

Source: Leis, Radke, Gubichev, Kemper and Neumann, CIDR 2017 (index-based join sampling).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from attrs import evolve, frozen

from everlog.core.program import Atom, Comparison, Constant, Literal, Negation, Row, Term, Value, Variable
from everlog.core.program.functors import COMPARISONS
from everlog.core.storage.shape import Columns, Key
from everlog.core.storage.table_statistics import Partners, Statistics

ROWS = 64  # that stand for a prefix, at most
_BEGIN = 256  # rows of an atom that may begin a trial
_FOUND = 256  # rows looked at for one more atom
_ORDERED = ("<", "<=", ">", ">=", "=", "!=")


@frozen
class Trial:
    """Rows of a prefix; row n has the values of `columns`, and stands for `weights[n]` rows.

    `exact`: the prefix has these rows and no others.
    """

    columns: Mapping[Variable, int]
    rows: list[Row]
    weights: list[float]
    exact: bool = True
    done: frozenset[int] = frozenset()  # the tests that have been applied

    @property
    def total(self) -> float:
        """About how many rows the prefix has."""
        return sum(self.weights)

    @property
    def can_go_on(self) -> bool:
        """Whether more atoms can be tried: not if none of a sample is left."""
        return self.exact or bool(self.rows)


NOTHING = Trial({}, [()], [1.0])  # the prefix of no atoms


def sampled(columns: Mapping[Variable, int], known: Statistics) -> Trial | None:
    """A trial that stands for one row: values of columns of a relation."""
    some = known.sample[:: len(known.sample) // ROWS + 1]
    rows = [tuple([row[column] for column in columns.values()]) for row in some]
    if not rows:
        return None
    places = {variable: place for place, variable in enumerate(columns)}
    return Trial(places, rows, [1.0 / len(rows)] * len(rows), known.complete and len(some) == len(known.sample))


@frozen
class Extension:
    """One more atom: the rows that it tries and that match, for each row of the prefix.

    `left` are all that match.
    """

    tried: float
    matches: float
    left: float
    trial: Trial


def extended(trial: Trial, atom: Atom, known: Statistics, sampled: bool = False) -> Extension | None:
    """The trial with one more atom; None where its rows cannot be looked up.

    An atom that shares nothing with the prefix has to have few rows, unless it may be `sampled`.
    """
    parts = [_part(trial, argument) for argument in atom.args]
    columns = tuple(c for c, part in enumerate(parts) if part is not None)
    keys = _keys(trial, parts)
    if not columns and not (sampled or known.begins or (known.complete and len(known.sample) <= _BEGIN)):
        return None
    wanted = dict.fromkeys(keys)
    partners = known.partners(columns, wanted, max(2, _FOUND // max(len(wanted), 1)))
    if partners is None:
        return None
    return _Joining(trial, atom, columns).joined(keys, partners)


def _part(trial: Trial, argument: Term) -> tuple[int, Value] | None:
    """Where a value of a key comes from: a column of the trial, or -1 and a constant."""
    if isinstance(argument, Constant):
        return -1, argument.value
    return (trial.columns[argument], 0) if isinstance(argument, Variable) and argument in trial.columns else None


def _keys(trial: Trial, parts: Sequence[tuple[int, Value] | None]) -> list[Key]:
    """For each row of a trial, the values of these parts as a key."""
    known = [part for part in parts if part is not None]
    columns = [[row[at] for row in trial.rows] if at >= 0 else [value] * len(trial.rows) for at, value in known]
    if len(columns) == 1:
        return [*columns[0]]
    return [*zip(*columns, strict=True)] if columns else [()] * len(trial.rows)


class _Joining:
    """Joins the rows of a trial with those of one atom."""

    def __init__(self, trial: Trial, atom: Atom, columns: Columns) -> None:
        self.trial, places = trial, dict[Variable, int]()
        self.same: list[tuple[int, int]] = []
        self.shown: list[int] = []  # columns that give values, or repeat them
        for column, argument in enumerate(atom.args):
            if column in columns or not isinstance(argument, Variable):
                continue
            if argument in places:
                self.same.append((places[argument], column))
            self.shown.append(column)
            places.setdefault(argument, column)
        self.binds = [*places.values()]
        self.given = itemgetter(*self.binds) if len(self.binds) > 1 else lambda one: (one[self.binds[0]],)
        self.per_value = len(self.shown) + len(columns) < len(atom.args)  # once per value: wildcards
        self.columns = {**trial.columns, **{v: len(trial.columns) + n for n, v in enumerate(places)}}

    def joined(self, keys: Sequence[Key], partners: Partners) -> Extension:
        rows: list[Row] = []
        weights: list[float] = []
        exact, tried, looked = self.trial.exact, 0.0, 0
        for row, weight, key in zip(self.trial.rows, self.trial.weights, keys, strict=True):
            met = partners.get(key)
            if met is None:
                continue
            count, found = met
            exact = exact and count == len(found)
            each = weight * count / len(found)
            if self.per_value:
                found = list({tuple(one[c] for c in self.shown): one for one in found}.values())
            tried += each * len(found)
            looked += len(found)
            if self.same:
                found = [one for one in found if all(one[a] == one[b] for a, b in self.same)]
            rows += [(*row, *given) for given in map(self.given, found)] if self.binds else [row] * len(found)
            weights += [each] * len(found)
        left = sum(weights)
        if not rows and not exact:
            weights, left = [], 0.5 * tried / looked if looked else 0.5
        trial = _thinned(Trial(self.columns, rows, weights, exact, self.trial.done))
        before = self.trial.total or 1.0
        return Extension(tried / before, left / before, left, trial)


def _thinned(trial: Trial) -> Trial:
    """The trial with at most about `ROWS` rows, evenly spread."""
    step = len(trial.rows) // ROWS
    if step < 2:
        return trial
    total, weights = trial.total, trial.weights[::step]
    scale = total / sum(weights)
    return evolve(trial, rows=trial.rows[::step], weights=[w * scale for w in weights], exact=False)


# ── tests ────────────────────────────────────────────────────────────────────────────────────


def given(trial: Trial, literal: Literal) -> Trial | None:
    """The trial with a variable that an equality gives a value; None if it gives none."""
    if not isinstance(literal, Comparison) or literal.op != "=":
        return None
    for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(one, Variable) and one not in trial.columns:
            part = _part(trial, other)
            if part is not None:
                at, value = part
                rows = [(*row, row[at] if at >= 0 else value) for row in trial.rows]
                return evolve(trial, columns={**trial.columns, one: len(trial.columns)}, rows=rows)
    return None


def tested(trial: Trial, literal: Literal, known: Callable[[Atom], Statistics]) -> Trial | None:
    """The rows that pass a test; None if it cannot be computed here."""
    match literal:
        case Comparison(op, left, right, _) if op in _ORDERED:
            one, other = _part(trial, left), _part(trial, right)
            if one is None or other is None:
                return None
            holds, (a, x), (b, y) = COMPARISONS[op], one, other
            passed = [bool(holds(row[a] if a >= 0 else x, row[b] if b >= 0 else y)) for row in trial.rows]
        case Negation(atom):
            parts = [_part(trial, argument) for argument in atom.args]
            columns = tuple(c for c, part in enumerate(parts) if part is not None)
            if not columns or any(isinstance(a, Variable) and a not in trial.columns for a in atom.args):
                return None
            keys = _keys(trial, parts)
            partners = known(atom).partners(columns, dict.fromkeys(keys), 1)
            if partners is None:
                return None
            passed = [key not in partners for key in keys]
        case _:
            return None
    rows = [row for row, passes in zip(trial.rows, passed, strict=True) if passes]
    weights = [weight for weight, passes in zip(trial.weights, passed, strict=True) if passes]
    return evolve(trial, rows=rows, weights=weights)


def weighed(trial: Trial, share: float) -> Trial:
    """The trial, of which a test that cannot be computed here leaves a share."""
    return evolve(trial, weights=[weight * share for weight in trial.weights])
