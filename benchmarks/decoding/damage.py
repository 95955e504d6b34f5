"""What damage does to a trace: how often wrong instructions are listed, how often nothing says that some are missing.

Run: .venv/bin/python benchmarks/decoding/damage.py [--count N] [--seed S] [--kind KIND ...] [--packets] [FORMAT ...]

Traces of programs whose instructions are known are damaged in one place each: one byte is lost, one byte comes twice,
one bit is flipped, or one whole packet is dropped; with --packets: a packet is lost, comes twice, is exchanged with its
neighbour, some are cut out, the rest is from another trace, a field has its extreme. Of each kind and format N are
decoded (default 450), and this is how many of them have

  same      exactly what ran, whatever is reported
  silent    a list that differs from what ran, and nothing that says so: no gap, no event
  late      instructions that did not run before the first gap
  after     instructions that did not run after a gap: what is listed from one gap to the next must have run in one
            piece, and the pieces in this order
  trap      a trap that nobody took
  rows      the share of what ran that is listed, and right

With --packets, instead of the last four, of the silent ones

  told      those in which the check (decode/check) finds the damage
  unsure    those of which the check says that it cannot tell
  legal     those whose bytes are what an encoder sends for the list: nobody can tell
  left      the others: what the check should tell and does not
"""

import argparse
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.damaged.damages import BYTES, PACKETS
from benchmarks.decoding.damaged.outcomes import Looker
from benchmarks.decoding.damaged.streams import FORMATS, Stream
from rvtrace_gdb.decode.history.history import History


def main() -> None:
    kinds: Mapping[str, object] = {**BYTES, **PACKETS}
    asked = argparse.ArgumentParser(description="What damage does to a trace.")
    asked.add_argument("formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(FORMATS)}; all without any")
    asked.add_argument("--count", type=int, default=450, help="damages of each kind (default 450)")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--kind", action="append", choices=kinds, help="of damage; all without any")
    asked.add_argument("--packets", action="store_true", help="damage whole packets, and check the damaged traces")
    asked.add_argument("--show", action="store_true", help="name each trace with wrong instructions after a gap")
    given = asked.parse_args()
    if unknown := [name for name in given.formats if name not in FORMATS]:
        asked.error(f"there is no format {unknown[0]}: there are {', '.join(FORMATS)}")
    print(f"{given.count} damages each, seed {given.seed}")
    print(_HEADINGS[given.packets])
    for name in given.formats or FORMATS:
        streams = list(FORMATS[name]())
        if not streams:
            print(f"{name:16}not measured: the vectors are missing beside the repository (or set RVTRACE_VECTORS)")
            continue
        lookers = [Looker(stream) for stream in streams]
        for kind in given.kind or (PACKETS if given.packets else BYTES):
            if given.packets:
                measure_check(name, kind, streams, lookers, given.count, given.seed, show=given.show)
            else:
                measure(name, kind, streams, lookers, given.count, given.seed, show=given.show)


_HEADINGS = (
    f"{'format':16}{'damage':9}{'same':>7}{'silent':>8}{'late':>7}{'after':>7}{'trap':>7}{'rows right':>12}",
    f"{'format':16}{'damage':16}{'same':>7}{'silent':>8}{'told':>7}{'unsure':>8}{'legal':>7}{'left':>6}",
)


def measure(
    name: str, kind: str, streams: list[Stream], lookers: list[Looker], count: int, seed: int, *, show: bool
) -> None:
    """Prints a line: each kind and format has damages of its own, whatever else is asked for."""
    rng = random.Random(f"{seed} {name} {kind}")
    found = []
    for number in range(count):
        stream, looker = streams[number % len(streams)], lookers[number % len(streams)]
        data = BYTES[kind](rng, stream)
        outcome = looker.outcome(stream.decode(data))
        found.append(outcome)
        if show and outcome.after:
            place = next((i for i, (a, b) in enumerate(zip(data, stream.data, strict=False)) if a != b), len(data))
            print(f"    {stream.name}, {kind} at byte {place:#x} of {len(data):#x}")
    sums = [sum(column) for column in zip(*found, strict=True)]
    cells = "".join(f"{number:{width}}" for number, width in zip(sums, (7, 8, 7, 7, 7), strict=False))
    print(f"{name:16}{kind:9}{cells}{sums[-1] / count:12.2%}", flush=True)


class Checked(NamedTuple):
    """What the check says of a damaged trace whose list is wrong without a word."""

    told: bool
    unsure: bool
    legal: bool
    left: bool


def measure_check(
    name: str, kind: str, streams: list[Stream], lookers: list[Looker], count: int, seed: int, *, show: bool
) -> None:
    """Prints a line about a damage of whole packets, with and without the check."""
    rng = random.Random(f"{seed} {name} {kind}")
    same = silent = 0
    found = []
    for number in range(count):
        stream, looker = streams[number % len(streams)], lookers[number % len(streams)]
        data = PACKETS[kind](rng, stream)
        history = stream.decode(data)
        outcome = looker.outcome(history)
        same += outcome.same
        if outcome.silent:
            silent += 1
            checked = check(stream, data, history)
            found.append(checked)
            if show and checked.left:
                place = next((i for i, (a, b) in enumerate(zip(data, stream.data, strict=False)) if a != b), len(data))
                print(f"    {stream.name}, {kind} at byte {place:#x} of {len(data):#x}, number {number}")
    sums = [sum(column) for column in zip(*found, strict=True)] or [0, 0, 0, 0]
    columns = zip([same, silent, *sums], (7, 8, 7, 8, 7, 6), strict=True)
    cells = "".join(f"{number:{width}}" for number, width in columns)
    print(f"{name:16}{kind:16}{cells}", flush=True)


def check(stream: Stream, data: bytes, history: History) -> Checked:
    """Check a damaged trace."""
    if stream.check is None or stream.legal is None:
        return Checked(False, False, False, True)
    verdicts = stream.check(data).values()
    told = any(verdict.damaged or verdict.lost for verdict in verdicts)
    unsure = not told and any(verdict.is_unsure for verdict in verdicts)
    legal = not told and not unsure and stream.legal(data, history)
    return Checked(told, unsure, legal, not (told or unsure or legal))


if __name__ == "__main__":
    main()
