"""What the compiled kernel gives: the same traces decoded with it and without, in one process, turn by turn.

Run: python benchmarks/decoding/kernel.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]   (default: 20 million)

The traces are those of long_runs.py. Cold: by a decoder that knows nothing; warm: once more by the same. Each figure is
the best of three, CPU time; the ratios are what counts. The histories are compared, too.
"""

import gc
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import Setting, encoded, timed
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.kernel.loading import absence
from rvtrace_gdb.decode.program.image import Image

ROUNDS = 3


class Seconds(NamedTuple):
    cold: float
    warm: float


def main() -> None:
    if absence():
        raise SystemExit(f"there is no kernel: {absence()}")
    sys.argv[1:] = sys.argv[1:] or ["20"]
    print(f"{'':27}{'cold: Minstr/s':>24}{'':9}{'warm: Minstr/s':>24}")
    print(f"{'':27}" + 2 * f"{'kernel':>12}{'Python':>12}{'ratio':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            for setting, items, elf in encoded(Path(folder), program):
                measure(f"{program}, {setting.name}", b"".join(setting.encode(items)), setting, elf)


def measure(name: str, data: bytes, setting: Setting, elf: Path) -> None:
    """Print one line."""
    found: dict[bool, list[Seconds]] = {True: [], False: []}
    for _ in range(ROUNDS):
        for compiled, seconds in found.items():
            seconds.append(decoded(data, setting, elf, compiled))
    instructions = compared(data, setting, elf)
    line = f"{name:27}"
    for kind in ("cold", "warm"):
        kernel, python = (min(getattr(it, kind) for it in found[compiled]) for compiled in (True, False))
        line += f"{instructions / kernel / 1e6:12.0f}{instructions / python / 1e6:12.0f}{python / kernel:9.1f}"
    print(line, flush=True)


def decoded(data: bytes, setting: Setting, elf: Path, compiled: bool) -> Seconds:
    """Decode twice by one decoder."""
    decoder = setting.decoder(Image.from_elf(elf), None, compiled=compiled)
    gc.collect()
    return Seconds(timed(decoder.feed, data), timed(decoder.feed, data))


def compared(data: bytes, setting: Setting, elf: Path) -> int:
    """Return the number of instructions, if both histories are the same."""
    both = [history_of(data, setting, elf, compiled) for compiled in (True, False)]
    first, second = both
    assert list(first.events) == list(second.events) and list(first.times) == list(second.times)
    assert list(map(contents, first._entries)) == list(map(contents, second._entries))
    return first.instructions


def history_of(data: bytes, setting: Setting, elf: Path, compiled: bool) -> History:
    """Decode once."""
    decoder = setting.decoder(Image.from_elf(elf), None, compiled=compiled)
    decoder.feed(data)
    return decoder.finish_one()


def contents(entry: Any) -> tuple[int, int, int]:
    """Return what two equal entries have in common, in a short time."""
    return entry.count, entry.pc(0), entry.last


if __name__ == "__main__":
    main()
