"""The state of a database, and its current use: a step, a transaction, readers.

A database belongs to one thread at a time.  Nothing is locked here: a second thread gets
`OtherThread` before anything goes wrong.  `everlog.api.shared` makes threads wait instead.

An update takes microseconds, so its entry check tests only two attributes.  If a use is refused,
a search of this thread's stack finds out whether the current use is the thread's own (a functor, a
callback).  A lazy result is in use while its generator runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import current_thread, get_ident
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import ReferenceType

if TYPE_CHECKING:
    from everlog.api.results import Result

_T = TypeVar("_T")
_Function = TypeVar("_Function", bound=Callable[..., Any])

STEP = "a step is in progress: functors and progress callbacks cannot write"
NOTIFYING = "subscribers are being called: collect the updates, and write them after the step has returned"
TRANSACTION = "a transaction is open: do this after it"
_QUERY = "a query is being answered: functors cannot write"
_ELSEWHERE = {
    STEP: "is in the middle of a step",
    NOTIFYING: "is calling the subscribers of a step",
    TRANSACTION: "has a transaction open",
}


class NestedWrite(RuntimeError):
    """A write to a database that is in the middle of another one."""


class OtherThread(NestedWrite):
    """A database is used by two threads at once; `SharedDatabase` is for that."""


_USES: set[CodeType] = set()


def uses(method: _Function) -> _Function:
    """Mark a method that uses a database; its local variable `using` is the `State`."""
    _USES.add(method.__code__)
    return method


class State:
    """The number of the state, its open results, and the use in progress.

    Invariant: while `under_way` is STEP, or a relation is being changed, no other thread reads.
    """

    def __init__(self) -> None:
        self.number = 0
        self.open: dict[int, ReferenceType[Result]] = {}  # results in use whose rows are not yet known
        self.under_way = ""  # why writes are refused now
        self.readers = 0
        self.transaction_of = 0  # the thread with an open transaction
        self.idle = ""  # why writes are refused for good
        self._refusal: type[Exception] = NestedWrite

    def shut(self, refusal: type[Exception], why: str) -> None:
        """Refuse all writes from now on, with this exception."""
        self.under_way = self.idle = why
        self._refusal = refusal

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def next_step(self) -> None:
        """Count a step, before anything changes.

        `Writer.update` has this inlined, since the call takes as long as the rest.
        """
        if self.open:
            self.complete_results()
        self.number += 1

    def complete_results(self) -> None:
        """Compute the rows of open results, if few: the tables are about to change."""
        references = list(self.open.values())
        held = [result for result in (reference() for reference in references) if result is not None]
        for result in held:
            if result.is_being_read():
                self._refuse_to_write(_QUERY, result)
        for result in held:
            result.complete()
        self.open.clear()

    def refuse(self) -> NoReturn:
        """Raise an error that says why writes are refused now."""
        why = self.under_way or _QUERY
        if why == self.idle:
            raise self._refusal(why)
        self._refuse_to_write(why)

    def _refuse_to_write(self, why: str, user: object = None) -> NoReturn:
        if self.is_ours(user):
            raise NestedWrite(why)
        raise _other_thread(_ELSEWHERE.get(why, "is reading"))

    def is_ours(self, user: object = None) -> bool:
        """Whether the use in progress, or the one by `user`, is this thread's own."""
        if self.under_way == TRANSACTION and self.transaction_of == get_ident():
            return True
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code in _USES:
                known = frame.f_locals
                if known.get("using") is self and (user is None or known["self"] is user):
                    return True
            frame = frame.f_back  # type: ignore[assignment]
        return False

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def add(self, result: Result) -> None:
        key, known = id(result), self.open
        known[key] = ReferenceType(result, lambda _: known.pop(key, None))

    @uses
    def read(self, find: Callable[[], _T]) -> _T:
        """Run `find`; meanwhile no other thread can write."""
        if self.under_way == STEP and not self.is_ours():
            raise _other_thread(_ELSEWHERE[STEP])
        using = self
        using.readers += 1
        try:
            return find()
        finally:
            using.readers -= 1


def _other_thread(does: str) -> OtherThread:
    return OtherThread(
        f"another thread {does} while {current_thread().name} uses the same database: a Database is for one"
        " thread at a time; use `everlog.SharedDatabase(db)` for several threads"
    )
