"""What filters do to the rest of a trace: E-Trace and its data trace, time, watchpoints, losses, halts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.data import DataDecoder
from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation, SourcePackets
from rvtrace_gdb.decode.etrace.options import Modes, Options, TrapHandlers
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.devices.encoder import Protocols, TraceEncoder
from tests.decode.etrace.naive_decoder import NaiveDecoder
from tests.transport.simulated.devices.rig import (
    DATA_CONTROL,
    DATA_FILTERS,
    FILTER_UNITS,
    HTM,
    TS_CONTROL,
    Log,
    Rig,
    disable,
    start_encoder,
    start_sink,
    stored,
)
from tests.transport.simulated.devices.test_component import CONTROL, OVERFLOW, Registers
from tests.transport.simulated.encoder.test_filters import (
    BY_DTYPE,
    BY_ECAUSE,
    BY_PRIVILEGE,
    ECALL_FROM_U,
    EQ,
    M,
    U,
    addresses,
    both,
    comparator,
    executed,
    handlers,
    one_filter,
)
from tests.transport.simulated.encoder.traces import INSTRUCTIONS, TIME, TS_ACTIVE, compiled
from tests.transport.simulated.nexus import ERROR, PROG_TRACE_SYNC, SYNCHRONIZING, messages

USER = one_filter(BY_PRIVILEGE, inst=1 << U)
PERIODIC = 1 << 16 | 2 << 20  # every 64 messages


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("filtered"), "rv64imac")


class Run:
    """One encoder with all filters, and its sink."""

    def __init__(self, elf: Path, set_up: Callable[[Registers], None], options: int = HTM, **built: object) -> None:
        self.rig = Rig(elf)
        self.sink, self.ram = self.rig.sink()
        self.encoder: TraceEncoder
        self.encoder, self.te = self.rig.encoder(self.sink, filters=FILTER_UNITS, **built)
        self.log = Log(M, 0)
        self.encoder.watch = self.log
        start_sink(self.ram)
        start_encoder(self.te, options, lambda: set_up(self.te))

    def stop(self) -> bytes:
        disable(self.te)
        return stored(self.ram)


class ETraceRun(Run):
    def __init__(self, elf: Path, set_up: Callable[[Registers], None], options: int = 0) -> None:
        super().__init__(elf, set_up, options, protocols=Protocols(formats=(0,)))
        built = self.encoder.etrace
        assert built is not None
        modes = Modes(resync_disabled=not options >> 16 & 3, data_full_address=True)
        handler = TrapHandlers(ElfFile(elf).symbol("trap"))
        self.options = Options(built.parameters, modes, support=built.support, trap_handlers=handler)
        self.encapsulation = Encapsulation(type_bits=1)

    def payloads(self, data: bytes, kind: ContentKind) -> list[bytes]:
        deframer = self.encapsulation.deframer()
        items = [item for item in (*deframer.feed(data), *deframer.finish()) if isinstance(item, SourcePackets)]
        return [payload for item in items if item.kind is kind for payload in item.payloads]


@pytest.mark.parametrize("options", [0, PERIODIC])
@pytest.mark.parametrize("by", ["privilege", "ecause"])
def test_e_trace_is_filtered(elf: Path, by: str, options: int) -> None:
    run = ETraceRun(elf, USER if by == "privilege" else one_filter(BY_ECAUSE, ecause=1 << ECALL_FROM_U), options)
    run.rig.run(INSTRUCTIONS)
    data = run.stop()
    steps = run.log.steps
    if by == "privilege":
        wanted = addresses([step for step in executed(steps) if step.privilege == U])
    else:
        wanted = addresses(handlers(steps, lambda s: s.trap is not None and s.trap.cause == ECALL_FROM_U))
    assert len(wanted) > 50
    image = Image.from_elf(elf)
    assert NaiveDecoder(image, run.options).decode(run.payloads(data, ContentKind.INSTRUCTION)) == wanted
    history = decode(data, image, run.options, run.encapsulation)
    assert [pc for pc in history.pcs(0, len(history)) if pc != GAP] == wanted


@pytest.mark.parametrize("selected", [False, True])
def test_data_trace_is_filtered(elf: Path, selected: bool) -> None:
    """Stores only; with another filter for the instructions."""

    def set_up(te: Registers) -> None:
        USER(te)
        one_filter(BY_DTYPE, data=1 << 1, number=3)(te)
        te[0x0C] = 1
        te[DATA_FILTERS] = 1 << 3 if selected else 0
        te[DATA_CONTROL] = 1 << 1

    run = ETraceRun(elf, set_up)
    run.rig.run(INSTRUCTIONS)
    data = run.stop()
    decoder = DataDecoder(run.options.parameters, run.options.modes)
    for payload in run.payloads(data, ContentKind.DATA):
        decoder.packet(payload)
    told = list(decoder.accesses)
    accesses = [step.access for step in executed(run.log.steps) if step.access is not None and step.privilege == U]
    wanted = [access for access in accesses if access.kind == "store" or not selected]
    assert len(wanted) > 100
    assert [(a.kind, a.address, a.value) for a in told] == [(a.kind, a.address, a.value) for a in wanted]


def timed(te: Registers) -> None:
    for value in (0, TS_ACTIVE, TIME | 4):
        te[TS_CONTROL] = value


@pytest.mark.parametrize("slice_length", [1, 100, 5000])
def test_time_goes_on_while_nothing_is_let_through(elf: Path, slice_length: int) -> None:
    """Each time the filter opens, the message says when: as many cycles as instructions have retired."""
    run = Run(elf, both(USER, timed))
    run.rig.run(INSTRUCTIONS, slice_length)
    data = run.stop()
    steps = executed(run.log.steps)
    entries = [n for n, step in enumerate(steps) if step.privilege == U and steps[n - 1].privilege == M]
    found = [m for m in messages(data) if m.tcode == PROG_TRACE_SYNC]
    assert len(found) == len(entries) > 8
    assert [m.variable[1] << 1 for m in found] == [steps[n].pc for n in entries]
    apart = {m.variable[-1] - n for m, n in zip(found, entries, strict=True)}
    assert len(apart) == 1
    assert apart <= {0, 1}


def test_the_trace_does_not_show_how_often_the_hart_was_looked_at(elf: Path) -> None:
    traces = []
    for slice_length in (1, 33, 7000):
        run = Run(elf, both(USER, timed), HTM | PERIODIC)
        run.rig.run(INSTRUCTIONS, slice_length)
        traces.append(run.stop())
    shortest = min(map(len, traces)) - 16  # a slice may end a block late
    assert traces[0][:shortest] == traces[1][:shortest] == traces[2][:shortest]


@pytest.mark.parametrize("filtered", [False, True])
def test_a_watchpoint_reports_the_place_each_time_it_is_traced(elf: Path, filtered: bool) -> None:
    leaf = ElfFile(elf).symbol("leaf")
    assert leaf is not None
    notify = comparator(EQ << 4 | 1 << 14, leaf, number=7)
    run = Run(elf, both(notify, one_filter(BY_ECAUSE, ecause=1 << ECALL_FROM_U)) if filtered else notify)
    run.rig.run(5000)
    found = [m for m in messages(run.stop()) if m.tcode in SYNCHRONIZING and m.fixed[0] == 6]
    steps = run.log.steps
    inside = list(handlers(steps, lambda s: s.trap is not None and s.trap.cause == ECALL_FROM_U))
    reached = [step.pc for step in (inside if filtered else executed(steps)) if step.pc == leaf]
    assert len(reached) > 2
    assert [m.variable[1] << 1 for m in found] == reached


def test_a_watchpoint_needs_the_address_as_its_input(elf: Path) -> None:
    leaf = ElfFile(elf).symbol("leaf")
    assert leaf is not None
    run = Run(elf, comparator(2 | EQ << 4 | 1 << 14, leaf))
    run.rig.run(3000)
    assert not [m for m in messages(run.stop()) if m.tcode in SYNCHRONIZING and m.fixed[0] == 6]


def test_losses_are_told_inside_a_filter_and_between(elf: Path) -> None:
    run = Run(elf, USER)
    run.rig.run(2000)
    run.sink.jammed = True
    run.rig.run(1500)
    run.sink.jammed = False
    assert run.te[CONTROL] & OVERFLOW
    run.rig.run(2000)
    data = run.stop()
    found = messages(data)
    assert [m.tcode for m in found].count(ERROR) == 1
    after = found[next(n for n, m in enumerate(found) if m.tcode == ERROR) + 1]
    assert (after.tcode, after.fixed) == (PROG_TRACE_SYNC, (7,)), "restart after FIFO overrun"
    wanted = [step.pc for step in executed(run.log.steps) if step.privilege == U]
    pcs = run.rig.pcs(data)
    assert len(pcs) < len(wanted)
    assert wanted[-500:] == pcs[-500:]
    assert wanted[:500] == pcs[:500]


def test_overflow_on_demand(elf: Path) -> None:
    plain = Run(elf, lambda te: None)
    plain.rig.run(1000)
    plain.rig.hart.run(300)
    plain.encoder.overflow()
    plain.rig.run(1000)
    assert plain.te[CONTROL] & OVERFLOW
    data = plain.stop()
    assert [m.tcode for m in messages(data)].count(ERROR) == 1
    retired = [step.pc for step in executed(plain.log.steps)]
    found = plain.rig.pcs(data)
    assert found[:900] == retired[:900]
    assert found[-900:] == retired[-900:]
