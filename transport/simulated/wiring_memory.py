"""The memory that a simulated target has for the buffers of its sinks, and where registers can be besides."""

from collections.abc import Iterable, Sequence

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import SIZE as CLINT_SIZE
from rvtrace_gdb.transport.simulated.trace_devices import BLOCK_SIZE
from rvtrace_gdb.transport.simulated.wiring import AnyPart, RamSinkPart, Source, WiringError


def add_buffers(bus: Bus, parts: Iterable[AnyPart], clint: int) -> None:
    """Add RAM where buffers are outside of the main memory. Raises WiringError for one that can be nowhere."""
    buffers = [part for part in parts if isinstance(part, RamSinkPart) and part.size]
    outside = [part for part in buffers if not _in_main(bus, part)]
    for part in outside:
        if _meet((part.start, part.size), (bus.ram_base, bus.main.size)):
            raise WiringError(part.name, f"its buffer, {_shown(part)}, is in the main memory only in part")
        if _meet((part.start, part.size), (clint, CLINT_SIZE)):
            raise WiringError(part.name, f"its buffer, {_shown(part)}, is where the CLINT is, {clint:#x}")
    for start, end in _united([(part.start, part.start + part.size) for part in outside]):
        try:
            bus.add_ram(start, end - start)
        except (OSError, OverflowError, ValueError):
            part = next(part for part in outside if part.start == start)
            raise WiringError(part.name, f"there is not so much memory for its buffer, {_shown(part)}") from None


def check_registers(bus: Bus, parts: Sequence[AnyPart], clint: int) -> None:
    """Raises WiringError where something else is in the way of a component's registers."""
    taken: dict[int, str] = {}
    memory = [(part.start, part.size, f"the buffer of {part.name}") for part in parts if isinstance(part, RamSinkPart)]
    memory += [(bus.ram_base, bus.main.size, "the main memory"), (clint, CLINT_SIZE, "the CLINT")]
    for part in parts:
        if not isinstance(part, Source) and part.inside:
            continue
        if part.base in taken:
            raise WiringError(part.name, f"its registers are at {part.base:#x}, and so are those of {taken[part.base]}")
        taken[part.base] = part.name
        for start, size, what in memory:
            if _meet((part.base, BLOCK_SIZE), (start, size)):
                raise WiringError(part.name, f"its registers are at {part.base:#x}, where {what} is")


def _in_main(bus: Bus, part: RamSinkPart) -> bool:
    return bus.ram_base <= part.start and part.start + part.size <= bus.ram_base + bus.main.size


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Two starts and sizes."""
    return one[0] < sum(other) and other[0] < sum(one)


def _shown(part: RamSinkPart) -> str:
    return f"{part.start:#x} to {part.start + part.size - 1:#x}"


def _united(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that meet or touch made one: starts and ends."""
    united: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united
