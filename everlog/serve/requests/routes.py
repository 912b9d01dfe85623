"""The table of routes, which defines the application and its description.

An operation has its method and path, the schemas of its parameters, body and answer, and its
function.  `app` makes a route of each and validates requests; `openapi` makes the description.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from attrs import evolve, frozen

from everlog.serve.jobs import graph_layout, reading, result_jobs, trying, writing
from everlog.serve.jobs.reading import Call
from everlog.serve.requests import schemas
from everlog.serve.requests.schemas import FLAG, STEP, Shape, array, integer, ref, text
from everlog.serve.service import Bounds, Service

PREFIX = "/api/v1"


@frozen
class Parameter:
    """A parameter in the path, in the query, or a header."""

    name: str
    shape: Shape
    about: str
    place: Literal["path", "query", "header"] = "query"
    required: bool = False


@frozen
class Operation:
    """One kind of request.  Without `work`, the event loop answers it: see `app`."""

    method: str
    path: str
    name: str
    about: str
    answer: Shape
    work: Callable[[Service, Call], Any] | None = None
    parameters: tuple[Parameter, ...] = ()
    body: Shape | None = None
    open: bool = False  # whether it needs no token
    media: tuple[str, ...] = ("application/json",)  # of the answer
    events: bool = False  # whether the answer is a stream of events
    writes: bool = False  # whether it changes something: then it has a clock of its own
    bounded_body: Callable[[int], Shape] | None = None  # the body, by how many rows an answer may have

    def within(self, bounds: Bounds) -> Operation:
        """The operation as it is served within these bounds."""
        most = bounds.rows
        limit = evolve(_LIMIT, shape=integer("", 0, most, default=min(1000, most)))
        return evolve(
            self,
            about=self.about.replace("{answer}", str(bounds.answer)),
            parameters=tuple(limit if each is _LIMIT else each for each in self.parameters),
            body=self.body if self.bounded_body is None else self.bounded_body(most),
        )


_NUMBERS = Parameter("numbers", text(enum=["exact", "text"], default="exact"), "`text`: numbers as strings.")
_AS_OF = Parameter("as_of", STEP, "Ask the state after this step, of a database in a file.")
_LIMIT = Parameter("limit", integer("", 0), "Rows in the answer.")
_OFFSET = Parameter("offset", integer("", default=0), "Rows before them.")
_RELATION = Parameter("name", text(minLength=1), "The name of a relation.", "path", True)
_RESULT = Parameter("name", text(minLength=1, maxLength=100), "A result that is kept.", "path", True)
_ARRANGED = (
    Parameter("sort", integer("", -1000, 1000, default=0), "Order by this column, from 1; negative: descending."),
    Parameter("contains", text(maxLength=1000, default=""), "Only rows with this text in one of their values."),
)
_TELL = Parameter("tell", text(enum=["changes", "counts"], default="changes"), "All changes, or their numbers.")
_RULE = Parameter("name", text(minLength=1), "The name of a rule, such as `path#2`.", "path", True)


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/health", "health", "Whether the service is there.", schemas.HEALTH, open=True),
    Operation("GET", "/openapi.json", "describe", "This description.", {"type": "object"}, open=True),
    Operation(
        "GET",
        "/relations",
        "relations",
        "The relations, with their columns and how many facts they have.",
        schemas.RELATIONS,
        reading.relations,
        (_AS_OF,),
    ),
    Operation(
        "GET",
        "/relations/{name}/facts",
        "facts",
        "The facts of a relation, sorted, a page at a time of at most {answer} bytes.",
        ref("Rows"),
        reading.facts,
        (
            _RELATION,
            _OFFSET,
            _LIMIT,
            Parameter("given", {**FLAG, "default": False}, "Only those that were given, not derived."),
            _NUMBERS,
            _AS_OF,
        ),
    ),
    Operation(
        "DELETE",
        "/relations/{name}",
        "drop_relation",
        "Drop a relation with its declaration, rules and facts, if nothing else uses it.",
        ref("Changed"),
        writing.drop_relation,
        (_RELATION, _NUMBERS),
        writes=True,
    ),
    Operation(
        "POST",
        "/query",
        "query",
        "What a query finds, in one state, a page at a time: the rows that fit into"
        " {answer} bytes, and `more` if there are others.",
        ref("Rows"),
        reading.query,
        (_NUMBERS,),
        bounded_body=schemas.query_body,
    ),
    Operation(
        "POST",
        "/results",
        "keep_result",
        "Find all rows of a query, or of a relation, and keep them for a while: for pages, orders and files.",
        schemas.KEPT,
        result_jobs.keep,
        (),
        schemas.KEEP_BODY,
    ),
    Operation(
        "GET",
        "/results/{name}/file",
        "result_file",
        "A kept result as a file.",
        text("a file"),
        result_jobs.file,
        (
            _RESULT,
            Parameter("format", text(enum=list(result_jobs.FORMATS), default="csv"), "The format of the file."),
            *_ARRANGED,
        ),
        media=result_jobs.MEDIA,
    ),
    Operation(
        "GET",
        "/results/{name}",
        "result_rows",
        "A page of a kept result; 404 if other results took its place.",
        ref("Rows"),
        result_jobs.rows,
        (_RESULT, _OFFSET, _LIMIT, *_ARRANGED, _NUMBERS),
    ),
    Operation(
        "DELETE",
        "/results/{name}",
        "drop_result",
        "Drop a kept result.",
        schemas.DONE,
        result_jobs.drop,
        (_RESULT,),
    ),
    Operation(
        "POST",
        "/steps",
        "step",
        "Insert and delete facts as one step, all or none; the answer is exactly what changed, or,"
        " where that has more than {answer} bytes, how much: then it has `cut`.",
        schemas.STEPPED,
        writing.step,
        (_NUMBERS,),
        schemas.STEP_BODY,
        writes=True,
    ),
    Operation(
        "POST",
        "/what-if",
        "what_if",
        "What a step would change, without making it; with more than {answer} bytes, how much.",
        ref("Changed"),
        trying.what_if,
        (_NUMBERS,),
        schemas.WHAT_IF_BODY,
    ),
    Operation(
        "POST",
        "/how",
        "how",
        "The least steps that make facts come or go, each with its side effects; none is made.",
        schemas.HOW,
        trying.how,
        (),
        schemas.HOW_BODY,
    ),
    Operation("GET", "/rules", "rules", "The rules, with class and cost.", schemas.RULES, reading.rules),
    Operation(
        "POST",
        "/rules",
        "add_rules",
        "Add statements to the program; with `replaces`, in place of a rule or statement.",
        schemas.ADDED,
        writing.add_rules,
        (_NUMBERS,),
        schemas.RULES_BODY,
        writes=True,
    ),
    Operation(
        "POST",
        "/rules/check",
        "check",
        "Tell what is wrong with statements, and which rules they would make, without adding them.",
        schemas.CHECKED,
        reading.check,
        (),
        schemas.RULES_BODY,
    ),
    Operation(
        "POST",
        "/rules/drop",
        "drop_statement",
        "Drop a statement by its text, or a rule by its name.",
        ref("Changed"),
        writing.drop_statement,
        (_NUMBERS,),
        schemas.TEXT_BODY,
        writes=True,
    ),
    Operation(
        "DELETE",
        "/rules/{name}",
        "drop_rule",
        "Drop a rule by its name.",
        ref("Changed"),
        writing.drop_rule,
        (_RULE, _NUMBERS),
        writes=True,
    ),
    Operation(
        "GET",
        "/explain",
        "explain",
        "How relations are kept current, and what an update can cost.",
        schemas.EXPLANATION,
        reading.explain,
        (Parameter("name", text(minLength=1), "Of one relation or rule: `text` is about it alone."),),
    ),
    Operation(
        "GET",
        "/graph",
        "graph",
        "The rule graph, laid out: relations as boxes, and arrows to their readers.",
        schemas.GRAPH,
        graph_layout.graph,
    ),
    Operation("POST", "/why", "why", "A proof of a fact.", schemas.PROOF, reading.why, (), schemas.FACT_BODY),
    Operation(
        "POST",
        "/why-not",
        "why_not",
        "What each rule lacks for a fact.",
        schemas.WHY_NOT,
        reading.why_not,
        (),
        schemas.FACT_BODY,
    ),
    Operation("GET", "/stats", "stats", "Facts, bytes and time.", schemas.STATS, reading.stats),
    Operation(
        "GET",
        "/positions",
        "positions",
        "How far each source of steps has come.",
        schemas.POSITIONS,
        reading.positions,
    ),
    Operation(
        "GET",
        "/diff",
        "diff",
        "How the state after one step differs from that after another, of a database in a file.",
        schemas.DIFF,
        reading.diff,
        (
            Parameter("before", STEP, "A step.", required=True),
            Parameter("after", STEP, "Another; the last one if it is left out."),
            Parameter("relation", text(minLength=1), "Of one relation alone."),
            _TELL,
            _NUMBERS,
        ),
    ),
    Operation(
        "GET",
        "/steps",
        "logged_steps",
        "The latest steps, the last one first, with time and numbers of base facts, of a database in a file.",
        schemas.LOGGED,
        reading.steps,
        (
            Parameter("upto", STEP, "The last one; that of the database if it is left out."),
            Parameter("limit", integer("", 1, 1000, default=100), "How many steps."),
        ),
    ),
    Operation(
        "GET",
        "/history",
        "history",
        "The latest steps that changed a relation, of a database in a file.",
        schemas.HISTORY,
        reading.history,
        (
            Parameter("relation", text(minLength=1), "The relation.", required=True),
            Parameter("limit", integer("", 1, 1000, default=100), "How many steps."),
            _NUMBERS,
        ),
    ),
    Operation(
        "POST",
        "/checkpoint",
        "checkpoint",
        "Compact the file of the database, and drop steps of long ago.",
        schemas.CHECKPOINT,
        writing.checkpoint,
        (),
        schemas.CHECKPOINT_BODY,
        writes=True,
    ),
    Operation(
        "GET",
        "/changes",
        "changes",
        "Follow changes, step by step, as server-sent events: `snapshot`, `ready`, `change`, `program`,"
        " `reset`, `lagged`, `end`.",
        text("events"),
        None,
        (
            Parameter(
                "relation",
                array(text(minLength=1)),
                "Changes of these relations, or of facts that match an atom; of all if there is none.",
            ),
            Parameter("snapshot", {**FLAG, "default": False}, "Begin with all facts."),
            _NUMBERS,
            Parameter("Last-Event-ID", text(), "Go on after this event: what was missed comes first.", "header"),
        ),
        events=True,
    ),
)


def operations(bounds: Bounds) -> tuple[Operation, ...]:
    """All that is served, within these bounds."""
    return tuple(operation.within(bounds) for operation in OPERATIONS)
