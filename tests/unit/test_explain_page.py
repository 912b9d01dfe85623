"""The page of `everlog explain --html`: valid HTML, and its look in a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browser import CONTRASTS, at_width, chromium

from everlog import compile_text
from everlog.core.engine.planning.costs import rule_costs
from everlog.core.engine.planning.plan import make_plan
from everlog.core.program.dependencies import edges
from everlog.explain.page import page
from everlog.explain.tree_layout import layered

PROGRAM = """
.decl r(a:number, b:number)
.decl s(a:number, b:number)
.decl t(a:number, b:number)
.decl blocked(a:number)
.decl triangle(a:number, b:number, c:number)
.decl pair(a:number, b:number, c:number)
.decl far(a:number, d:number)
.decl even(x:number)
.decl odd(x:number)
.decl total(a:number, n:number)
.decl tag(x:symbol)
triangle(a, b, c) :- r(a, b), s(b, c), t(a, c), a < 5.
pair(a, b, c) :- r(a, b), s(a, c), !blocked(a).
far(a, d) :- r(a, b), s(b, c), t(c, d).
even(x) :- r(x, x).
even(x) :- odd(y), r(y, x).
odd(x) :- even(y), s(y, x), !blocked(x).
total(a, n) :- far(a, _), n = count : { far(a, _) }.
tag("<script>alert('&')</script>") :- blocked(_).
"""
VOID = {"meta"}


def explanation(text: str = PROGRAM) -> dict[str, Any]:
    program = compile_text(text)
    plan = make_plan(program)
    unit_of = {name: unit for unit in plan.units for name in unit.unit.relations}
    reads: dict[str, dict[str, str]] = {}
    for edge in edges(program):
        reads.setdefault(edge.head, {})[edge.body] = edge.use
    relations = [
        {
            "name": name,
            "columns": [f"{column.name}:number" for column in relation.columns],
            "strategy": unit_of[name].strategy,
            "why": unit_of[name].why,
            "recursive": unit_of[name].unit.recursive,
            "insert_only": name == "t",
            "reads": reads.get(name, {}),
        }
        for name, relation in program.relations.items()
    ]
    facts = [r["name"] for r in relations if r["strategy"] == "given"]
    rules = [cost.to_json() for cost in rule_costs(plan)]
    return {"program": "test.dl", "facts": facts, "relations": relations, "rules": rules}


class Reader(HTMLParser):
    """Tags that balance, ids, links, and the text that is not of a style sheet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.references: set[str] = set()
        self.headings: list[int] = []
        self.words: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open, "elements stay open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids[value or ""] += 1
            elif name == "href":
                assert (value or "").startswith("#"), "a link to outside"
                self.references.add(unquote((value or "")[1:]))
            elif name in ("aria-labelledby", "aria-describedby"):
                self.references.update((value or "").split())

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


# ── the text ─────────────────────────────────────────────────────────────────────────────────


def test_elements_nest_ids_are_unique_and_links_have_targets() -> None:
    read = Reader(page(explanation(), "test.dl"))
    assert set(read.ids.values()) == {1}
    assert not [name for name in read.ids if any(letter.isspace() for letter in name)]
    assert read.references <= set(read.ids)
    assert read.headings[0] == 1
    assert read.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(read.headings))


def test_every_rule_and_relation_is_there() -> None:
    told = explanation()
    read = Reader(page(told, "test.dl"))
    text = "".join(read.words)
    for rule in told["rules"]:
        assert read.ids[f"rule-{rule['name']}"] == 1
        assert text.count(rule["rule"]) >= 2, "in the table and on the card"
        assert rule["in_use"]["update_cost"] in text, "powers can be copied as they are written in JSON"
    for relation in told["relations"]:
        assert read.ids[f"rel-{relation['name']}"] == 1
    assert read.tags["article"] == len(told["rules"])
    assert "odd reads even, s, not blocked" in text
    assert "total reads an aggregate of far" in text


def test_text_of_the_program_is_never_markup() -> None:
    told = explanation()
    evil = '"><img src=x onerror=alert(1)>'
    told["relations"].append({**told["relations"][0], "name": evil, "why": evil, "columns": [evil]})
    written = page(told, f"</title><script>{evil}")
    read = Reader(written)
    assert read.tags["script"] == read.tags["img"] == 0
    assert "onerror" not in read.attributes
    assert "<script>alert('&')</script>" in "".join(read.words)
    assert read.references <= set(read.ids)


def test_the_page_needs_nothing_from_outside() -> None:
    written = page(explanation(), "test.dl")
    read = Reader(written)
    assert "src" not in read.attributes
    assert read.tags["link"] == read.tags["script"] == 0
    assert "url(" not in written
    assert "@import" not in written


def test_widths_that_are_bounds_are_reported_as_such() -> None:
    told = explanation()
    told["rules"][0].update(w_exact=True, w_hat_exact=False)
    card = page(told, "test.dl").split('<article id="rule-triangle#1"')[1].split("</article>")[0]
    assert "<i>w</i> = 3/2" in card
    assert "<i>ŵ</i> at most 3/2" in card


def test_drawings_are_folded_where_there_are_many_rules() -> None:
    rules = "".join(f"q{n}(a) :- r(a, b), s(b, c)." for n in range(13))
    many = ".decl r(a:number, b:number) .decl s(a:number, b:number)" + "".join(
        f".decl q{n}(a:number) " for n in range(13)
    )
    in_words = 1
    assert Reader(page(explanation(), "few")).tags["details"] == in_words
    assert Reader(page(explanation(many + rules), "many")).tags["details"] == 13 + in_words


@pytest.mark.parametrize("text", ["", ".decl r(a:number)", ".decl q(x:number)  q(x) :- x = 3."])
def test_programs_of_nearly_nothing_have_a_page(text: str) -> None:
    Reader(page(explanation(text), "small"))


