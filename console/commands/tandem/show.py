"""`rvtrace tandem show`: a tandem trace group by group, or everything that is known after one of them.

Options choose the groups: those that write a register, touch memory, or run in a function.
"""

import argparse
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

from rvtrace_gdb.console import commands, output
from rvtrace_gdb.console.commands.tandem.known import known_of
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.console.options import tandem as options_tandem
from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.history.accesses import overlaps
from rvtrace_gdb.decode.program import debug_info
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, tandem_of
from rvtrace_gdb.decode.tandem.wording import number_of
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.pages import Cursor
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.support.text import counted
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem.group_rows import GroupObjects, GroupWords, Known, pages
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts
from rvtrace_gdb.views.tandem.plain_rows import PlainRows
from rvtrace_gdb.views.text_rows import Modifiers

_EVERY = 1 << 12  # groups between two reports of progress


class WantedError(RvtraceError):
    """An unknown register, place or function."""


def add_wanted(parser: argparse.ArgumentParser) -> None:
    """Add the options that select groups. A group must match each kind of option, and one option of each kind."""
    parser.add_argument(
        "--register", action="append", default=[], metavar="NAME",
        help="only groups that write it: a0, x10, fa0, mstatus, priv, a CSR's number; may be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--address", metavar="PLACE",
        help="only groups that load or store there: ADDRESS (one byte), ADDRESS,SIZE or a symbol of the program",
    )  # fmt: skip
    parser.add_argument("--function", metavar="NAME", help="only groups whose instruction is in this function")
    parser.add_argument("--traps", action="store_true", help="only traps, resets and missing parts")


@dataclass(frozen=True)
class WantedRequest:
    """What the options of `add_wanted` say; None: not given."""

    registers: tuple[str, ...]
    address: str | None
    function: str | None
    traps: bool

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "WantedRequest":
        return cls(registers=tuple(args.register), address=args.address, function=args.function, traps=args.traps)

    @property
    def restricts(self) -> bool:
        """Whether the command line has any of these options."""
        return bool(self.registers or self.address is not None or self.function is not None or self.traps)


@dataclass(frozen=True)
class Wanted:
    """The selection of groups; None: no restriction."""

    registers: frozenset[int] = frozenset()
    place: tuple[int, int] | None = None
    functions: frozenset[int] = frozenset()
    traps: bool = False
    text: str = ""
    image: Image | None = None

    @classmethod
    def from_arguments(cls, request: WantedRequest, tandem: DecodedTandem, image: Image) -> "Wanted":
        """Return the selection on the command line. Raises WantedError."""
        registers = frozenset(_register_number(name) for name in request.registers)
        place = None if request.address is None else place_of(request.address, image)
        function = request.function
        functions = frozenset() if function is None else frozenset(Locations(image).functions(function))
        if function is not None and not functions:
            why = f"{image.path} has no such function" if image.path else "no program is given (--elf)"
            raise WantedError(f"--function {function}: {why}")
        said = [f"writes {' or '.join(request.registers)}"] if request.registers else []
        said += [f"loads or stores at {request.address}"] if place else []
        said += [f"is in {function}"] if function is not None else []
        said += ["is a trap or a reset"] if request.traps else []
        return cls(registers, place, functions, request.traps, " and ".join(said), image)

    def __bool__(self) -> bool:
        return bool(self.registers or self.place or self.functions or self.traps)

    def __str__(self) -> str:
        return self.text or "is there"

    def groups(self, selected: range, groups: Groups, progress: Progress) -> Iterator[int]:
        """Return the groups of *selected*, counted from 0, that match."""
        if not self:
            for first in range(selected.start, selected.stop, _EVERY):
                progress("looking (groups)", first, len(groups))
                yield from range(first, min(first + _EVERY, selected.stop))
            return
        candidates = self._candidates(selected, groups)
        for count, group in enumerate(candidates):
            if count % _EVERY == 0:
                progress("looking (groups)", group, len(groups))
            if self._fits(group, groups):
                yield group

    def _candidates(self, selected: range, groups: Groups) -> Iterable[int]:
        """Return the groups that may match, as few as is known without decoding them."""
        found: set[int] | None = None
        if self.registers:
            columns = groups.index.registers.columns
            found = {group for regno in self.registers if regno in columns for group in columns[regno].groups}
        if self.traps:
            marked = {trap.group for trap in groups.index.traps} | {*groups.index.resets, *groups.breaks}
            found = marked if found is None else found & marked
        return selected if found is None else sorted(group for group in found if group in selected)

    def _fits(self, group: int, groups: Groups) -> bool:
        if self.functions:
            origin = groups.origin(group)
            symbol = None if origin is None or self.image is None else self.image.symbol(origin)
            if origin is None or symbol is None or origin - symbol[1] not in self.functions:
                return False
        return self.place is None or _touches(groups, group, *self.place)


