"""Profiles for KCachegrind: callgrind_annotate reads them, and what is in them is what ran.

The calls are those of a call stack that is made here, of the addresses that Spike ran and what binutils' objdump says
of the instructions there.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.exports.export import ExportedTrace, write
from rvtrace_gdb.session.session import Session
from tests.helpers.reference_streams import golden
from tests.session.board import board
from tests.session.exports import exported
from tests.session.exports.exported import PROGRAMS, binutils, elf, export, names_at, options, ran_in, retired, stream
from tests.session.exports.profiles.callgrind_file import callgrind_of

each_program = pytest.mark.parametrize("program", PROGRAMS)
Arc = tuple[str, int, str]
_BRANCHES = ("b", "c.b")
_JUMPS = frozenset({"j", "jr", "c.j", "c.jr"})
_LINKS = frozenset({"jal", "jalr", "c.jal", "c.jalr", "call"})
_ROW = re.compile(r"\s*([\d,]+) \([ \d.]+%\)\s+(?:([*<>]) +)?\?\?\?:(.*?)(?: \(([\d,]+)x\))?(?: \[[^]]*\])?$")


class Code(NamedTuple):
    size: int
    mnemonic: str
    operands: str


def code(program: str) -> dict[int, Code]:
    """The instructions of a program, as objdump prints them."""
    found = {}
    for line in binutils("objdump", "-d", str(elf(program))).splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+([0-9a-f]+)\s+(\S+)\s*(\S*)", line)
        if match is not None:
            found[int(match[1], 16)] = Code(len(match[2]) // 2, match[3], match[4])
    return found


def annotated(data: bytes, tmp_path: Path, *words: str) -> list[str]:
    """What callgrind_annotate prints of a profile; it complains about nothing."""
    (tmp_path / "callgrind.out").write_bytes(data)
    command = ["callgrind_annotate", "--threshold=100", "--auto=no", *words, str(tmp_path / "callgrind.out")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def rows(lines: list[str]) -> Iterator[tuple[int, str, str, int]]:
    """The count, the mark (*, < or >), the function and the number of calls of each row of functions."""
    for line in lines:
        match = _ROW.match(line)
        if match is not None:
            yield number(match[1]), match[2] or "", match[3], number(match[4] or "0")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def total(lines: list[str]) -> int:
    (line,) = (line for line in lines if line.endswith("PROGRAM TOTALS"))
    return number(line.split()[0])


@each_program
def test_callgrind_annotate_counts_what_ran(program: str, tmp_path: Path) -> None:
    lines = annotated(export("callgrind", tmp_path / "x", stream(program), options(program)), tmp_path)
    assert total(lines) == golden(program)[0]
    own = {function: count for count, _, function, _ in rows(lines) if count}
    assert own == ran_in(program, retired(program), set(own))


class Stack:
    """The calls that are under way, with what each function is called here: a frame is [site, return address,
    function]. The first one has no site; one of a jump has no return address."""

    def __init__(self, program: str, names: set[str]) -> None:
        self.program, self.names, self.code = program, names, code(program)
        self.starts = set(exported.symbols(program))
        self.frames: list[tuple[int, int, str]] = []
        self.known: dict[int, str] = {}
        self.calls: Counter[Arc] = Counter()
        self.inclusive: Counter[Arc] = Counter()

    def function(self, pc: int) -> str:
        if pc not in self.known:
            (self.known[pc],) = names_at(self.program, pc) & self.names
        return self.known[pc]

    def go(self, before: int, pc: int) -> None:
        """From one instruction to the next."""
        there, instruction = self.function(pc), self.code[before]
        after = before + instruction.size
        if instruction.mnemonic in _LINKS and pc != after:
            self.call(before, after, there)
        elif instruction.mnemonic == "ret" and any(back == pc for _, back, _ in self.frames):
            while self.frames.pop()[1] != pc:
                pass
        elif there != self.function(before):
            if pc in self.starts and instruction.mnemonic in _JUMPS:
                self.call(before, 0, there)
            else:
                site, back, _ = self.frames.pop()
                self.frames.append((site, back, there))

    def call(self, site: int, back: int, function: str) -> None:
        self.calls[self.frames[-1][2], site, function] += 1
        self.frames.append((site, back, function))

    def run(self, pcs: list[int]) -> None:
        self.frames = [(0, 0, self.function(pcs[0]))]
        alike: Counter[tuple[tuple[int, int, str], ...]] = Counter()
        alike[tuple(self.frames)] += 1
        for before, pc in pairwise(pcs):
            self.go(before, pc)
            alike[tuple(self.frames)] += 1
        for frames, count in alike.items():
            for caller, frame in pairwise(frames):
                self.inclusive[caller[2], frame[0], frame[2]] += count


def stack(program: str, names: set[str]) -> Stack:
    found = Stack(program, names)
    found.run(retired(program))
    return found


@each_program
def test_calls_are_those_of_what_ran(program: str, tmp_path: Path) -> None:
    data = export("callgrind", tmp_path / "x", stream(program), options(program))
    read = callgrind_of(data)
    ran = stack(program, {function for function, _, _, _ in read.own})
    inside = {arc: count for arc, count in read.inclusive.items() if arc[0] != "hart 0"}
    assert inside == ran.inclusive
    entered = {arc: count for arc, count in read.calls.items() if arc[0] != "hart 0"}
    assert {arc: entered[arc] for arc in ran.calls} == ran.calls
    assert all(entered[arc] == 1 for arc in entered.keys() - ran.calls.keys())
    assert sum(count for arc, count in read.inclusive.items() if arc[0] == "hart 0") == golden(program)[0]
    by_name: Counter[tuple[str, str]] = Counter()
    for (caller, _, callee), count in entered.items():
        by_name[caller, callee] += count
    assert listed_calls(annotated(data, tmp_path, "--tree=both", "--inclusive=yes")) == by_name


def listed_calls(lines: list[str]) -> dict[tuple[str, str], int]:
    """The calls that callgrind_annotate lists below each function, but those of harts."""
    found, caller = {}, ""
    for _, mark, function, calls in rows(lines):
        if mark == "*":
            caller = function
        elif mark == ">" and not caller.startswith("hart "):
            found[caller, function] = calls
    return found


@each_program
def test_inclusive_counts_add_up(program: str, tmp_path: Path) -> None:
    """A function's count with that of its calls is what callgrind_annotate adds up from the places that call it."""
    data = export("callgrind", tmp_path / "x", stream(program), options(program))
    read = callgrind_of(data)
    listed = {function: count for count, _, function, _ in rows(annotated(data, tmp_path, "--inclusive=yes"))}
    own, called, calling = Counter[str](), Counter[str](), Counter[str]()
    for (function, _, _, _), count in read.own.items():
        own[function] += count
    for (caller, _, callee), count in read.inclusive.items():
        called[callee] += count
        calling[caller] += count
    assert called == {function: own[function] + calling[function] for function in called}
    assert {function: listed[function] for function in called} == called


