"""Write the facts of debian_packages.dl from a Debian machine's package lists.

    python3 extract.py FOLDER                                the shipped excerpt
    python3 extract.py FOLDER --all --remove libssl3,perl    this machine: what breaks?
    python3 extract.py FOLDER --all --install postfix        this machine: what comes along?
    python3 extract.py FOLDER --wanted git,vim --offered nginx --install nginx    another one

With `--all` the facts describe this machine: the installed packages, those that a person asked for
(`apt-mark showmanual`), and the packages that `--install` names with their dependencies. Otherwise
they describe a machine on which a person installed the `--wanted` packages besides the essential
ones, with their dependencies; on which the `--left` packages remain from something that was
removed; and where the `--offered` packages could be installed too.

Needs plain Python and `dpkg-query`.  Packages that are not on this machine are looked up by
`apt-cache dumpavail`, if there are package lists.  Versions are as in the lists.  Version
constraints of dependencies are left out, since a release satisfies its own.  A conflict with some
versions of a package is included only if it concerns the version in the lists.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

WANTED = "apt,ca-certificates,cron,curl,exim4-daemon-light,git,less,man-db,openssh-client,python3,rsync,sudo"
WANTED += ",systemd-sysv,vim,wget"
LEFT = "libxml2"
OFFERED = "build-essential,mutt,nginx-light,postfix,python3-venv,sqlite3"
REMOVE = "cron,exim4-config,libssl3,systemd-sysv"
INSTALL = "build-essential,mutt,postfix,python3-venv"

DEPENDS, CONFLICTS = ("Pre-Depends", "Depends"), ("Conflicts", "Breaks")
FIELDS = ("Version", "Installed-Size", "Essential", "Priority", "Provides", *DEPENDS, *CONFLICTS)
PRIORITIES = ("required", "important", "standard", "optional", "extra")
Record = dict[str, str]
Alternative = tuple[str, str, str]  # name, relation such as ">=" or "", version

_ALTERNATIVE = re.compile(r"([a-z0-9][a-z0-9+.-]*)(?::\w+)?(?:\s*\(([<>=]+)\s*([^)]+)\))?")
_COMPARE = {"<<": "lt", "<=": "le", "=": "eq", ">=": "ge", ">>": "gt"}


def installed_records() -> dict[str, Record]:
    """The fully installed packages of this machine, by name."""
    layout = "\t".join(f"${{{field}}}" for field in ("db:Status-Status", "Package", *FIELDS)) + "\n"
    records = {}
    for line in _output("dpkg-query", "-W", "-f", layout).splitlines():
        status, name, *values = line.split("\t")
        if status == "installed":
            records[name] = dict(zip(FIELDS, values, strict=True))
    return records


def available_records() -> dict[str, Record]:
    """The packages in the package lists, by name; of several versions, the first."""
    records: dict[str, Record] = {}
    try:
        text = _output("apt-cache", "dumpavail")
    except (OSError, subprocess.CalledProcessError):
        return records
    for paragraph in text.split("\n\n"):
        pairs = (line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        fields = dict(pairs)
        if "Package" in fields:
            records.setdefault(fields["Package"], {field: fields.get(field, "") for field in FIELDS})
    return records


def alternatives(text: str) -> list[Alternative]:
    """The alternatives of one clause.

    >>> alternatives("debconf (>= 0.5) | debconf-2.0")
    [('debconf', '>=', '0.5'), ('debconf-2.0', '', '')]
    """
    matches = (_ALTERNATIVE.match(part.strip()) for part in text.split("|"))
    return [(m[1], m[2] or "", (m[3] or "").strip()) for m in matches if m]


def clauses(record: Record, *fields: str) -> list[list[Alternative]]:
    """The clauses of a record's fields in order, each a list of alternatives."""
    return [alternatives(clause) for field in fields for clause in record[field].split(",") if clause.strip()]


class World:
    """Packages by name, and the packages that provide a name."""

    def __init__(self, records: dict[str, Record]) -> None:
        self.records = records
        self.providers: dict[str, list[str]] = {}
        for name, record in records.items():
            for ((virtual, _, _),) in clauses(record, "Provides"):
                self.providers.setdefault(virtual, []).append(name)

    def closure(self, roots: Iterable[str], have: set[str]) -> set[str]:
        """`have`, the roots, and their dependencies.

        Of several alternatives, a present one is taken, else the first.
        """
        chosen, todo = set(have), [root for root in roots if root not in have]
        while todo:
            name = todo.pop(0)
            if name in chosen:
                continue
            if name not in self.records:
                raise SystemExit(f"extract.py: neither dpkg nor apt knows a package `{name}`")
            chosen.add(name)
            for clause in clauses(self.records[name], *DEPENDS):
                options = [option for target, _, _ in clause for option in self.satisfying(target)]
                if options and not chosen.intersection(options) and not set(options).intersection(todo):
                    todo.append(options[0])
        return chosen

    def satisfying(self, target: str) -> list[str]:
        """The package of that name, if there is one; then its providers, by priority."""
        return [target] * (target in self.records) + sorted(self.providers.get(target, []), key=self._rank)

    def _rank(self, name: str) -> tuple[int, str]:
        priority = self.records[name]["Priority"]
        return PRIORITIES.index(priority) if priority in PRIORITIES else len(PRIORITIES), name