def _touches(groups: Groups, group: int, begin: int, size: int) -> bool:
    access = groups.access(group)
    if access is not None and overlaps(access, begin, size):
        return True
    stores = (store for _, store in groups.tandem.stored(group))
    return any(store.address < begin + size and begin < store.address + store.size for store in stores)


def _register_number(name: str) -> int:
    number = number_of(name)
    if number is None:
        raise WantedError(f"--register {name}: there is no such register; a CSR may be named by its number")
    return number


def place_of(text: str, image: Image) -> tuple[int, int]:
    """Return (address, size) of a place in memory. Raises WantedError."""
    address, comma, size = text.partition(",")
    try:
        place = commands.address(address), int(size, 0) if comma else 1
        if place[1] > 0:
            return place
    except commands.Unclear as error:
        raise WantedError(f"--address {error}") from None
    except ValueError:
        found = debug_info.symbols(image.path).get(text) if image.path else None
        if found is not None:
            return found.address, max(found.size, 1)
    where = f"a symbol of {image.path}" if image.path else "a symbol (no program is given: --elf)"
    raise WantedError(f"--address {text}: neither ADDRESS, nor ADDRESS,SIZE, nor {where}")


_NO_GROUP = "it has no group of a tandem trace: is it one, and are the parameters right?"


class TandemError(RvtraceError):
    """Arguments of `rvtrace tandem` that make no sense."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace tandem show`."""
    parser.usage = (
        "%(prog)s FILE [/rf] [A,B | A,+N | A,-N | N] [--register NAME]\n"
        "                           [--address PLACE] [--function NAME] [--traps]\n"
        "                           [--state N] [options]"
    )
    parser.description = (
        "Prints every group: number, byte offset, number in the history, privilege mode, instruction; below it"
        " registers and CSRs with their previous values, loads and stores, traps, and warnings."
    )
    parser.add_argument("file", metavar="FILE", help=options_tandem.FILE)
    parser.add_argument(
        "range", nargs="*", default=[], metavar="RANGE",
        help="numbers of the groups to show; default: all. /r: as --raw, /f no function names",
    )  # fmt: skip
    parser.add_argument("--raw", action="store_true", help="element by element, as the specification names them")
    add_wanted(parser)
    parser.add_argument(
        "--state", type=inputs.number_from(0, (1 << 62) - 1), metavar="N",
        help="show the state instead: everything that is known after group N (0: before the first one): registers,"
        " CSRs, memory",
    )  # fmt: skip
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: the first one)",
    )  # fmt: skip
    output.add_arguments(parser, "each group and each missing part; with --state, for the state")
    options_tandem.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the groups, or the state. Raises TandemError, RawError, CaptureError, BadElf, RangeError, ModifierError."""
    modifiers, numbers = Modifiers.split(" ".join(args.range))
    filtered = WantedRequest.from_arguments(args)
    if args.state is not None and (args.range or args.raw or filtered.restricts):
        raise TandemError("--state N shows the state after one group: it takes no range, no --raw and no filter")
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        found = open_trace(options_tandem.TandemRequest.from_arguments(args), shown)
        if args.state is not None:
            _print_state(shown, found, args.state)
            return 0
        selected = selection(found.tandem, numbers)
        wanted = Wanted.from_arguments(filtered, found.tandem, found.decoded.image)
        with Disassemblers(found.decoded.program) as source:
            groups = Groups(found.tandem)
            texts = GroupTexts(source, found.decoded.program, found.tandem.trace.parameters.xlen)
            is_raw = args.raw or modifiers.raw
            if shown.json:
                shape: GroupWords | GroupObjects = GroupObjects(groups, texts, found.hart, raw=is_raw)
            else:
                shape = GroupWords(groups, texts, raw=is_raw, omit_function=modifiers.omit_function)
            if not shown.rows(_lines(groups, texts, shape, wanted, selected, shown.progress)):
                shown.say([f"none of the groups {selected.start + 1} to {selected.stop} {wanted}"])
    return 0


class OpenedTandem(NamedTuple):
    """A hart's tandem trace that was opened; *capture* has it."""

    session: Session
    hart: int
    tandem: DecodedTandem
    decoded: Decoded
    capture: Capture


