"""The command line `rvtrace ...`: one sub-command per module of this room."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

from console import standard
from session.version import tool
from support.errors import RvtraceError
from support.memory import OutOfMemory
from support.starting import starting
from support.text import printable

_MODULES = {
    "console": "console",
    "run": "run",
    "sim": "sim",
    "qemu": "qemu",
    "usb": "usb",
    "decode": "decode",
    "dump": "dump",
    "data": "data",
    "import": "importing",
    "import-dt": "importing_dt",
    "encode": "encode",
    "tandem": "tandem",
}
"""Where each command is, in the order of the help."""


def _gdb_script(arguments: argparse.Namespace) -> int:
    """Print the path to `source` in gdb: `gdb -ex "source $(rvtrace gdb-script)"`."""
    print(Path(__file__).resolve().parent.parent / "rvtrace.py")
    return 0


class _Parser(argparse.ArgumentParser):
    """Of a sub-command: takes `FILE --option RANGE` as well as `FILE RANGE --option`."""

    _inside = False
    prepare: "Callable[[argparse.ArgumentParser, Sequence[str]], None] | None" = None
    """Adds options that depend on the command line, which it is given."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As argparse's, which itself takes all positional arguments that may be left out at the first chance.

        What nobody knows is an error of this command; argparse would make it one of `rvtrace`.
        """
        if self._inside:
            return super().parse_known_args(args, namespace)
        self._inside = True
        if self.prepare is not None:
            self.prepare(self, args)
        try:
            known, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._inside = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line. *only*: the part that knows this command, if it is one: the others take time to load."""
    root = argparse.ArgumentParser(prog="rvtrace", description="The past of a RISC-V program, inside gdb.")
    of_commands: type[argparse.ArgumentParser] = _Parser
    root.add_argument("--version", action="version", version=tool())
    commands = root.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=of_commands)
    for module in [_MODULES[only]] if only in _MODULES else _MODULES.values():
        import_module(f"console.{module}").add_parser(commands)
    script = commands.add_parser("gdb-script", help="print the path of the file to `source` in gdb")
    script.set_defaults(run=_gdb_script)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. What goes wrong is one line on standard error, never a traceback."""
    if argv is None:
        standard.prepare()
    try:
        try:
            return _run(argv)
        finally:  # not when Python ends, which would not say what is wrong
            standard.flush()
    except standard.NotRead:  # `rvtrace decode ... | head`
        standard.drop_output()
        return 0
    except OSError as error:
        standard.report(error)
        return 1


def _run(argv: Sequence[str] | None) -> int:
    """The exit status. Raises OSError, of that `standard.NotWritten` and `NotRead` for standard output."""
    words = sys.argv[1:] if argv is None else argv
    try:
        with starting() if argv is None else nullcontext():
            arguments = parser(words[0] if words else None).parse_args(words)
        return int(arguments.run(arguments))
    except RvtraceError as error:
        print(f"rvtrace: {printable(str(error))}", file=sys.stderr)
        return 1
    except MemoryError:
        print(f"rvtrace: {OutOfMemory()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("rvtrace: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
