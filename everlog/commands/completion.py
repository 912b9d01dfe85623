"""`everlog completion`: a completion script for a shell."""

from __future__ import annotations

import argparse

EXAMPLES = """
  eval "$(everlog completion bash)"                                   in ~/.bashrc
  eval "$(everlog completion zsh)"                                    in ~/.zshrc, after compinit
  everlog completion fish > ~/.config/fish/completions/everlog.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(arguments: argparse.Namespace) -> int:
    from everlog.shell_completion import SCRIPTS

    print(SCRIPTS[arguments.shell]())
    return 0
