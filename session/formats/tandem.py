"""Tandem traces group by group, for `trace dump`, and checks of the parameters that were given for a trace.

Bytes that are not a group have the number of the group after them. A group is one line with a column for each of its
elements, in the order of the trace:

    Group prv=3 pc=0x80000004 instr=0x00000073 mstatus=0x1800 mepc=0x80000138 mcause=0xb # exception 11 (...)

Names are those of the registers; values contain no blanks. `decode.tandem.wording` has the long form, a line for each
element.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple, NoReturn

from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.program.csrs import trap_text
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.tandem import plausibility
from rvtrace_gdb.decode.tandem.decoder import IncrementalDecoder
from rvtrace_gdb.decode.tandem.decoder import ResumableDecoding as TandemDecoding
from rvtrace_gdb.decode.tandem.group_grammar import GroupProblem
from rvtrace_gdb.decode.tandem.protocol import (
    SIZES,
    SUCCESS,
    AdditionalState,
    Element,
    Ending,
    FullRegister,
    Group,
    HartReset,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    StateInitialization,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.trace import Hole, TraceGroups
from rvtrace_gdb.decode.tandem.wording import register_name
from rvtrace_gdb.session.capture.model import CapturedPort, CapturedTandem
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.format import Builders
from rvtrace_gdb.support import text as support_text
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

MOST_RAW = 96
"""The number of bytes that are shown of a group, or of bytes that are none."""


class GroupItem(NamedTuple):
    """Consecutive bytes of a trace: a group, or bytes that are none (*group* None; *why* there is none).

    *number*: of the group, counted from 1. *raw*: its bytes; of bytes that are not a group at most the first
    `MOST_RAW`. *problems*: rules that it breaks.
    """

    offset: int
    size: int
    number: int
    raw: bytes
    group: Group | None = None
    why: str = ""
    problems: tuple[GroupProblem, ...] = ()

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def is_idle(self) -> bool:
        """False: there is no filling."""
        return False


class GroupItemizer:
    """Splits a trace that is fed in pieces into items, in bounded memory. *wrapped*: it may begin inside a group."""

    def __init__(self, parameters: TandemParameters, *, wrapped: bool = False) -> None:
        self._trace = TraceGroups(parameters, wrapped=wrapped)
        self._head = b""  # the first bytes that are in no item yet
        self._base = self._before = 0  # bytes and groups that the trace has dropped

    def feed(self, data: bytes) -> Iterator[GroupItem]:
        self._trace.feed(data)
        return self._fresh()

    def finish(self) -> Iterator[GroupItem]:
        self._trace.finish()
        return self._fresh()

    def _fresh(self) -> Iterator[GroupItem]:
        """Yield the items that were found since the last call."""
        trace = self._trace
        found = [self._placed(item) for item in _items_of_part(trace, 0, len(trace), trace.losses, self._head)]
        self._before += len(trace)
        trace.losses.clear()
        self._head = _trace_bytes(trace, trace.pending, MOST_RAW, self._head)
        self._base += trace.forget(len(trace), 0)
        return iter(found)

    def _placed(self, item: GroupItem) -> GroupItem:
        """Return *item* with the number and offset that it has in the whole trace."""
        offset, group = self._base + item.offset, item.group
        placed = None if group is None else group._replace(offset=offset)
        return item._replace(offset=offset, number=self._before + item.number, group=placed)


def _items_of_part(
    trace: TraceGroups, first: int, last: int, losses: list[Hole], head: bytes = b""
) -> Iterator[GroupItem]:
    """Yield the groups *first* to *last* - 1, and losses among and after them. *head*: see `_trace_bytes`."""
    for loss in losses:
        yield from (_item(trace, number) for number in range(first, loss.group))
        first = max(first, loss.group)
        raw = _trace_bytes(trace, loss.offset, min(loss.length, MOST_RAW), head)
        yield GroupItem(loss.offset, loss.length, loss.group + 1, raw, None, loss.why)
    yield from (_item(trace, number) for number in range(first, last))


def _item(trace: TraceGroups, number: int) -> GroupItem:
    group = trace.group(number)
    raw = bytes(trace.data[group.offset : group.offset + group.size])
    return GroupItem(group.offset, group.size, number + 1, raw, group, problems=trace.problems(number))


def _trace_bytes(trace: TraceGroups, begin: int, size: int, head: bytes) -> bytes:
    """Return up to so many bytes of a trace; *head*: its first bytes, if the trace has dropped them."""
    if begin >= 0:
        return bytes(trace.data[begin : begin + size])
    known = head[:-begin]
    return (known + trace.data[:size] if len(known) == -begin else known)[:size]


class NumberedGroups:
    """All groups of *data*, numbered from 1. Raises what *progress* raises."""

    def __init__(
        self, data: bytes, trace_options: CapturedPort, *, wrapped: bool = False, progress: Progress = silent
    ) -> None:
        self.data, self.trace_options = data, trace_options
        self._trace = TraceGroups.from_bytes(data, trace_options.parameters, progress, wrapped=wrapped)

    def __len__(self) -> int:
        """Return the last number."""
        losses = self._trace.losses
        return max(len(self._trace), losses[-1].group + 1 if losses else 0)

    def items(self, begin: int, end: int) -> Iterator[tuple[int, GroupItem]]:
        """Yield (number, item) for the numbers *begin* to *end* - 1."""
        losses = self._trace.losses
        wanted = losses[bisect_left(losses, begin - 1, key=_group) : bisect_left(losses, end - 1, key=_group)]
        last = min(end - 1, len(self._trace))
        return ((item.number, item) for item in _items_of_part(self._trace, begin - 1, last, wanted))

    def number_at(self, offset: int) -> int:
        """Return the number of the item that contains byte *offset*; after the end, the last number plus one."""
        if offset >= len(self.data):
            return len(self) + 1
        losses = self._trace.losses
        before = bisect_right(losses, offset, key=attrgetter("offset")) - 1
        if before >= 0 and offset < losses[before].offset + losses[before].length:
            return losses[before].group + 1
        return bisect_right(self._trace.offsets, offset)


_group = attrgetter("group")


_CAUSES = (0x342, 0x142, 0x242)  # mcause, scause, vscause
_STATES: Mapping[int, str] = {
    StateId.PRIVILEGE_MODE: "prv", StateId.PHYSICAL_ADDRESS: "paddr", StateId.EFFECTIVE_ADDRESS: "eaddr",
    StateId.STORE_DATA_8: "store8", StateId.STORE_DATA_16: "store16", StateId.STORE_DATA_32: "store32",
    StateId.STORE_DATA_64: "store64", StateId.MTIME: "mtime", StateId.PC_PHYSICAL_ADDRESS: "pc-paddr", StateId.PC: "pc",
}  # fmt: skip


class GroupWording:
    """Writes the groups of a trace with these parameters as text."""

    def __init__(self, parameters: TandemParameters) -> None:
        self._parameters = parameters

    def text(self, item: GroupItem, *, raw: bool = False) -> str:
        """Return the line for *item*, without its offset. *raw*: with the bytes."""
        group = item.group
        columns = _columns(group) if group is not None else iter([("BYTES", str(item.size))])
        shown: dict[str, str] = {}
        times: Counter[str] = Counter()
        for name, value in columns:
            times[name] += 1
            shown[name if times[name] == 1 else f"{name}-{times[name]}"] = value
        if raw or group is None:
            shown["RAW"] = f"{item.raw[:MOST_RAW].hex()}{'..' if item.size > MOST_RAW else ''}"
        line = " ".join([_group_name(group), *(f"{name}={value}" for name, value in shown.items())])
        meaning = "; ".join(_meaning(item, self._parameters.xlen))
        return f"{line} # {meaning}" if meaning else line

    def is_odd(self, item: GroupItem) -> bool:
        """Return whether it is something that no encoder sends."""
        return item.group is None or any(not problem.is_warning for problem in item.problems)


def _group_name(group: Group | None) -> str:
    if group is None:
        return "NoGroup"
    return "Loose" if group.ending is Ending.LOOSE else "Group"


def _columns(group: Group) -> Iterator[tuple[str, str]]:
    for element in group.elements:
        yield from _column(element, group)


def _column(element: Element, group: Group) -> Iterator[tuple[str, str]]:
    if isinstance(element, FullRegister):
        yield _register_name(element.regno), f"{element.value:#x}"
    elif isinstance(element, Instr):
        yield "instr", f"0x{element.word:0{2 * element.length}x}"
    elif isinstance(element, AdditionalState):
        if element.own is not None:
            yield "own-pc", f"{element.own:#x}"
        is_mode = element.identifier == StateId.PRIVILEGE_MODE
        yield _STATES[element.identifier], str(element.value) if is_mode else f"{element.value:#x}"
    elif isinstance(element, IncrementPc):
        yield "pc", f"+{group.instr.length if group.instr else '?'}"
    elif isinstance(element, IncrementalRegister):
        yield _register_name(element.regno), f"{element.offset:+d}"
    elif isinstance(element, IncrementalRegisterOr):
        yield _register_name(element.regno), f"|{element.mask:#x}"
    elif isinstance(element, MemoryRequest | MemoryResponse):
        yield _transaction(element)


def _transaction(element: MemoryRequest | MemoryResponse) -> tuple[str, str]:
    size, data = SIZES[element.size], "" if element.data is None else f",{element.data:#x}"
    if isinstance(element, MemoryRequest):
        return "request", f"{MemoryOp(element.op).name.lower()}{8 * size},{element.addr:#x}{data}"
    return "response", f"{'success' if element.result == SUCCESS else 'failure'}{8 * size}{data}"


def _register_name(regno: int) -> str:
    """Return gdb's name of a register."""
    return register_name(regno).partition(" (")[0].replace(" ", "-")


