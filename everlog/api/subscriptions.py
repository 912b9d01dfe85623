"""Who wants to hear of changes, and the round that tells them.

Callbacks run after a step, in the order of their subscription, each with the part of the changes
it asked for.  One that fails keeps no other from being told: all exceptions are raised together
at the end, when the step has long been applied.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from everlog.api.changes import Changes

Callback: TypeAlias = Callable[[Changes], object]


class Subscription:
    """A callback that is told of changes until it is cancelled; a context manager that cancels at
    the end.
    """

    def __init__(self, subscribers: Subscribers, relation: str | None, callback: Callback) -> None:
        self.relation, self.callback = relation, callback
        self._subscribers = subscribers

    @property
    def active(self) -> bool:
        return self in self._subscribers.all

    def cancel(self) -> None:
        """From now on the callback is not called, not even in the round that is under way."""
        self._subscribers.all.pop(self, None)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def __repr__(self) -> str:
        return f"<subscription to {self.relation or 'all relations'}{'' if self.active else ', cancelled'}>"


class Subscribers:
    """The subscriptions of a database, in order (a dict, so that one may go at any time)."""

    def __init__(self) -> None:
        self.all: dict[Subscription, None] = {}

    def __bool__(self) -> bool:
        return bool(self.all)

    def add(self, relation: str | None, callback: Callback) -> Subscription:
        subscription = Subscription(self, relation, callback)
        self.all[subscription] = None
        return subscription

    def tell(self, changes: Changes) -> None:
        """Call everybody whose relation changed; raise what they raised, all of it.

        Cost: one look per subscription; what is told is not copied.
        """
        if not changes:
            return
        errors: list[Exception] = []
        for subscription in list(self.all):
            relation = subscription.relation
            if subscription.active and (relation is None or relation in changes):
                try:
                    subscription.callback(changes if relation is None else changes.only((relation,)))
                except Exception as error:
                    errors.append(error)
        if errors:
            raise ExceptionGroup("subscribers failed; the step stays applied", errors)
