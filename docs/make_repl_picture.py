"""Make docs/repl.svg: a real session at the prompt, drawn by rich.

    python docs/make_repl_picture.py            write the picture again
    python docs/make_repl_picture.py --check    exit with 1 if a new session looks different

The session runs in a pseudo-terminal.  The prompt redraws its line with every key, so its raw
output is not a picture. `tests/terminal.py` emulates a terminal; its cells, with their colours,
become rich's text, and that an SVG.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from terminal import Terminal  # noqa: E402  # beside the tests, which drive the prompt in the same way

PICTURE = ROOT / "docs" / "repl.svg"
PROMPT = "everlog>"
COLUMNS, LINES = 92, 60
SESSION = [
    ".decl line(from:symbol, to:symbol)",
    ".decl reach(from:symbol, to:symbol)",
    "reach(x, y) :- line(x, y).",
    "reach(x, z) :- reach(x, y), line(y, z).",
    'line("Basel", "Bern"). line("Bern", "Chur").',
    '+line("Chur", "Arosa").',
    '?- reach("Basel", x), x != "Bern".',
    '-line("Bern", "Chur").',
    '.why-not reach("Basel", "Arosa")',
]
# terminal colours that have another name in rich
_COLOURS = {"brown": "yellow", "brightbrown": "bright_yellow", "default": "default"}


def main() -> int:
    """Write the picture, or compare it with a new one; return the exit status."""
    rows = list(session())
    if "--check" in sys.argv[1:]:
        said = PICTURE.read_text(encoding="utf-8") if PICTURE.exists() else ""
        if shown(said) != [row.plain.rstrip() for row in rows]:
            print("docs/repl.svg differs from the prompt; run python docs/make_repl_picture.py")
            return 1
        return 0
    PICTURE.write_text(drawn(rows), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {len(rows)} lines")
    return 0


def session() -> Iterator[Text]:
    """Type the lines, each after the previous answer; return the rows of the screen."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "XDG_STATE_HOME": home, "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        command = [sys.executable, "-P", "-m", "everlog"]
        with Terminal(command, Path(home), environment, lines=LINES, columns=COLUMNS) as terminal:
            terminal.wait_for(PROMPT)
            for number, line in enumerate(SESSION, start=2):
                terminal.type(line)
                terminal.wait_for(lambda text, end=line: text.rstrip().endswith(end))
                terminal.enter("")
                terminal.wait_for(lambda text, n=number: text.count(PROMPT) == n)
            screen = terminal._screen
            rows = [_row(screen.buffer[y], COLUMNS) for y in range(LINES)]
    while rows and rows[-1].plain.strip() in ("", PROMPT):  # the last prompt waits for more
        rows.pop()
    yield from rows


def _row(cells: Any, columns: int) -> Text:
    """A line of the screen; adjacent cells of one style are one piece."""
    row = Text()
    for style, piece in groupby((cells[x] for x in range(columns)), key=_style):
        row.append("".join(cell.data for cell in piece), style)
    row.rstrip()
    return row


def _style(cell: Any) -> Style:
    looks = {"bold": cell.bold, "italic": cell.italics, "underline": cell.underscore, "reverse": cell.reverse}
    return Style(color=_colour(cell.fg), **looks)


def _colour(name: str) -> str | None:
    """A colour of the terminal by rich's name.

    >>> _colour("brown"), _colour("brightblack"), _colour("ff8700")
    ('yellow', 'bright_black', '#ff8700')
    """
    if name in _COLOURS:
        return _COLOURS[name]
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return name.replace("bright", "bright_")


def drawn(rows: list[Text]) -> str:
    """The picture; it loads no font from a server, and is deterministic."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for row in rows:
        console.print(row, soft_wrap=True)
    layout = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    layout = layout.replace("font-family: Fira Code, monospace", "font-family: monospace")
    return console.export_svg(title="everlog", code_format=layout, unique_id="everlog")


def shown(svg: str) -> list[str]:
    """The lines of text in a picture; pieces at one height form a line."""
    lines: dict[float, dict[float, str]] = {}
    for attributes, text in re.findall(r'<text class="everlog-r\d+"([^>]*)>([^<]*)</text>', svg):
        x, y = (float(re.search(rf' {name}="([\d.]+)"', attributes)[1]) for name in ("x", "y"))  # type: ignore[index]
        lines.setdefault(y, {})[x] = unescape(text).replace("\u00a0", " ")
    out = []
    for y in sorted(lines):
        line = ""
        for x, text in sorted(lines[y].items()):
            line = line.ljust(round(x / 12.2)) + text
        out.append(line.rstrip())
    return out


if __name__ == "__main__":
    sys.exit(main())
