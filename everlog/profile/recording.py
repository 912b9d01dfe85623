"""What is recorded during a run: its phases, its units and rules, and its steps.

Blow-up is what a rule or a step makes of what it is given: facts found for each fact of the largest
relation that a rule reads; derived facts that change for each base fact that does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import define, field

from everlog._version import __version__
from everlog.core.evaluate.reports.profile import RunProfile, UnitRuns
from everlog.files.text_values import FactsError

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.profile.steps import StepRecorder


@define
class Recording:
    """The profile of one run of a program."""

    program: str
    phases: dict[str, float] = field(factory=dict)
    run: RunProfile = field(factory=RunProfile)
    steps: StepRecorder | None = None
    size: Callable[[str], int] = field(default=lambda name: 0)  # of a relation after the run
    start: float = field(factory=perf_counter)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the run, without the parts inside of it."""
        start, inside = perf_counter(), sum(self.phases.values())
        try:
            yield
        finally:
            own = perf_counter() - start - (sum(self.phases.values()) - inside)
            self.phases[name] = self.phases.get(name, 0.0) + own

    def following(self, database: Database) -> Callable[[], AbstractContextManager[None]]:
        """Record the steps of a database: what is done around each."""
        from everlog.profile.steps import StepRecorder

        database._engine.measured = 1  # every step measures its rules
        self.steps = StepRecorder.of(database)
        return self.steps.step

    def to_json(self) -> dict[str, Any]:
        if self.steps is not None:
            self.phases["steps"] = self.steps.seconds
        return {
            "program": self.program,
            "version": __version__,
            "seconds": perf_counter() - self.start,
            "phases": [{"name": name, "seconds": seconds} for name, seconds in self.phases.items()],
            "units": [_unit_json(unit, self.size) for unit in self.run.units],
            "steps": None if self.steps is None else self.steps.to_json(),
        }

    def write(self, path: str) -> None:
        """Write the profile: JSON if the name ends so, else a page."""
        from everlog.profile.profile_page import page

        found = self.to_json()
        is_json = path.endswith(".json")
        text = json.dumps(found, ensure_ascii=False, indent=2) + "\n" if is_json else page(found)
        Path(path).write_text(text, encoding="utf-8", errors="surrogateescape")


def require_writable(path: str) -> None:
    """Raise FactsError if a profile cannot be written there: before the run, not after it."""
    try:
        with Path(path).open("a", encoding="utf-8"):
            pass
    except OSError as problem:
        raise FactsError(f"cannot write the profile to `{path}`: {problem.strerror or problem}") from None


def _unit_json(unit: UnitRuns, size: Callable[[str], int]) -> dict[str, Any]:
    rules = []
    for name, runs in unit.rules.items():
        read = max(((size(relation), relation) for relation in runs.reads), default=(0, ""))
        rules.append(
            {
                "name": name,
                "rule": runs.rule.written,
                "runs": runs.runs,
                "seconds": runs.seconds if runs.runs else None,
                "found": runs.found if runs.runs else None,
                "reads": read[1],
                "read": read[0],
                "blow_up": runs.found / read[0] if runs.runs and read[0] else None,
                "plans": [plan.to_json() for plan in runs.plans],
            }
        )
    return {
        "relations": [{"name": name, "facts": size(name)} for name in unit.relations],
        "recursive": unit.recursive,
        "machine": "in Python" if unit.machine else "compiled",
        "why": unit.machine,
        "seconds": unit.seconds,
        "rounds": [{"number": n, "new": new, "seconds": seconds} for n, new, seconds in unit.rounds],
        "rules": rules,
    }