def open_trace(request: options_tandem.TandemRequest, shown: CommandOutput) -> OpenedTandem:
    """Open a trace; what is to say about it is said. Raises as `TandemRequest.capture`, and TandemError where there is
    no group in it.
    """
    session = Session()
    capture, elves = request.capture(), request.programs.elves
    notes: list[str] = []
    if not capture.tandem:
        capture, notes = known_of(capture, request, shown.progress)
    captured = options_tandem.of_hart(capture, request.hart)
    is_of_elf = capture.elf is not None and elves and capture.elf.path == os.path.abspath(elves[0])
    elf = None if is_of_elf else request.programs.only()
    about = session.open_capture(capture, request.name, elf)
    decoded = session.harts(progress=shown.progress)
    tandem = tandem_of(decoded.harts.histories[captured.hart])
    assert tandem is not None
    shown.say([*about, *notes, *session.warnings()])
    if not len(tandem.trace):
        raise TandemError(f"{request.name}: {_NO_GROUP}")
    return OpenedTandem(session, captured.hart, tandem, decoded, capture)


def selection(tandem: DecodedTandem, numbers: str) -> range:
    """Return the groups to show, counted from 0. Raises RangeError."""
    selected = Cursor().select(numbers, None, len(tandem.trace))
    return range(selected.begin - 1, selected.end - 1)


def _lines(
    groups: Groups,
    texts: GroupTexts,
    shape: GroupWords | GroupObjects,
    selection: Wanted,
    selected: range,
    progress: Progress,
) -> Iterator[str]:
    numbers = selection.groups(selected, groups, progress)
    if shape.raw:
        rows_of_pages = chain.from_iterable(pages(groups, texts, numbers, progress))
        yield from chain.from_iterable(map(shape.lines, rows_of_pages))
    else:
        rows = PlainRows(groups, partial(texts.learn, progress=progress), shape.lines, symbol=texts.symbol)
        yield from chain.from_iterable(rows.pages(numbers))
    if selected.stop == len(groups) and (selection.traps or not selection):
        yield from (shape.lost(mark) for mark in groups.breaks.get(len(groups), ()))


def _print_state(shown: CommandOutput, opened_tandem: OpenedTandem, number: int) -> None:
    tandem = opened_tandem.tandem
    if number > len(tandem.trace):
        raise TandemError(f"--state {number}: the trace has {counted(len(tandem.trace), 'group')}")
    pc = tandem.after(number - 1).pc
    known = Known(tandem, number, None if pc is None else opened_tandem.decoded.image.symbol(pc))
    shown.rows([known.json(opened_tandem.hart)] if shown.json else known.lines())
