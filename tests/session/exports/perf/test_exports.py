"""`perf script` text: what llvm-profgen counts of it is what ran, and stackcollapse-perf.pl's rules give the stacks."""

import re
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.reports.coverage import traced
from tests.session.exports import exported
from tests.session.exports.exported import PROGRAMS, export, options, retired, stream

Counts = Counter[int]
BASE = 0x8000_0000
"""The first executable segment of these programs: llvm-profgen's addresses count from there."""


def following(elf: Path) -> dict[int, int]:
    """The address behind each instruction, as binutils' objdump lists them."""
    listing = exported.binutils("objdump", "-d", str(elf))
    addresses = [int(found, 16) for found in re.findall(r"^ *([0-9a-f]+):\t", listing, re.MULTILINE)]
    return dict(pairwise(addresses))


def transfers(elf: Path, pcs: list[int]) -> list[int]:
    """The indices of instructions from which execution did not go on with the next one."""
    behind = following(elf)
    return [number for number, (pc, to) in enumerate(pairwise(pcs)) if behind.get(pc) != to]


def transfers_of(elf: Path, pcs: list[int]) -> Counter[tuple[int, int]]:
    """How often each transfer was made."""
    return Counter((pcs[number], pcs[number + 1]) for number in transfers(elf, pcs))


def profgen(text: Path, elf: Path, instructions: list[int]) -> tuple[Counts, Counter[tuple[int, int]]]:
    """How often llvm-profgen counts each of some instructions, and each transfer."""
    out = text.with_suffix(".raw")
    command = ["llvm-profgen-19", f"--perfscript={text}", f"--binary={elf}", f"--output={out}"]
    subprocess.run([*command, "--skip-symbolization"], check=True, capture_output=True)
    counts, branches = Counts(), Counter[tuple[int, int]]()
    for line in out.read_text().splitlines():
        place, _, count = line.partition(":")
        if "->" in place:
            source, target = (BASE + int(address, 16) for address in place.split("->"))
            branches[source, target] += int(count)
        elif "-" in place:
            first, last = (BASE + int(address, 16) for address in place.split("-"))
            counts.update(dict.fromkeys((pc for pc in instructions if first <= pc <= last), int(count)))
    return counts, branches


def test_llvm_profgen_counts_what_ran(tmp_path: Path) -> None:
    """All of it, but for what ran before the first transfer and behind the last one: no branch stack has that.

    What ran is known of a hart that was stepped.
    """
    elf = traced.program(tmp_path)
    pcs = traced.retired(elf)
    capture, text = traced.trace(elf, pcs, tmp_path / "it.rvt"), tmp_path / "it.txt"
    export("perf-script", text, capture, [])
    counts, branches = profgen(text, elf, sorted(set(pcs)))
    taken = transfers(elf, pcs)
    assert branches == transfers_of(elf, pcs)
    assert counts == Counter(pcs[taken[0] + 1 : taken[-1] + 1]) and len(taken) > 100


