"""Whether reconstructed values are right, how many there are, and what they cost.

Run: .venv/bin/python benchmarks/questions/values.py [--claims N] [--format ntrace|etrace] [--random N] [--others]
         [PROGRAM ...]

24 programs (benchmarks/questions/reconstructed/programs.py) run in Spike. Its log is encoded and decoded again, and
from that history, which has addresses and traps only, values are reconstructed and compared with Spike's:

  forward  from reset on, with the program's ELF file: the whole register file at each position, until there are N
           claims of registers (default 2e7, 1e8 takes some minutes); all known memory at places that are chosen at
           random, to which it jumps; and everything at the checkpoints
  window   from a stop back, of which registers and RAM are known and nothing else: windows of 1k, 10k and 100k
           instructions
  locals   what gdb would print of arguments and local variables, by their debug information

The last line has the sums: wrong values, and the shares of x registers, of the registers that instructions read, and of
loaded values that are known.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.questions.reconstructed.claims import CLASSES, Claims, Shares, Shown
from benchmarks.questions.reconstructed.from_stop import STOPS, Compared, stops, window_at
from benchmarks.questions.reconstructed.histories import FORMATS, history_of_log
from benchmarks.questions.reconstructed.local_variables import LocalVariables
from benchmarks.questions.reconstructed.programs import RAM, BuiltProgram, others, programs
from benchmarks.questions.reconstructed.truth import FCSR, Run, Truth, read_run
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState, KnownValue
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart
from tests.decode.executed.logs import spike_log

DISTANCES = (1_000, 10_000, 100_000)
_MEMORY_EVERY = 50_000
_SAMPLED = 64
_MHARTID = 0xF14
_LINES = 1 << 24


class Executed(NamedTuple):
    """A program that ran."""

    program: BuiltProgram
    elf: Path
    image: Image
    run: Run
    history: History

    @property
    def machine(self) -> HartMachine:
        rams = self.program.rams(self.image)
        modes = ["S"] if "s" in self.program.priv else []
        return HartMachine(self.program.xlen, [*self.program.extensions, *modes], rams, machine_only=not modes)


def main() -> None:
    asked = argparse.ArgumentParser(description="Whether reconstructed values are right, how many there are.")
    asked.add_argument("programs", nargs="*", metavar="PROGRAM", help="parts of names; all without any")
    asked.add_argument("--claims", type=float, default=2e7, help="of registers, at least, forward (default 2e7)")
    asked.add_argument("--random", type=int, default=100, help="places chosen at random in each program (default 100)")
    asked.add_argument("--part", choices=("both", "forward", "window"), default="both")
    asked.add_argument("--others", action="store_true", help="other programs instead: riscv-tests, generated ones, ...")
    asked.add_argument("--format", choices=FORMATS, default=FORMATS[0])
    given = asked.parse_args()
    claims, chosen = Claims(), list((others if given.others else programs)(given.programs))
    with tempfile.TemporaryDirectory() as folder:
        total = Shares()
        if given.part != "window":
            total = forward_of(chosen, given, claims, Path(folder))
        if given.part != "forward":
            total = windows_of(chosen, given, claims, Path(folder))
    kinds = ", ".join(f"{count} {kind}" for kind, count in claims.compared.items())
    print(f"claims: {kinds}; {claims.compared.total()} in all")
    print(f"{claims.wrong_count} wrong, x {total['x']} %, reads {total['reads']} %, loads {total['loads']} %")
    sys.exit(claims.wrong_count > 0)


def executed(program: BuiltProgram, folder: Path, format: str) -> Executed:
    elf = program.build(folder)
    image = Image.from_elf(elf)
    log = spike_log(elf, folder, "-l", "--log-commits", extensions=program.extensions, priv=program.priv,
                    lines=_LINES)  # fmt: skip
    run = read_run(log, program.xlen)
    history = history_of_log(log, image, format)
    log.unlink()
    pcs = list(history.pcs())  # E-Trace does not tell how often a loop without branches ran at the end
    if len(pcs) < 0.9 * len(run) or pcs != list(run.pcs[: len(pcs)]):
        raise AssertionError(f"{program.name}: the decoded history is not what Spike executed")
    return Executed(program, elf, image, run, history)


# -- from reset


def forward_of(chosen: list[BuiltProgram], given: argparse.Namespace, claims: Claims, folder: Path) -> Shares:
    """Measure all programs from reset on. Return the shares of all."""
    print(f"from reset, {given.format}; % known\n{'program':16}{'instr':>8}{_heading()}{'f':>7}{'locals':>8}"
          f"{'us/instr':>10}{'B/instr':>9}")  # fmt: skip
    total, near = Shares(), {distance: Shares() for distance in DISTANCES}
    for number, program in enumerate(chosen):
        done = executed(program, folder, given.format)
        forward, spent, size = made(done)
        left = max(0, given.claims - claims.registers) / (len(chosen) - number)
        shares = every_position(done, forward, claims, left, near)
        anywhere(done, forward, claims, given.random, shares)
        total.join(shares)
        print(f"{program.name:16}{len(done.history):8}{_row(shares)}{shares['f']!s:>7}{shares['locals']!s:>8}{spent:10.2f}"
              f"{size:9.0f}", flush=True)  # fmt: skip
    print(f"{'all':24}{_row(total)}{total['f']!s:>7}{total['locals']!s:>8}")
    for distance, shares in near.items():
        print(f"{f'first {distance}':24}{_row(shares)}")
    return total


def made(done: Executed) -> tuple[Forward, float, float]:
    """Return the execution, and its cost in us and bytes an instruction."""
    csrs = {FCSR: 0, _MHARTID: 0}
    beginning = KnownState(x=done.run.x, f=[0] * 32, csrs=csrs, privilege=3, memory=done.image.segments)
    before = _resident()
    begin = process_time()
    forward = Forward(done.history, done.image, done.machine, beginning)
    forward.run()
    count = len(done.history)
    return forward, (process_time() - begin) / count * 1e6, (_resident() - before) / count


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def every_position(
    done: Executed, forward: Forward, claims: Claims, wanted: float, near: dict[int, Shares]
) -> Shares:
    """Compare the registers at each position up to *wanted* claims, from there on at every 64th."""
    shown, truth = Shown(done.run), Truth(done.run, done.image, RAM)
    has_f, pcs = "F" in done.program.extensions, done.run.pcs
    before, position, distances, end = claims.registers, 0, list(DISTANCES), len(done.history)
    memory_at = iter(range(0, end + _MEMORY_EVERY, _MEMORY_EVERY))
    memory_next = next(memory_at)
    while position < end:
        if distances and position >= distances[0]:
            near[distances.pop(0)].join(shown.shares)
        hart, pc = forward.hart_at(position), pcs[position]
        truth.go(position)
        claims.integers(hart.x, truth, pc)
        shown.registers(hart.x)
        shown.reads(position, hart.x, hart.f)
        if has_f:
            shown.shares["f"].add(claims.floats(hart.f, truth, pc), 32)
        claims.others(hart, truth, pc)
        if position >= memory_next:
            claims.memory(hart.memory, truth, pc)
            memory_next = next(memory_at)
        if position + 1 < end:
            hart = forward.hart_at(position + 1)
            shown.loaded(position, hart.x, hart.f)
        position += 1 if claims.registers - before < wanted else _SAMPLED
    for distance in distances:
        near[distance].join(shown.shares)
    return shown.shares


def anywhere(done: Executed, forward: Forward, claims: Claims, count: int, shares: Shares) -> None:
    """Compare everything at places that are chosen at random, in an order in which execution starts anew each time."""
    places = sorted(random.Random(done.program.name).sample(range(len(done.history)), min(count, len(done.history))))
    variables = LocalVariables(done.elf)
    truth = Truth(done.run, done.image, RAM)
    for position, again in zip(places, _elsewhere(places), strict=True):
        forward.hart_at(again)
        hart, pc = forward.hart_at(position), done.run.pcs[position]
        truth.go(position)
        claims.integers(hart.x, truth, pc)
        claims.others(hart, truth, pc)
        claims.memory(hart.memory, truth, pc)
        variables.compare([*hart.x, *hart.f].__getitem__, partial(_byte, hart), truth, pc, claims, shares)


def _byte(hart: ExecutedHart, address: int) -> KnownValue:
    return hart.memory.bytes(address, 1)[0]


def _elsewhere(places: list[int]) -> Iterator[int]:
    chance = random.Random(1)
    yield from (chance.choice(places) for _ in places)


# -- from a stop back


def windows_of(chosen: list[BuiltProgram], given: argparse.Namespace, claims: Claims, folder: Path) -> Shares:
    """Measure windows of all programs. Return the shares of those of 10k."""
    print(f"from a stop back, {given.format}; % known\n{'program':16}{'window':>8}{_heading()}{'f':>7}{'memory':>8}"
          f"{'locals':>8}{'us/instr':>10}{'against':>9}")  # fmt: skip
    totals, near = {size: Shares() for size in STOPS}, {size: Shares() for size in STOPS}
    for program in chosen:
        done = executed(program, folder, given.format)
        compared = Compared(done, RAM, claims, LocalVariables(done.elf))
        for size, total in totals.items():
            shares, spent, against = Shares(), 0.0, 0
            for stop in stops(len(done.history), size):
                window, first, cost = window_at(done, RAM, stop, size)
                compared.window(window, first, stop, shares, near[size], max(1, size // 10_000))
                spent, against = max(spent, cost.spent), against + len(window.contradicted)
            total.join(shares)
            print(f"{program.name:16}{size:8}{_row(shares)}{shares['f']!s:>7}{shares['memory']!s:>8}"
                  f"{shares['locals']!s:>8}{spent:10.2f}{against:9}", flush=True)  # fmt: skip
    for size, total in totals.items():
        print(f"{'all':16}{size:8}{_row(total)}{total['f']!s:>7}{total['memory']!s:>8}{total['locals']!s:>8}")
    for size, shares in near.items():
        cells = ", ".join(f"to {name.split()[1]}: {share}" for name, share in reversed(shares.items()))
        print(f"loads known by the distance to the stop, window {size}: {cells}")
    return totals[10_000]


def _heading() -> str:
    return "".join(f"{name:>7}" for name in ("x", *CLASSES, "reads", "loads"))


def _row(shares: Shares) -> str:
    return "".join(f"{shares[name]!s:>7}" for name in ("x", *CLASSES, "reads", "loads"))


if __name__ == "__main__":
    main()
