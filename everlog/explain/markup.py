"""HTML and SVG elements as values; all other text is escaped.

A page about a program is full of the program's own text, and a symbol may well be `<script>`.  So
no part of the page concatenates strings: only `element` makes markup, and it escapes every child
and attribute that it did not make itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

VOID = frozenset({"meta"})
BLOCK = frozenset("article dd details div dl figure g header html li main nav p section svg table tr ul".split())


class Html(str):
    """A string that is markup."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: object) -> Html:
    """One element; None omits an attribute, `class_` and `aria_label` are renamed.

    >>> element("a", "x < y", href="#1", class_="link", title=None)
    '<a href="#1" class="link">x &lt; y</a>'
    >>> element("p", element("b", "&"))
    '<p><b>&amp;</b></p>\\n'
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            words.append(f'{name.rstrip("_").replace("_", "-")}="{escape(_written(value))}"')
    if tag in VOID:
        return Html(f"<{' '.join(words)}>")
    return Html(f"<{' '.join(words)}>{together(children)}</{tag}>" + ("\n" if tag in BLOCK else ""))


def together(children: Iterable[str], between: str = "") -> Html:
    """Several pieces as one, escaped where necessary.

    >>> together(["<", element("b", "x")], between=" & ")
    '&lt; &amp; <b>x</b>'
    """
    return Html(_markup(between).join(_markup(child) for child in children))


def anchor(kind: str, name: str) -> str:
    """The id of the section about a rule or a relation, without white space.

    >>> anchor("rule", "path#2"), anchor("rel", "a b")
    ('rule-path#2', 'rel-a%20b')
    """
    return re.sub(r"\s", lambda found: quote(found.group()), f"{kind}-{name}")


def link_to(target: str) -> str:
    """The address of an id on the same page.

    >>> link_to(anchor("rule", "path#2"))
    '#rule-path%232'
    """
    return "#" + quote(target, safe="")


def _markup(text: str) -> Html:
    return text if isinstance(text, Html) else Html(escape(text))


def _written(value: object) -> str:
    """The text of an attribute; coordinates get one decimal."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
