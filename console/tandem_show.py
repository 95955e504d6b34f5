"""`rvtrace tandem show`: a tandem trace group by group, or everything that is known after one of them."""

import argparse
import os
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.console import output, raw, tandem_options
from rvtrace_gdb.console.output import Output
from rvtrace_gdb.console.tandem_wanted import Wanted
from rvtrace_gdb.console.tandem_wanted import add_arguments as add_wanted
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.session.ranges import Cursor
from rvtrace_gdb.session.reading import Decoded
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.listing import Modifiers
from rvtrace_gdb.views.tandem import Words, pages
from rvtrace_gdb.views.tandem_groups import Groups
from rvtrace_gdb.views.tandem_json import Objects
from rvtrace_gdb.views.tandem_state import Known
from rvtrace_gdb.views.tandem_texts import Texts

_NO_GROUP = "no group of a tandem trace is in it: is it one, and of these parameters?"


class TandemError(RvtraceError):
    """Arguments of `rvtrace tandem` that make no sense."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `rvtrace tandem show`."""
    parser.usage = (
        "%(prog)s FILE [/rf] [A,B | A,+N | A,-N | N] [--register NAME]\n"
        "                           [--address PLACE] [--function NAME] [--traps]\n"
        "                           [--state N] [options]"
    )
    parser.description = (
        "Prints every group: number, byte offset, number in the history, privilege mode, instruction; below"
        " it registers and CSRs with what they held before, loads and stores, traps, and what is wrong with it."
    )
    parser.add_argument("file", metavar="FILE", help='a capture with a tandem trace, or raw bytes; "-": standard input')
    parser.add_argument(
        "range", nargs="*", default=[], metavar="RANGE",
        help="numbers of the groups to show; default: all. /r: as --raw, /f no function names",
    )  # fmt: skip
    parser.add_argument("--raw", action="store_true", help="element by element, as the specification names them")
    add_wanted(parser)
    parser.add_argument(
        "--state", type=raw.number_from(0, (1 << 62) - 1), metavar="N",
        help="instead: everything that is known after group N (0: before the first one): registers, CSRs, memory",
    )  # fmt: skip
    parser.add_argument("--hart", type=raw.number_from(0, (1 << 32) - 1), metavar="N", help="whose (default: first)")
    output.add_arguments(parser, "each group, and what is missing; with --state one for all of it")
    tandem_options.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the groups, or the state. Raises TandemError, RawError, CaptureError, BadElf, RangeError, ModifierError."""
    modifiers, numbers = Modifiers.split(" ".join(args.range))
    if args.state is not None and (args.range or args.raw or Wanted.named(args)):
        raise TandemError("--state N shows the state after one group: it takes no range, no --raw and no filter")
    with Output(args, "reading the trace") as shown:
        found = open_trace(args, shown)
        if args.state is not None:
            _print_state(shown, found, args.state)
            return 0
        selected = selection(found.tandem, numbers)
        wanted = Wanted.of(args, found.tandem, found.decoded.image)
        with Disassemblers(found.decoded.program) as source:
            groups = Groups(found.tandem)
            texts = Texts(source, found.decoded.program, found.tandem.trace.parameters.xlen)
            is_raw = args.raw or modifiers.raw
            if shown.json:
                shape: Words | Objects = Objects(groups, texts, found.hart, raw=is_raw)
            else:
                shape = Words(groups, texts, raw=is_raw, omit_function=modifiers.omit_function)
            if not shown.rows(_lines(groups, texts, shape, wanted, selected, shown.progress)):
                shown.say([f"none of the groups {selected.start + 1} to {selected.stop} {wanted}"])
    return 0


class Found(NamedTuple):
    """A hart's tandem trace, as it was opened."""

    hart: int
    tandem: Tandem
    decoded: Decoded


def open_trace(args: argparse.Namespace, shown: Output) -> Found:
    """The trace the command line names; what is to say about it is said. Raises as `tandem_options.capture`, and
    TandemError where there is no group in it.
    """
    session = Session()
    capture = tandem_options.capture(args, args.file)
    captured = tandem_options.of_hart(capture, args.hart)
    is_of_elf = capture.elf is not None and args.elf and capture.elf.path == os.path.abspath(args.elf[0])
    elf = None if is_of_elf else raw.one_elf(args)
    about = session.look_at(capture, raw.title(args.file), elf)
    decoded = session.harts(progress=shown.progress)
    tandem = decoded.harts.histories[captured.hart].shadow
    assert tandem is not None
    shown.say([*about, *session.warnings()])
    if not len(tandem.trace):
        raise TandemError(f"{raw.title(args.file)}: {_NO_GROUP}")
    return Found(captured.hart, tandem, decoded)


def selection(tandem: Tandem, numbers: str) -> range:
    """The groups to show, counted from 0. Raises RangeError."""
    selected = Cursor().select(numbers, None, len(tandem.trace))
    return range(selected.begin - 1, selected.end - 1)


def _lines(
    groups: Groups, texts: Texts, shape: Words | Objects, wanted: Wanted, selected: range, progress: Progress
) -> Iterator[str]:
    for page in pages(groups, texts, wanted.groups(selected, groups, progress), progress):
        for row in page:
            yield from shape.lines(row)
    if selected.stop == len(groups) and (wanted.traps or not wanted):
        yield from (shape.lost(mark) for mark in groups.breaks.get(len(groups), ()))


def _print_state(shown: Output, found: Found, number: int) -> None:
    tandem = found.tandem
    if number > len(tandem.trace):
        raise TandemError(f"--state {number}: the trace has {len(tandem.trace)} groups")
    pc = tandem.after(number - 1).pc
    known = Known(tandem, number, None if pc is None else found.decoded.image.symbol(pc))
    shown.rows([known.json(found.hart)] if shown.json else known.lines())
