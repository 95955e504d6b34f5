"""`rvtrace gdb-script`: print the path of the file to `source` in gdb, `gdb -ex "source $(rvtrace gdb-script)"`."""

import argparse
from pathlib import Path

import rvtrace_gdb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace gdb-script`."""
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the path of the file."""
    print(Path(rvtrace_gdb.__file__).resolve().parent.parent / "rvtrace.py")
    return 0
