"""`everlog explain --html`: one page, without scripts, that explains a program.

The cost of maintaining a program follows from its rules alone, but a list of widths is hard to
read.  The page goes from the whole to the parts, with links: the graph of relations, a table of the
cost of an update for each rule, and for each relation its rules with class, reason, promised cost,
and drawings that show why.  Words say everything that drawings and colours say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from everlog.core.engine.keepers.unit_strategies import STRATEGIES
from everlog.core.joins.join_strategies import JOINS
from everlog.explain.drawing import USES, graph, graph_lines, scrolling, sign
from everlog.explain.markup import Html, anchor, element, link_to, together
from everlog.explain.style import STYLE
from everlog.explain.trees import bags_of, drawn_tree, order_of

CLASSES: Mapping[str, str] = {
    "hierarchical": "One variable order serves all its atoms: an update costs constant time.",
    "acyclic": "Its atoms form a join tree: constant time while facts are only inserted, more with deletes.",
    "cyclic": "Its atoms close a cycle: they are joined in bags, and a wider bag costs more.",
    "recursive": "Its head depends on itself: the cost follows the facts that change on the way.",
}
SYMBOLS: Mapping[str, str] = {
    "N": "inserts so far",
    "D": "size of the joined relations now",
    "O( )": "cost of one inserted or deleted row of a joined relation; reporting changed answers comes on top",
    "Õ( )": "the same, without logarithmic factors",
    "w": "fractional hypertree width of the join: while facts are only inserted, a row costs N to the power w − 1",
    "ŵ": "width of its multivariate extension: with inserts and deletes, a row costs D to the power ŵ − 1",
}
MANY_RULES = 12  # beyond this number, drawings are folded
ARROWS = (("positive", "is read by"), ("negative", "under a negation"), ("aggregate", "under an aggregate"))


def page(explanation: Mapping[str, Any], title: str) -> str:
    """The page of a program; `explanation` is the object of `explain --json`.

    Cost: linear in the program, except for the rule graph: the number of its arrows times the
    layers that they cross.
    """
    relations, rules = whole(explanation), explanation["rules"]
    given = [r for r in relations if r["strategy"] == "given"]
    derived = [r for r in relations if r["strategy"] != "given"]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} — everlog explain"),
        element("style", Html(STYLE)),
    )
    sections = [
        graph_section(relations),
        table_section(rules),
        given_section(given) if given else "",
        *(relation_section(r, [u for u in rules if u["head"] == r["name"]], len(rules)) for r in derived),
    ]
    body = element(
        "body",
        element("a", "Skip to the explanation", href="#main", class_="skip"),
        element(
            "div",
            header(explanation, title),
            contents(given, derived),
            element("main", *sections, id="main", tabindex=-1),
            element("footer", "Written by ", element("code", "everlog explain --html"), "."),
            class_="page",
        ),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def whole(explanation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every relation once, also one that only has facts, or is only read or derived."""
    blank = {"columns": [], "why": "", "recursive": False, "insert_only": False}
    found = {r["name"]: {**blank, "reads": {}, **r} for r in explanation["relations"]}
    heads = [rule["head"] for rule in explanation["rules"]]
    read = [name for r in explanation["relations"] for name in r.get("reads", {})]
    for name in (*explanation["facts"], *heads, *read):
        strategy = "derived" if name in heads else "given"
        found.setdefault(name, {**blank, "name": name, "strategy": strategy, "reads": {}})
    return list(found.values())


# ── the overview ─────────────────────────────────────────────────────────────────────────────


