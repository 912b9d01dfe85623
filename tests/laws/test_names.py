"""Names of variables, relations, columns, components and functors do not matter."""

from __future__ import annotations

import traceback

import pytest
from engines import EXECUTORS
from hostile_names import ROLES, agrees, hostile, identifiers, names_of, shuffled


def _failures(first: int, last: int, everywhere: bool) -> list[str]:
    """The failures of programs with these seeds, on every executor, or on one in turn."""
    names = sorted(EXECUTORS)
    found = []
    for seed in range(first, last):
        try:
            agrees(hostile(seed), names if everywhere else [names[seed % len(names)]])
        except Exception:
            found.append(f"seed {seed}:\n{traceback.format_exc()[-2000:]}")
            if len(found) > 3:
                break
    return found


def test_our_own_names_are_tried() -> None:
    ours = set(identifiers())
    assert ours > {"undo", "shield", "told", "take_row", "put_row", "step", "row", "make", "_delta", "_new", "_i0"}
    assert len(ours) > 5_000


def test_each_of_our_names_is_tried_in_each_role() -> None:
    ours = shuffled()
    assert len(ours) < 20_000
    for number in range(len(ROLES)):
        assert len({names_of(seed)[number] for seed in range(len(ours))}) == len(ours)


def test_200_programs_with_hostile_names_and_constants_mean_what_the_reference_says() -> None:
    assert not _failures(0, 200, everywhere=False)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(100))  # each shorter than `faulthandler_timeout`
def test_20_000_programs_with_hostile_names_and_constants(part: int) -> None:
    assert not _failures(1_000 + part * 200, 1_200 + part * 200, everywhere=True)
