"""The rule graph with a layout, for the workbench: boxes, arrows and what is recursive.

The layout is that of `everlog explain --html` (`everlog.explain`).
"""

from __future__ import annotations

from typing import Any

from attrs import asdict

from everlog.api.database import Database
from everlog.explain.drawing import LETTER, arrow_paths, short, wide
from everlog.explain.page import whole
from everlog.explain.tree_layout import layered
from everlog.serve.jobs.reading import Call, explanation
from everlog.serve.service import Service

_LEAST = 20 * LETTER  # the width of a box: room for counts and times


def graph(service: Service, call: Call) -> dict[str, Any]:
    """Where each relation of the program is drawn, and the arrows to its readers."""

    def found(database: Database) -> dict[str, Any]:
        relations = whole(explanation(service, database))
        widths = {each["name"]: max(wide(short(each["name"])) + 34, _LEAST) for each in relations}
        picture = layered(widths, {each["name"]: each["reads"] for each in relations})
        boxes = [
            {key: each[key] for key in ("name", "strategy", "recursive", "insert_only")}
            | asdict(picture.boxes[each["name"]])
            for each in relations
        ]
        arrows = []
        for each in relations:
            for read, use in each["reads"].items():
                if read != each["name"]:
                    line, head = arrow_paths(picture, read, each["name"])
                    arrows.append({"from": read, "to": each["name"], "use": use, "line": line, "head": head})
        frames = [asdict(frame) for frame in picture.frames]
        size = {"width": picture.width, "height": picture.height}
        return {**size, "boxes": boxes, "arrows": arrows, "frames": frames}

    return {"step": service.step, **service.reading(found)}
