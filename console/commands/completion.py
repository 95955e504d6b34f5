"""`rvtrace completion`: the functions with which a shell completes rvtrace's commands and options."""

import argparse
import sys

from rvtrace_gdb.console.commands import CommandParser

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = (
    ("completion bash > ~/.local/share/bash-completion/completions/rvtrace", "for bash, from the next shell on"),
    ("completion fish > ~/.config/fish/completions/rvtrace.fish", "for fish"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace completion`."""
    parser.description = (
        "Prints the completion for a shell. An installed rvtrace has it in share/; for zsh, write it to a file _rvtrace"
        " in a folder of $fpath. To try it: source <(rvtrace completion bash)."
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from rvtrace_gdb.console.main import parser
    from rvtrace_gdb.console.shell_files.completion import completion

    sys.stdout.write(completion(args.shell, parser()))
    return 0
