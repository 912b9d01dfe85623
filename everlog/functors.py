"""User-defined functors: `.functor f(number):number` bound to Python functions.

Functions are looked up by name in Python files: those named by `-l NAME` (in the directories of
`-L`, in the current one, and beside the program), or else `functors.py` in the directories of `-L`
or beside the program.  Loading a file runs it, and the current directory may be untrusted: a
`functors.py` there counts only if the program is there too, or if `-l` or `-L` asks for it.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from everlog.core.program import Functor, Program, Relation, Rule, Value, calls_of


class FunctorError(Exception):
    """A declared functor has no Python function, or its file cannot be loaded."""


def bind(program: Program, functions: Mapping[str, Callable[..., Value]]) -> Program:
    """The program with its functors bound to these functions.

    >>> from everlog import compile_text, evaluate
    >>> text = '.functor twice(number):number  .decl p(x:number)  p(@twice(21)).'
    >>> program = bind(compile_text(text), {"twice": lambda x: 2 * x})
    >>> list(evaluate(program).rows("p"))
    [(42,)]
    """
    bound = {
        name: evolve(functor, function=functions.get(name, functor.function))
        for name, functor in program.functors.items()
    }
    return evolve(program, functors=bound)


def require_functors(
    functors: Mapping[str, Functor], rules: Iterable[Rule], relations: Iterable[Relation] = ()
) -> None:
    """Raise FunctorError unless every functor that rules and lattices use has a function."""
    used = {call.name[1:] for rule in rules for call in calls_of(rule) if call.name.startswith("@")}
    used |= {lattice.lub for relation in relations for _, lattice in relation.lattices}
    missing = sorted(name for name in used if functors[name].function is None)
    if missing:
        listed = ", ".join(f"@{name}" for name in missing)
        raise FunctorError(f"no Python function for {listed}; pass functors={{{missing[0]!r}: …}}")


def functors_beside(program: Program, path: Path | str) -> dict[str, Callable[..., Value]]:
    """The functions in `functors.py` beside a program for its declared functors."""
    found = bind_functors(program, str(path), (), ()).functors
    return {name: functor.function for name, functor in found.items() if functor.function is not None}


def bind_functors(
    program: Program, program_file: str, libraries: Sequence[str], directories: Sequence[str]
) -> Program:
    """Bind the functors from the files that the command line names.

    Raises FunctorError if a functor that is used has no function.
    """
    if not program.functors:
        return program
    functions = load_functions(program_file, libraries, directories)
    used = {call.name[1:] for rule in program.rules for call in calls_of(rule) if call.name.startswith("@")}
    used |= {lattice.lub for relation in program.relations.values() for _, lattice in relation.lattices}
    missing = [name for name in program.functors if name in used and name not in functions]
    if missing:
        listed = ", ".join(f"@{name}" for name in missing)
        passed_over = not libraries and Path("functors.py").is_file() and not _is_here(Path(program_file).parent)
        hint = "; `-L .` takes ./functors.py, which is not beside the program" if passed_over else ""
        raise FunctorError(
            f"no Python function for {listed}; write it in functors.py beside the program, or use -l{hint}"
        )
    return bind(program, functions)


def load_functions(program_file: str, libraries: Sequence[str], directories: Sequence[str]) -> dict[str, Any]:
    """The functions of the named files, or of `functors.py` beside the program."""
    here = [Path()] if libraries else []
    places = list(dict.fromkeys([*map(Path, directories), *here, Path(program_file).parent]))
    functions: dict[str, Any] = {}
    for library in libraries or ["functors"]:
        file = next((f for d in places if (f := d / f"{library.removesuffix('.py')}.py").is_file()), None)
        if file is None:
            if libraries:
                raise FunctorError(f"no file `{library}.py` with functors in {', '.join(map(str, places))}")
            continue
        try:
            functions |= {k: v for k, v in runpy.run_path(str(file)).items() if callable(v)}
        except Exception as error:
            raise FunctorError(f"`{file}` cannot be loaded: {type(error).__name__}: {error}") from error
    return functions


def _is_here(folder: Path) -> bool:
    return folder.is_dir() and folder.samefile(".")
