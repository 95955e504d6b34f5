"""Tandem traces in every dialect, looked at in every way there is: as a history, group by group, converted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, tandem_of
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, AdditionalState, Element, Group, StateId, TandemParameters
from rvtrace_gdb.session.capture.model import CapturedPort
from rvtrace_gdb.session.exports.logs.commits import Spelling
from rvtrace_gdb.session.exports.logs.riscv_dv import TraceCsv
from rvtrace_gdb.session.exports.logs.spike_log import SpikeLog
from rvtrace_gdb.session.formats import registry, tandem
from rvtrace_gdb.session.formats.tandem import NumberedGroups as Items
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.tandem import csr_fields
from rvtrace_gdb.views.tandem.group_rows import GroupObjects, GroupWords, Known, pages
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts, Row
from tests.decode.tandem import groups as made
from tests.decode.tandem.corpus import program_of, trace_bytes
from tests.fuzz.exercise import Exercise, Input, first
from tests.fuzz.kinds.trace_checks import ROWS, WAYS, NoDisassembler, Trace

_PIECE = 260  # bytes of a real trace
_CORPUS = ("flute_rv64mi-p-scall", "flute_rv64-irq", "flute_rv64si-p-csr", "flute_rv64ua-p-amoadd_w",
           "flute_rv64ud-p-ldst", "piccolo_rv32-irq", "piccolo_rv32mi-p-csr", "piccolo_rv32um-p-div")  # fmt: skip


class PlainTexts(GroupTexts):
    """The encodings stand for the text: disassemblers are programs of their own, which take long to start."""

    def learn(self, rows: Iterable[Row], progress: Progress = silent) -> None:
        for row in rows:
            if row.instr is not None and row.pc is not None:
                symbol = self.symbol(row.pc, ProgramContext(row.mode))
                self._texts[row.mode, row.pc, row.instr] = InstructionText(symbol, f"li\ta{row.instr.word % 8}, 1")


class Looked:
    """A trace, decoded."""

    def __init__(self, trace: Trace, tandem: DecodedTandem) -> None:
        self.trace, self.tandem = trace, tandem
        self.groups = Groups(tandem)
        self.texts = PlainTexts(_NoSource(trace.program), trace.program, trace.program.xlen)  # type: ignore[arg-type]

    def rows(self) -> Iterable[Row]:
        for page in pages(self.groups, self.texts, range(len(self.groups))):
            yield from page


class _NoSource:
    def __init__(self, program: ContextImages) -> None:
        self._disassembler = NoDisassembler(program.base)

    def disassembler_of(self, context: ProgramContext) -> NoDisassembler:
        return self._disassembler


def _show(it: Looked) -> None:
    for raw in (False, True):
        shapes = GroupWords(it.groups, it.texts, raw=raw), GroupObjects(it.groups, it.texts, 0, raw=raw)
        for row in it.rows():
            for shape in shapes:
                list(shape.lines(row))
    for mark in it.groups.breaks.get(len(it.groups), ()):
        shapes[0].lost(mark)
        shapes[1].lost(mark)


def _state(it: Looked) -> None:
    for number in {0, 1, len(it.groups) // 2, len(it.groups)}:
        known = Known(it.tandem, number, None)
        list(known.lines())
        known.json(0)
    for group in range(min(len(it.groups), ROWS)):
        for regno, value in it.tandem.changed(group).items():
            if value is not None and regno < 0x1000:
                csr_fields.value_text(regno, value, it.trace.program.xlen)
        for _, store in it.tandem.stored(group):
            it.tandem.stores(store.address, store.size)


def _spike(it: Looked) -> None:
    spelling = Spelling(it.texts, it.trace.program.xlen)
    log = SpikeLog(it.groups, spelling, 0, {0x8000_0000: "main"}, None)
    list(log.lines(spelling.learn(list(it.groups.rows(range(len(it.groups)))))))


def _csv(it: Looked) -> None:
    spelling = Spelling(it.texts, it.trace.program.xlen)
    table = TraceCsv(it.groups, spelling, 3)
    list(table.lines(spelling.learn(list(it.groups.rows(range(len(it.groups)))))))


def _places(it: Looked) -> None:
    """What reverse debugging asks: values and who wrote them, at places of the history."""
    tandem, history = it.tandem, it.tandem.history
    for position in {0, len(history) // 2, max(len(history) - 1, 0), len(history)}:
        state = tandem.before(position)
        for regno in (0, 0x1000 + 10, 0x1000 + 33, 0x300, 0x341):
            state.register(regno)
        for access in first(history.accesses, 8):
            if access.address is not None and access.kind != "csr":
                tandem.stores(access.address, access.size or 1, position=position)
                tandem.next_store(position, access.address, access.size or 1)
                tandem.next_store(position, access.address, access.size or 1, forward=False)


_OF_GROUPS: Mapping[str, Callable[[Looked], None]] = {
    "show": _show, "state": _state, "spike": _spike, "csv": _csv, "places": _places,
}  # fmt: skip


class TandemTrace(Exercise):
    """A variant is a trace, a dialect and a way to look at it, the history's ways and those of groups alone."""

    def __init__(self) -> None:
        super().__init__()
        self._programs: dict[str, ContextImages] = {}
        self._parameters: dict[str, TandemParameters] = {}
        for name, data, parameters, program in _traces():
            self._programs[name], self._parameters[name] = ContextImages(program), parameters
            for way in (*WAYS, *_OF_GROUPS, "advice", "number"):
                self.seeds.append(Input(f"{name} {way}", data))

    def run(self, variant: str, data: bytes) -> None:
        name, _, way = variant.rpartition(" ")
        parameters = self._parameters[name]
        wrapped = "middle" in name
        trace = Trace(data, self._programs[name], CapturedPort("it", parameters), wrapped)
        if way in WAYS:
            WAYS[way](trace)
        elif way == "advice":
            tandem.advice(data, parameters, wrapped=wrapped)
        elif way == "number":
            _number(trace)
        else:
            found = tandem_of(registry.decode(data, trace.program, trace.trace_options, wrapped=wrapped).histories[0])
            assert found is not None
            _OF_GROUPS[way](Looked(trace, found))


