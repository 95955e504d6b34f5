"""Holds the simulated hart against what another simulator executed."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rvtrace_gdb.transport.simulated.bus import Bus, ElfFile, load_elf
from rvtrace_gdb.transport.simulated.clint import MTI, Clint
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.csr import DCSR, MCYCLE, MINSTRET, STEP
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from tests.transport.simulated.hart.qemu import QemuTrap
from tests.transport.simulated.hart.qemu import Step as QemuStep
from tests.transport.simulated.hart.spike import (
    BOOT_INSTRUCTIONS,
    CLINT_BASE,
    MAIN_MEMORY,
    Commit,
    Memory,
    SpikeRun,
    SpikeTrap,
)
from tests.transport.simulated.hart.spike import Step as SpikeStep

CAUSES = {
    "instruction_address_misaligned": 0, "instruction_access_fault": 1, "illegal_instruction": 2, "breakpoint": 3,
    "load_address_misaligned": 4, "load_access_fault": 5, "store_address_misaligned": 6, "store_access_fault": 7,
    "user_ecall": 8, "machine_ecall": 11,
}  # fmt: skip

# Spike's log names CSRs our hart does not have: tcontrol, written by every trap return.
_NOT_OURS = frozenset((0x7A5,))
# It logs a write to mcontext under its other name, hcontext.
_ALIASES = {0x6A8: 0x7A8}
_MRET = 0x30200073
_MTIME = 0xBFF8

Told = tuple[str, int, int]
"""("retired", pc, instruction) or ("exception" or "interrupt", epc, cause)"""


def make_hart(elf: Path, extensions: str = "IMAFDC", *, memory: Memory = MAIN_MEMORY) -> Hart:
    """A hart with the program loaded, HTIF connected, at the program's entry."""
    file = ElfFile(elf)
    bus = Bus(*memory[0])
    for base, size in memory[1:]:
        bus.add_ram(base, size)
    hart = Hart(bus, file.xlen, extensions)
    Clint(hart, bus)
    hart.pc = load_elf(bus, elf)
    tohost = file.symbol("tohost")
    if tohost is not None:
        hart.watch_tohost(tohost, file.symbol("fromhost"))
    return hart


def after_boot_rom(hart: Hart, run: SpikeRun) -> Hart:
    """The hart as Spike's boot ROM leaves Spike."""
    hart.x[:] = run.x
    for counter in (MCYCLE, MINSTRET):
        hart.csr_write(counter, BOOT_INSTRUCTIONS, debug=True)
    return hart


def told_by_hart(retired: Iterable[HartItem]) -> Iterable[Told]:
    for item in retired:
        if isinstance(item, TrapEntry):
            yield ("interrupt" if item.interrupt else "exception", item.epc, item.cause)
        elif not isinstance(item, Situation | Accessed):
            block, count = (item, item.n) if isinstance(item, HartBlock) else item
            yield from (("retired", pc, word) for pc, word in zip(block.pcs[:count], block.words[:count], strict=True))


def told_by_spike(steps: Iterable[SpikeStep]) -> list[Told]:
    return [_spike_told(step) for step in steps]


def told_by_qemu(steps: Iterable[QemuStep], elf: Path) -> list[Told]:
    """QEMU does not log the instructions: they are taken from the program, which must not change itself."""
    memory = Bus()
    load_elf(memory, elf)
    return [_qemu_told(step, memory) for step in steps]


def compare_steps(hart: Hart, run: SpikeRun) -> None:
    """Single-step through the whole run and compare everything Spike's log tells. Interrupts come when Spike takes
    them: its clock is another, and it looks for them less often."""
    x, f = list(hart.x), list(hart.f)
    for index, step in enumerate(run.steps):
        hart.retired = []
        _allow_interrupt(hart, step.name if isinstance(step, SpikeTrap) else None)
        assert hart.step() is None
        where = (index, step)  # for a message; a text would be made for each step
        assert list(told_by_hart(hart.retired)) == [_spike_told(step)], where
        if isinstance(step, Commit):
            _update(x, step.x)
            _update(f, step.f)
            _compare_csrs_and_stores(hart, step, where)
        assert hart.x == x, where
        assert hart.f == f, where


