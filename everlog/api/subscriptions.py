"""The subscribers of a database, and the loop that calls them.

Callbacks run after a step, in the order of subscription, each with the part of the changes that it
asked for.  If one fails, the others are still called: all exceptions are raised together at the
end, and the step stays applied.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TypeAlias

from everlog.api.changes import Changes

Callback: TypeAlias = Callable[[Changes], object]


class Subscription:
    """A callback, called until it is cancelled; a context manager that cancels."""

    def __init__(
        self, subscribers: Subscribers, relation: str | None, callback: Callback, wanted: Wanted | None = None
    ) -> None:
        """`wanted` says which facts it is about, if not all of a relation."""
        self.relation, self.callback, self.wanted = relation, callback, wanted
        self._subscribers = subscribers

    @property
    def active(self) -> bool:
        return self in self._subscribers.all

    def cancel(self) -> None:
        """Stop calling the callback, even if a round of calls is in progress."""
        if self in self._subscribers.all:
            del self._subscribers.all[self]
            if self.wanted is not None:
                self.wanted.end()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def __repr__(self) -> str:
        return f"<subscription to {self.relation or 'all relations'}{'' if self.active else ', cancelled'}>"


class Wanted(Protocol):
    """Which facts of a relation a subscription is about."""

    def of(self, changes: Changes) -> Changes:
        """The changes of these facts."""

    def end(self) -> None:
        """The subscription is over."""


class Subscribers:
    """The subscriptions of a database, in order (a dict, so that removal is cheap)."""

    def __init__(self) -> None:
        self.all: dict[Subscription, None] = {}

    def __bool__(self) -> bool:
        return bool(self.all)

    def add(self, relation: str | None, callback: Callback, wanted: Wanted | None = None) -> Subscription:
        subscription = Subscription(self, relation, callback, wanted)
        self.all[subscription] = None
        return subscription

    def notify(self, changes: Changes) -> None:
        """Call the subscribers of each changed relation; raise all their errors together.

        Cost: one test per subscription; the changes are not copied.
        """
        if not changes:
            return
        errors: list[Exception] = []
        for subscription in list(self.all):
            relation = subscription.relation
            if subscription.active and (relation is None or relation in changes):
                try:
                    mine = changes if relation is None else changes.only((relation,))
                    if subscription.wanted is not None:
                        mine = subscription.wanted.of(mine)
                    if mine:
                        subscription.callback(mine)
                except Exception as error:
                    errors.append(error)
        if errors:
            raise ExceptionGroup("subscribers failed; the step stays applied", errors)