def _meaning(item: GroupItem, xlen: int) -> Iterator[str]:
    if item.group is None:
        yield item.why
        return
    for kind, text in ((HartReset, "hart reset"), (StateInitialization, "state initialization")):
        if any(isinstance(element, kind) for element in item.group.elements):
            yield text
    yield from _trap_texts(item.group, xlen)
    if item.group.ending is Ending.IMPLIED:
        yield "its end is implied"
    if item.group.ending is Ending.LOOSE and not item.problems:
        yield "outside of groups"
    yield from (problem.value for problem in item.problems)


def _trap_texts(group: Group, xlen: int) -> Iterator[str]:
    """Describe a trap: a cause with a privilege mode belongs to one; alone it was written by an instruction."""
    if group.state(StateId.PRIVILEGE_MODE) is None:
        return
    registers = group.registers
    for regno in _CAUSES:
        if regno in registers:
            cause = registers[regno]
            yield trap_text(cause & (1 << xlen - 1) - 1, bool(cause >> xlen - 1))


def parameter_warning(captured: CapturedTandem, *, by_elf: bool) -> list[str]:
    """Return a line if the parameters are wrong. *by_elf*: see `parameter_hint`."""
    told, name = captured.in_force.parameters, captured.in_force.name
    text = advice(captured.data, told, wrapped=captured.wrapped, by_elf=by_elf)
    return [support_text.warning(f"{name}: {text}")] if text else []


