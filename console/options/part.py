"""The part of a history that a command is about: RANGE, numbers of instructions as gdb's commands take them."""

import argparse
import re

from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.support.errors import RvtraceError

RANGE_FORMS = "A,B or A,+N or A,-N, or A for all from A on"
"""How a RANGE is written, for the help."""
_RANGE = re.compile(r"[0-9]+(\s*,\s*[-+]?[0-9]+)?")


class NoRange(RvtraceError):
    """A word that should be a RANGE is none."""

    def __init__(self, word: str) -> None:
        super().__init__(f"{word}: no RANGE, which is A,B or A,+N or A,-N, or A")


def add_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    """Add FILE, RANGE and --hart, of a command that answers for each hart. *text*: the help of RANGE."""
    inputs.add_capture(parser)
    parser.add_argument("part", nargs="?", default="", metavar="RANGE", help=text)
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="this hart alone (default: all harts)")


def is_range(word: str) -> bool:
    """Return whether a word has the form of a RANGE; whether the history has such numbers is seen later."""
    return _RANGE.fullmatch(word) is not None


def checked_range(word: str) -> str:
    """Return a RANGE, or "" for everything. Raises NoRange."""
    if word and not is_range(word):
        raise NoRange(word)
    return word