def header(explanation: Mapping[str, Any], title: str) -> Html:
    rules = explanation["rules"]
    program = explanation["program"]
    classes = []
    for name, about in CLASSES.items():
        number = sum(rule["class"] == name for rule in rules)
        classes.append(element("li", badge(name), f" {plural(number, 'rule')}", element("p", about)))
    symbols = [element("div", element("dt", symbol), element("dd", about)) for symbol, about in SYMBOLS.items()]
    how = (
        "Facts enter on the left of the graph and flow along its arrows; "
        "below, each rule says what one inserted or deleted fact can cost, and why."
    )
    return element(
        "header",
        element("p", "everlog explain" + (f" · {program}" if program != title else ""), class_="kicker"),
        element("h1", title),
        element("p", how, class_="lead"),
        element("ul", *classes, class_="legend", aria_label="Classes of rules"),
        element("dl", *symbols, class_="symbols", aria_label="Symbols"),
        class_="top",
    )


def contents(given: Sequence[Mapping[str, Any]], derived: Sequence[Mapping[str, Any]]) -> Html:
    each = [element("li", element("a", r["name"], href=link_to(anchor("rel", r["name"])))) for r in derived]
    parts = [("#graph", "Rule graph"), ("#costs", "What an update costs")]
    if given:
        parts.append(("#given", "Given relations"))
    if derived:
        parts.append((link_to(anchor("rel", derived[0]["name"])), "Derived relations"))
    items = [element("li", element("a", text, href=target)) for target, text in parts]
    if each:
        items.append(element("li", element("ul", *each), class_="each"))
    return element("nav", element("ul", *items), aria_label="Contents")


def graph_section(relations: Sequence[Mapping[str, Any]]) -> Html:
    keys = [element("li", _sample(f"arrow {use}"), text) for use, text in ARROWS]
    keys.append(element("li", _sample("again"), "depends on itself"))
    lines = [element("li", line) for line in graph_lines(relations)]
    return element(
        "section",
        element("h2", "Rule graph"),
        scrolling(graph(relations), "Rule graph", "panel"),
        element("ul", *keys, class_="keys", aria_label="Signs in the graph"),
        element("details", element("summary", "The graph in words"), element("ul", *lines), class_="more")
        if lines
        else "",
        id="graph",
    )


def _sample(kind: str) -> Html:
    """A sign of the graph, for its legend."""
    if kind == "again":
        circle = element("circle", class_="again", cx=28, cy=10, r=9)
        turn = "M24 11.5a4.3 4.3 0 1 0 2-5.2m2.6-2.6-2.9 2.5 3.1 2.1"
        drawn = together([circle, element("path", class_="turn", d=turn)])
    else:
        line = element("path", class_="line", d="M0 10H28")
        drawn = element("g", line, element("path", class_="head", d="M37 10l-8-4.2v8.4Z"), class_=kind)
    return element("svg", drawn, viewBox="0 0 38 20", aria_hidden="true")


def table_section(rules: Sequence[Mapping[str, Any]]) -> Html:
    names = ("Rule", "Class", "Only inserts", "Inserts and deletes", "In use")
    rows = []
    for rule in rules:
        in_use, promised = rule["in_use"], rule["update_cost"]
        rows.append(
            element(
                "tr",
                element("th", link_to_rule(rule), element("small", rule["rule"]), scope="row"),
                element("td", badge(rule["class"])),
                *promises(promised["insert_only"], promised["insert_delete"]),
                element("td", cost(in_use["update_cost"]), element("span", in_use["strategy"], class_="strategy")),
            )
        )
    table = element(
        "table",
        element("caption", "What one update of each rule costs", class_="hide"),
        element("thead", element("tr", *(element("th", name, scope="col") for name in names))),
        element("tbody", *rows),
    )
    about = "For one inserted or deleted row: what the rule's class allows, and what the strategy in use does."
    return element(
        "section",
        element("h2", "What an update costs"),
        element("p", about, class_="soft"),
        scrolling(table, "Costs of the rules", "panel table")
        if rules
        else element("p", "The program has no rules."),
        id="costs",
    )


def promises(insert_only: str, insert_delete: str) -> list[Html]:
    """Two cells, or a wide one if both say the same."""
    if insert_only == insert_delete and not insert_only.startswith(("O(", "Õ(")):
        return [element("td", insert_only, colspan=2)]
    return [element("td", cost(insert_only)), element("td", cost(insert_delete))]