def facts(world: World, chosen: set[str]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """The facts about the chosen packages, except what is installed and wanted."""
    targets: set[str] = set()
    for name in sorted(chosen):
        record = world.records[name]
        yield "package", (name, record["Version"], int(record["Installed-Size"] or 0))
        for number, clause in enumerate(clauses(record, *DEPENDS), start=1):
            for place, (target, _, _) in enumerate(clause, start=1):
                targets.add(target)
                yield "depends", (name, number, place, target)
        enemies = [clause[0] for clause in clauses(record, *CONFLICTS)]
        for target in sorted({enemy[0] for enemy in enemies if _concerned(world, *enemy)}):
            targets.add(target)
            yield "conflicts", (name, target)
    for name in sorted(chosen):  # a name that nothing asks for needs no provider
        for virtual in sorted({v for ((v, _, _),) in clauses(world.records[name], "Provides")} & targets):
            yield "provides", (name, virtual)


def _concerned(world: World, target: str, relation: str, version: str) -> bool:
    """Whether a conflict with some versions concerns the version in the lists."""
    if not relation or target not in world.records:
        return not relation
    known = world.records[target]["Version"]
    return subprocess.run(["dpkg", "--compare-versions", known, _COMPARE[relation], version]).returncode == 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _output(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def manual() -> set[str]:
    """The manually installed packages of this machine; none if apt does not know."""
    try:
        return set(_output("apt-mark", "showmanual").split())
    except (OSError, subprocess.CalledProcessError):
        return set()


def _chosen(arguments: argparse.Namespace) -> tuple[World, set[str], set[str], set[str]]:
    """All packages, and which of them are wanted, installed and described."""
    try:
        here = installed_records()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"extract.py: cannot ask dpkg-query for packages ({error}); is this Debian?") from None
    install = _names(arguments.install or "")
    world = World(here if arguments.all and set(install) <= set(here) else available_records() | here)
    essential = {name for name, record in world.records.items() if record["Essential"] == "yes"}
    if arguments.all:
        wanted = {name for name in here if name in essential} | (manual() & set(here) or set(here))
        installed = set(here)
        chosen = world.closure(install, installed)
    else:
        wanted = {*essential, *_names(arguments.wanted)}
        installed = world.closure(_names(arguments.left), world.closure(sorted(wanted), set()))
        chosen = world.closure([*_names(arguments.offered), *install], installed)
    return world, wanted, installed, chosen


def _questions(asked: str | None, usual: str, chosen: set[str]) -> list[str]:
    """The packages in question; by default the usual ones, if they are present."""
    if asked is None:
        return [name for name in _names(usual) if name in chosen]
    for name in _names(asked):
        if name not in chosen:
            raise SystemExit(f"extract.py: a question about `{name}`, which is not among the packages")
    return _names(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the .facts files go")
    parser.add_argument("--all", action="store_true", help="this machine, with all of its packages")
    parser.add_argument("--remove", metavar="A,B,…", help="what breaks without these? (none, with --all)")
    parser.add_argument("--install", metavar="A,B,…", help="what comes along with these? (none, with --all)")
    parser.add_argument("--wanted", default=WANTED, metavar="A,B,…", help="packages that a person asked for")
    parser.add_argument("--left", default=LEFT, metavar="A,B,…", help="packages that are no longer needed")
    parser.add_argument("--offered", default=OFFERED, metavar="A,B,…", help="packages that could be installed")
    arguments = parser.parse_args()
    world, wanted, installed, chosen = _chosen(arguments)
    rows: dict[str, list[tuple[object, ...]]] = {n: [] for n in ("package", "depends", "provides", "conflicts")}
    for relation, row in facts(world, chosen):
        rows[relation].append(row)
    rows["installed"] = [(name,) for name in sorted(installed)]
    rows["wanted"] = [(name,) for name in sorted(wanted)]
    for relation, asked, usual in (("remove", arguments.remove, REMOVE), ("install", arguments.install, INSTALL)):
        rows[relation] = [(name,) for name in _questions(asked, "" if arguments.all else usual, chosen)]
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for relation, lines in rows.items():
            text = "".join("\t".join(map(str, row)) + "\n" for row in lines)
            (arguments.folder / f"{relation}.facts").write_text(text, encoding="utf-8")
            print(f"{relation}: {len(lines)}")
    except OSError as error:
        raise SystemExit(f"extract.py: cannot write `{error.filename}`: {error.strerror}") from None


if __name__ == "__main__":
    main()
