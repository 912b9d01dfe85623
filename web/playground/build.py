"""Build the playground: a static folder with everlog, Pyodide and the workbench.

    python -P web/playground/build.py FOLDER

Pyodide comes from npm (`npm ci` in this folder; `make playground` does it), everlog and what it
imports from this Python.  The folder needs nothing else: any server of static files serves it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import files, metadata
from pathlib import Path

from everlog.dsl.check import compile_file
from everlog.dsl.fact_text import fact_text
from everlog.initial_facts import read_inputs
from everlog.serve.http.static import static_files
from everlog.shipped import names, shipped

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYODIDE = HERE / "node_modules" / "pyodide"
ENGINE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
DEPENDENCIES = ("lark", "attrs", "sortedcontainers")
LEFT_OUT = tuple(f"everlog.{each}" for each in "agents bench commands editor programs repl".split())
KINDS = {".py", ".lark", ".nrc"}
MOST_FACTS = 60_000  # characters of an example
OWN = ("early.js", "playground.js", "engine.js", "worker.js", "sharing.js", "boot.py")


def packages() -> Iterator[str]:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name in listed["tool"]["setuptools"]["packages"]:
        if not name.startswith(LEFT_OUT):
            yield name


def modules() -> Iterator[tuple[str, bytes]]:
    """The path and the content of each module of everlog and of its dependencies."""
    for name in packages():
        (folder, *_) = import_module(name).__path__
        for path in sorted(Path(folder).iterdir()):
            if path.suffix in KINDS:
                yield f"{name.replace('.', '/')}/{path.name}", path.read_bytes()
    for name in DEPENDENCIES:
        for found in files(name) or []:
            licence = not found.suffix and found.name.startswith(("LICENSE", "METADATA"))
            if licence or (found.suffix in KINDS and "__pyinstaller" not in found.parts):
                yield str(found), found.read_binary()


def write_modules(target: Path) -> None:
    """A zip of all modules, compiled by the Python that will run them."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in modules():
            archive.writestr(zipfile.ZipInfo(name), data)
    subprocess.run(["node", "compile.mjs", str(target)], cwd=HERE, check=True)


def examples() -> list[dict[str, str]]:
    """The shipped programs without Python functors whose facts are few enough for a page."""
    found = []
    for name in names():
        one = shipped(name)
        program, _ = compile_file(one.program)
        if program.functors:
            continue
        facts = read_inputs(program, one.facts)
        lines = [fact_text(program.relations[each], row) for each, rows in facts.items() for row in rows]
        text = "\n".join(lines)
        if len(text) <= MOST_FACTS:
            parts = {"program": one.program, "updates": one.updates}
            texts = {key: path.read_text(encoding="utf-8") for key, path in parts.items()}
            found.append({"name": name, "title": one.title, "facts": text, **texts})
    return found


POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self';
    style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src 'self'; base-uri 'none';
    form-action 'none'">"""
EARLY = '<script type="module" src="./early.js"></script>'
TABS = '<div id="tabs" role="tablist" aria-label="Panels">'
TAB = '<button type="button" role="tab" id="tab-program" aria-controls="program">Program</button>'
QUERY = '      <section id="query" class="panel" role="tabpanel" aria-labelledby="tab-query" tabindex="-1"'


def page() -> str:
    """The page of the workbench, with a panel for the program."""
    text = static_files()["/"][0].decode()
    panel = (HERE / "panel.html").read_text(encoding="utf-8")
    changes = {
        "/console/": "./",
        '<script type="module" src="./main.js">': f'{EARLY}\n  <script type="module" src="./playground.js">',
        "<title>everlog</title>": f"{POLICY}\n  <title>everlog playground</title>",
        "With <code>everlog serve": "Installed, with <code>everlog serve",
        TABS: f"{TABS}\n        {TAB}",
        f"{QUERY}>": f"{panel}\n{QUERY} hidden>",
    }
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def licences() -> str:
    """Whose work is in the folder; licences of Python packages are beside them, in the zip."""
    pyodide = json.loads((PYODIDE / "package.json").read_text(encoding="utf-8"))
    lines = [
        f"Pyodide {pyodide['version']}: {pyodide['license']}, https://github.com/pyodide/pyodide",
        "CPython, in Pyodide: PSF-2.0, https://docs.python.org/3/license.html",
        *(f"{name} {metadata(name)['Version']}: in everlog.zip" for name in DEPENDENCIES),
        "CodeMirror: codemirror.LICENSE.txt",
        "everlog: Apache-2.0",
    ]
    return "\n".join(lines) + "\n"


def build(out: Path) -> None:
    if not PYODIDE.is_dir():
        sys.exit(f"{PYODIDE} is missing: run `npm ci` in {HERE}, or `make playground`")
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    for path, (data, _) in static_files().items():
        if path != "/":
            (out / Path(path).name).write_bytes(data)
    (out / "main.js").unlink()
    for name in OWN:
        shutil.copy(HERE / name, out / name)
    for name in ENGINE:
        shutil.copy(PYODIDE / name, out / name)
    write_modules(out / "everlog.zip")
    (out / "examples.json").write_text(json.dumps(examples(), ensure_ascii=False), encoding="utf-8")
    (out / "LICENSES.txt").write_text(licences(), encoding="utf-8")
    (out / "index.html").write_text(page(), encoding="utf-8")
    listed = sorted(path.name for path in out.iterdir())
    version = hashlib.sha256(b"".join((out / name).read_bytes() for name in listed)).hexdigest()[:16]
    worker = (HERE / "offline.js").read_text(encoding="utf-8")
    worker = worker.replace("__VERSION__", version).replace("__FILES__", json.dumps(["./", *listed]))
    (out / "offline.js").write_text(worker, encoding="utf-8")
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {len(listed) + 1} files, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
