"""`rvtrace tandem`: what a tandem-verification trace has beyond the instructions that ran (docs/tandem.md)."""

import argparse
from importlib import import_module
from importlib.util import find_spec

_MODULES = ("tandem_show", "tandem_convert", "tandem_verify")
"""Where each sub-command is, in the order of the help."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command line of `rvtrace tandem`, with its sub-commands."""
    parser = subparsers.add_parser(
        "tandem",
        help="show, convert and verify tandem-verification traces",
        description="A tandem trace tells every state change of every instruction. `show` lists them, `convert` writes"
        " them in other forms, `verify` compares them with a golden model. Each has its own --help.",
    )
    parser._inside = True  # type: ignore[attr-defined] # sub-commands take intermixed arguments, their parent cannot
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=type(parser))
    for name in _MODULES:
        if find_spec(f"console.{name}") is not None:
            import_module(f"console.{name}").add_parser(commands)
    return parser