def test_a_relation_that_is_only_named_has_a_section() -> None:
    told = explanation()
    told["relations"] = [r for r in told["relations"] if r["name"] not in ("r", "far", "blocked")]
    told["facts"] = ["r"]
    read = Reader(page(told, "test.dl"))
    assert {"rel-r", "rel-far", "rel-blocked"} <= set(read.ids)


def test_a_deep_program_and_a_long_rule_are_drawn() -> None:
    """As deep as they come, without recursion."""
    names = [f"p{n}" for n in range(400)]
    chain = [{"name": a, "strategy": "counts", "reads": {b: "positive"}} for a, b in pairwise(names)]
    told = explanation()
    bags = [
        {"variables": [f"v{n}", f"v{n + 1}"], "atoms": [], "parent": n - 1 if n else None} for n in range(2000)
    ]
    told["rules"][0]["decomposition"]["bags"] = bags
    Reader(page({**told, "relations": [*told["relations"], *chain]}, "deep"))


def test_boxes_of_the_graph_never_overlap_and_arrows_point_right() -> None:
    told = explanation()
    reads = {r["name"]: r["reads"] for r in told["relations"]}
    picture = layered(dict.fromkeys(reads, 90.0), reads)
    boxes = list(picture.boxes.values())
    for number, one in enumerate(boxes):
        assert min(one.x, one.y) >= 0
        assert one.right <= picture.width
        assert one.bottom <= picture.height
        for other in boxes[:number]:
            apart = one.right < other.x or other.right < one.x or one.bottom < other.y or other.bottom < one.y
            assert apart
    assert picture.boxes["even"].x == picture.boxes["odd"].x
    for points in picture.routes.values():
        across = [x for x, _ in points]
        assert across == sorted(across)


# ── in a browser ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Any:
    """The page of the program above, opened from a file as a person would."""
    file = tmp_path / "page.html"
    file.write_text(page(explanation(), "test.dl"), encoding="utf-8")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get(file.as_uri())
    return browser


def test_a_person_sees_rules_costs_and_drawings(opened: Any) -> None:
    for rule in explanation()["rules"]:
        card = opened.find_element("id", f"rule-{rule['name']}")
        assert rule["rule"] in card.text
        assert rule["class"] in card.text
        seen = "".join(card.text.split()).replace("^", "")
        for cost in (*rule["update_cost"].values(), rule["in_use"]["update_cost"]):
            assert "".join(cost.split()).replace("^", "") in seen
    table = opened.find_element("css selector", "table")
    assert table.is_displayed()
    assert len(table.find_elements("css selector", "tbody tr")) == len(explanation()["rules"])
    drawings = opened.find_elements("css selector", "svg.graph, svg.tree")
    assert len(drawings) > len(explanation()["rules"])
    for drawing in drawings:
        assert drawing.is_displayed()
        assert min(drawing.size["width"], drawing.size["height"]) > 20
    assert opened.get_log("browser") == []


def test_text_fits_into_its_boxes(opened: Any) -> None:
    outside = opened.execute_script("""
        return [...document.querySelectorAll('.graph a, .tree g:has(> .bag)')].filter((group) => {
          const box = group.querySelector('rect').getBoundingClientRect();
          return [...group.querySelectorAll('text')].some((text) => {
            const own = text.getBoundingClientRect();
            return own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom;
          });
        }).map((group) => group.textContent)""")
    assert outside == []


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_the_page_never_scrolls_sideways(opened: Any, width: int) -> None:
    at_width(opened, width)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    if width == 390:
        inner, outer = opened.execute_script(
            "const t = document.querySelector('.table'); return [t.scrollWidth, t.clientWidth]"
        )
        assert inner > outer, "the table scrolls by itself"


def test_tab_goes_from_the_skip_link_through_all_links_with_a_visible_outline(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    told = opened.execute_script("return document.querySelectorAll('a, summary, [tabindex=\"0\"]').length")
    seen = []
    for _ in range(told):
        ActionChains(opened).send_keys(Keys.TAB).perform()
        name, style, width, top = opened.execute_script("""
            const at = document.activeElement, style = getComputedStyle(at);
            return [at.getAttribute('href') || at.getAttribute('aria-label') || at.textContent,
                    style.outlineStyle, parseFloat(style.outlineWidth), at.getBoundingClientRect().bottom]""")
        assert style == "solid", name
        assert width >= 2
        assert top > 0
        seen.append(name)
    assert seen[:3] == ["#main", "#graph", "#costs"]
    assert {"Rule graph", "Costs of the rules", "#rel-even", "#rule-far%231"} <= set(seen)


def test_the_skip_link_skips_the_contents(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(opened).send_keys(Keys.TAB, Keys.ENTER, Keys.TAB).perform()
    assert opened.execute_script("return document.activeElement.getAttribute('aria-label')") == "Rule graph"


def test_a_box_of_the_graph_and_a_row_of_the_table_lead_to_their_sections(opened: Any) -> None:
    for link, target in (
        ('.graph a[href="#rel-odd"]', "rel-odd"),
        ('table a[href="#rule-odd%231"]', "rule-odd#1"),
    ):
        opened.find_element("css selector", link).click()
        top, height = opened.execute_script(
            "return [document.getElementById(arguments[0]).getBoundingClientRect().top, innerHeight]", target
        )
        assert 0 <= top < height
        assert opened.execute_script("return document.querySelector(':target').id") == target


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(opened: Any, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    paper = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(21, 24, 28)") == (scheme == "dark")
    found = opened.execute_script(CONTRASTS)
    assert len(found) > 200
    assert [(round(ratio, 2), where) for ratio, where in found if ratio < 4.5] == []
