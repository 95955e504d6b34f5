"""Debug triggers that switch and mark the trace: actions 2 to 4 of mcontrol (Trace Control Interface 1.0, "Debug
Trigger Module"; RISC-V Debug Specification 1.0, 5.7.11)."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.formats.ntrace import ntrace_options
from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine
from tests.helpers.amounts import crossed
from tests.transport.simulated.devices.test_component import TRACING, start, stop
from tests.transport.simulated.encoder.traces import (
    BTM,
    CONTEXT,
    EVERYTHING,
    HTM,
    RARE_SYNC,
    TIME,
    TRIGGERS,
    compiled,
    in_force,
    machine_with,
    told_to,
)
from tests.transport.simulated.hart.encoded_code import BASE, SPIN, Csr, addi, hart_with, lw, sw
from tests.transport.simulated.nexus import PROG_TRACE_CORRELATION, PROG_TRACE_SYNC, SYNCHRONIZING, Message, messages

TRACE_ON, TRACE_OFF, TRACE_NOTIFY = 2, 3, 4
EXECUTE, STORE, LOAD = 1 << 2, 1 << 1, 1 << 0
IN_ALL_MODES = 1 << 6 | 1 << 3
SYNC_TRACE_ENABLE, SYNC_TRACE_EVENT, EVCODE_DISABLED = 5, 6, 4
WAYS = {
    "HTM": (HTM, 0),
    "BTM, everything": (BTM, EVERYTHING),
    "HTM, everything": (HTM, EVERYTHING),
    "BTM": (BTM, 0),
}


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rv64"), "rv64imac")


def set_trigger(hart: Hart, number: int, action: int, access: int, address: int, debug: bool = False) -> None:
    hart.csr_write(Csr.TSELECT, number)
    hart.csr_write(Csr.TDATA2, address, debug)
    hart.csr_write(Csr.TDATA1, debug << hart.xlen - 5 | action << 12 | IN_ALL_MODES | access, debug)


def symbol(elf: Path, name: str) -> int:
    address = ElfFile(elf).symbol(name)
    assert address is not None
    return address


# The hart


@pytest.mark.parametrize("stepping", [False, True])
def test_every_kind_of_access_fires_before_it_happens(stepping: bool) -> None:
    hart = hart_with(addi(1, 0, 1), lw(2, 3), addi(1, 1, 1), sw(1, 3, 4), addi(1, 1, 1), addi(5, 0, 9), SPIN)
    for number, (access, address) in enumerate(((EXECUTE, BASE + 8), (STORE, hart.x[3] + 4), (LOAD, hart.x[3]))):
        set_trigger(hart, number, TRACE_NOTIFY, access, address)
    fired: list[tuple[int, int, int]] = []
    hart.trigger_effects.trace_action = lambda action: fired.append((action, hart.pc, hart.x[1]))
    while hart.pc != BASE + 24:
        assert (hart.step() if stepping else hart.run(1)) is None
    assert fired == [(4, BASE + 4, 1), (4, BASE + 8, 1), (4, BASE + 12, 2)]
    assert hart.instret >= 6
    assert (hart.x[1], hart.x[5], hart.bus.read(hart.x[3] + 4, 4)) == (3, 9, 2)
    for number in range(3):
        hart.csr_write(Csr.TSELECT, number)
        assert hart.csr_read(Csr.TDATA1) >> 20 & 1, "hit"


def test_a_breakpoint_at_the_same_place_comes_after_it() -> None:
    hart = hart_with(addi(1, 0, 1), addi(1, 1, 1), addi(1, 1, 1))
    set_trigger(hart, 0, 1, EXECUTE, BASE + 4, debug=True)
    set_trigger(hart, 1, TRACE_NOTIFY, EXECUTE, BASE + 4)
    fired: list[int] = []
    hart.trigger_effects.trace_action = fired.append
    assert hart.run(10) is DebugCause.TRIGGER
    assert (fired, hart.pc, hart.instret) == ([4], BASE + 4, 1)


# The trace


def run_with(
    machine: Machine, elf: Path, control: int, features: int = 0, timestamps: int = 0
) -> tuple[list[int], bytes]:
    """What retired, and the trace, whose history must be the same."""
    log: list[int] = []
    machine.encoder.watch = lambda retired: told_to(log, retired)
    te, ram = start(machine, control, features=features, timestamps=timestamps)
    options = ntrace_options(in_force(te), alone=True)
    for _ in range(7):
        machine.run_slice(999)
    data = stop(te, ram)
    history = decode(data, Image.from_elf(elf), options)
    assert [pc for pc in history.pcs(0, len(history)) if pc != GAP] == log
    marks = [event for event in history.events if event.kind is EventKind.SYNC and "trace event" in event.text]
    assert all(log[event.position] == event.next_pc for event in marks if event.next_pc is not None)
    return log, data


def marked(found: list[Message]) -> list[int]:
    """The addresses at which messages say a trigger fired."""
    return [m.variable[1] << 1 for m in found if m.tcode in SYNCHRONIZING and m.fixed[0] == SYNC_TRACE_EVENT]


@pytest.mark.parametrize(("name", "way"), crossed(("leaf", "far_away", "fibonacci", "round_done", "trap"), list(WAYS)))
def test_notify_marks_each_time_the_place_is_reached(name: str, way: str, elf: Path) -> None:
    """Also where a jump leads that is not reported otherwise, and where an interrupt does."""
    machine, place = machine_with(elf), symbol(elf, name)
    mode, features = WAYS[way]
    set_trigger(machine.hart, 0, TRACE_NOTIFY, EXECUTE, place)
    log, data = run_with(machine, elf, mode | CONTEXT | RARE_SYNC, features & ~(1 << 10), TIME)
    assert marked(messages(data)) == [place] * log.count(place)
    assert log.count(place) >= 2


def test_notify_does_nothing_when_nothing_is_traced(elf: Path) -> None:
    machine = machine_with(elf)
    set_trigger(machine.hart, 0, TRACE_NOTIFY, EXECUTE, symbol(elf, "leaf"))
    te, ram = start(machine, HTM | RARE_SYNC)
    te[0] = te[0] & ~TRACING
    machine.run_slice(500)
    assert [m.tcode for m in messages(stop(te, ram))] == [PROG_TRACE_SYNC, PROG_TRACE_CORRELATION]


@pytest.mark.parametrize("way", WAYS)
def test_one_function_is_traced(way: str, elf: Path) -> None:
    """From its entry to its caller; what it calls is in it."""
    mode, features = WAYS[way]
    machine = machine_with(elf)
    first, last = symbol(elf, "sequential_jumps"), symbol(elf, "far_away")
    set_trigger(machine.hart, 0, TRACE_ON, EXECUTE, first)
    set_trigger(machine.hart, 1, TRACE_OFF, EXECUTE, last + 2)  # the return of what it calls
    te, ram = start(machine, mode | TRIGGERS | RARE_SYNC, features=features)
    te[0] = te[0] & ~TRACING
    log: list[int] = []
    machine.encoder.watch = lambda retired: told_to(log, retired)
    options = ntrace_options(in_force(te), alone=True)
    for _ in range(7):
        machine.run_slice(999)
    assert not te[0] & TRACING
    found = messages(stop(te, ram))[2:]  # after what `start` has traced before TRACING was cleared
    begun = [m.variable[1] << 1 for m in found if m.tcode == PROG_TRACE_SYNC and m.fixed == (SYNC_TRACE_ENABLE,)]
    ended = [m for m in found if m.tcode == PROG_TRACE_CORRELATION and m.fixed[0] == EVCODE_DISABLED]
    assert len(begun) == len(ended) >= 2
    assert {pc & 0xFFFF_FFFF for pc in begun} == {first}
    times = log.count(first)
    assert times == len(begun) and log[:: len(log) // times] == [first] * times, "the same each time"
    assert last in log and last + 2 not in log
    history = decode(ram.bus.read_bytes(0x3000_0000, ram[0x20] - 0x3000_0000), Image.from_elf(elf), options)
    assert [pc for pc in history.pcs(0, len(history)) if pc != GAP] == log