# ── the sections ─────────────────────────────────────────────────────────────────────────────


def given_section(given: Sequence[Mapping[str, Any]]) -> Html:
    items = []
    for relation in given:
        grows = [element("p", "Only inserts: deletes are refused.")] if relation["insert_only"] else []
        items.append(element("li", signature(relation), *grows, id=anchor("rel", relation["name"])))
    return element(
        "section",
        element("h2", "Given relations"),
        element("p", "Their facts come from outside; no rule derives them.", class_="soft"),
        element("ul", *items, class_="given-list"),
        id="given",
    )


def relation_section(relation: Mapping[str, Any], rules: Sequence[Mapping[str, Any]], of: int) -> Html:
    strategy, why = relation["strategy"], relation["why"]
    about = f": {STRATEGIES[strategy]}" if strategy in STRATEGIES else ""
    sentences = [together([f"Maintained by {strategy}{about}", prose(f" ({why})." if why else ".")])]
    if relation["recursive"]:
        sentences.append(Html("It depends on itself."))
    if relation["insert_only"]:
        sentences.append(Html("Its facts are only inserted."))
    reads = [together([USES.get(use, ""), link_to_relation(name)]) for name, use in relation["reads"].items()]
    if reads:
        sentences.append(together(["Reads ", together(reads, ", "), "."]))
    return element(
        "section",
        element("h2", signature(relation)),
        element("p", together(sentences, " ")),
        *(card(rule, of) for rule in rules),
        id=anchor("rel", relation["name"]),
    )


def card(rule: Mapping[str, Any], of: int) -> Html:
    """The section about one rule; `of` is the number of rules in the program."""
    place = f"line {rule['line']} of {PurePath(rule['file']).name}" if rule["file"] else f"line {rule['line']}"
    return element(
        "article",
        element(
            "div",
            element("h3", rule["name"]),
            badge(rule["class"]),
            element("span", place, class_="soft"),
            class_="title",
        ),
        element("pre", element("code", rule["rule"])),
        element("p", prose(f"{rule['class'].capitalize()}: {rule['reason']}.")),
        costs_of(rule),
        element("dl", *facts_of(rule), class_="facts"),
        drawings(rule, folded=of > MANY_RULES),
        id=anchor("rule", rule["name"]),
        class_="panel",
    )


def costs_of(rule: Mapping[str, Any]) -> Html:
    """The promised cost, and the cost of the strategy in use."""
    in_use, promised = rule["in_use"], rule["update_cost"]
    strategy = in_use["strategy"]
    about = JOINS[strategy].about if strategy in JOINS else STRATEGIES.get(strategy, "")
    if promised["insert_only"] == promised["insert_delete"]:
        settings = [("Promised, with or without deletes", "insert_only")]
    else:
        settings = [
            ("Promised, with inserts only", "insert_only"),
            ("Promised, with inserts and deletes", "insert_delete"),
        ]
    parts = [
        element("div", element("dt", name), element("dd", cost(promised[setting]), class_="big"))
        for name, setting in settings
    ]
    parts.append(
        element(
            "div",
            element("dt", "In use: ", element("strong", strategy)),
            element("dd", cost(in_use["update_cost"]), class_="big"),
            element("dd", prose(in_use["why"]), f"; it keeps {about}" if about else "", class_="soft"),
            class_="now",
        )
    )
    return element("dl", *parts, class_="tiles")


