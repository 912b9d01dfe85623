"""The playground: everlog in a browser.

By default its Python side and the content of its page are tested; the deep tests build the folder
(with npm, which must be there) and use it in a real Chromium.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, at_width, chromium
from selenium.webdriver.common.keys import Keys
from serving import PATHS, until
from static_server import StaticServer, playground

from everlog.serve.in_browser import started

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "web" / "playground"
ATTACK = "<img src=x onerror=alert(1)>"


def built_by() -> Any:
    """The module that builds the folder."""
    spec = spec_from_file_location("playground_build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ── without a browser ────────────────────────────────────────────────────────────────────────


def test_requests_are_answered_as_by_the_service() -> None:
    service, answer = started(PATHS, "edge(3, 4).\n// two\n+edge(4, 5).", "try.dl")
    assert service is not None
    assert answer.status == 200
    assert {each["name"]: each["size"] for each in json.loads(answer.body)["relations"]} == {"edge": 4, "path": 10}

    def ask(method: str, target: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        found = service.answer(method, target, {}, data)
        return found.status, json.loads(found.body)

    assert ask("POST", "/query?numbers=text", {"query": "path(1, x)"})[1]["rows"] == [["2"], ["3"], ["4"], ["5"]]
    assert ask("POST", "/query", {"query": "path(1"})[1]["error"]["code"] == "mistakes"
    assert ask("GET", "/steps")[1]["error"]["code"] == "not-durable"
    assert ask("GET", "/nothing")[0] == 404
    kept = ask("POST", "/results", {"relation": "edge"})[1]["result"]
    assert service.answer("GET", f"/results/{kept}/file?format=csv", {}, None).body.splitlines()[1] == b"1,2"
    assert b"event: ready" in service.events()
    assert service.events() == b""
    ask("POST", "/steps", {"text": "-edge(1, 2)."})
    assert b'"path":{"deleted":[["1","2"]' in service.events()
    assert ask("DELETE", "/rules/path%232")[0] == 200
    assert b"event: program" in service.events()
    assert ask("POST", "/why", {"fact": "path(2, 3)"})[1]["text"].startswith("path(2, 3)")


def test_mistakes_of_a_program_have_their_places() -> None:
    service, answer = started(".decl e(x:number)\ne(x) :- f(x).", "", "try.dl")
    assert service is None
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["diagnostics"][0]["line"]) == (422, 2)
    assert started(".decl e(x:number)", "e(1", "try.dl")[1].status == 422


def test_the_browser_needs_no_module_that_it_lacks() -> None:
    """Pyodide from npm has no SQLite, and no package with code in C."""
    code = """
import sys
class Lacking:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in LACKING or name.startswith(LEFT_OUT):
            raise ModuleNotFoundError(name)
LACKING = "sqlite3 starlette uvicorn pyarrow numpy pandas pygments rich prompt_toolkit".split()
sys.meta_path.insert(0, Lacking())
from everlog.serve.in_browser import started
service, answer = started(".decl e(x:number)\\n.decl f(x:number)\\nf(x) :- e(x).", "e(1).", "try.dl")
for target in ("/rules", "/graph", "/explain", "/stats", "/relations"):
    assert service.answer("GET", target, {}, None).status == 200, target
posts = {"/how": '{"goal": "-f(1)"}', "/why": '{"fact": "f(1)"}', "/why-not": '{"fact": "f(2)"}',
    "/what-if": '{"text": "-e(1)."}', "/results": '{"relation": "f"}', "/rules/check": '{"text": "f(x) :- e(x)."}'}
for target, body in posts.items():
    assert service.answer("POST", target, {}, body.encode()).status == 200, target
