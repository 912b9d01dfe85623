"""The console of a service, as a person uses it: a real process, a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, at_width, chromium
from serving import PATHS, Served, served, until

TOKEN = "a-secret-of-sufficient-length"
FACTS = """
edge(1, 2).
edge(2, 3).
named(1, "<img src=x onerror=alert(1)>").
named(9007199254740993, "big").
"""
PROGRAM = (
    PATHS
    + """
.decl named(x:number, name:symbol)
.decl ring(a:number)
ring(a) :- edge(a, b), edge(b, c), edge(c, a).
"""
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("console"), "--db", "console.db", program=PROGRAM) as one:
        yield one


@pytest.fixture
def one(service: Served) -> Served:
    """The service with its initial facts, whatever other tests have done."""
    edges = service.get("/relations/edge/facts", limit=1000)["rows"]
    names = service.get("/relations/named/facts", limit=1000)["rows"]
    service.post("/steps", {"delete": {"edge": edges, "named": names}, "text": FACTS})
    return service


class Page:
    """What a person sees and does."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser = browser
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.get(url)
        browser.execute_script("sessionStorage.clear()")
        browser.get_log("browser")
        browser.get(url)

    def text(self, selector: str) -> str:
        return str(
            self.browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
        )

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements("css selector", selector))

    def sees(self, selector: str, what: str) -> None:
        until(lambda: what in self.text(selector), f"`{what}` in {selector}")

    def write(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def count(self, relation: str) -> str:
        script = """return [...document.querySelectorAll('#relation-rows tr')]
            .find((row) => row.querySelector('.name').textContent === arguments[0])?.lastChild.textContent"""
        return str(self.browser.execute_script(script, relation))

    def no_problems(self) -> None:
        assert [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture
def page(browser: Any, one: Served) -> Iterator[Page]:
    shown = Page(browser, one.url)
    shown.sees("#live", "live")
    until(lambda: shown.count("path") == "3", "relations are loaded")
    until(lambda: shown.all("#rule-list li"), "rules are loaded")
    yield shown
    browser.get("about:blank")


def test_counts_and_changes_follow_what_others_do(page: Page, one: Served) -> None:
    one.insert("edge", (3, 1))
    until(lambda: page.count("path") == "9", "the count follows")
    assert page.count("edge") == "3"
    page.sees("#log", "+path(1, 1)")
    one.insert("named", (5, "7"))
    page.sees("#log", '+named(5, "7")')
    page.sees("#step", str(one.get("/relations")["step"]))
    page.find("#pause").click()
    one.post("/steps", {"delete": {"edge": [[3, 1]]}})
    until(lambda: page.count("path") == "3", "counts go on")
    assert "-path" not in page.text("#log")
    page.no_problems()


def test_queries_show_tables_in_pages_and_numbers_as_they_are(page: Page, one: Served) -> None:
    page.write("#query-text", "named(x, name)\n")
    page.sees("#result", "9007199254740993")
    page.sees("#result", "<img src=x onerror=alert(1)>")
    assert not page.all("#result img"), "text is never markup"
    one.insert("edge", *[(n, n) for n in range(100, 170)])
    page.write("#query-text", "edge(x, x)")
    page.find("#query-form button").click()
    page.sees("#query-told", "1 to 50 of 70")
    page.find("#next").click()
    page.sees("#query-told", "51 to 70 of 70")
    assert len(page.all("#result-rows tr")) == 20
    assert not page.find("#next").is_enabled()
    page.write("#query-text", "edge(x\n")
    page.sees("#query-told", "expected")


def test_mistakes_are_marked_where_they_are_and_rules_added_and_dropped(page: Page) -> None:
    page.write("#editor", "ring(x) :- edge(x, _).\npath(x, x) :- edgy(x).")
    page.sees("#mistakes", "DL050 line 2, column 15")
    (mark,) = page.all("#marks mark")
    assert mark.get_attribute("textContent") == "edgy(x)"
    assert page.find("#editor").get_attribute("aria-invalid") == "true"
    page.find("#mistakes button").click()
    selected = (
        "const e = document.getElementById('editor'); return e.value.slice(e.selectionStart, e.selectionEnd)"
    )
    assert page.browser.execute_script(selected) == "edgy(x)"
    assert page.browser.execute_script("return document.activeElement.id") == "editor"
    page.find("#add").click()
    page.sees("#mistakes", "DL050")

    page.write("#editor", "ring(x) :- edge(x, y), path(y, x).")
    page.sees("#mistakes", "ring#2")
    assert "hierarchical" in page.text("#mistakes"), "class and cost are told before it is added"
    assert not page.all("#marks mark")
    page.find("#add").click()
    page.sees("#rule-list", "ring#2")
    assert page.find("#editor").get_attribute("value") == ""

    button = page.find("[aria-label='Drop ring#2']")
    button.click()
    assert button.get_attribute("aria-label") == "Really drop ring#2?"
    button.click()
    until(lambda: "ring#2" not in page.text("#rule-list"), "it is dropped")


def test_marks_are_under_the_text_they_mark(page: Page) -> None:
    """Characters beyond the basic plane count as one for us and as two for JavaScript."""
    page.browser.execute_script(
        """const e = document.getElementById('editor'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))""",
        'named(1, "\U0001f600") :- edgy(1).',
    )
    page.sees("#mistakes", "DL050")
    assert page.find("#marks mark").get_attribute("textContent") == "edgy(1)"
    same = page.browser.execute_script("""
        const [a, b] = ['editor', 'marks'].map((id) => getComputedStyle(document.getElementById(id)));
        return ['font', 'lineHeight', 'paddingLeft', 'paddingTop', 'borderLeftWidth', 'whiteSpace', 'tabSize']
          .filter((name) => a[name] !== b[name])""")
    assert same == []


def test_rules_have_badges(page: Page) -> None:
    assert len(page.all("#rule-list .badge.recursive svg")) == 2
    assert len(page.all("#rule-list .badge.cyclic svg")) == 1
    assert "O(D) amortized" in page.text("#rule-list .cyclic + .cost")


def test_proofs_are_drawn(page: Page) -> None:
    page.write("#fact", "path(1, 3)\n")
    page.sees("#why-told", "path(1, 3) holds")
    boxes = page.browser.execute_script("""
        return [...document.querySelectorAll('#proof g')].map((g) => {
          const r = g.querySelector('rect').getBoundingClientRect();
          const inside = [...g.querySelectorAll('text')].every((t) => {
            const own = t.getBoundingClientRect();
            return own.left >= r.left && own.right <= r.right && own.top >= r.top && own.bottom <= r.bottom;
          });
          return [g.querySelector('text').textContent, r.left, r.top, r.right, r.bottom, inside];
        })""")
    assert [box[0] for box in boxes] == ["path(1, 3)", "path(1, 2)", "edge(1, 2)", "edge(2, 3)"]
    assert all(box[5] for box in boxes), "the text fits"
    for n, (_, left, top, right, bottom, _) in enumerate(boxes):
        for _, left2, top2, right2, bottom2, _ in boxes[:n]:
            assert right < left2 or right2 < left or bottom < top2 or bottom2 < top, "boxes overlap"
    assert len(page.all("#proof path.branch")) == 3
    page.write("#fact", "path(3, 1)")
    page.find("#ask-why-not").click()
    page.sees("#proof", "no fact edge(3, 1)")
    page.find("#ask-why").click()
    page.sees("#why-told", "path(3, 1)")
    page.find("#relation-rows .name").click()
    until(lambda: page.all("[aria-label='Why edge(1, 2)?']"), "facts of a relation have their why")
    page.find("[aria-label='Why edge(1, 2)?']").click()
    page.sees("#why-told", "edge(1, 2) holds")


def test_a_proof_that_is_too_wide_is_drawn_downwards(page: Page, one: Served) -> None:
    """At any width the proved fact is visible, and boxes do not overlap."""
    one.insert("edge", *[(n, n + 1) for n in range(3, 9)])
    page.write("#fact", "path(1, 9)\n")
    page.sees("#why-told", "path(1, 9) holds, after step")
    found = """
        const box = document.getElementById('proof').getBoundingClientRect();
        return [...document.querySelectorAll('#proof rect')].map((each) => {
          const r = each.getBoundingClientRect();
          return [r.left - box.left, r.top, r.right - box.left, r.bottom, box.width];
        })"""
    shapes = set()
    for width in (1400, 360, 1400):
        at_width(page.browser, width)
        until(lambda: all(b[2] <= b[4] for b in page.browser.execute_script(found)), "it is drawn for this width")
        boxes = page.browser.execute_script(found)
        assert len(boxes) == 16
        for n, (left, top, right, bottom, _) in enumerate(boxes):
            for left2, top2, right2, bottom2, _ in boxes[:n]:
                assert right < left2 or right2 < left or bottom < top2 or bottom2 < top, "boxes overlap"
        assert all(left >= 0 and right <= room for left, _, right, _, room in boxes), "all of it is in sight"
        shapes.add(len({top for _, top, _, _, _ in boxes}))
    assert shapes == {9, 16}, "a tree where there is room, else one below the other"


def test_what_is_shown_says_that_it_is_old(page: Page, one: Served) -> None:
    assert "prog.dl · console.db" in page.text("#served")
    page.write("#query-text", "edge(x, y)\n")
    page.sees("#query-told", "2 answers")
    assert not page.find("#again").is_displayed()
    one.insert("edge", (7, 8))
    until(lambda: page.find("#again").is_displayed(), "it says so")
    assert "2 answers" in page.text("#query-told"), "and nothing moves under a reader"
    page.find("#again").click()
    page.sees("#query-told", "3 answers")
    assert not page.find("#again").is_displayed()


def test_steps_can_be_made(page: Page) -> None:
    page.write("#step-text", "+edge(3, 4).")
    page.find("#step-form button").click()
    page.sees("#step-told", ": 4 facts changed")
    until(lambda: page.count("path") == "6", "they count")
    page.write("#step-text", "+edge(3, nonsense)")
    page.find("#step-form button").click()
    page.sees("#step-told", "takes a number")


def test_all_can_be_reached_with_the_keyboard(page: Page, one: Served) -> None:
    order = page.browser.execute_script("""
        const able = [...document.querySelectorAll('a[href], button, input, textarea, [tabindex="0"], summary')]
          .filter((e) => e.getClientRects().length && !e.disabled);
        return able.filter((e) => e.tabIndex < 0).map((e) => e.outerHTML)""")
    assert order == []
    unnamed = page.browser.execute_script("""
        return [...document.querySelectorAll('button, input, textarea, [role=region], section')].filter((e) => {
          const label = e.getAttribute('aria-label') || e.getAttribute('aria-labelledby')
            || (e.labels && e.labels.length) || e.textContent.trim();
          return !label;
        }).map((e) => e.outerHTML)""")
    assert unnamed == []
    page.find("#editor").send_keys(".decl keyed(x:number)")
    from selenium.webdriver.common.keys import Keys

    page.find("#editor").send_keys(Keys.CONTROL, Keys.ENTER)
    until(lambda: page.count("keyed") == "0", "Ctrl + Enter adds")
    one.client.delete("/relations/keyed")


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_it_never_scrolls_sideways(page: Page, one: Served, width: int) -> None:
    one.post("/steps", {"text": f'+named(5, "{"long" * 60}").'})
    page.write("#query-text", "named(x, name)\n")
    page.sees("#result", "longlong")
    page.write("#fact", "path(1, 3)\n")
    page.sees("#why-told", "holds")
    at_width(page.browser, width)
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = page.browser.execute_script("""
        return [...document.querySelectorAll('body *')].filter((e) =>
          !e.closest('.scroll, .skip, #marks') && e.getBoundingClientRect().right > innerWidth + 1
        ).map((e) => e.outerHTML.slice(0, 90))""")
    assert outside == [], "what is wide scrolls in a box of its own"
    assert not page.find("#pages").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(page: Page, one: Served, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    one.insert("edge", (3, 1))
    one.post("/steps", {"delete": {"edge": [[3, 1]]}})
    page.sees("#log", "-edge(3, 1)")
    page.write("#editor", "path(x) :- edgy(x).")
    page.sees("#mistakes", "DL050")
    page.write("#fact", "path(1, 3)\n")
    page.sees("#why-told", "holds")
    dark = page.browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(21, 24, 28)") == (scheme == "dark")
    until(lambda: not page.all(".changed"), "what has lit up is as before")
    found = page.browser.execute_script(CONTRASTS.replace("body *", "body *:not(#marks, #marks *)"))
    assert len(found) > 40
    assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []


def test_the_token_is_asked_for(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, token=TOKEN, EVERLOG_TOKEN=TOKEN) as one:
        page = Page(browser, one.url)
        until(lambda: page.find("#token-dialog").is_displayed(), "it asks")
        page.write("#token", "a-wrong-one\n")
        page.sees("#token-told", "token is wrong")
        until(lambda: page.find("#token-dialog").is_displayed(), "it asks again")
        page.write("#token", TOKEN + "\n")
        page.sees("#live", "live")
        until(lambda: page.count("path") == "3", "now it is let in")
        browser.get("about:blank")


def test_pages_that_were_left_are_not_followed(page: Page, one: Served) -> None:
    """A browser may keep pages, with six connections for all."""
    for n in range(8):
        page.browser.get("about:blank")
        one.insert("edge", (50 + n, 60 + n))
        page.browser.get(one.url)
        page.sees("#live", "live")
    until(lambda: one.get("/stats")["subscribers"] == 1, "only this one follows")
    page.browser.get("about:blank")
    until(lambda: one.get("/stats")["subscribers"] == 0, "nobody follows")
    page.browser.back()
    page.sees("#live", "live")
    until(lambda: page.count("edge") == "10", "all is there again")


def test_it_comes_back_by_itself(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, "--db", "back.db") as one:
        page = Page(browser, one.url)
        page.sees("#live", "live")
        port = one.url.rsplit(":", 1)[1]
        assert one.stop() == 0
        page.sees("#live", "not connected")
    with served(tmp_path, "--db", "back.db", "--port", port) as one:
        page.sees("#live", "live")
        one.insert("edge", (3, 4))
        until(lambda: page.count("path") == "6", "and follows again")
        browser.get("about:blank")