def facts_of(rule: Mapping[str, Any]) -> Iterator[Html]:
    """The widths, other names of the join, and what is above it, as terms."""
    join = rule["join"]
    widths = [
        together([element("i", name), " at most " if not exact else " = ", rule[key]])
        for name, key, exact in (
            ("w", "w", rule["w_exact"]),
            ("ŵ", "w_hat", rule["w_hat_exact"]),
        )
    ]
    widths.append(together(["free-connex ", element("i", "w"), " = ", rule["w_free_connex"]]))
    yield from (element("dt", "Widths"), element("dd", together(widths, ", ")))
    also = [
        *(["q-hierarchical"] if join["q_hierarchical"] else []),
        *(["free-connex"] if join["free_connex"] else []),
        *([f"a Loomis–Whitney join of {join['loomis_whitney']} variables"] if join["loomis_whitney"] else []),
    ]
    if rule["class"] == "recursive":
        also.insert(0, join["class"])
    if also:
        yield from (element("dt", "Its join is"), element("dd", ", ".join(also)))
    if rule["above"]:
        above = together((element("code", text) for text in rule["above"]), ", ")
        yield from (element("dt", "Above the join"), element("dd", above))


def drawings(rule: Mapping[str, Any], folded: bool) -> Html:
    join, name = rule["join"], anchor("rule", rule["name"])
    if not join["atoms"]:
        return element("p", "The body joins no relations, so there is no tree to draw.", class_="soft")
    bags = bags_of(rule["decomposition"])
    kind = "Tree decomposition" if join["class"] == "cyclic" else "Join tree"
    bold = "; variables of the head in bold" if join["free"] else ""
    caption = f"{kind}, width {rule['decomposition']['width']}{bold}"
    figures = [figure(caption, drawn_tree(bags, join["free"], f"{name}-bags", f"{kind} of {rule['name']}"))]
    if rule["variable_order"]:
        order = order_of(rule["variable_order"], join["atoms"])
        title = f"Variable order of {rule['name']}"
        figures.append(figure("Variable order", drawn_tree(order, join["free"], f"{name}-order", title)))
    drawn = element("div", *figures, class_="drawings")
    if not folded:
        return drawn
    shown = f"{kind} and variable order" if rule["variable_order"] else kind
    return element("details", element("summary", shown), drawn, class_="more")


def figure(caption: str, drawing: Html) -> Html:
    return element("figure", element("figcaption", caption), drawing)


# ── words ────────────────────────────────────────────────────────────────────────────────────


def badge(query_class: str) -> Html:
    return element("span", sign(query_class), query_class, class_=f"badge {query_class}")


def signature(relation: Mapping[str, Any]) -> Html:
    columns = (
        element("span", f"({', '.join(relation['columns'])})", class_="columns") if relation["columns"] else ""
    )
    return element("code", relation["name"], columns)


def link_to_relation(name: str) -> Html:
    return element("a", element("code", name), href=link_to(anchor("rel", name)))


def link_to_rule(rule: Mapping[str, Any]) -> Html:
    return element("a", rule["name"], href=link_to(anchor("rule", rule["name"])))


def cost(text: str) -> Html:
    """A cost with powers in superscript; copied or read aloud it is still `D^1/2`.

    >>> cost("O(D^1/2) amortized")
    '<span class="cost">O(<i>D</i><sup><span class="hide">^</span>1/2</sup>)</span> amortized'
    """
    pieces = []
    for piece in re.split(r"([OÕ]\([^()]*\))", text):
        found = re.fullmatch(r"([OÕ])\(([^()^]*)(?:\^([^()]*))?\)", piece)
        if found is None:
            pieces.append(piece)
            continue
        order, base, exponent = found.groups()
        inner = element("i", base) if base.isalpha() else base
        caret = element("span", "^", class_="hide")
        power = element("sup", caret, exponent) if exponent else ""
        pieces.append(element("span", f"{order}(", inner, power, ")", class_="cost"))
    return together(pieces)


def prose(text: str) -> Html:
    """Backquotes become code.

    >>> prose("`b` < `c`")
    '<code>b</code> &lt; <code>c</code>'
    """
    pieces = re.split(r"`([^`]*)`", text)
    return together(element("code", piece) if number % 2 else piece for number, piece in enumerate(pieces))


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "rule"), plural(0, "rule")
    ('1 rule', 'no rules')
    """
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