def compare_blocks(hart: Hart, theirs: Sequence[Told], slice_size: int = 1000) -> None:
    """Run whole blocks and compare which instructions retired and which traps were taken."""
    assert run_told(hart, len(theirs), slice_size) == theirs


def compare_around_interrupts(hart: Hart, theirs: Sequence[Told], least: int) -> None:
    """Compare what is executed outside the interrupt handlers, at least so many steps, and inside them: every way to
    go through a handler has been gone by both."""
    main, handlers = without_handlers(theirs)
    assert len(main) >= least
    assert handlers
    # Handlers are short, but our clock is fast: interrupts every hundred instructions.
    our_main, our_handlers = without_handlers(run_told(hart, 2 * len(theirs), 1000))
    assert our_main[: len(main)] == main[: len(our_main)]
    assert len(our_main) >= least
    assert our_handlers == handlers


def run_told(hart: Hart, count: int, slice_size: int = 1000) -> list[Told]:
    """What the hart tells of its next *count* steps, in slices of so many instructions."""
    told: list[Told] = []
    while len(told) < count:
        hart.retired = []
        assert hart.run(slice_size) is None
        assert hart.retired, f"the hart has stopped at {hart.pc:#x} after {len(told)} steps"
        told += told_by_hart(hart.retired)
    return told[:count]


def without_handlers(told: Iterable[Told]) -> tuple[list[Told], set[tuple[Told, ...]]]:
    """The main stream, and the distinct ways interrupts were handled (a last, unfinished one is left out)."""
    main: list[Told] = []
    handlers = set()
    handler: list[Told] | None = None
    for entry in told:
        if entry[0] == "interrupt":
            assert handler is None, "nested interrupts are not expected"
            handler = []
        elif handler is None:
            main.append(entry)
        else:
            handler.append(entry)
            if entry[2] == _MRET:
                handlers.add(tuple(handler))
                handler = None
    return main, handlers


def _spike_told(step: SpikeStep) -> Told:
    if isinstance(step, Commit):
        return ("retired", step.pc, step.word)
    if isinstance(step.name, int):
        return ("interrupt", step.epc, step.name)
    return ("exception", step.epc, CAUSES[step.name])


def _qemu_told(step: QemuStep, memory: Bus) -> Told:
    if isinstance(step, QemuTrap):
        return ("interrupt" if step.interrupt else "exception", step.epc, step.cause)
    low = memory.read(step, 2)
    return ("retired", step, memory.read(step, 4) if low & 3 == 3 else low)


def _allow_interrupt(hart: Hart, number: int | str | None) -> None:
    """Hold interrupts off as a debugger does (dcsr.step without stepie), or let them in, the timer having expired."""
    hart.csr_write(DCSR, 0 if isinstance(number, int) else STEP, debug=True)
    if number == MTI and hart.clint is not None and hart.clint.mtime < hart.clint.mtimecmp:
        hart.bus.write(CLINT_BASE + _MTIME, 8, hart.clint.mtimecmp)


def _update(registers: list[int], writes: dict[int, int]) -> None:
    for number, value in writes.items():
        registers[number] = value


def _compare_csrs_and_stores(hart: Hart, step: Commit, where: tuple[int, SpikeStep]) -> None:
    for number, value in step.csrs.items():
        if number not in _NOT_OURS:
            ours = hart.csr_read(_ALIASES.get(number, number), debug=True)
            assert ours == value, f"CSR {number:#x} after step {where}"
    for address, nbytes, value in step.stores:
        if address != hart.data.tohost:  # HTIF has answered already
            assert hart.bus.read(address, nbytes) == value, where
