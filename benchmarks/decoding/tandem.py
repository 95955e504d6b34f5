"""How fast tandem traces are decoded, and any moment of them is found.

Run: python -m benchmarks.decoding.tandem [GROUPS]

The traces of real cores, repeated to the given number of groups (default 1,000,000). Figures are CPU time; the ratios
say more than they do, which depend on the machine and on what else it does: of decoding with the kernel to decoding
without it (of a tenth of the groups), and for each group to traces of a tenth and a hundredth of the length.
"""

import os
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time
from unittest.mock import patch

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.protocol import FLUTE, PICCOLO, TandemParameters
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.decode.tandem.trace import TraceGroups

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
TRACES = {
    "flute_rv64ui-v-add": TandemParameters(64, 64, dialect=FLUTE),
    "piccolo_rv32-hello": TandemParameters(32, 64, dialect=PICCOLO),
    "flute_rv64ud-p-fadd": TandemParameters(64, 64, dialect=FLUTE),
}
_MOMENTS = 300


def main() -> None:
    groups = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    print(f"decoding, {groups} groups each (CPU seconds)")
    heading = f"{'trace':22}{'MB':>7}{'groups':>9}{'history':>9}{'us/group':>10}{'1/10':>7}{'1/100':>7}"
    print(f"{heading}{'no kernel':>11}{'bytes/group kept':>18}")
    decoded = {}
    for name, parameters in TRACES.items():
        decoded[name] = measure(name, parameters, groups)
    print(f"any moment (milliseconds, mean of {_MOMENTS})")
    print(f"{'trace':22}{'first':>7}{'state':>7}{'memory':>8}{'writer':>8}{'forward':>9}{'back':>7}{'watch back':>12}")
    for name, tandem in decoded.items():
        moments(name, tandem)


def measure(name: str, parameters: TandemParameters, groups: int) -> DecodedTandem:
    """Decodes a trace that has so many groups, and prints how long that took."""
    once = (DATA / "tandem" / f"{name}.tvt").read_bytes()
    data = once * max(1, groups // len(TraceGroups.from_bytes(once, parameters)))
    image = Image.from_elf(DATA / "riscv-tests" / name.partition("_")[2])
    begin = process_time()
    trace = TraceGroups.from_bytes(data, parameters)
    framed = process_time()
    tandem = DecodedTandem(trace, image)
    done = process_time()
    spent = (done - begin) / len(trace) * 1e6
    tenth, hundredth = (each_group(data[: len(data) // part], image, parameters) for part in (10, 100))
    with patch.dict(os.environ, {"RVTRACE_KERNEL": "0"}):
        without = each_group(data[: len(data) // 10], image, parameters)
    cells = f"{len(data) / 1e6:7.1f}{framed - begin:9.2f}{done - framed:9.2f}{spent:10.2f}{tenth:7.2f}{hundredth:7.2f}"
    cells += f"{without:6.2f}{without / tenth:5.1f}{kept(once, parameters):18.0f}"
    print(f"{name:22}{cells}")
    return tandem


def each_group(data: bytes, image: Image, parameters: TandemParameters) -> float:
    """Microseconds of decoding for each group."""
    begin = process_time()
    trace = TraceGroups.from_bytes(data, parameters)
    DecodedTandem(trace, image)
    return (process_time() - begin) / len(trace) * 1e6


def kept(data: bytes, parameters: TandemParameters) -> float:
    """Bytes in memory for each group, the trace itself included, of a shorter trace."""
    data = data * max(1, 2_000_000 // len(data))
    tracemalloc.start()
    tandem = DecodedTandem(TraceGroups.from_bytes(data, parameters), Image(parameters.xlen))
    found = tracemalloc.get_traced_memory()[0] / len(tandem.trace)
    tracemalloc.stop()
    return found


def moments(name: str, tandem: DecodedTandem) -> None:
    """What a debugger asks at a moment, for moments all over the trace, and for steps in both directions."""
    rng = random.Random(1)
    positions = [rng.randrange(1, len(tandem.history)) for _ in range(_MOMENTS)]
    address = next((store.address for store in stores(tandem)), 0)
    first = each(lambda position: whole(tandem, position), positions[:1])
    state = each(lambda position: whole(tandem, position), positions)
    memory = each(lambda position: tandem.before(position).memory(address & -64, 256, space=PHYSICAL), positions)
    writer = each(lambda position: tandem.before(position).register_writer(0x100A), positions)
    middle = len(tandem.history) // 2
    forward = each(lambda position: whole(tandem, position), range(middle, middle + _MOMENTS))
    back = each(lambda position: whole(tandem, position), range(middle, middle - _MOMENTS, -1))
    watch = each(lambda position: tandem.next_store(position, address, 8, forward=False), positions)
    cells = f"{first:7.2f}{state:7.3f}{memory:8.3f}{writer:8.3f}{forward:9.3f}{back:7.3f}{watch:12.3f}"
    print(f"{name:22}{cells}   back/forward {back / forward:.2f}")


def stores(tandem: DecodedTandem) -> list[Store]:
    memory = tandem.index.physical.writes
    return [memory.store(len(memory) // 2)] if len(memory) else []


def whole(tandem: DecodedTandem, position: int) -> object:
    """Everything a debugger shows at a stop but memory."""
    state = tandem.before(position)
    return state.pc, state.privilege, state.xs(), state.fs(), state.csrs()


def each(ask: Callable[[int], object], positions: Iterable[int]) -> float:
    """Milliseconds for each position."""
    listed = list(positions)
    begin = process_time()
    for position in listed:
        ask(position)
    return (process_time() - begin) / len(listed) * 1e3


if __name__ == "__main__":
    main()