@each_program
def test_branches_and_jumps_are_those_of_what_ran(program: str, tmp_path: Path) -> None:
    read, listing = callgrind_of(export("callgrind", tmp_path / "x", stream(program), options(program))), code(program)
    pcs = retired(program)
    steps = Counter(pairwise(pcs))
    branches: dict[tuple[int, int], tuple[int, int]] = {}
    jumps: Counter[tuple[int, int]] = Counter()
    for (pc, to), times in steps.items():
        instruction = listing[pc]
        if instruction.mnemonic.startswith(_BRANCHES):
            target = int(instruction.operands.split(",")[-1], 16)
            followed, executed = branches.get((pc, target), (0, 0))
            branches[pc, target] = followed + times * (to == target), executed + times
        elif instruction.mnemonic in _JUMPS:
            jumps[pc, to] += times
    assert read.branches == branches and len(branches) > 20
    assert read.jumps == jumps


def test_towers_call_themselves(tmp_path: Path) -> None:
    """Seven discs take 2**7 - 1 calls, twice; all but two are made by the function itself. As Callgrind does, each
    call counts what it took, so that the calls at one level of recursion are in those above."""
    read = callgrind_of(export("callgrind", tmp_path / "x", stream("towers"), options("towers")))
    calls = {arc: count for arc, count in read.calls.items() if arc[2] == "towers_solve_h"}
    assert sum(count for arc, count in calls.items() if arc[0] == "towers_solve_h") == 2 * (2**7 - 2)
    assert sum(count for arc, count in calls.items() if arc[0] == "main") == 2


