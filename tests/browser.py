"""A headless Chromium for tests of pages, at any width, and a check of contrasts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1400,1000""".split()

CONTRASTS = """
const channels = (color) => {
  const n = (color.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  return n.length < 4 || n[3] > 0 ? n.slice(0, 3) : null;
};
const light = (c) => {
  const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  if (node instanceof SVGElement && !(node instanceof SVGSVGElement)) {
    const fills = [...node.parentNode.children].filter((c) => c.matches('rect, circle, path'));
    const drawn = fills.filter((c) => getComputedStyle(c).fill !== 'none');
    return drawn.map((c) => channels(getComputedStyle(c).fill)).find(Boolean) || behind(node.parentNode);
  }
  for (let at = node; at; at = at.parentElement) {
    const found = channels(getComputedStyle(at).backgroundColor);
    if (found) return found;
  }
  return [255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll('body *')) {
  if (node.closest('title, desc') || node.matches('title, desc')) continue;
  const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
  if (!own || !node.getClientRects().length) continue;
  const style = getComputedStyle(node);
  const ink = channels(node instanceof SVGElement ? style.fill : style.color);
  const [a, b] = [light(ink), light(behind(node))];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.outerHTML.slice(0, 90)]);
}
return found;
"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; where there is none, the test is skipped."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver_path = shutil.which("chromedriver")
    if chromium is None or driver_path is None:
        pytest.skip("no chromium and chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver_path))
    try:
        yield driver
    finally:
        driver.quit()


def at_width(browser: Any, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
