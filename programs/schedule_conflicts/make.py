"""Make facts of schedule_conflicts.dl: a hastily planned week of lectures.

python3 make.py FOLDER [--size COURSES] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, Value, main

SUBJECTS = ["algebra", "analysis", "chemistry", "databases", "ethics", "geometry", "history", "logic", "physics"]
DAYS = ["1 Monday", "2 Tuesday", "3 Wednesday", "4 Thursday", "5 Friday"]
STARTS = [8 * 60 + 15, 10 * 60 + 15, 13 * 60 + 15, 15 * 60 + 15]
SEATS = [20, 30, 40, 60]


def make(chance: random.Random, size: int) -> Facts:
    """Two sessions per course, in a free room and time if two tries find one."""
    courses = [f"{SUBJECTS[i % len(SUBJECTS)]} {i // len(SUBJECTS) + 1}" for i in range(size)]
    rooms: list[tuple[Value, ...]] = [(f"room {i + 1:02}", SEATS[i % 4]) for i in range(max(3, size // 6))]
    taken: set[tuple[str, str, int]] = set()
    sessions: list[tuple[Value, ...]] = []
    for number in range(1, 2 * size + 1):
        for _ in range(2):
            place = (str(chance.choice(rooms)[0]), chance.choice(DAYS), chance.choice(STARTS))
            if place not in taken:
                break
        taken.add(place)
        start = place[2] + chance.choice([0, 0, 0, 30])
        course = courses[(number - 1) % size]
        sessions.append((number, course, place[0], place[1], start, start + chance.choice([90, 90, 105])))
    teachers = [f"teacher {i + 1:02}" for i in range(max(2, size // 3))]
    students = [f"student {i + 1:03}" for i in range(4 * size)]
    return {
        "session": sessions,
        "room": rooms,
        "teaches": [(chance.choice(teachers), course) for course in courses],
        "attends": [(student, course) for student in students for course in chance.sample(courses, min(4, size))],
    }


if __name__ == "__main__":
    main("Make a week of lectures.", "courses", 18, make, smallest=2)
