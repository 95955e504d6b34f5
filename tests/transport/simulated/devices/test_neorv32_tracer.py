"""The simulated TRACER against what NEORV32's own RTL recorded of the same program (tests/data/neorv32/README.md)."""

from collections.abc import Iterator

import pytest

from rvtrace_gdb.controlregs.neorv32.registers import BASE, CTRL, DELTA_DST, DELTA_SRC, STOP_ADDR
from rvtrace_gdb.decode.branches.neorv32 import ENTRY
from rvtrace_gdb.transport.simulated.bus import Bus, load_elf
from rvtrace_gdb.transport.simulated.devices.neorv32_tracer import Neorv32Tracer
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap
from rvtrace_gdb.transport.simulated.wiring import TracerPart, Wiring, WiringError
from tests.decode.branches.test_neorv32 import DATA, ELF, HANDLER, START, STOPPED, STRAIGHT, raw
from tests.transport.simulated.harts import HALTREQ, RESUMEREQ, control

MRET = 0x1AC
PRINTED = 0xFFF5_0004  # UART0 of NEORV32
EN = CTRL.mask("EN")
C_EBREAK, EBREAKM = 0x9002, 1 << 15


class SelfTraced:
    """traced.elf on a simulated NEORV32, with a buffer of *depth* entries. *printed*: on its UART."""

    def __init__(self, depth: int = 1024) -> None:
        bus = Bus(0, 1 << 16)
        bus.add_ram(0x8000_0000, 1 << 16)
        self.printed = bytearray()
        bus.add(PRINTED - 4, 8, lambda offset, nbytes: 0, self._print)
        hart = Hart(bus, 32, "IMC", load_elf(bus, ELF))
        wiring = Wiring((TracerPart(name="tracer0", base=BASE, depth=depth),))
        self.machine = Machine(hart, MemoryMap(ram=0, ram_size=1 << 16, clint=0xFFF4_0000), wiring=wiring)
        self.bus = bus

    def _print(self, offset: int, nbytes: int, value: int) -> None:
        self.printed += bytes([value & 0xFF]) if offset else b""

    @property
    def tracer(self) -> Neorv32Tracer:
        return self.machine.branch_tracers[0]

    def read(self, offset: int) -> int:
        return self.bus.read(BASE + offset, 4)

    def write(self, offset: int, value: int) -> None:
        self.bus.write(BASE + offset, 4, value)

    def run_to(self, pc: int) -> None:
        while self.machine.hart.pc != pc:
            self.machine.run_slice(1)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Take the entries out."""
        while self.read(CTRL.offset) & CTRL.mask("AVAIL"):
            yield self.read(DELTA_SRC.offset), self.read(DELTA_DST.offset)


def recorded(name: str) -> list[tuple[int, int]]:
    """What the RTL recorded, without the timer interrupt, which comes later here: it came between a return and its
    target.
    """
    pairs = [(source, destination) for source, destination in ENTRY.iter_unpack(raw(name))]
    first = pairs.index(next(pair for pair in pairs if pair[1] == HANDLER | 1))
    last = next(at for at, pair in enumerate(pairs) if at > first and pair[0] == MRET)
    return [*pairs[:first], (pairs[first][0], pairs[last][1]), *pairs[last + 1 :]]


def test_a_program_that_traces_itself_prints_what_it_prints_on_the_rtl() -> None:
    target = SelfTraced()
    retired: list[int] = []
    target.tracer.watches[0] = lambda blocks: retired.extend(block.pc for block in blocks)
    target.machine.run_slice(400_000)
    lines = [line.split() for line in target.printed.decode().splitlines()]
    found = [(int(source, 16), int(destination, 16)) for source, destination in lines]
    assert found == recorded("pairs.txt")
    assert (retired[0], STOPPED in retired) == (START - 4, True)  # behind the instruction that starts it


@pytest.mark.parametrize(("depth", "kept"), [(32, {30, 31}), (16, {14, 15}), (2, {0, 1})])
def test_a_full_buffer_drops_two_at_once(depth: int, kept: set[int]) -> None:
    """Of the 32 entries of the RTL there were 30 and 31 (pairs-32.txt, pairs-stop-32.txt)."""
    assert {len((DATA / name).read_text().splitlines()) for name in ("pairs-32.txt", "pairs-stop-32.txt")} == {30, 31}
    target = SelfTraced(depth)
    target.run_to(STOPPED + 4)
    found = list(target.entries())
    assert len(found) in kept
    assert found == recorded("pairs.txt")[-len(found) :] or not found


def test_it_stops_with_the_stop_address() -> None:
    target = SelfTraced()
    target.run_to(START)
    target.write(STOP_ADDR.offset, STRAIGHT | 1)
    assert target.read(STOP_ADDR.offset) == STRAIGHT
    target.run_to(STOPPED + 4)
    assert not target.tracer.running and target.read(CTRL.offset) == EN | CTRL.mask("AVAIL") | CTRL.pack(TBM=10)
    found = list(target.entries())
    of_rtl = list(ENTRY.iter_unpack(raw("pairs-stop-32.txt")))  # the newest, with no interrupt among them
    assert found == recorded("pairs.txt")[: len(found)] and found[-len(of_rtl) :] == of_rtl


def test_a_halt_is_a_transfer_and_a_breakpoint_counts_as_executed() -> None:
    target = SelfTraced()
    machine, place = target.machine, 0xE8  # li a0, ROUNDS
    target.run_to(0xE6)
    control(machine, 0, HALTREQ)
    assert machine.halted
    control(machine, 0, RESUMEREQ)
    machine.run_slice(1)
    assert list(target.entries())[1:] == [(0xE4, 0xE6)]
    code = target.bus.read(place, 2)
    target.bus.write(place, 2, C_EBREAK)
    machine.hart.csr.debug.dcsr |= EBREAKM
    machine.run_slice(10)
    assert machine.halted and machine.hart.csr.debug.dpc == place
    target.bus.write(place, 2, code)
    machine.hart.flush_blocks()
    control(machine, 0, RESUMEREQ)
    machine.run_slice(1)
    assert list(target.entries()) == [(place, place)]


def test_a_reset_resets_it() -> None:
    target = SelfTraced()
    target.run_to(0x11A)
    assert target.read(CTRL.offset) == EN | CTRL.mask("RUN", "AVAIL") | CTRL.pack(TBM=10)
    assert target.machine.hart.witness is not None
    target.machine.hart.witness.reset()
    registers = (CTRL, STOP_ADDR, DELTA_SRC, DELTA_DST)
    assert [target.read(register.offset) for register in registers] == [CTRL.pack(TBM=10), 0, 0, 0]


def test_what_no_neorv32_has_is_refused() -> None:
    part = TracerPart(name="tracer0", base=BASE)
    with pytest.raises(WiringError, match="tracer0: traces one of 2 harts, and the target has 3: give it fewer harts"):
        Wiring((part,)).checked(3)
    with pytest.raises(WiringError, match="tracer0: there is another TRACER: NEORV32 has one"):
        Wiring((part, TracerPart(name="other", base=BASE + 0x1000))).checked(2)
