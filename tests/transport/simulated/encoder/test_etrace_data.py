"""Data trace of the simulated target: what instructions read and wrote, in packets, in its place among the others.

The hart is checked against instructions worked out by hand; the packets against what the hart says.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.data import DataDecoder
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.hart.block import Accessed
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from tests.helpers.amounts import crossed, long_only
from tests.transport.simulated.devices.test_component import BUFFER, STOP_ON_WRAP, stop
from tests.transport.simulated.encoder.etrace_traces import (
    CYCLES,
    DATA_CONTROL,
    DATA_DIFFERENCES,
    DATA_NO_ADDR,
    DATA_NO_VALUE,
    DATA_TRACING,
    EVERYTHING,
    HALFWORDS,
    PACKETS,
    SUPPORT,
    SYNC_START,
    SYNC_TRAP,
    Traced,
    machine_with,
    start,
    trace,
)
from tests.transport.simulated.encoder.traces import compiled, told_to
from tests.transport.simulated.hart.encoded_code import BASE, SPIN, addi, hart_with, lw, sw

BUILT = ETraceBuild()
A0, A1, A2 = 10, 11, 12
DATA = BASE + 0x400


ARCHITECTURES = "rv64imac", "rv32imac"
SYNCS = 0, PACKETS, CYCLES, HALFWORDS | 1 << 20
FORMS = 0, DATA_DIFFERENCES, DATA_NO_VALUE, DATA_NO_ADDR, DATA_NO_VALUE | DATA_DIFFERENCES


@pytest.fixture(scope="module", params=[ARCHITECTURES[0], *long_only(*ARCHITECTURES[1:])])
def elf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp(request.param), request.param)


# The hart


def told_by(hart: Hart, instructions: int) -> list[Accessed]:
    """What the hart tells when it runs."""
    hart.reports_accesses = True
    hart.retired = []
    hart.run(instructions)
    return [item for item in hart.retired if isinstance(item, Accessed)]


def atomic(funct5: int, rd: int, rs1: int, rs2: int, funct3: int = 2) -> int:
    """ISA manual volume I, "A": AMO with aq and rl 0; funct3 2 is .w, 3 is .d."""
    return funct5 << 27 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x2F


def csr(funct3: int, rd: int, number: int, rs1: int) -> int:
    return number << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x73


def load(funct3: int, rd: int, rs1: int, offset: int) -> int:
    return offset << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x03


def hart_of(*words: int) -> Hart:
    """a0 points to DATA, which holds 0x...f0e0d0c0b0a09080; a1 is 5."""
    hart = hart_with(*words, SPIN)
    hart.x[A0], hart.x[A1] = DATA, 5
    hart.bus.write_bytes(DATA, bytes(range(0x80, 0x100, 0x10)) * 2)
    return hart


ACCESSES = {
    "lw": (lw(A0, A0, 4), ("load", 4, "", DATA + 4, 0xF0E0D0C0, None)),
    "lb": (load(0, A2, A0, 0), ("load", 1, "", DATA, 0x80, None)),
    "lhu to x0": (load(5, 0, A0, 2), ("load", 2, "", DATA + 2, 0xB0A0, None)),
    "sw": (sw(A1, A0, 8), ("store", 4, "", DATA + 8, 5, None)),
    "lr.w": (atomic(2, A2, A0, 0), ("load", 4, "", DATA, 0xB0A09080, None)),
    "sc.w that fails": (atomic(3, A2, A0, A1), ("atomic", 4, "conditional store failure", DATA, 5, None)),
    "amoswap.w": (atomic(1, A0, A0, A1), ("atomic", 4, "swap", DATA, 0xB0A09080, 5)),
    "amoadd.w": (atomic(0, A2, A0, A1), ("atomic", 4, "add", DATA, 0xB0A09080, 5)),
    "amomaxu.w": (atomic(0x1C, A2, A0, A1), ("atomic", 4, "max", DATA, 0xB0A09080, 5)),
    "csrrw": (csr(1, A2, 0x340, A1), ("csr", 8, "rw", 0x340, 0, 5)),
    "csrrw x0": (csr(1, 0, 0x340, A1), ("csr", 8, "rw", 0x340, 0, 5)),
    "csrrsi": (csr(6, A2, 0x340, 3), ("csr", 8, "rs", 0x340, 0, 3)),
    "csrrc x0, x0": (csr(3, 0, 0x340, 0), ("csr", 8, "rc", 0x340, 0, 0)),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_what_an_instruction_accesses(name: str) -> None:
    word, want = ACCESSES[name]
    assert told_by(hart_of(addi(0, 0, 0), word), 2) == [Accessed(1, *want)]


def test_a_store_conditional_that_succeeds_is_a_store() -> None:
    told = told_by(hart_of(atomic(2, A2, A0, 0), atomic(3, A2, A0, A1)), 2)
    assert told[1] == Accessed(1, "store", 4, "", DATA, 5, None)


def test_an_instruction_that_traps_accesses_nothing() -> None:
    hart = hart_of(lw(A2, A0, 0), lw(A2, A0, 2), lw(A2, A0, 4))
    hart.csr_write(0x305, BASE + 4 * 3)
    assert [access.place for access in told_by(hart, 3)] == [0]


def test_nothing_is_told_unless_wanted() -> None:
    hart = hart_of(lw(A2, A0, 0))
    hart.retired = []
    hart.run(2)
    assert not any(isinstance(item, Accessed) for item in hart.retired)


def test_a_device_is_accessed_as_memory_is() -> None:
    """msip of the CLINT is at 0 of it."""
    hart = hart_of(sw(A1, A2, 0), lw(A2, A2, 0))
    hart.x[A2] = 0x10
    hart.bus.add(0, 0x100, lambda offset, nbytes: offset + nbytes, lambda offset, nbytes, value: None)
    assert told_by(hart, 2) == [
        Accessed(0, "store", 4, "", 0x10, 5, None), Accessed(1, "load", 4, "", 0x10, 0x14, None),
    ]  # fmt: skip


# The packets


def accesses_in(traced: Traced) -> list[MemoryAccess]:
    """Of the data packets; differences start anew with each synchronization."""
    decoder = DataDecoder(traced.options.parameters, traced.options.modes)
    for kind, payload, _ in traced.packets():
        if kind is ContentKind.DATA:
            decoder.packet(payload)
        elif payload[0] & 15 in (SYNC_START, SYNC_TRAP):
            decoder.synchronize(0)
    return list(decoder.accesses)


def told(access: Accessed, *, address: bool = True, value: bool = True) -> tuple[object, ...]:
    """What is in a packet of it."""
    kind, size, operation, where, what, operand = access[1:]
    shown = where if address or kind == "csr" else None
    return kind, size, operation, shown, what if value else None, operand if value else None


def combined(names: str, *axes: Sequence[object]) -> pytest.MarkDecorator:
    """Cases of these names and the architectures, with numbers shown in hexadecimal."""
    cases = crossed(*axes, ARCHITECTURES)
    return pytest.mark.parametrize(f"{names}, elf", cases, ids=_shown, indirect=["elf"])


def _shown(value: object) -> str:
    return hex(value) if isinstance(value, int) else str(value)


@combined("form, sync", FORMS, (0, PACKETS, HALFWORDS | 2 << 20))
def test_every_access_has_its_packet(form: int, sync: int, elf: Path) -> None:
    traced = trace(machine_with(elf), elf, sync, 0, 0, DATA_TRACING | form)
    traced.check()
    assert Counter(access.kind for access in traced.accessed).keys() >= {"load", "store", "csr"}
    want = [told(access, address=not form & DATA_NO_ADDR, value=not form & DATA_NO_VALUE) for access in traced.accessed]
    assert [access[:6] for access in accesses_in(traced)] == want


@combined("sync, features", SYNCS, (0, EVERYTHING))
def test_accesses_are_on_the_right_side_of_synchronizations(sync: int, features: int, elf: Path) -> None:
    """The instruction such a packet reports is behind all that accesses were told of, or has the next one."""
    traced = trace(machine_with(elf), elf, sync, features, 0, DATA_TRACING)
    places = [-1, *traced.places, len(traced.retired)]
    mask = (1 << traced.options.parameters.iaddress_width) - 1
    told_before = checked = 0
    for kind, payload, _ in traced.packets():
        if kind is ContentKind.DATA:
            told_before += 1
        elif payload[0] & 15 == SYNC_START:
            address = int.from_bytes(payload, "little", signed=True) >> 7 << 1 & mask
            assert address in traced.retired[places[told_before] + 1 : places[told_before + 1] + 1]
            checked += 1
    assert told_before == len(traced.accessed) and checked >= 5


@combined("sync, form", SYNCS, FORMS[1:4])
def test_the_history_has_them_with_their_instructions(form: int, sync: int, elf: Path) -> None:
    traced = trace(machine_with(elf), elf, sync, EVERYTHING, 0, DATA_TRACING | form)
    found = traced.history().accesses
    assert [access.position for access in found] == traced.places
    want = [told(access, address=not form & DATA_NO_ADDR, value=not form & DATA_NO_VALUE) for access in traced.accessed]
    assert [access[:6] for access in found] == want


def test_after_a_loss_accesses_are_told_with_their_instructions_again(elf: Path) -> None:
    """The buffer is full and stops; later it is emptied. Support packets then have dloss."""
    machine = machine_with(elf)
    log: list[int] = []
    made: list[tuple[int, Accessed]] = []

    def watch(retired: Sequence[HartItem]) -> None:
        for item in retired:
            if isinstance(item, Accessed):
                made.append((len(log) + item.place, item))
            else:
                told_to(log, [item])

    machine.encoder.watch = watch
    te, ram = start(machine, PACKETS, 0, 0, DATA_TRACING, sink=STOP_ON_WRAP, size=256)
    machine.run_slice(2000)
    assert te[0] & 1 << 12, "lost"
    ram[0x18], ram[0x20] = BUFFER + (1 << 15) - 4, BUFFER
    ram[0] = ram[0] | 2
    ram.poll(2, 2)
    machine.run_slice(2000)
    traced = trace(machine_with(elf), elf, PACKETS, 0, 0, DATA_TRACING)._replace(data=stop(te, ram))
    support = int.from_bytes(traced.payloads()[0], "little")
    assert (support >> 7 & 3, support >> 35 & 3) == (2, 3), "qual_status trace_lost; denable and dloss"
    history = traced.history()
    pcs = list(history.pcs(0, len(history)))
    assert 1500 < len(pcs) < len(log) and pcs == log[-len(pcs) :]
    first = len(log) - len(pcs)
    want = [(place - first, told(access)) for place, access in made if place >= first]
    assert [(access.position, access[:6]) for access in history.accesses] == want


def test_it_can_be_switched_while_instructions_are_traced(elf: Path) -> None:
    """trTeDataTracing; denable in the support packet that tells of it is 1 only in between (E-Trace 2.0, "Support")."""
    machine = machine_with(elf)
    te, ram = start(machine, PACKETS)
    told_of = []
    for data in (0, DATA_TRACING, 0):
        te[DATA_CONTROL] = data
        told_of.append(machine.hart.reports_accesses)
        machine.run_slice(500)
    traced = trace(machine_with(elf), elf)._replace(data=stop(te, ram))
    kinds = [kind for kind, _, _ in traced.packets()]
    assert told_of == [False, True, False]
    first, last = kinds.index(ContentKind.DATA), len(kinds) - 1 - kinds[::-1].index(ContentKind.DATA)
    assert 0 < first < last < len(kinds) - 20
    assert [int.from_bytes(p, "little") >> 35 & 1 for p in traced.payloads() if p[0] & 15 == SUPPORT] == [0, 1, 0, 0]
