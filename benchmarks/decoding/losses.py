"""What losses cost: the same trace whole, and with a byte missing every 1 MB, every 100 kB, every 10 kB.

Run: python benchmarks/decoding/losses.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]   (default: 10 million)

The traces are those of long_runs.py, repeated to 4 MB. From a loss to the next synchronization the messages mean
nothing, and are looked at nevertheless: something among them may not be a message. CPU seconds with the kernel, in
brackets how many times that is without it; the last column is the most of them as a multiple of the whole trace's. The
histories with the kernel and without are compared.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.kernel import contents
from benchmarks.decoding.long_runs import Setting, cpu_seconds, encoded
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.kernel.loading import absence
from rvtrace_gdb.decode.program.image import Image

PIECE, SIZE = 1 << 16, 4_000_000
DISTANCES = (None, 1_000_000, 100_000, 10_000)
"""Bytes from one loss to the next; None: without any."""


def main() -> None:
    if absence():
        raise SystemExit(f"there is no kernel: {absence()}")
    sys.argv[1:] = sys.argv[1:] or ["10"]
    print(f"{'':27}" + "".join(f"{distance or 'whole':>16}" for distance in DISTANCES) + f"{'worst':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for setting, items, elf in encoded(Path(folder), "mixed"):
            once = b"".join(setting.encode(items))
            measure(setting, once * max(1, SIZE // len(once)), elf)


def measure(setting: Setting, whole: bytes, elf: Path) -> None:
    """Print one line."""
    spent, line = [], f"{setting.name:27}"
    for distance in DISTANCES:
        data = whole if distance is None else with_losses(whole, distance)
        seconds, histories = [], []
        for compiled in (True, False):
            found: list[History] = []
            seconds.append(cpu_seconds(partial(decode, setting, data, elf, compiled, found)))
            histories.append(found[0])
        same(*histories)
        spent.append(seconds[0])
        line += f"{f'{seconds[0]:.3f} ({seconds[1] / seconds[0]:.1f})':>16}"
    print(f"{line}{max(spent) / spent[0]:8.1f}", flush=True)


def with_losses(data: bytes, distance: int) -> bytes:
    """Without one byte in each *distance* bytes."""
    parts = [data[at : at + distance] for at in range(0, len(data), distance)]
    return b"".join(part[: len(part) // 2] + part[len(part) // 2 + 1 :] for part in parts)


def decode(setting: Setting, data: bytes, elf: Path, compiled: bool, found: list[History]) -> None:
    """Decode once, in pieces."""
    decoder = setting.decoder(Image.from_elf(elf), None, compiled=compiled)
    for at in range(0, len(data), PIECE):
        decoder.feed(data[at : at + PIECE])
    found.append(decoder.finish_one())


def same(first: History, second: History) -> None:
    """Raise AssertionError if the histories differ."""
    assert list(first.events) == list(second.events) and list(first.times) == list(second.times)
    assert first.accounting == second.accounting
    assert list(map(contents, first._entries)) == list(map(contents, second._entries))


if __name__ == "__main__":
    main()
