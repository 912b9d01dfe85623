"""Write the facts of wordnet.dl from the nouns of WordNet.

    python3 extract.py FOLDER                      the shipped excerpt
    python3 extract.py FOLDER --words dog,oak.2    these words, and all broader concepts
    python3 extract.py FOLDER --all                every noun

The script looks for WordNet in /usr/share/wordnet, or in the folder of `--wordnet`.  If it is not
there, the script fetches Debian's package wordnet-base by `apt-get download` and unpacks it to a
temporary folder; it installs nothing.  The licence must accompany all copies: the script writes it
to FOLDER/LICENSE.

Source: wndb(5WN), the format of the files data.noun and index.noun.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.programs.fact_scripts import write_facts

INSTALLED = Path("/usr/share/wordnet")
WORDS = "apple,bicycle,cat,dog,guitar,horse,lion,oak.2,piano,rose,tulip,violin,whale.2,wolf"
SEARCH = "carnivore,musical instrument,plant"
COMPARE = "dog.1/cat.1,dog.1/wolf.1,dog.1/whale.2,violin.1/piano.1,oak.2/rose.1,bicycle.1/dog.1"


class Nouns:
    """The concepts by their offsets in data.noun: names, words and links."""

    def __init__(self, folder: Path) -> None:
        self.words: dict[str, list[str]] = {}
        self.broader: dict[str, list[str]] = {}
        self.parts: dict[str, list[str]] = {}
        self.senses: dict[str, list[str]] = {}
        self.licence = ""
        with (folder / "data.noun").open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("  "):  # the licence, with line numbers
                    self.licence += line.strip().partition(" ")[2].rstrip() + "\n"
                else:
                    self._concept(line.split(" | ")[0].split())
        with (folder / "index.noun").open(encoding="utf-8") as lines:
            for line in lines:
                if not line.startswith("  "):
                    fields = line.split()
                    self.senses[fields[0]] = fields[-int(fields[2]) :]

    def _concept(self, fields: list[str]) -> None:
        """The fields: offset, file, type, number of words (hex), words, links."""
        offset, count = fields[0], int(fields[3], 16)
        self.words[offset] = fields[4 : 4 + 2 * count : 2]
        links = fields[5 + 2 * count :]
        by_sign: dict[str, list[str]] = {}
        for sign, target, kind in zip(links[0::4], links[1::4], links[2::4], strict=True):
            if kind == "n":
                by_sign.setdefault(sign, []).append(target)
        self.broader[offset] = by_sign.get("@", []) + by_sign.get("@i", [])
        self.parts[offset] = by_sign.get("%p", [])

    def name(self, offset: str) -> str:
        """The first word of a concept and the number of its sense: `dog.1`."""
        word = self.words[offset][0]
        return f"{_spaced(word)}.{self.number(word, offset)}"

    def number(self, word: str, offset: str) -> int:
        return self.senses[word.lower()].index(offset) + 1

    def sense(self, text: str) -> str:
        """The concept of `dog` (in its first sense) or `oak.2`."""
        word, _, number = text.partition(".")
        senses = self.senses.get(word.lower().replace(" ", "_"), [])
        place = int(number or 1) if (number or "1").isdigit() else 0
        if not 1 <= place <= len(senses):
            raise SystemExit(f"extract.py: WordNet has no noun `{text}`")
        return senses[place - 1]

    def upwards(self, words: Iterable[str]) -> set[str]:
        """The requested sense of each word, or the first; broader concepts; their parts."""
        todo, chosen = [self.sense(word) for word in words], set[str]()
        while todo:
            offset = todo.pop()
            if offset not in chosen:
                chosen.add(offset)
                todo += self.broader[offset]
        # parts of chosen concepts are included, but not expanded
        parts = {part for offset in chosen for part in self.parts[offset]}
        return chosen | parts


@contextmanager
def wordnet_folder(given: Path | None) -> Iterator[Path]:
    """The folder with data.noun: as given, or installed, or from Debian's package."""
    for folder in [given] if given is not None else [INSTALLED]:
        if (folder / "data.noun").is_file():
            yield folder
            return
    if given is not None:
        raise SystemExit(f"extract.py: no data.noun in {given}")
    with tempfile.TemporaryDirectory() as place:
        try:
            subprocess.run(["apt-get", "download", "wordnet-base"], cwd=place, check=True, capture_output=True)
            (package,) = Path(place).glob("wordnet-base_*.deb")
            subprocess.run(["dpkg", "-x", str(package), place], check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            raise _not_found(error.stderr.decode("utf-8", "replace").strip()) from None
        except (OSError, ValueError) as error:
            raise _not_found(str(error)) from None
        yield Path(place) / "usr" / "share" / "wordnet"


def _not_found(reason: str) -> SystemExit:
    return SystemExit(
        f"extract.py: WordNet is not in {INSTALLED}, and the package wordnet-base cannot be fetched:\n{reason}"
        "\ninstall it (`apt install wordnet-base`), or say with --wordnet where it is"
    )


def _spaced(word: str) -> str:
    return word.replace("_", " ")


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the .facts files go")
    parser.add_argument("--words", default=WORDS, metavar="A,B,…", help="the nouns to begin with")
    parser.add_argument("--all", action="store_true", help="every noun")
    parser.add_argument("--search", default=SEARCH, metavar="A,B,…", help="words to search for")
    parser.add_argument("--compare", default=COMPARE, metavar="A.1/B.1,…", help="pairs of concepts to compare")
    parser.add_argument("--wordnet", type=Path, metavar="DIR", help=f"where WordNet is, if not in {INSTALLED}")
    arguments = parser.parse_args()
    pairs = [tuple(pair.split("/")) for pair in _listed(arguments.compare)]
    if any(len(pair) != 2 for pair in pairs):
        parser.error("--compare takes pairs of concepts such as dog.1/cat.1")

    with wordnet_folder(arguments.wordnet) as source:
        nouns = Nouns(source)
    chosen = set(nouns.words) if arguments.all else nouns.upwards(_listed(arguments.words))
    name = {offset: nouns.name(offset) for offset in chosen}
    write_facts(
        arguments.folder,
        {
            "sense": ((_spaced(w), nouns.number(w, o), name[o]) for o in chosen for w in nouns.words[o]),
            "broader": ((name[o], name[up]) for o in chosen for up in nouns.broader[o] if up in chosen),
            "part_of": ((name[p], name[o]) for o in chosen for p in nouns.parts[o] if p in chosen),
            "search": [(word,) for word in _listed(arguments.search)],
            "compare": pairs,
        },
    )
    (arguments.folder / "LICENSE").write_text(nouns.licence, encoding="utf-8")


if __name__ == "__main__":
    main()
