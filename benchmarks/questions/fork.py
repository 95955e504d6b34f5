"""How long a fork takes to follow its trace, by the length of what it follows.

Run: python benchmarks/questions/fork.py [LENGTH ...]

A program that computes runs on the simulated hart with an N-Trace encoder, its registers saved where it begins. Seconds
of making a fork at the beginning, and of following it to the end with each instruction compared; millions of
instructions a second; and the most memory that the process has used. Lengths: 10^5, 10^7 and 10^8 instructions unless
others are given.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.fork.following import ForkFollower
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import compile_program
from tests.helpers.example_captures import RAM
from tests.session.board import Board

LENGTHS = (100_000, 10_000_000, 100_000_000)
PROGRAM = """
unsigned table[512], total;
static unsigned mixed(unsigned value) { return value & 1 ? value * 3 + 1 : value >> 1; }
int main(void)
{
    for (unsigned round = 0;; round++)
        for (unsigned n = 0; n < 512; n++)
            table[n] = mixed(table[n] + n + round), total += table[n] / 7;
}
"""
_TRACE_RAM = 1 << 26


def main() -> None:
    lengths = [int(float(it)) for it in sys.argv[1:]] or LENGTHS
    print(f"{'Minstr':>8}{'fork':>9}{'follow':>9}{'Minstr/s':>10}{'MiB':>7}  ended")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rounds.c"
        source.write_text(PROGRAM)
        elf = compile_program(Path(folder), source, options=("-O2",))
        for length in lengths:
            measure(elf, length)


def measure(elf: Path, length: int) -> None:
    """Print the line of a length."""
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=_TRACE_RAM))
    machine.halt_at_start()
    target = Board(machine, elf, elf.parent, registers=True)
    session, context = Session(target.connect, {}), target.describe(size=_TRACE_RAM, extra=RAM)
    session.start(context, {})
    target.run(length)
    file = elf.with_suffix(".rvt")
    session.save(file, context)
    session.close()
    session = Session()
    session.open(file, None)
    selected = session.selected(Context())
    past = past_of(session, selected)
    begin = time.perf_counter()
    fork = ForkedHart(past, selected, session.capture(), 0)
    made = time.perf_counter()
    left = ForkFollower(fork, len(selected.history)).follow(silent)
    taken = time.perf_counter() - made
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    million = left.position / 1e6
    print(f"{million:8.1f}{made - begin:9.3f}{taken:9.2f}{million / taken:10.1f}{most:7}  {left.reason}", flush=True)


if __name__ == "__main__":
    main()