"""
    code = f"LEFT_OUT = {built_by().LEFT_OUT}\n{code}"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_the_page_is_that_of_the_workbench_with_a_panel_for_the_program() -> None:
    build = built_by()
    page = build.page()
    assert page.count('role="tabpanel"') == 7
    assert "/console/" not in page
    assert "Content-Security-Policy" in page
    from everlog.serve.http.static import static_files

    there = {Path(path).name for path in static_files()} | set(build.OWN) | set(build.ENGINE)
    for name in [*build.OWN, "workbench.js"]:
        text = next(p for p in (FOLDER / name, ROOT / "everlog/serve/console" / name) if p.exists()).read_text()
        assert set(re.findall(r'from "\./([^"]+)"', text)) <= there, name
    ids = set(re.findall(r'byId\("([^"]+)"\)', (FOLDER / "playground.js").read_text()))
    assert {each for each in ids if f'id="{each}"' not in page} == set()


def test_examples_are_programs_that_run_with_their_facts() -> None:
    examples = {each["name"]: each for each in built_by().examples()}
    assert len(examples) >= 5
    for example in examples.values():
        service, answer = started(example["program"], example["facts"], example["name"])
        assert service is not None, answer.body[:300]
        assert sum(each["size"] for each in json.loads(answer.body)["relations"]) > 10


def test_the_versions_are_pinned() -> None:
    for folder in (FOLDER, ROOT / "web" / "codemirror"):
        package = json.loads((folder / "package.json").read_text())
        lock = json.loads((folder / "package-lock.json").read_text())
        for name, version in (package.get("dependencies", {}) | package.get("devDependencies", {})).items():
            assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
            assert lock["packages"][f"node_modules/{name}"]["version"] == version


def test_the_bundle_of_the_editor_has_the_pinned_versions() -> None:
    licences = (ROOT / "everlog/serve/console/codemirror.LICENSE.txt").read_text()
    package = json.loads((ROOT / "web/codemirror/package.json").read_text())
    for name, version in package["dependencies"].items():
        assert f"{name} {version} (MIT)" in licences


# ── in Chromium ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return playground(tmp_path_factory.mktemp("playground") / "built")


@pytest.fixture
def server(folder: Path) -> Iterator[StaticServer]:
    with StaticServer(folder) as one:
        yield one


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def told(browser: Any, selector: str = "#program-told") -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector))


def opened(browser: Any, url: str) -> None:
    browser.get(url)
    until(lambda: re.search(" facts? in ", told(browser)), "the first program has run")


def write(browser: Any, selector: str, text: str) -> None:
    field = browser.find_element("css selector", selector).shadow_root.find_element("css selector", ".cm-content")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
    browser.execute_cdp_cmd("Input.insertText", {"text": text})


def run(browser: Any, program: str) -> str:
    write(browser, "#program-text", program)
    browser.find_element("id", "run").click()
    time.sleep(0.2)
    until(
        lambda: told(browser) != "running …" and not browser.find_element("id", "stop").is_enabled(), "it has run"
    )
    return told(browser)


def rows(browser: Any) -> list[list[str]]:
    script = (
        "return [...document.querySelectorAll('.rows tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"
    )
    return list(browser.execute_script(script))


def link(browser: Any, target: str) -> None:
    browser.execute_script("location.hash = arguments[0]", target)


@pytest.mark.deep
def test_a_program_is_written_run_asked_changed_and_explained(browser: Any, server: StaticServer) -> None:
    opened(browser, server.url)
    assert told(browser).startswith("9 facts")
    until(lambda: told(browser, "#step") == "0", "the first event")
    assert "5 facts" in run(browser, PATHS)
    link(browser, "/query?query=path(1, x)")
    until(lambda: rows(browser) == [["2"], ["3"]], "answers")
    link(browser, "/changes")
    write(browser, "#step-text", "+edge(3, 4).")
    browser.find_element("css selector", "#step-form .first").click()
    until(lambda: "4 facts changed" in told(browser, "#step-told"), "a step")
    until(lambda: "+path(1, 4)" in told(browser, "#log"), "its changes")
    link(browser, "/why?fact=path(1, 4)")
    until(lambda: "path(1, 4) holds" in told(browser, "#why-told"), "a proof")
    link(browser, "/rules")
    until(lambda: "recursive" in told(browser, "#rule-list"), "classes and costs")
    link(browser, "/graph")
    until(lambda: "6 facts" in told(browser, "#rule-graph"), "the rule graph")
    link(browser, "/program")
    run(browser, f'.decl e(x:symbol)\ne("{ATTACK}").\ne(x) :- f(x).')
    assert "DL050 line 3" in told(browser, "#program-mistakes")
    assert browser.find_elements("css selector", "img") == []
    found = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert found == []
    hosts = browser.execute_script(
        "return performance.getEntriesByType('resource').map((e) => new URL(e.name).host)"
    )
    assert len(set(hosts)) == 1


@pytest.mark.deep
def test_an_example_runs_with_its_updates(browser: Any, server: StaticServer) -> None:
    opened(browser, server.url)
    browser.find_element("css selector", "#example option[value=access_control]").click()
    until(lambda: "556 facts" in told(browser), "the example")
    link(browser, "/changes")
    browser.find_element("id", "what-if").click()
    until(lambda: "member" in told(browser, "#tried"), "its first update")


@pytest.mark.deep
def test_a_link_has_the_program_in_it(browser: Any, server: StaticServer) -> None:
    opened(browser, server.url)
    run(browser, '.decl town(x:symbol)\ntown("Zürich 😀").')
    browser.find_element("id", "share").click()
    until(lambda: "code=" in browser.current_url, "the address has it")
    shared = browser.current_url
    browser.get("about:blank")
    opened(browser, shared)
    assert told(browser).startswith("1 fact ")
    link(browser, "/query?relation=town")
    until(lambda: rows(browser) and rows(browser)[0][0] == "Zürich 😀", "its facts")
    browser.get("about:blank")
    opened(browser, server.url + f"#/program?code={ATTACK}")
    until(lambda: "cannot be read" in told(browser, "#program-mistakes"), "it says so")


@pytest.mark.deep
def test_an_endless_recursion_is_stopped(browser: Any, server: StaticServer) -> None:
    opened(browser, server.url)
    write(browser, "#program-text", ".decl n(x:number)\nn(0).\nn(x + 1) :- n(x).")
    browser.find_element("id", "run").click()
    time.sleep(1)
    assert told(browser) == "running …"
    browser.find_element("id", "stop").click()
    until(lambda: "stopped" in told(browser), "it is stopped")
    until(lambda: browser.find_element("id", "run").is_enabled(), "Python is there again")
    assert "5 facts" in run(browser, PATHS)


@pytest.mark.deep
def test_it_works_without_a_network_after_the_first_load(browser: Any, folder: Path) -> None:
    with StaticServer(folder) as server:
        opened(browser, server.url)
        active = "return navigator.serviceWorker.ready.then((r) => r.active.state === 'activated')"
        until(lambda: browser.execute_script(active), "all files are kept")
    browser.get("about:blank")
    opened(browser, server.url)
    assert "5 facts" in run(browser, PATHS)


@pytest.mark.deep
def test_it_is_ready_in_eight_seconds_and_closes_a_thousand_edges_in_one(
    browser: Any, server: StaticServer
) -> None:
    """Wall time on a machine that does nothing else; of several tries the best one."""
    ready, closed = [], []
    edges = " ".join(f"edge({n}, {(n * 37 + 11) % 1000})." for n in range(1000))
    for _ in range(3):
        browser.get("about:blank")
        opened(browser, server.url)
        ready.append(int(browser.execute_script("return document.body.dataset.ready")) / 1000)
        program = PATHS.replace("edge(1, 2).\nedge(2, 3).\n", edges)
        assert "facts" in run(browser, program)
        closed.append(int(browser.execute_script("return document.body.dataset.ran")) / 1000)
    print(f"ready in {min(ready):.1f} s, closure of 1 000 edges in {min(closed):.2f} s")
    assert min(ready) < 8
    assert min(closed) < 1


@pytest.mark.deep
@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_of_the_program_can_be_read(browser: Any, server: StaticServer, width: int, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    at_width(browser, width)
    opened(browser, server.url)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    found = browser.execute_script(CONTRASTS)
    assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []
