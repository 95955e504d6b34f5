"""Branch stacks of samples as profiles: what llvm-profgen counts of the text that Debian's perf prints of the same file
is what `rvtrace pgo` counts, and the lines of `rvtrace report` are those of what ran in the samples.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

from rvtrace_gdb.console.main import main
from tests.reports.coverage import traced
from tests.session.exports.perf.test_exports import transfers
from tests.session.perf_data.recorded import code_segment, with_samples

_ROW = re.compile(r"([0-9a-f]+)(-|->)([0-9a-f]+):(\d+)")


def unsymbolized(file: Path) -> tuple[Counter[tuple[int, int]], list[tuple[int, int, int]]]:
    """The transfers, and the ranges, with how often each was counted."""
    branches, ranges = Counter[tuple[int, int]](), []
    for line in file.read_text().split():
        if (row := _ROW.fullmatch(line)) is not None:
            first, last, times = int(row[1], 16), int(row[3], 16), int(row[4])
            if row[2] == "->":
                branches[first, last] += times
            else:
                ranges.append((first, last, times))
    return branches, ranges


def counts_at(ranges: list[tuple[int, int, int]], addresses: set[int]) -> dict[int, int]:
    return {pc: sum(times for first, last, times in ranges if first <= pc <= last) for pc in addresses}


def test_llvm_profgen_counts_the_same_of_samples(tmp_path: Path) -> None:
    elf = traced.program(tmp_path / "program")
    ran = traced.retired(elf)
    taken = transfers(elf, ran)
    stacks, between, around = [], Counter[int](), Counter[int]()
    for last in range(60, len(taken) - 1, 45):
        numbers = taken[last - 31 : last + 1]
        end = numbers[-1] + 3
        stacks.append((ran[end], [(ran[number], ran[number + 1]) for number in reversed(numbers)]))
        between.update(ran[numbers[0] + 1 : numbers[-1] + 1])  # llvm-profgen counts what is between two transfers
        around.update(ran[numbers[0] : end])
    perf = tmp_path / "perf.data"
    perf.write_bytes(with_samples(elf, stacks))
    command = ["perf", "script", "-F", "ip,brstack", "--show-mmap-events", "-i", str(perf)]
    text = tmp_path / "perf.txt"
    text.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    command = ["llvm-profgen-19", f"--perfscript={text}", f"--binary={elf}", f"--output={theirs}"]
    subprocess.run([*command, "--skip-symbolization"], check=True, capture_output=True)
    capture = tmp_path / "it.rvt"
    assert main(["import", str(perf), "-o", str(capture), "--elf", str(elf), "--quiet"]) == 0
    assert main(["pgo", str(capture), "--to", "llvm-unsymbolized", "-o", str(ours), "--quiet"]) == 0
    branches, ranges = unsymbolized(theirs)
    own_branches, own_ranges = unsymbolized(ours)
    assert sum(branches.values()) == 32 * len(stacks) and branches == own_branches
    base = code_segment(elf).vaddr
    assert counts_at(ranges, {pc - base for pc in between}) == {pc - base: times for pc, times in between.items()}
    assert counts_at(own_ranges, {pc - base for pc in around}) == {pc - base: times for pc, times in around.items()}