def perf_samples(file: Path) -> tuple[Counter[tuple[int, int]], int, int]:
    """What Debian's perf prints of a perf.data: the transfers, how much it says is lost, the sum of all periods."""
    command = ["perf", "script", "--show-lost-events", "-F", "period,ip,brstack", "-i", str(file)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    transfers, lost, periods = Counter[tuple[int, int]](), 0, 0
    for line in lines:
        if found := re.search(r"PERF_RECORD_LOST lost (\d+)", line):
            lost += int(found[1])
        elif found := re.match(r" *(\d+) +[0-9a-f]+ +0x", line):
            periods += int(found[1])
            for entry in line.split()[2:]:
                source, target, predicted, *_ = entry.split("/")
                assert predicted == "P"
                transfers[int(source, 16), int(target, 16)] += 1
    return transfers, lost, periods


def test_perf_counts_what_ran(tmp_path: Path) -> None:
    """Every transfer, and an instruction in one period alone; perf report finds the functions that they are in."""
    elf = traced.program(tmp_path)
    pcs = traced.retired(elf)
    capture, data = traced.trace(elf, pcs, tmp_path / "it.rvt"), tmp_path / "perf.data"
    export("perf-data", data, capture, [])
    transfers, lost, periods = perf_samples(data)
    taken = transfers_of(elf, pcs)
    assert transfers == taken and lost == 0
    assert periods == len(pcs) - 1
    command = ["perf", "report", "--stdio", "-b", "-n", "-s", "symbol_from", "-i", str(data)]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = Counter[str]()
    for times, name in re.findall(r"^ +[\d.]+% +(\d+)  \[\.\] (\S+)", report, re.MULTILINE):
        found[name] += int(times)
    said = exported.binutils("addr2line", "-f", "-e", str(elf), *(f"{source:x}" for source, _ in taken)).splitlines()
    names = Counter[str]()
    for name, times in zip(said[::2], taken.values(), strict=True):
        names[name] += times
    assert found.total() == names.total()
    assert all(name.startswith("$x") for name in found - names), "perf 6.1 takes mapping symbols for functions"
    assert (found - names).total() < names.total() / 20


def test_a_gap_ends_a_sample_and_is_said(tmp_path: Path) -> None:
    pcs = retired("towers")
    data = export("perf-script", tmp_path / "it", exported.damaged(tmp_path), options("towers")).decode()
    mapping, loss, sample, empty = data.splitlines()
    expected_mapping = r"PERF_RECORD_MMAP2 1/1: \[0x80000000\(0x\w+\) @ 0x1000 00:00 0 0\]: r-xp /.*/towers.elf"
    assert re.fullmatch(expected_mapping, mapping)
    assert loss.startswith("# hart 0: lost: ") and loss.endswith(", 1 time") and not empty
    address, *stack = sample.split()
    entries = [entry.split("/") for entry in stack]
    assert {tuple(entry[2:]) for entry in entries} == {("P", "-", "-", "0")}
    ran = pcs[: pcs.index(int(address, 16)) + 1]
    assert len(entries) > 50 and len(ran) > 0
    taken = [number for number in transfers(exported.elf("towers"), pcs) if number < len(pcs)][: len(entries)]
    expected = [(pcs[number], pcs[number + 1]) for number in reversed(taken)]
    assert [(int(source, 16), int(target, 16)) for source, target, *_ in entries] == expected


def stackcollapse(text: str) -> dict[str, int]:
    """By the rules of stackcollapse-perf.pl: a header with "period event:", frames, leaf first, an empty line."""
    found: Counter[str] = Counter()
    frames: list[str] = []
    comm, period = "", 0
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not line:
            found[";".join([comm, *frames])] += period
            frames = []
        elif header := re.fullmatch(r"(\S.+?)\s+(\d+)/*(\d+)*\s+.*:\s*(\d+)*\s+(\S+):\s*", line):
            comm, period = header[1].replace(" ", "_"), int(header[4])
            assert header[5] == "instructions"
        else:
            frame = re.fullmatch(r"\s*(\w+)\s*(.+) \((.*)\)", line)
            assert frame is not None, line
            name = re.sub(r"\+0x[\da-f]+$", "", frame[2])
            frames.insert(0, name.replace(";", ":"))
    assert not frames
    return dict(found)


@pytest.mark.parametrize("program", PROGRAMS[:2])
def test_the_stacks_are_those_of_the_folded_ones(program: str, tmp_path: Path) -> None:
    """Whose totals are those of what ran (test_profiles.py)."""
    text = export("perf-stacks", tmp_path / "it", stream(program), options(program)).decode()
    found = stackcollapse(text)
    lines = export("folded", tmp_path / "folded", stream(program), options(program)).decode().splitlines()
    expected = {stack.replace("hart 0", "hart0"): int(count) for stack, _, count in (x.rpartition(" ") for x in lines)}
    assert {stack.replace("[unknown]", exported.NO_SYMBOL): count for stack, count in found.items()} == expected
    assert sum(found.values()) == len(retired(program))


def test_all_harts_and_losses_are_there(tmp_path: Path) -> None:
    trace, words = exported.two_harts(tmp_path)
    text = export("perf-stacks", tmp_path / "it", trace, words).decode()
    found = stackcollapse(text)
    ran = {name: sum(count for stack, count in found.items() if stack.startswith(name)) for name in ("hart1", "hart2")}
    assert ran["hart1"] == len(retired("median")) > ran["hart2"] > 1000
    text = export("perf-stacks", tmp_path / "it", exported.damaged(tmp_path), options("towers")).decode()
    assert re.match(r"# hart 0: lost: .*, 1 time\n", text)
