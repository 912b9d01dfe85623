"""sdist, wheel and container: what is published is complete, and works where nothing else is."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from packaged import ROOT, clean_environment, distributions, installed, run, sources

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
CLOSURE = """.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2). edge(2, 3).
"""


@pytest.mark.deep
def test_the_sdist_has_all_that_the_machine_is_built_from() -> None:
    sdist, wheel = distributions()
    with tarfile.open(sdist) as packed:
        packed_names = {name.partition("/")[2] for name in packed.getnames()}
    native = {f"core/native/{path.name}" for path in (ROOT / "core" / "native").iterdir() if path.is_file()}
    wanted = {name for name in native if not name.endswith((".so", ".pyd", ".md", "_machine.c"))}
    assert wanted <= packed_names
    assert "core/native/_machine.c" not in packed_names  # it is made anew, for the Python at hand
    assert {"README.md", "LICENSE", "setup.py", "pyproject.toml"} <= packed_names
    with zipfile.ZipFile(wheel) as unpacked:
        machines = [name for name in unpacked.namelist() if re.search(r"_machine\.[\w.-]+\.(so|pyd)$", name)]
    assert bool(machines) == (shutil.which("cc") is not None)


@pytest.mark.deep
def test_twine_accepts_both() -> None:
    if find_spec("twine") is None:
        pytest.skip("`twine` is not installed (extra `dev`)")
    said = run(sys.executable, "-P", "-m", "twine", "check", "--strict", *distributions())
    assert said.count("PASSED") == 2


@pytest.mark.deep
def test_the_wheel_works_where_nothing_else_is(tmp_path: Path) -> None:
    bin_ = installed()
    (tmp_path / "closure.dl").write_text(CLOSURE)
    run(bin_ / "everlog", "run", "closure.dl", folder=tmp_path)
    assert (tmp_path / "path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"
    if shutil.which("cc") is not None:
        assert "with the compiled machine" in run(bin_ / "everlog", "--version")
    assert "in Python" in run(bin_ / "everlog", "--version", EVERLOG_PURE="1")
    parts = json.loads(run(bin_ / "everlog", "doctor", "--json"))["parts"]
    assert {part["name"] for part in parts if part["there"]} <= {"compiled machine", "Java"}
    assert "everlog serve needs starlette: pip install" in failing(bin_, "serve", "closure.dl", folder=tmp_path)
    shown = run(bin_ / "everlog", "programs", "run", "company_control", "-D-", folder=tmp_path)
    assert "Alder" in shown


@pytest.mark.deep
def test_the_sdist_installs_without_a_compiler(tmp_path: Path) -> None:
    sdist, _ = distributions()
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", sdist, folder=tmp_path, CC="/bin/false")
    assert "the compiled machine was not built" in run(python, "-m", "everlog", "--version", folder=tmp_path)


@pytest.mark.deep
def test_the_forms_of_pipx_and_uv_that_are_documented_work(tmp_path: Path) -> None:
    """As README and docs/index.md name them, each with a home of its own."""
    run(sys.executable, "-m", "venv", tmp_path / "tools")
    tools = tmp_path / "tools" / "bin"
    fetched = subprocess.run(
        [tools / "pip", "install", "--quiet", "pipx", "uv"],
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    if fetched.returncode != 0:
        pytest.skip("no index has pipx and uv")
    own = {
        name: str(tmp_path / name.lower())
        for name in ("HOME", "PIPX_HOME", "PIPX_BIN_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR")
    }
    version = run(installed() / "everlog", "--version").split("(")[0]
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/index.md"))
    forms = {
        "pipx install .": own["PIPX_BIN_DIR"],
        "uv tool install .": own["UV_TOOL_BIN_DIR"],
        "pipx run --spec . everlog": None,
        "uvx --from . everlog": None,
    }
    for form, bin_ in forms.items():
        assert form in " ".join(text.split()), form
        tool, *rest = form.split()
        told = run(tools / tool, *rest, *([] if bin_ else ["--version"]), folder=sources(), **own)
        if bin_ is not None:
            told = run(Path(bin_) / "everlog", "--version", **own)
        assert version in told, form


@pytest.mark.deep
def test_wheels_are_configured_for_every_python_that_is_named() -> None:
    """cibuildwheel reads its own settings, and says what it would build."""
    if find_spec("cibuildwheel") is None:
        pytest.skip("`cibuildwheel` is not installed (extra `dev`)")
    named = {
        line.rpartition(" ")[2].replace(".", "")
        for line in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    }
    for platform in ("linux", "macos", "windows"):
        cibuildwheel = (sys.executable, "-P", "-m", "cibuildwheel", "--platform", platform)
        built = run(*cibuildwheel, "--print-build-identifiers", sources()).split()
        assert {name.partition("-")[0].removeprefix("cp") for name in built} == named
        assert not any("musllinux" in name or "win32" in name or "i686" in name for name in built)


def test_the_test_of_a_wheel_passes_here() -> None:
    """What cibuildwheel runs on each wheel is run on this installation."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    command = settings["test-command"]
    assert command.startswith("python ")
    done = subprocess.run(
        f"{sys.executable} -P {command.removeprefix('python ')}", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# ── the container ────────────────────────────────────────────────────────────────────────────


def steps(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, with their arguments."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined)]


def test_the_container_is_made_of_steps_that_are_tested() -> None:
    """Each step is one that the tests below run, or needs a container engine and is named here."""
    assert [word for word, _ in steps(DOCKERFILE)] == (
        "FROM RUN COPY RUN FROM COPY RUN RUN USER WORKDIR EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT".split()
    )
    ignored = (ROOT / ".dockerignore").read_text().split()
    for needed in re.findall(r"package-dir\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text(), re.S)[0].split(
        "\n"
    ):
        assert needed.rpartition('"')[0].rpartition('"')[2] not in ignored
    assert {"MANIFEST.in", "setup.py", "README.md", "LICENSE"}.isdisjoint(ignored)


@pytest.mark.deep
def test_what_the_container_runs_serves(tmp_path: Path) -> None:
    """Its wheels are built and installed as it says; its command serves, its check passes."""
    build, install = (
        next(rest for word, rest in steps(DOCKERFILE) if word == "RUN" and rest.startswith(start))
        for start in ("pip wheel", "pip install")
    )
    run(sys.executable, "-m", "venv", tmp_path / "env")
    bin_ = tmp_path / "env" / "bin"
    as_root = {"PATH": f"{bin_}:{os.environ['PATH']}"}
    _without_ignored(tmp_path / "src")
    for command in (build, install):
        placed = command.replace("/wheels", f"{tmp_path}/wheels").replace("/src", f"{tmp_path}/src")
        run("sh", "-c", placed, folder=tmp_path, **as_root)
    assert not (tmp_path / "wheels").exists()
    shop = tmp_path / "data"
    shop.mkdir()
    (shop / "shop.dl").write_text(CLOSURE)
    with served(bin_, shop) as address:
        (check,) = (rest for word, rest in steps(DOCKERFILE) if word == "HEALTHCHECK")
        words = [word.replace("http://127.0.0.1:8765", address) for word in json.loads(check.removeprefix("CMD "))]
        run(bin_ / words[0], *words[1:])
        query = Request(
            f"{address}/api/v1/query",
            json.dumps({"query": "path(1, x)"}).encode(),
            {"Authorization": f"Bearer {'t' * 20}", "Content-Type": "application/json"},
        )
        with urlopen(query) as answer:
            assert json.load(answer)["rows"] == [[2], [3]]
    assert (shop / "shop.db").exists()


@contextmanager
def served(bin_: Path, folder: Path) -> Iterator[str]:
    """The service, started as the container starts it; its address."""
    (entry,) = (json.loads(rest) for word, rest in steps(DOCKERFILE) if word == "ENTRYPOINT")
    command = [str(bin_ / entry[0]), *entry[1:], "shop.dl", "--db", "shop.db", "--port", "0"]
    environment = clean_environment() | {"EVERLOG_TOKEN": "t" * 20}
    service = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert service.stdout is not None
        lines = []
        for line in service.stdout:
            lines.append(line)
            if found := re.search(r"http://[\w.]+:(\d+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        address = f"http://127.0.0.1:{found[1]}"
        _until_healthy(address)
        yield address
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(30) == 0


def _until_healthy(address: str) -> None:
    for _ in range(300):
        try:
            urlopen(f"{address}/api/v1/health").close()
            return
        except URLError:
            time.sleep(0.1)
    raise AssertionError("the service is not healthy after 30 seconds")


def _without_ignored(target: Path) -> None:
    """The sources as `COPY . /src` gets them: without what .dockerignore names."""
    names = [line.removeprefix("**/") for line in (ROOT / ".dockerignore").read_text().split()]
    shutil.copytree(sources(), target, ignore=shutil.ignore_patterns(*(Path(name).name for name in names)))


def failing(bin_: Path, *arguments: str, folder: Path) -> str:
    """What a command that fails says."""
    command = [str(bin_ / "everlog"), *arguments]
    done = subprocess.run(command, cwd=folder, env=clean_environment(), capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr
