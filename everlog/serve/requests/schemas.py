"""The JSON Schemas of bodies and answers.

The service validates bodies (`everlog.serve.requests.json_schema`); tests validate answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Shape = dict[str, Any]


def obj(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None, closed: bool = False) -> Shape:
    """An object with these properties."""
    shape: Shape = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        shape["required"] = list(required)
    return shape | ({"additionalProperties": False} if closed else {})


def array(items: Shape, about: str = "") -> Shape:
    return {"type": "array", "items": items} | ({"description": about} if about else {})


def ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


def text(about: str = "", **more: Any) -> Shape:
    return {"type": "string", **({"description": about} if about else {}), **more}


def integer(about: str = "", low: int = 0, high: int = 2**63 - 1, **more: Any) -> Shape:
    return {"type": "integer", "description": about, "minimum": low, "maximum": high, **more}


FLAG: Shape = {"type": "boolean"}
CUT: Shape = {
    **FLAG,
    "description": "The step is done, but its changes were too large for the answer: `changes` has the number"
    " of changed facts, or nothing.",
}
STEP = integer("the number of a step: the answer shows the state after it")
VALUE: Shape = {
    "type": ["string", "number"],
    "description": "A value of a column. Numbers are exact to 64 bits; a number may also be sent as a string."
    " Infinities and NaN are the strings `Infinity`, `-Infinity` and `NaN`.",
}
ROW = array(VALUE)
GIVEN_ROW: Shape = {"anyOf": [array(VALUE), {"type": "object", "additionalProperties": VALUE}]}
ROWS_BY_RELATION: Shape = {"type": "object", "additionalProperties": array(GIVEN_ROW)}
PARAMETERS: Shape = {
    "type": "object",
    "description": "The values of the parameters `$name` in the text, by name.",
    "additionalProperties": VALUE,
}
PROGRAM_TEXT = text("Statements: declarations, rules, facts, directives.", maxLength=1_000_000)

_UPDATES: dict[str, Shape] = {
    "delete": {**ROWS_BY_RELATION, "description": "Rows to delete, by relation; applied first."},
    "insert": {**ROWS_BY_RELATION, "description": "Rows to insert, by relation."},
    "text": text("Lines `+fact.` and `-fact.`, applied last."),
    "tell": text("The form of the answer: all changes, or their numbers.", enum=["changes", "counts"]),
}
STEP_BODY = obj(
    {},
    {
        **_UPDATES,
        "source": text("The name of the sender, if it keeps a position.", minLength=1, maxLength=200),
        "position": text("Its position; if sent again, the step is not applied again.", maxLength=1000),
    },
    closed=True,
)
WHAT_IF_BODY = obj({}, {**_UPDATES, "as_of": STEP}, closed=True)
HOW_BODY = obj(
    {"goal": text("Facts that shall come, `+fact`, or go, `-fact`; a line each.", minLength=1, maxLength=100_000)},
    {
        "change": array(text(minLength=1), "The relations whose base facts may change."),
        "keep": array(text(minLength=1, maxLength=100_000), "Facts that match one of these atoms stay."),
        "most": integer("changes in one answer", 1, 1000),
        "answers": integer("answers", 1, 1000, default=20),
        "trials": integer("steps that are tried", 1, 100_000, default=1000),
        "as_of": STEP,
    },
    closed=True,
)
RULES_BODY = obj(
    {"text": PROGRAM_TEXT},
    {"replaces": text("A rule by its name, or a statement by its text: it goes as these come.", minLength=1)},
    closed=True,
)
KEEP_BODY = obj(
    {},
    {
        "query": text("An atom, or any body of a rule.", minLength=1, maxLength=100_000),
        "relation": text("Or the name of a relation.", minLength=1),
        "params": PARAMETERS,
        "as_of": STEP,
    },
    closed=True,
)
TEXT_BODY = obj({"text": PROGRAM_TEXT}, closed=True)
CHECKPOINT_BODY = obj(
    {},
    {
        "history": {
            "anyOf": [integer("steps to keep"), {"type": "string", "enum": ["all"]}],
            "description": "The number of steps of history to keep.",
        }
    },
    closed=True,
)
FACT_BODY = obj(
    {"fact": text("A fact, `path(1, 3)`, or with `row` the name of a relation.", minLength=1, maxLength=100_000)},
    {"row": GIVEN_ROW, "params": PARAMETERS, "as_of": STEP},
    closed=True,
)


def query_body(rows: int) -> Shape:
    """The schema of a query with at most this many rows per page."""
    return obj(
        {"query": text("An atom, or any body of a rule.", minLength=1, maxLength=100_000)},
        {
            "params": PARAMETERS,
            "limit": integer("rows in the answer", 0, rows, default=min(1000, rows)),
            "offset": integer("rows before them", default=0),
            "ordered": {
                **FLAG,
                "default": True,
                "description": "Sort and count all rows; otherwise they come unsorted, page by page.",
            },
            "as_of": STEP,
        },
        closed=True,
    )


_RULE = obj(
    {
        "name": text(),
        "relation": text(),
        "text": text(),
        "file": text(),
        "line": integer(),
        "class": text("hierarchical, acyclic, cyclic, recursive"),
        "reason": text(),
        "w": text("fractional hypertree width"),
        "w_hat": text("that of the multivariate extension"),
        "strategy": text(),
        "cost": text("of one update, with the strategy in use"),
    }
)
COMPONENTS: dict[str, Shape] = {
    "Error": obj(
        {"error": obj({"code": text(), "message": text()}, {"diagnostics": array(ref("Diagnostic"))})},
    ),
    "Diagnostic": obj(
        {"code": text(), "severity": text("", enum=["error", "warning"]), "message": text()},
        {
            "file": text(),
            "line": integer(),
            "column": integer(),
            "end_line": integer(),
            "end_column": integer(),
            "labels": array({"type": "object"}),
            "rule": text(),
            "hint": text(),
        },
    ),
    "Column": obj(
        {"name": text(), "kind": text("", enum=["number", "unsigned", "float", "symbol"]), "type": text()}
    ),
    "Row": ROW,
    "Relation": obj(
        {
            "name": text(),
            "columns": array(ref("Column")),
            "size": integer(),
            "rules": integer("how many rules derive it"),
            "input": FLAG,
            "output": FLAG,
            "insert_only": FLAG,
            "strategy": text(),
        }
    ),
    "Rows": obj(
        {
            "step": STEP,
            "columns": array(ref("Column")),
            "rows": array(ref("Row")),
            "offset": integer(),
            "more": {**FLAG, "description": "Whether there are more rows: ask again from there."},
            "total": {"type": ["integer", "null"]},
        }
    ),
    "Changes": {
        "type": "object",
        "description": "For each changed relation, the deleted and inserted rows, sorted; or their numbers.",
        "additionalProperties": obj(
            {
                "deleted": {"anyOf": [array(ref("Row")), {"type": "integer"}]},
                "inserted": {"anyOf": [array(ref("Row")), {"type": "integer"}]},
            }
        ),
    },
    "Changed": obj({"step": STEP, "changes": ref("Changes")}, {"cut": CUT}),
    "Rule": _RULE,
}
RELATIONS = obj({"step": STEP, "relations": array(ref("Relation"))})
STEPPED = obj({"step": STEP, "repeated": FLAG, "changes": ref("Changes")}, {"cut": CUT})
RULES = obj(
    {"step": STEP, "rules": array(ref("Rule")), "statements": array(text()), "warnings": array(text())},
)
ADDED = obj(
    {"step": STEP, "changes": ref("Changes"), "rules": array(text()), "warnings": array(text())}, {"cut": CUT}
)
CHECKED = obj({"step": STEP, "ok": FLAG, "diagnostics": array(ref("Diagnostic")), "rules": array(ref("Rule"))})
PROOF = obj({"step": STEP, "proof": obj({"root": integer(), "nodes": array({"type": "object"})}), "text": text()})
WHY_NOT = obj({"step": STEP, "why_not": {"type": "object"}, "text": text()})
EXPLANATION = obj(
    {"step": STEP, "text": text(), "relations": array({"type": "object"}), "rules": array({"type": "object"})}
)
STATS = obj(
    {"program": text(), "database": {"type": ["string", "null"], "description": "its file, if it has one"}}
    | {
        "step": STEP,
        "version": text(),
        "seconds": {"type": "number"},
        "memory": integer(),
        "subscribers": integer(),
    }
    | {
        "behind": integer("unsent bytes of the slowest subscriber"),
        "lagged": integer("subscribers that were too slow"),
    }
    | {"relations": array({"type": "object"}), "rules": array({"type": "object"})}
)
POSITIONS = obj({"step": STEP, "positions": {"type": "object", "additionalProperties": text()}})
HOW = obj(
    {
        "step": STEP,
        "goals": array(text()),
        "answers": array(obj({"step": text("lines for `text` of `/steps`"), "effects": ref("Changes")})),
        "complete": {**FLAG, "description": "Whether there are no other answers."},
        "remarks": array(text("why there may be others")),
        "trials": integer("steps that were tried"),
        "text": text(),
    }
)
DIFF = obj({"before": STEP, "after": STEP, "changes": ref("Changes")})
HISTORY = obj(
    {"step": STEP, "oldest": STEP, "relation": text()}
    | {"steps": array(obj({"step": STEP, "time": text(), "changes": ref("Changes")}))}
)
CHECKPOINT = obj({"step": STEP, "oldest": STEP})
HEALTH = obj(
    {
        "status": text("", enum=["ok", "stopping"]),
        "version": text(),
        "waiting": integer(),
        "busy": {"type": "number"},
    }
)
KEPT = obj(
    {"result": text("its name"), "step": STEP, "columns": array(ref("Column")), "total": integer("how many rows")}
)
DONE = obj({"step": STEP})
_COUNTS: Shape = {
    "type": "object",
    "additionalProperties": obj({"deleted": integer(), "inserted": integer()}),
}
LOGGED = obj(
    {"step": STEP, "oldest": STEP}
    | {
        "steps": array(
            obj({"step": STEP, "time": text(), "program": FLAG, "given": _COUNTS}),
            "`given` counts base facts; `program` says whether rules changed.",
        )
    }
)
_NUMBER: Shape = {"type": "number"}
_BOX = {"x": _NUMBER, "y": _NUMBER, "width": _NUMBER, "height": _NUMBER}
GRAPH = obj(
    {"step": STEP, "width": _NUMBER, "height": _NUMBER, "frames": array(obj(_BOX))}
    | {"boxes": array(obj({**_BOX, "name": text(), "strategy": text(), "recursive": FLAG, "insert_only": FLAG}))}
    | {
        "arrows": array(
            obj({"from": text(), "to": text(), "use": text(), "line": text("a path"), "head": text("a path")})
        )
    }
)