def advice(data: bytes, parameters: TandemParameters, *, wrapped: bool = False, by_elf: bool = False) -> str:
    """Return what is wrong with the parameters, and the options for others; "" if they are right.

    *by_elf*: XLEN is the program's, whatever the options say.
    """
    text = plausibility.parameter_hint(data, parameters, wrapped=wrapped)
    other = plausibility.likelier_parameters(data, parameters, wrapped=wrapped) if text else None
    if other is None:
        return text
    options = " ".join(_options(parameters, other, by_elf))
    return f"{text}: for raw bytes give {options}; make a new capture with `rvtrace import --tandem ... {options}`"


def _options(parameters: TandemParameters, other: TandemParameters, by_elf: bool) -> Iterator[str]:
    if other.xlen != parameters.xlen:
        yield f"--elf of an RV{other.xlen} program" if by_elf else f"--xlen {other.xlen}"
    if other.flen != parameters.flen:
        yield f"--flen {other.flen}"
    if other.mlen_bits != other.xlen or (other.mlen_bits != parameters.mlen_bits and other.xlen == parameters.xlen):
        yield f"--mlen {other.mlen_bits}"
    if other.dialect != parameters.dialect:
        yield f"--dialect {other.dialect.name}"
    if parameters.eaddr:
        yield "without --eaddr"


class _TandemDecoding:
    """The `Decoding` of a tandem trace: its groups, then what each changed, then which instructions these are."""

    def __init__(self, make: Callable[[], TandemDecoding]) -> None:
        self._make = make
        self._decoding: TandemDecoding | None = None
        self._decoded: SourceHistories | None = None

    def result(self, progress: Progress) -> SourceHistories:
        """Return the history. Raises only what *progress* raises, and can be called again then."""
        if self._decoded is None:
            try:
                self._decoding = self._decoding or self._make()
                history = self._decoding.result(progress).history
            except RvtraceError:  # Ctrl-C
                raise
            except BaseException:
                self._decoding = None
                raise
            self._decoded = SourceHistories({0: history}, history.accounting)
        return self._decoded


def decoding(
    data: bytes, program: Program, trace_options: CapturedPort, *, wrapped: bool, stop_at_error: bool
) -> _TandemDecoding:
    """See `TraceFormat`."""
    return _TandemDecoding(
        lambda: TandemDecoding(data, program, trace_options.parameters, wrapped=wrapped, stop_at_error=stop_at_error)
    )


def arriving_decoder(
    program: Program, trace_options: CapturedPort, builders: Builders, *, wrapped: bool, stop_at_error: bool
) -> IncrementalDecoder:
    """See `TraceFormat`."""
    return IncrementalDecoder(
        program, trace_options.parameters, builders(0), wrapped=wrapped, stop_at_error=stop_at_error
    )


def checker(
    program: Program, trace_options: CapturedPort, progress: Progress, *, wrapped: bool, total: int
) -> NoReturn:
    """Raises `Unsupported`: each group has what it changes, and a model checks it."""
    raise Unsupported(
        "a tandem trace is not checked so: it has what each instruction changed, and `rvtrace tandem verify` compares"
        " that with a model"
    )


def itemizer(trace_options: CapturedPort, xlen: int, *, wrapped: bool = False) -> GroupItemizer:
    """See `TraceFormat`."""
    return GroupItemizer(trace_options.parameters, wrapped=wrapped)


def wording(trace_options: CapturedPort) -> GroupWording:
    """See `TraceFormat`."""
    return GroupWording(trace_options.parameters)


def numbered_items(
    data: bytes, trace_options: CapturedPort, xlen: int, *, wrapped: bool, progress: Progress
) -> NumberedGroups:
    """See `TraceFormat`."""
    return NumberedGroups(data, trace_options, wrapped=wrapped, progress=progress)


def has_sources(trace_options: CapturedPort) -> bool:
    """A tandem trace does not carry the source."""
    return False


def has_times(trace_options: CapturedPort) -> bool:
    """Groups may have times."""
    return True


def source_of(item: GroupItem) -> None:
    """A tandem trace does not carry the source."""
