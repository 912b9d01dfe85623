"""The tools of `everlog mcp`, for the official `mcp` package.

A tool is a request of the service with the parameters that an agent needs, and a description that
says when to use it.  Tools that change something are there only if the user asked for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from everlog._version import __version__
from everlog.agents.answering import MOST_SECONDS, ROWS, Answering, Refused

Answer: TypeAlias = dict[str, Any]
Value: TypeAlias = int | float | str
Rows: TypeAlias = Annotated[list[list[Value]], Field(description="Facts as lists of values, by column.")]
Relation: TypeAlias = Annotated[str, Field(description="The name of a relation.")]
Fact: TypeAlias = Annotated[str, Field(description='A fact without variables: path(1, 3) or boss("ann", "bob")')]
Step: TypeAlias = Annotated[
    str,
    Field(description='Updates of base facts, a line each: +edge(1, 2). or -edge(2, 3). or -emp("bob", _).'),
]
_TEXT = "Statements: .decl path(x:number, y:number) and rules path(x, z) :- path(x, y), edge(y, z)."

INSTRUCTIONS = """\
A living Datalog database (everlog, Soufflé's dialect). Facts are rows of relations; rules derive
further relations, also recursively, and follow every change of facts at once. Constants of type
symbol are in double quotes, variables and relations are plain names, `_` matches anything, `!`
negates, and `n = count : { r(x, _) }` aggregates. Begin with `relations`. Ask with `ask`, prove an
answer with `why`, find what is missing with `why_not`, and try a change with `what_if` or `how`
before it is made."""


def make_server(source: Answering, may_write: bool) -> MCPServer:
    """A server with the tools for this database."""
    server: MCPServer = MCPServer("everlog", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    _add_questions(server, source)
    _add_trials(server, source)
    if may_write:
        _add_changes(server, source)
    return server


async def _asked(source: Answering, operation: str, body: object = None, **query: object) -> Answer:
    try:
        return await source.ask(operation, body, **query)
    except Refused as problem:
        raise ToolError(str(problem)) from None


Tool: TypeAlias = Callable[[Callable[..., Awaitable[Answer]]], Callable[..., Awaitable[Answer]]]


def _reads(server: MCPServer) -> Tool:
    return server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))


def _add_questions(server: MCPServer, source: Answering) -> None:
    @_reads(server)
    async def relations() -> Answer:
        """The relations with columns, types and numbers of facts and rules, and all statements."""
        found = await _asked(source, "relations")
        about = await _asked(source, "rules")
        return {**found, "statements": about["statements"], "warnings": about["warnings"]}

    @_reads(server)
    async def ask(
        query: Annotated[str, Field(description="A conjunction: path(1, x), x > 2, !blocked(x)")],
        limit: Annotated[int, Field(ge=1, le=ROWS, description="Rows in the answer.")] = 100,
        offset: Annotated[int, Field(ge=0, description="Rows before them.")] = 0,
    ) -> Answer:
        """The values of variables for which a query holds, sorted; `more`: there are others."""
        return await _asked(source, "query", {"query": query, "limit": limit, "offset": offset})

    @_reads(server)
    async def why(fact: Fact) -> Answer:
        """A proof of a fact: the rules and base facts that it follows from."""
        found = await _asked(source, "why", {"fact": fact})
        return {"step": found["step"], "proof": found["text"]}

    @_reads(server)
    async def why_not(fact: Fact) -> Answer:
        """What each rule lacks to derive a fact that is not there."""
        found = await _asked(source, "why_not", {"fact": fact})
        return {"step": found["step"], "missing": found["text"]}

    @_reads(server)
    async def explain(
        name: Annotated[str | None, Field(description="Of one relation or rule, such as path#2.")] = None,
    ) -> Answer:
        """How relations are kept current, and what one update of each rule can cost."""
        found = await _asked(source, "explain", **({} if name is None else {"name": name}))
        return {"step": found["step"], "explanation": found["text"]}

    @_reads(server)
    async def check(text: Annotated[str, Field(description=_TEXT)]) -> Answer:
        """Tell what is wrong with statements, or which rules they would make; nothing is added."""
        return await _asked(source, "check", {"text": text})

    @_reads(server)
    async def watch(
        relations: Annotated[list[str], Field(description="Only these; all if empty.")] = [],  # noqa: B006
        after: Annotated[str | None, Field(description="`after` of the last answer; else from now on.")] = None,
        seconds: Annotated[float, Field(ge=0, le=MOST_SECONDS, description="How long to wait at most.")] = 10.0,
    ) -> Answer:
        """Wait for the next changes of relations, also derived ones; call again with `after`."""
        try:
            return await source.changes(relations, after, seconds)
        except Refused as problem:
            raise ToolError(str(problem)) from None


def _add_trials(server: MCPServer, source: Answering) -> None:
    @_reads(server)
    async def what_if(step: Step) -> Answer:
        """Exactly what a step would change in every relation, without making it."""
        return await _asked(source, "what_if", {"text": step})

    @_reads(server)
    async def how(
        goal: Annotated[str, Field(description='Facts to come or go: +may("ann", "x") or -may("bob", "y")')],
        change: Annotated[list[str], Field(description="Only their base facts may change; any if empty.")] = [],  # noqa: B006
        keep: Annotated[list[str], Field(description="Facts that match these atoms stay.")] = [],  # noqa: B006
        answers: Annotated[int, Field(ge=1, le=50)] = 5,
    ) -> Answer:
        """The least changes of base facts that make derived facts come or go, with side effects."""
        body: Answer = {"goal": goal, "keep": keep, "answers": answers}
        if change:
            body["change"] = change
        found = await _asked(source, "how", body)
        return {"step": found["step"], "answers": found["text"]}


def _add_changes(server: MCPServer, source: Answering) -> None:
    def changes(destructive: bool) -> Tool:
        hints = ToolAnnotations(read_only_hint=False, destructive_hint=destructive, open_world_hint=False)
        return server.tool(annotations=hints)

    @changes(destructive=False)
    async def declare(text: Annotated[str, Field(description=_TEXT)]) -> Answer:
        """Add relations, rules and facts to the program; the answer is what they derive."""
        return await _asked(source, "add_rules", {"text": text})

    @changes(destructive=False)
    async def insert(relation: Relation, rows: Rows) -> Answer:
        """Insert base facts as one step; the answer is what changed, also in derived relations."""
        return await _asked(source, "step", {"insert": {relation: rows}})

    @changes(destructive=True)
    async def update(step: Step) -> Answer:
        """Delete and insert base facts as one step, all or none; the answer is what changed."""
        return await _asked(source, "step", {"text": step})

    @changes(destructive=True)
    async def drop(
        statement: Annotated[str, Field(description="A rule by its name, path#2, or a statement by its text.")],
    ) -> Answer:
        """Drop a rule or another statement; the answer is what went with it."""
        return await _asked(source, "drop_statement", {"text": statement})