def _number(trace: Trace) -> None:
    assert isinstance(trace.trace_options, CapturedPort)
    items = Items(trace.data, trace.trace_options, wrapped=trace.wrapped)
    wording = registry.format_of(trace.trace_options).wording(trace.trace_options)
    for _, item in items.items(1, len(items) + 1):
        wording.text(item, raw=True)
    for offset in (0, len(trace.data) // 2, len(trace.data)):
        items.number_at(offset)


def _traces() -> Iterable[tuple[str, bytes, TandemParameters, Image]]:
    nowhere = {32: Image(32), 64: Image(64)}
    for name in _CORPUS:
        whole, program = trace_bytes(name), program_of(name)
        for dialect in ("flute", "piccolo") if name == _CORPUS[0] else (name.partition("_")[0],):
            parameters = TandemParameters(program.xlen, 64, dialect=DIALECTS[dialect])
            yield f"{name} {dialect}", whole[:_PIECE], parameters, program
            yield f"{name} {dialect} middle", whole[777 : 777 + _PIECE], parameters, program
            yield f"{name} {dialect} end", whole[-_PIECE:], parameters, nowhere[program.xlen]
    for kind in DIALECTS.values():
        for xlen in (32, 64):
            parameters = TandemParameters(xlen, 64, dialect=kind)
            yield f"made {kind.name} {xlen}", encode(_groups(kind.pcs), parameters), parameters, nowhere[xlen]
    bare = TandemParameters(32, 0, 34, 34, supervisor=False)
    yield "made without S-mode", encode(_groups(1), bare), bare, nowhere[32]


def _groups(pcs: int) -> list[Group]:
    """A group of each sort. *pcs*: addresses in that of the pc."""
    line = made.Line()
    line.groups.append(made.group(made.RESET))
    line.groups.append(made.group(made.INIT, made.pc(line.pc), made.x(2, 0x8000_1000), made.priv(3)))
    line(made.x(5, 0x1234))
    line(made.csr(0x300, 0x1800), made.csr(0x341, 0x8000_0010))
    line(made.store(0x8000_1000, 4, 0xDEAD), instr=made.sw())
    line(made.store(0x8000_1004, 1, 0x12, physical=True), instr=made.sw())
    line(made.priv(0), instr=made.MRET, to=0x8000_0100)
    line(made.csr(0x342, 8), made.csr(0x341, 0x8000_0100), made.csr(0x300, 0), made.priv(3), instr=made.ECALL,
         to=0x8000_0200)  # fmt: skip
    line(made.x(6, 7), instr=made.C_NOP)
    return line.groups if pcs == 1 else [_without_pc(group) for group in line.groups]


def _without_pc(group: Group) -> Group:
    return group._replace(elements=tuple(one for one in group.elements if not _is_pc(one)))


def _is_pc(element: Element) -> bool:
    return isinstance(element, AdditionalState) and element.identifier == StateId.PC
