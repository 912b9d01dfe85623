"""A profile as one HTML page, without scripts, that loads nothing.

A reader asks: where did the time go, which rule made more than it was given, which step was slow,
and was the promise kept?  So each table is sorted by that, and bars show it.  Names and texts of
the program are escaped (`everlog.explain.markup`), and a content security policy allows nothing but
the one style sheet, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from everlog.explain.drawing import scrolling
from everlog.explain.markup import Html, element, together
from everlog.explain.page import plural, prose
from everlog.explain.style import STYLE

_OWN = """
.page{display:block}.bar{width:80px;height:5px;margin:.3rem 0 0 auto}
.bar rect,.steps rect{fill:var(--a)}.bar .back{fill:var(--hair)}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;min-width:0}
td{min-width:0}.panel.chart{padding:1.2rem;margin:1rem 0}
.steps{width:100%;height:180px}.phases{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;padding:0;list-style:none}
.phases b{display:block;font:600 1.4rem/1.3 var(--serif)}
tbody th small{white-space:pre-wrap;overflow-wrap:anywhere}
"""
_STYLE = STYLE + _OWN
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
_WIDE, _TALL = 1000.0, 180.0  # of the picture of steps


def page(profile: Mapping[str, Any]) -> str:
    """The page of a profile; `profile` is the object of `run -p FILE.json`."""
    title = f"{profile['program']} — everlog profile"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(_STYLE)),
    )
    units = profile["units"]
    sections = [_units(units), _rules(units), _plans(units)] if units else []
    if profile["steps"] is not None:
        sections += [_steps(profile["steps"]), _promises(profile["steps"])]
    about = "Times are of this run alone. A blow-up above 1 means that more came out than went in."
    top = element(
        "header",
        element("p", "everlog profile", class_="kicker"),
        element("h1", profile["program"]),
        element("p", about, class_="lead"),
        _phases(profile),
        class_="top",
    )
    foot = element("footer", "Written by ", element("code", "everlog run -p"), f", version {profile['version']}.")
    body = element("body", element("div", top, element("main", *sections, id="main"), foot, class_="page"))
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def _phases(profile: Mapping[str, Any]) -> Html:
    parts = [("all", profile["seconds"])] + [(each["name"], each["seconds"]) for each in profile["phases"]]
    items = [element("li", element("b", seconds(took)), name) for name, took in parts]
    return element("ul", *items, class_="phases", aria_label="Phases of the run")


def _units(units: Sequence[Mapping[str, Any]]) -> Html:
    longest = max(unit["seconds"] for unit in units)
    rows = []
    for unit in sorted(units, key=lambda each: -each["seconds"]):
        names = together((element("code", each["name"]) for each in unit["relations"]), ", ")
        rounds = unit["rounds"]
        most = max((each["new"] for each in rounds), default=0)
        told = f"{len(rounds)}, at most {count(most)} new" if unit["recursive"] and rounds else ""
        facts = together((count(each["facts"]) for each in unit["relations"]), ", ")
        why = element("small", prose(unit["why"])) if unit["why"] else ""
        rows.append(
            element(
                "tr",
                element("th", names, scope="row"),
                _number(seconds(unit["seconds"]), bar(unit["seconds"], longest)),
                _number(facts),
                element("td", unit["machine"], " ", why),
                element("td", told),
            )
        )
    about = "Relations that depend on each other are evaluated together, as a unit."
    return _section("Units", about, ("Relations", "Time", "Facts", "Run", "Rounds"), rows)


def _rules(units: Sequence[Mapping[str, Any]]) -> Html:
    rules = [rule for unit in units for rule in unit["rules"]]
    longest = max((rule["seconds"] or 0.0 for rule in rules), default=0.0)
    rows = []
    for rule in sorted(rules, key=lambda each: -(each["seconds"] or 0.0)):
        if rule["runs"]:
            cells = [
                _number(count(rule["runs"])),
                _number(seconds(rule["seconds"]), bar(rule["seconds"], longest)),
            ]
            cells += [_number(count(rule["found"]))]
        else:
            cells = [element("td", "run with its unit, at once", colspan=3, class_="soft")]
        read = together([element("code", rule["reads"]), f" {count(rule['read'])}"]) if rule["reads"] else ""
        blown = "" if rule["blow_up"] is None else ratio(rule["blow_up"])
        rows.append(element("tr", _rule_name(rule), *cells, element("td", read), _number(blown)))
    about = (
        "Found counts the facts that a rule was the first in its round to find. "
        "Blow-up is found by the size of the largest relation that the rule reads."
    )
    columns = ("Rule", "Runs", "Time", "Found", "Largest read", "Blow-up")
    return _section("Rules", about, columns, rows)


def _plans(units: Sequence[Mapping[str, Any]]) -> Html:
    """The orders in which rules were joined, those of the slowest rules first."""
    rules = [rule for unit in units for rule in unit["rules"] if rule["plans"]]
    most = max(
        (step["tried"] or 0 for rule in rules for each in rule["plans"] for step in each["steps"]), default=0
    )
    rows = []
    for rule in sorted(rules, key=lambda each: -(each["seconds"] or 0.0)):
        for plan in rule["plans"]:
            rows.append(element("tr", element("th", *_plan_title(rule, plan), colspan=5, scope="rowgroup")))
            rows += [_plan_step(step, most) for step in plan["steps"]]
    about = (
        "Each rule as it was joined in the end: tried are the rows that an index or a scan gave, kept those that "
        "passed all tests before the next atom. Many more tried than expected, or than kept, make a rule slow. "
        "Python works on sets; few rows are counted afterwards."
    )
    return _section("Plans", about, ("Atom", "Found by", "Expected", "Tried", "Kept"), rows)


def _plan_title(rule: Mapping[str, Any], plan: Mapping[str, Any]) -> list[Html]:
    notes = [
        "" if plan["delta"] is None else f"from what is new in atom {plan['delta'] + 1}",
        f"planned anew {plan['anew']} ×" if plan["anew"] else "",
        "order as written in .plan" if plan["written"] else "",
    ]
    told = ", ".join(filter(None, notes))
    return [element("code", rule["name"]), element("small", plan["rule"] + (f"   {told}" if told else ""))]


def _plan_step(step: Mapping[str, Any], most: int) -> Html:
    tried, kept = step["tried"], step["kept"]
    return element(
        "tr",
        element("td", element("code", step["atom"])),
        element("td", "in an aggregate: " * step["within"], prose(step["by"].rstrip(":"))),
        _number(count(round(step["expected"]))),
        _number("" if tried is None else count(tried), *([bar(tried, most)] if tried else [])),
        _number("" if kept is None else count(kept)),
    )


def _steps(steps: Mapping[str, Any]) -> Html:
    rows = []
    slowest = steps["slowest"]
    longest = slowest[0]["seconds"] if slowest else 0.0
    for step in slowest:
        ran = together(
            (together([element("code", r["name"]), f" {seconds(r['seconds'])}"]) for r in step["rules"]), ", "
        )
        rows.append(
            element(
                "tr",
                element("th", f"step {step['number']}", scope="row"),
                _number(seconds(step["seconds"]), bar(step["seconds"], longest)),
                _number(count(step["updates"])),
                _number(count(step["changes"])),
                _number("" if step["blow_up"] is None else ratio(step["blow_up"])),
                element("td", ran),
            )
        )
    number = steps["number"]
    mean = seconds(steps["seconds"] / number) if number else "0 s"
    about = f"{plural(number, 'step')}, {mean} on average; the slowest {len(rows)} are listed."
    columns = ("Step", "Time", "Base facts changed", "Derived facts changed", "Blow-up", "Slowest rules")
    return _section("Steps", about, columns, rows, _chart(steps))


def _chart(steps: Mapping[str, Any]) -> Html:
    points = steps["points"]
    if not points:
        return Html("")
    highest, width = max(points) or 1.0, _WIDE / len(points)
    bars = [
        element("rect", x=at * width, y=_TALL - tall, width=max(width - 1, 0.5), height=tall)
        for at, point in enumerate(points)
        if (tall := _TALL * point / highest) >= 0
    ]
    each = (
        "each step" if steps["steps_per_point"] == 1 else f"the slowest of each {steps['steps_per_point']} steps"
    )
    label = f"Time of {each}, in order; the highest bar is {seconds(highest)}"
    drawing = element(
        "svg",
        element("title", label),
        *bars,
        class_="steps",
        viewBox=f"0 0 {_WIDE:.0f} {_TALL:.0f}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
    return element("figure", element("figcaption", label), drawing, class_="panel chart")


def _promises(steps: Mapping[str, Any]) -> Html:
    rows = []
    for rule in sorted(steps["rules"], key=lambda each: -each["seconds"]):
        per_row = "" if rule["work_per_row"] is None or not rule["work"] else count(round(rule["work_per_row"]))
        most = f"{count(round(rule['most_work_per_row']))} in step {rule['in_step']}" if rule["work"] else ""
        kept = "" if rule["ratio"] is None or not rule["work"] else ratio(rule["ratio"])
        rows.append(
            element(
                "tr",
                _rule_name(rule),
                element("td", rule["promise"], element("span", rule["strategy"], class_="strategy")),
                _number(count(rule["size"])),
                _number(count(rule["rows"])),
                _number(seconds(rule["seconds"])),
                _number(per_row),
                _number(most),
                _number(kept),
            )
        )
    about = (
        "Work is counted in units of about ten nanoseconds where a join is kept. The last column divides it "
        "by what was promised, D to the power of the promise for each row: a constant, which must not grow with D."
    )
    columns = ("Rule", "Promised", "D now", "Rows", "Time", "Work per row", "At most", "Work by promise")
    return _section("Promise and reality", about, columns, rows)


# ── parts ────────────────────────────────────────────────────────────────────────────────────


def _section(
    title: str, about: str, columns: Sequence[str], rows: Sequence[Html], above: Html | None = None
) -> Html:
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in columns)))
    table = element("table", element("caption", title, class_="hide"), head, element("tbody", *rows))
    shown = scrolling(table, title, "panel table") if rows else element("p", "There are none.")
    return element("section", element("h2", title), element("p", about, class_="soft"), above or "", shown)


def _rule_name(rule: Mapping[str, Any]) -> Html:
    return element("th", element("code", rule["name"]), element("small", rule["rule"]), scope="row")


def _number(text: str, *more: str) -> Html:
    return element("td", text, *more, class_="number")


def bar(part: float, whole: float) -> Html:
    """A bar as long as the part of the whole."""
    long = 80 * part / whole if whole else 0.0
    back = element("rect", class_="back", width=80, height=5, rx=2)
    return element(
        "svg",
        back,
        element("rect", width=long, height=5, rx=2),
        class_="bar",
        viewBox="0 0 80 5",
        aria_hidden="true",
    )


def seconds(number: float) -> str:
    """A time in the unit that is readable.

    >>> seconds(2.345), seconds(0.0123), seconds(0.0000456)
    ('2.35 s', '12.3 ms', '45.6 µs')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number / 1e-6:.3g} µs"


def count(number: int) -> str:
    r"""A number with spaces between thousands.

    >>> count(1234567)
    '1\xa0234\xa0567'
    """
    return f"{number:,}".replace(",", "\N{NO-BREAK SPACE}")


def ratio(number: float) -> str:
    r"""How many times.

    >>> ratio(0.0312), ratio(12.34), ratio(56789.1)
    ('× 0.031', '× 12', '× 56\xa0789')
    """
    return f"× {count(round(number))}" if number >= 10 else f"× {number:.2g}"
