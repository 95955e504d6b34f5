"""How much memory a long history takes, and how much more while it is made and searched.

Run: python benchmarks/decoding/memory.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]     (Linux)

The programs of benchmarks/programs run on the simulated hart (default: 60 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/decoding/long_runs.py, at a tenth of that
length first. A process of its own decodes each trace as a session does, finds the calls, counts how often all ran, and
searches three times. MB beyond what the process has at first, with the bytes of the trace: after decoding, after the
calls, in the end, and at most at any time; and the most as a multiple of what stays.
"""

import gc
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import SETTINGS, encoded
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import call_tree
from rvtrace_gdb.decode.coverage import counts
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.search import ExecutionSearch, arrivals, executions

PIECE = 1 << 16
HEADS = ("trace", "decoded", "calls", "end", "most", "ratio")


def main() -> None:
    print(f"{'':27}{'Minstr':>8}" + "".join(f"{head:>10}" for head in HEADS))
    for program in ("mixed", "random"):
        for part in (0.1, 1):
            with tempfile.TemporaryDirectory() as folder:
                for setting, items, elf in encoded(Path(folder), program, part):
                    trace = Path(folder) / "trace.bin"
                    trace.write_bytes(b"".join(setting.encode(items)))
                    child = [sys.executable, __file__, "--child", setting.name, str(trace), str(elf)]
                    found = subprocess.run(child, capture_output=True, text=True, check=True).stdout
                    print(f"{program + ', ' + setting.name:27}{found.rstrip()}", flush=True)


def child(name: str, trace: Path, elf: Path) -> None:
    """One line."""
    data = trace.read_bytes()
    image = Image.from_elf(elf)
    setting = next(setting for setting in SETTINGS if setting.name == name)
    begin = status("VmRSS") - len(data) / (1 << 20)
    decoder = setting.decoder(image, None)
    for at in range(0, len(data), PIECE):
        decoder.feed(data[at : at + PIECE])
    history = decoder.finish_one()
    del decoder
    figures = [len(data) / (1 << 20), status("VmRSS") - begin]
    calls = CallHistory(history, ContextImages(image))
    call_tree(calls)
    figures.append(status("VmRSS") - begin)
    ran = sorted(counts(history, calls=calls).ran)
    for pc in ran[:: len(ran) // 2]:
        len(ExecutionSearch(calls, executions(pc)))
        len(ExecutionSearch(calls, arrivals(pc, pc + 64)))
    del ran
    gc.collect()
    figures += [status("VmRSS") - begin, status("VmHWM") - begin]
    shown = "".join(f"{megabytes:10.1f}" for megabytes in figures)
    print(f"{history.instructions / 1e6:8.1f}{shown}{figures[-1] / figures[-2]:10.2f}")


def status(name: str) -> float:
    """A line of this process's status, in MB."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split(f"{name}:")[1].split()[0]) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        main()
