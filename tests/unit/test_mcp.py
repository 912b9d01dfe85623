"""`everlog mcp`, asked by the official package's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from serving import running

import everlog
from everlog import Database
from everlog.cli import main

mcp = pytest.importorskip("mcp", reason="mcp is not installed (extra `mcp`)")

PROGRAM = """.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2).
"""
READING = {"relations", "ask", "why", "why_not", "what_if", "how", "explain", "check", "watch"}
TOKEN = "t" * 20
WRITING = {"declare", "insert", "update", "drop"}


class Agent:
    """A client with one server."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}

    async def use(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool answers."""
        found = await self.client.call_tool(tool, arguments)
        assert not found.is_error, found.content
        assert json.loads(found.content[0].text) == found.structured_content
        return found.structured_content

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        found = await self.client.call_tool(tool, arguments)
        assert found.is_error
        text: str = found.content[0].text
        assert "Traceback" not in text
        return text


@asynccontextmanager
async def agent(folder: Path, *arguments: str, **environment: str) -> AsyncIterator[Agent]:
    """An agent with `everlog mcp …` as a process of its own."""
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "everlog", "mcp", *arguments],
        cwd=str(folder),
        env={**os.environ, **environment},
    )
    async with mcp.Client(mcp.stdio_client(server)) as client:
        yield Agent(client)


Act: TypeAlias = Callable[[Agent], Awaitable[None]]


def meet(act: Act, folder: Path, *arguments: str, **environment: str) -> None:
    async def met() -> None:
        async with asyncio.timeout(60), agent(folder, *arguments, **environment) as one:
            await act(one)

    asyncio.run(met())


def meet_here(act: Act, source: Any, may_write: bool = False) -> None:
    """The same with a server in this process."""
    from everlog.agents.tools import make_server

    async def met() -> None:
        async with asyncio.timeout(60), mcp.Client(make_server(source, may_write)) as client:
            await act(Agent(client))

    asyncio.run(met())


def own(text: str = "", facts: Any = None, **more: Any) -> Any:
    """A database of its own for an agent."""
    from everlog.agents.own_database import OwnDatabase

    return OwnDatabase(Database.from_text(text, facts=facts, **more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "paths.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("2\t3\n")
    return tmp_path


def test_a_program_is_read_and_nothing_can_be_changed(folder: Path) -> None:
    async def act(one: Agent) -> None:
        tools = await one.tools()
        assert set(tools) == READING
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        assert all(tool.description for tool in tools.values())
        found = await one.use("relations")
        assert [(each["name"], each["size"]) for each in found["relations"]] == [("edge", 2), ("path", 3)]
        assert "path(x, y) :- edge(x, y)." in found["statements"]
        assert (await one.use("ask", query="path(1, x)"))["rows"] == [[2], [3]]
        page = await one.use("ask", query="path(x, y)", limit=2)
        assert (page["rows"], page["more"], page["total"]) == ([[1, 2], [1, 3]], True, 3)
        assert "└── edge(2, 3)   given" in (await one.use("why", fact="path(1, 3)"))["proof"]
        assert "path(x, y), edge(y, z)" in (await one.use("why_not", fact="path(3, 1)"))["missing"]
        assert "follows the facts that change" in (await one.use("explain", name="path#1"))["explanation"]
        tried = await one.use("what_if", step="-edge(1, 2).")
        assert tried["changes"]["path"] == {"deleted": [[1, 2], [1, 3]], "inserted": []}
        assert "-edge(1, 2)." in (await one.use("how", goal="-path(1, 3)", keep=["path(2, x)"]))["answers"]
        assert (await one.use("check", text=".decl n(x:number)"))["ok"]
        assert (await one.use("ask", query="path(1, x)"))["rows"] == [[2], [3]]

    meet(act, folder, "paths.dl")


def test_mistakes_say_what_to_do() -> None:
    async def act(one: Agent) -> None:
        said = await one.refused("ask", query="pth(1, x)")
        assert "undefined relation `pth`" in said
        assert "did you mean `path`?" in said
        assert "is not there" in await one.refused("why", fact="path(3, 1)")
        assert "a parenthesis is still open" in await one.refused("why", fact="path(1")
        assert not (await one.use("check", text=".decl n(x:string)"))["ok"]
        assert "limit" in await one.refused("ask", query="path(1, x)", limit=10**9)
        assert "undefined relation `pth`" in await one.refused("watch", relations=["pth"], seconds=0)
        await one.refused("insert", relation="edge", rows=[[7, 8]])  # no such tool

    meet_here(act, own(PROGRAM, {"edge": [(2, 3)]}))


def test_an_agent_declares_inserts_and_watches() -> None:
    async def act(one: Agent) -> None:
        tools = await one.tools()
        assert set(tools) == READING | WRITING
        assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == {"update", "drop"}
        made = await one.use("declare", text=PROGRAM.replace(".input edge\n", ""))
        assert made["changes"]["path"]["inserted"] == [[1, 2]]
        begin = await one.use("watch", seconds=0)
        assert begin["steps"] == []
        done = await one.use("insert", relation="edge", rows=[[2, 3], [3, 4]])
        assert [1, 4] in done["changes"]["path"]["inserted"]
        await one.use("update", step="-edge(3, 4).\n+edge(3, 5).")
        seen = await one.use("watch", relations=["path"], after=begin["after"], seconds=5)
        assert [set(step["changes"]) for step in seen["steps"]] == [{"path"}, {"path"}]
        assert [1, 5] in seen["steps"][1]["changes"]["path"]["inserted"]
        waiting = asyncio.create_task(one.use("watch", relations=["path"], after=seen["after"], seconds=30))
        await asyncio.sleep(0.3)
        await one.use("drop", statement="path#2")  # while the other call waits
        assert [1, 5] in (await waiting)["steps"][0]["changes"]["path"]["deleted"]
        assert "may not name files" in await one.refused("declare", text='#include "/etc/passwd"')
        assert (await one.use("watch", after="nonsense", seconds=0))["missed"]

    meet_here(act, own(), may_write=True)


def test_a_long_step_is_stopped_and_the_server_stays() -> None:
    async def act(one: Agent) -> None:
        await one.use("declare", text=".decl n(x:number)  n(0).  .decl a(x:number)  a(1).")
        endless = "n(x + 1) :- n(x), x < 1000000000."
        assert "took more than 0.5 s" in await one.refused("declare", text=endless)
        assert (await one.use("ask", query="a(x)"))["rows"] == [[1]]

    meet_here(act, own(limits=everlog.Limits(seconds=0.5)), may_write=True)


@pytest.mark.deep
def test_tables_are_asked_at_once(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,boss\nann,\nbob,ann\n")

    async def act(one: Agent) -> None:
        assert (await one.use("ask", query='people(x, "ann")'))["rows"] == [["bob"]]

    meet(act, tmp_path, "people.csv")


@pytest.mark.deep
def test_a_file_is_followed_while_another_process_writes(folder: Path) -> None:
    with Database.open(folder / "paths.db", text=PROGRAM.replace(".input edge\n", "")) as writer:

        async def act(one: Agent) -> None:
            assert set(await one.tools()) == READING
            begin = await one.use("watch", seconds=0)
            waiting = asyncio.create_task(one.use("watch", after=begin["after"], seconds=30))
            await asyncio.sleep(0.3)
            writer.insert("edge", (2, 9))
            assert (await waiting)["steps"][0]["changes"]["path"]["inserted"] == [[1, 9], [2, 9]]
            assert (await one.use("ask", query="path(1, x)"))["rows"] == [[2], [9]]

        meet(act, folder, "--db", "paths.db")


@pytest.mark.deep
def test_what_an_agent_writes_to_a_file_stays(folder: Path) -> None:
    async def act(one: Agent) -> None:
        await one.use("insert", relation="edge", rows=[[3, 4]])

    meet(act, folder, "paths.dl", "--db", "paths.db", "--write")
    with Database.open(folder / "paths.db", read_only=True) as database:
        assert database.query("path(1, x)") == [(2,), (3,), (4,)]


def test_a_running_service_is_asked(folder: Path) -> None:
    from everlog.agents.remote import connected

    with running(folder, "paths.dl", "--db", "paths.db", EVERLOG_TOKEN=TOKEN, token=TOKEN) as served:

        async def act(one: Agent) -> None:
            assert set(await one.tools()) == READING
            assert (await one.use("ask", query="path(1, x)"))["rows"] == [[2], [3]]
            assert "did you mean `path`?" in await one.refused("ask", query="pth(1, x)")
            assert "path(1, 3)" in (await one.use("why", fact="path(1, 3)"))["proof"]
            begin = await one.use("watch", seconds=0)
            assert begin["after"]
            waiting = asyncio.create_task(one.use("watch", relations=["path"], after=begin["after"], seconds=30))
            await asyncio.sleep(0.5)
            served.insert("edge", (3, 4))
            seen = await waiting
            assert [1, 4] in seen["steps"][0]["changes"]["path"]["inserted"]
            assert (await one.use("watch", after=seen["after"], seconds=0))["steps"] == []
            served.insert("edge", (4, 5))
            assert len((await one.use("watch", after=seen["after"], seconds=0))["steps"]) == 1
            assert (await one.use("watch", after="nonsense", seconds=0))["missed"]

        meet_here(act, connected(served.url, TOKEN))

        async def write(one: Agent) -> None:
            assert set(await one.tools()) == READING | WRITING
            assert (await one.use("update", step="-edge(1, 2)."))["changes"]["edge"]["deleted"] == [[1, 2]]

        meet_here(write, connected(served.url, TOKEN), may_write=True)
        assert served.query("edge(1, x)") == []

        async def refused(one: Agent) -> None:
            assert "token" in await one.refused("ask", query="path(1, x)")

        from everlog.agents.remote import RemoteService
        from everlog.service_client import ServiceClient

        meet_here(refused, RemoteService(ServiceClient(served.url, "wrong")))


def test_the_manual_lists_every_tool() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", manual, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == READING | WRITING


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--service", "http://127.0.0.1:9"], "cannot use the service"),
        (["--service", "nowhere"], "not the address of a service"),
        (["a.dl", "b.csv"], "one program, or tables"),
        (["a.dl", "--service", "http://127.0.0.1:9"], "leave out the files"),
        (["a.csv", "--db", "x.db"], "leave out the tables"),
        (["a.dl", "--db", "x.db"], "add --write"),
        (["no.dl"], "no.dl"),
        (["no.csv"], "there is no such file"),
        (["--db", "no.db"], "no.db"),
    ],
)
def test_wrong_arguments_say_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["mcp", *arguments]) == 1
    assert told in capsys.readouterr().err
