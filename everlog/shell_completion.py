"""Scripts that make bash, zsh and fish complete `everlog …`.

The scripts are generated from the parsers of the commands and hold all commands, flags and kinds of
files in full, so pressing Tab starts no Python.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping

from attrs import frozen

from everlog.cli import COMMANDS, parser_of

FILE, FOLDER, PROGRAM, NOTHING = "file", "folder", "program", ""
_FOLDERS = {"DIR", "FOLDER"}


@frozen
class Flag:
    """A flag and its spellings; `takes` is the kind of value, or the words allowed."""

    spellings: tuple[str, ...]
    help: str
    valued: bool
    takes: str | tuple[str, ...] = NOTHING


@frozen
class Words:
    """What may follow a command or an action of it: flags, and words or files."""

    flags: tuple[Flag, ...]
    takes: str | tuple[str, ...] = NOTHING
    actions: Mapping[str, Words] = {}


def described() -> dict[str, Words]:
    """What may follow each command."""
    return {name: _words(parser_of(name)) for name in COMMANDS}


def _words(parser: argparse.ArgumentParser) -> Words:
    flags: list[Flag] = []
    takes: str | tuple[str, ...] = NOTHING
    actions: dict[str, Words] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            actions = {name: _words(inner) for name, inner in action.choices.items()}
        elif action.option_strings:
            help_text = "" if action.help is argparse.SUPPRESS else re.sub(r"\s+", " ", action.help or "")
            flags.append(Flag(tuple(action.option_strings), help_text, action.nargs != 0, _taken(action)))
        elif not takes:
            takes = _taken(action)
    return Words(tuple(flags), takes, actions)


def _taken(action: argparse.Action) -> str | tuple[str, ...]:
    if action.nargs == 0:
        return NOTHING
    if action.choices is not None:
        return tuple(map(str, action.choices))
    metavar = str(action.metavar)
    if metavar in _FOLDERS:
        return FOLDER
    if metavar == "FILE":
        return PROGRAM if action.dest in ("program", "files") else FILE
    return NOTHING


# ── bash ─────────────────────────────────────────────────────────────────────────────────────


_BASH = """# completion of everlog for bash: eval "$(everlog completion bash)"
_everlog_files() {  # names with blanks are one word each
  local IFS=$'\\n'
  COMPREPLY+=($(compgen "$@" -- "$cur"))
  compopt -o filenames 2> /dev/null
}
_everlog() {
  local cur="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words= kind= values=
  COMPREPLY=()
  if [ $COMP_CWORD -eq 1 ]; then
    words="@FIRST@"
  else
    case "${COMP_WORDS[1]}" in
@CASES@
    esac
  fi
  case "$values" in
    file) _everlog_files -f; return ;;
    folder) _everlog_files -d; return ;;
    none) return ;;
    ?*) COMPREPLY=($(compgen -W "$values" -- "$cur")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  case "$cur" in -*) return ;; esac
  case "$kind" in
    program) _everlog_files -d; _everlog_files -f -X '!*.dl' ;;
    file) _everlog_files -f ;;
    folder) _everlog_files -d ;;
  esac
}
complete -F _everlog everlog"""


def bash_script() -> str:
    """A function for `complete -F`, with a case for each flag that takes a value."""
    cases: list[str] = []
    for name, words in described().items():
        if words.actions:
            body = [f'words="{" ".join([*words.actions, *_spellings(words)])}"']
            body += ['[ $COMP_CWORD -gt 2 ] && case "${COMP_WORDS[2]}" in']
            body += [f"  {action}) {_bash_words(inner)} ;;" for action, inner in words.actions.items()]
            body += ["esac"]
        else:
            body = [_bash_words(words)]
        cases += [f"      {name})", *(f"        {line}" for line in body), "        ;;"]
    first = " ".join([*COMMANDS, "--help", "--version"])
    return _BASH.replace("@FIRST@", first).replace("@CASES@", "\n".join(cases))


def _spellings(words: Words) -> list[str]:
    return [spelling for flag in words.flags for spelling in flag.spellings]


def _bash_words(words: Words) -> str:
    own = [*(words.takes if isinstance(words.takes, tuple) else ()), *_spellings(words)]
    kind = "" if isinstance(words.takes, tuple) else words.takes
    parts = [f'words="{" ".join(own)}" kind={kind}']
    by_value: dict[str, list[str]] = {}
    for flag in words.flags:
        if flag.valued:
            value = " ".join(flag.takes) if isinstance(flag.takes, tuple) else flag.takes
            value = {PROGRAM: FILE, NOTHING: "none"}.get(value, value)
            by_value.setdefault(value, []).extend(flag.spellings)
    cases = " ".join(f'{"|".join(flags)}) values="{value}" ;;' for value, flags in by_value.items())
    if cases:
        parts.append(f'case "$previous" in {cases} esac')
    return "; ".join(parts)


# ── zsh ──────────────────────────────────────────────────────────────────────────────────────


def zsh_script() -> str:
    lines = ["#compdef everlog", '# completion of everlog for zsh: eval "$(everlog completion zsh)"', ""]
    lines += ["_everlog() {", "  local -a commands", "  commands=("]
    lines += [f"    {_zsh_quoted(f'{name}:{what}')}" for name, what in COMMANDS.items()]
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe command commands"]
    lines += ["    _arguments '--help[list the commands]' '--version[print the version]'", "    return", "  fi"]
    lines += ["  local command=$words[2]", "  shift words; (( CURRENT-- ))", "  case $command in"]
    for name, words in described().items():
        lines.append(f"    {name})")
        if words.actions:
            lines += [
                "      if (( CURRENT == 2 )); then",
                f"        compadd {' '.join(words.actions)}; return",
                "      fi",
            ]
            lines += [
                "      local action=$words[2]",
                "      shift words; (( CURRENT-- ))",
                "      case $action in",
            ]
            for action, inner in words.actions.items():
                lines += [f"        {action})", *(_zsh_arguments(inner, "          ")), "          ;;"]
            lines += ["      esac"]
        else:
            lines += _zsh_arguments(words, "      ")
        lines.append("      ;;")
    lines += ["  esac", "}", "compdef _everlog everlog"]
    return "\n".join(lines)


def _zsh_arguments(words: Words, indent: str) -> list[str]:
    specs = []
    for flag in words.flags:
        help_text = re.sub(r"([\[\]:\\])", r"\\\1", flag.help)
        for spelling in flag.spellings:
            value = f":value:{_zsh_action(flag.takes)}" if flag.valued else ""
            specs.append(_zsh_quoted(f"*{spelling}[{help_text}]{value}"))
    if words.takes:
        specs.append(_zsh_quoted(f"*:argument:{_zsh_action(words.takes)}"))
    return [f"{indent}_arguments \\", *(f"{indent}  {spec} \\" for spec in specs), ""]


def _zsh_action(takes: str | tuple[str, ...]) -> str:
    if isinstance(takes, tuple):
        return f"({' '.join(takes)})"
    return {FILE: "_files", FOLDER: "_files -/", PROGRAM: '_files -g "*.dl"'}.get(takes, " ")


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ── fish ─────────────────────────────────────────────────────────────────────────────────────


def fish_script() -> str:
    lines = ["# completion of everlog for fish: everlog completion fish | source", "complete -c everlog -f"]
    for name, what in COMMANDS.items():
        lines.append(f"complete -c everlog -n __fish_use_subcommand -a {name} -d {_fish_quoted(what)}")
    lines.append("complete -c everlog -n __fish_use_subcommand -l version -d 'print the version'")
    for name, words in described().items():
        seen = f"__fish_seen_subcommand_from {name}"
        lines += _fish_words(words, seen)
        for action, inner in words.actions.items():
            begun = f"{seen}; and not __fish_seen_subcommand_from {' '.join(words.actions)}"
            lines.append(f"complete -c everlog -n {_fish_quoted(begun)} -a {action}")
            lines += _fish_words(inner, f"{seen}; and __fish_seen_subcommand_from {action}")
    return "\n".join(lines)


def _fish_words(words: Words, condition: str) -> list[str]:
    begin = f"complete -c everlog -n {_fish_quoted(condition)}"
    lines = []
    for flag in words.flags:
        short = [f"-s {s[1:]}" for s in flag.spellings if not s.startswith("--")]
        long = [f"-l {s[2:]}" for s in flag.spellings if s.startswith("--")]
        value = f" -r{_fish_values(flag.takes)}" if flag.valued else ""
        lines.append(f"{begin} {' '.join([*short, *long])}{value} -d {_fish_quoted(flag.help)}")
    if words.takes:
        lines.append(f"{begin}{_fish_values(words.takes)}")
    return lines


def _fish_values(takes: str | tuple[str, ...]) -> str:
    if isinstance(takes, tuple):
        return f" -f -a {_fish_quoted(' '.join(takes))}"
    return {
        FILE: " -F",
        FOLDER: " -f -a '(__fish_complete_directories)'",
        PROGRAM: " -f -a '(__fish_complete_suffix .dl)'",
    }.get(takes, " -f")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: Mapping[str, Callable[[], str]] = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
