"""What the compiled kernel gives the encoders: the same executions encoded with it and without, in one process.

Run: python benchmarks/decoding/encoders.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]   (default: 6 million)

The executions and settings are those of long_runs.py. CPU time; the messages are compared, too.
"""

import gc
import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import Items, Setting, cpu_seconds, encoded
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.kernel.loading import absence

ROUNDS = 2


def main() -> None:
    if absence():
        raise SystemExit(f"there is no kernel: {absence()}")
    sys.argv[1:] = sys.argv[1:] or ["6"]
    print(f"{'M instr/s':27}{'kernel':>12}{'Python':>12}{'ratio':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            for setting, items, _ in encoded(Path(folder), program):
                measure(f"{program}, {setting.name}", setting, items)


def measure(name: str, setting: Setting, items: Items) -> None:
    """Print one line."""
    instructions = sum(item.instructions for item in items if isinstance(item, Block))
    made: dict[str, list[bytes]] = {}

    def spent(kernel: str) -> float:
        gc.collect()
        with patch.dict(os.environ, RVTRACE_KERNEL=kernel):
            return cpu_seconds(lambda: made.update({kernel: setting.encode(items)}))

    kernel, python = (min(spent(it) for _ in range(ROUNDS)) for it in "10")
    assert made["1"] == made["0"], "the kernel sends something else"
    rates = "".join(f"{instructions / seconds / 1e6:12.1f}" for seconds in (kernel, python))
    print(f"{name:27}{rates}{python / kernel:9.1f}", flush=True)


if __name__ == "__main__":
    main()
