"""The site of the documentation, with the playground: built by mkdocs, read in a real Chromium."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import at_width, chromium
from serving import until
from static_server import StaticServer, playground

ROOT = Path(__file__).parent.parent.parent
WIDTHS = (360, 768, 1400)

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    out = tmp_path_factory.mktemp("site") / "site"
    subprocess.run(
        [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "-q", "-d", str(out)], cwd=ROOT, check=True
    )
    playground(out / "try")
    return out


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    with StaticServer(site) as server:
        yield server.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def told(browser: Any, selector: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector))


def test_examples_run_in_the_page_and_open_in_the_playground(browser: Any, url: str) -> None:
    browser.get(url)
    until(lambda: browser.find_elements("css selector", ".runnable button"), "a button")
    browser.find_element("css selector", ".runnable button").click()
    until(lambda: 'reach("Basel", "Chur").' in told(browser, ".runnable pre"), "its facts")
    link = browser.find_element("css selector", ".runnable a")
    browser.execute_script("arguments[0].focus()", link)
    until(lambda: "code=" in link.get_attribute("href"), "the link has the program")
    browser.get(link.get_attribute("href"))
    until(lambda: "9 facts in" in told(browser, "#program-told"), "it runs there")
    noise = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert noise == []


def test_an_example_with_a_mistake_shows_it(browser: Any, url: str) -> None:
    browser.get(f"{url}diagnostics/")
    until(lambda: browser.find_elements("css selector", ".runnable button"), "buttons")
    browser.find_element("css selector", ".runnable button").click()
    until(lambda: "DL0" in told(browser, ".runnable pre"), "its code")


def test_the_search_finds_pages(browser: Any, url: str) -> None:
    browser.get(url)
    field = browser.find_element("css selector", ".md-search__input")
    field.click()
    field.send_keys("playground")
    until(lambda: "The playground" in told(browser, ".md-search-result__list"), "the page")


def test_no_page_scrolls_sideways(browser: Any, site: Path, url: str) -> None:
    pages = [
        path.parent.relative_to(site) for path in sorted(site.rglob("index.html")) if path.parent.name != "try"
    ]
    assert len(pages) > 30
    wide = []
    for page in pages:
        browser.get(f"{url}{page}/")
        for width in WIDTHS:
            at_width(browser, width)
            time.sleep(0.1)
            if browser.execute_script("return document.documentElement.scrollWidth") > width:
                wide.append((str(page), width))
    assert wide == []
