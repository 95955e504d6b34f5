"""What `trace why` costs: the first answer, further ones at places of a seeded choice, and memory.

Run: python benchmarks/questions/why.py [MILLION_INSTRUCTIONS ...]

The program "mixed" of `long_runs.py` runs for each length (default: 0.1, 1 and 10 million instructions), is imported
with the registers of its beginning, and asked in a process of its own. Figures are CPU seconds: decoding, executing it
again for its values, the first answer behind that, the median and the worst of 30 further ones; and memory.
"""

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import encoded
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.questions.why.asking import WhyQuestion, answer
from rvtrace_gdb.session.session import Session

_RVTRACE = Path(sys.executable).parent / "rvtrace"
_ASKED = 30
_A0, _A5 = 0x100A, 0x100F


def main() -> None:
    lengths = [float(it) for it in sys.argv[1:]] or [0.1, 1.0, 10.0]
    print(f"{'million':>8}{'decode':>9}{'values':>9}{'first':>9}{'median':>9}{'worst':>9}{'rows':>6}{'MiB':>7}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RVTRACE_CACHE"] = str(folder / "cache")
        for length in lengths:
            capture = long_capture(folder, length)
            subprocess.run([sys.executable, __file__, "--capture", capture, str(length)], check=True)


def long_capture(folder: Path, millions: float) -> Path:
    """A trace of so many instructions, of a hart whose registers are 0 at the program's entry."""
    sys.argv[1:] = [str(millions), "HTM"]
    setting, items, elf = next(encoded(folder, "mixed"))
    raw, capture = folder / "raw.bin", folder / "x.rvt"
    raw.write_bytes(b"".join(setting.encode(items)))
    subprocess.run([_RVTRACE, "import", raw, "--ntrace", "--elf", elf, "-o", capture], check=True, capture_output=True)
    entry = SavedRegisters(0, SavedAt.START, Image.from_elf(elf).entry, {0x1000 + n: 0 for n in range(1, 32)}, True, 3)
    ram = MemoryRange(0x8000_0000, 1 << 27, MemoryKind.RAM)
    save(replace(load(capture), registers=(entry,), ranges=(ram,)), capture)
    return capture


def ask(capture: str, millions: str) -> None:
    """A line for one trace."""
    session, times = Session(), [process_time()]
    session.open(capture, None)
    selected = session.selected(Context())
    times.append(process_time())
    past = past_of(session, selected)
    assert past is not None
    past.prepare()
    times.append(process_time())
    length = len(selected.history)
    rows = [len(answer(session, selected, WhyQuestion(length, register=_A0)).rows)]
    times.append(process_time())
    spent, rng = list[float](), Random(7)
    for _ in range(_ASKED):
        begin = process_time()
        question = WhyQuestion(rng.randrange(length // 10, length), register=_A5, branches=True)
        rows.append(len(answer(session, selected, question).rows))
        spent.append(process_time() - begin)
    figures = [it - before for before, it in pairwise(times)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    columns = "".join(f"{it:9.2f}" for it in (*figures, median(spent), max(spent)))
    print(f"{float(millions):8.1f}{columns}{median(rows):6.0f}{memory:7.0f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--capture"]:
        ask(*sys.argv[2:])
    else:
        main()
