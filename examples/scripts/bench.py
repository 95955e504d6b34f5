"""A test bench in Python: the verbs of a script as methods. `python bench.py demo.elf` runs it on a simulated target.

On a board, use `Bench(elf, target="board.toml")` and `bench.connect(":3333")`, without the rig.
"""

import sys
import tempfile
from pathlib import Path

import rvtrace_gdb


def check(bench: rvtrace_gdb.Bench, folder: Path) -> None:
    """Check the demo program. Raises RvtraceError with one line if something is not as expected."""
    bench.load()
    bench.start("-timestamps")
    bench.run_until("finish", within=10)
    bench.stop()

    if losses := bench.losses():
        raise rvtrace_gdb.CheckFailed(losses[0])
    if not bench.ran("on_trap"):
        raise rvtrace_gdb.CheckFailed("no interrupt was taken")
    bench.check_order("fib", "classify")

    latency = bench.latency("on_trap")
    print(f"{len(latency.each)} interrupts, at most {latency.instructions} instructions to the handler")
    for event in bench.events("interrupt"):
        print(f"  @{event.position} at time {event.time}: {event.function}")
    print(bench.save(folder / "demo.rvt").messages[0].partition(" to ")[0])


def main() -> int:
    elf = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with rvtrace_gdb.Rig(elf, folder / "rig") as rig, rvtrace_gdb.Bench(elf, target=rig.target_file) as bench:
            bench.connect(f":{rig.gdb_port}")
            try:
                check(bench, folder)
            except rvtrace_gdb.RvtraceError as error:
                print(error, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