def test_harts_are_summed_up_unless_one_is_asked_for(tmp_path: Path) -> None:
    trace, words = exported.two_harts(tmp_path)
    data = export("callgrind", tmp_path / "x", trace, words)
    both = callgrind_of(data)
    roots = Counter[str]()
    for (caller, _, _), count in both.inclusive.items():
        roots[caller] += count if caller.startswith("hart ") else 0
    assert roots["hart 1"] == golden("median")[0] > roots["hart 2"] > 1000
    assert total(annotated(data, tmp_path)) == both.total == sum(both.own.values()) == roots["hart 1"] + roots["hart 2"]
    assert both.descriptions == [f"hart {hart}: {roots[f'hart {hart}']} instructions" for hart in (1, 2)]
    alone = callgrind_of(export("callgrind", tmp_path / "x", trace, words, "--hart", "2"))
    other = callgrind_of(export("callgrind", tmp_path / "x", trace, words, "--hart", "1"))
    assert alone.total == roots["hart 2"] and alone.own + other.own == both.own
    assert alone.inclusive + other.inclusive == both.inclusive


def test_losses_are_in_it(tmp_path: Path) -> None:
    trace = exported.damaged(tmp_path)
    data = export("callgrind", tmp_path / "x", trace, options("towers"))
    read = callgrind_of(data)
    pcs = [pc for pc in exported.opened(trace, "towers").decoded()[0].pcs() if pc != GAP]
    assert Counter(pcs) == Counter({at: count for (_, _, at, _), count in read.own.items()})
    assert total(annotated(data, tmp_path)) == read.total == len(pcs) < golden("towers")[0]
    said = [text for text in read.descriptions if ": lost: " in text]
    assert said and set(said) <= set(annotated(data, tmp_path))
    assert not any(": lost" in text for text in callgrind_of(
        export("callgrind", tmp_path / "x", stream("towers"), options("towers"))
    ).descriptions)  # fmt: skip


def test_a_part_has_what_ran_in_it(tmp_path: Path) -> None:
    data = export("callgrind", tmp_path / "x", stream("towers"), options("towers"), "--range", "5001,9000")
    pcs = Counter(retired("towers")[5000:9000])
    assert pcs == Counter({at: count for (_, _, at, _), count in callgrind_of(data).own.items()})
    assert total(annotated(data, tmp_path)) == sum(pcs.values())


def test_lines_are_those_of_addr2line(tmp_path: Path) -> None:
    demo = board(tmp_path)
    context = demo.describe()
    with closing(Session(demo.connect, {})) as session:
        session.start(context)
        demo.run(700)
        trace = ExportedTrace(session, session.selected(context))
        with (tmp_path / "x").open("wb") as file:
            write("callgrind", trace, file)
        pcs = Counter(pc for pc in trace.history.pcs() if pc != GAP)
    read = callgrind_of((tmp_path / "x").read_bytes())
    assert Counter({at: count for (_, _, at, _), count in read.own.items()}) == pcs
    said = binutils("addr2line", "-e", str(demo.elf), *(f"{at:x}" for _, _, at, _ in read.own)).splitlines()
    for (_, path, _, line), text in zip(read.own, said, strict=True):
        there, _, rest = text.rpartition(":")
        expected = rest.split()[0].replace("?", "0")
        assert line == int(expected)
        assert not line or path.rpartition("/")[2] == there.rpartition("/")[2]
    assert any(line for _, _, _, line in read.own)
