"""Every export of several traces, each read by something that is not its writer: what it adds up to is what retired.

The traces: traps, interrupts and tasks of a 32-bit hart, with times; the same with bytes lost; two harts; C++, in
E-Trace. What retired is known of the simulated hart, or of Spike. Of a trace with a loss it is what the trace has on
both sides of the loss, each of which is compared with what retired.
"""

import re
from bisect import bisect_right
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.exports.export import EXPORTS
from rvtrace_gdb.session.session import Session
from tests.decode.ntrace.messages import split
from tests.helpers.cross_compiler import EXAMPLES, compile_program
from tests.helpers.reference_streams import from_source, in_turn
from tests.reports.coverage import traced
from tests.session.exports import exported
from tests.session.exports.perf.test_exports import following
from tests.session.exports.read_back import ONE_HART, OPTIONS, READERS, ReadBack, lines_of
from tests.transport.simulated.encoder.traces import HTM, LOW, TIME, compiled, machine_with
from tests.transport.simulated.encoder.traces import trace as traced_on

SYNC = 1 << 16 | 2 << 20
"""A synchronization every 64 messages."""
Pieces = list[list[int]]
"""The addresses that ran between gaps."""


class Case(NamedTuple):
    """A trace, the options with which it is read, its program, and what ran on each hart. *ever*: what ran, in gaps
    too; *has_lines*: whether the program has line numbers."""

    trace: Path
    words: list[str]
    elf: Path
    ran: dict[int, Pieces]
    ever: set[int]
    has_lines: bool = True

    def counts(self, hart: int | None = None) -> Counter[int]:
        harts = self.ran if hart is None else [hart]
        return Counter(pc for number in harts for piece in self.ran[number] for pc in piece)

    def transfers(self) -> Counter[tuple[int, int]]:
        """Steps that do not lead to the next instruction."""
        behind = program_of(self.elf).behind
        steps = (step for pieces in self.ran.values() for piece in pieces for step in pairwise(piece))
        return Counter((pc, to) for pc, to in steps if behind[pc] != to)

    def is_next(self, pc: int, to: int) -> bool:
        return program_of(self.elf).behind[pc] == to

    def totals(self) -> dict[int, int]:
        return {hart: sum(map(len, pieces)) for hart, pieces in self.ran.items()}

    def gaps(self) -> int:
        return sum(len(pieces) - 1 for pieces in self.ran.values())


def cut(case: Case, folder: Path) -> Case:
    """The same without one of its messages, in the middle."""
    messages = split(case.trace.read_bytes())
    middle = len(messages) // 2
    file = folder / "cut.bin"
    file.write_bytes(b"".join(messages[:middle]) + b"\x00\x55\xaa\x03" + b"".join(messages[middle + 1 :]))
    pieces: Pieces = [[]]
    for pc in opened(file, case.words).decoded()[0].pcs():
        if pc == GAP:
            pieces.append([])
        else:
            pieces[-1].append(pc)
    [whole] = case.ran[0]
    assert len(pieces) > 1 and whole[: len(pieces[0])] == pieces[0] and whole[-len(pieces[-1]) :] == pieces[-1]
    return case._replace(trace=file, ran={0: pieces})


def interrupted(folder: Path) -> Case:
    elf = compiled(folder, "rv32imac", LOW, "user.c", "-g")
    ran = traced_on(machine_with(elf), elf, HTM | SYNC, timestamps=TIME, instructions=2000)
    file = folder / "interrupted.bin"
    file.write_bytes(ran.data)
    return Case(file, ["--ntrace", "--timestamps", "--elf", str(elf)], elf, {0: [ran.retired]}, set(ran.retired))


def two_harts(folder: Path) -> Case:
    """The beginning of a program, on the second hart a shorter one."""
    messages, file = split(exported.stream("median").read_bytes()), folder / "two.bin"
    harts = (from_source(b"".join(messages[:many]), 2, hart, (hart * 55, 10)) for hart, many in ((1, 40), (2, 25)))
    file.write_bytes(in_turn(*harts))
    words = [*exported.options("median"), "--src-bits", "2", "--timestamps"]
    session = opened(file, words)
    lengths = {hart: history.instructions for hart, history in session.harts().harts.histories.items()}
    whole = exported.retired("median")
    ran = {hart: [whole[:length]] for hart, length in lengths.items()}
    assert lengths[1] > lengths[2] > 1000
    return Case(file, words, exported.elf("median"), ran, set(whole[: lengths[1]]), has_lines=False)


def opened(file: Path, words: list[str]) -> Session:
    """A session with a trace."""
    assert main(["import", str(file), *words, "-o", str(file.with_suffix(".rvt")), "--quiet"]) == 0
    session = Session()
    session.open(file.with_suffix(".rvt"), None)
    return session


def in_cpp(folder: Path) -> Case:
    source = EXAMPLES / "cpp_sensors.cpp"
    elf = compile_program(folder, source, options=("-fno-exceptions", "-fno-rtti"))
    pcs = traced.retired(elf)
    return Case(traced.trace(elf, pcs, folder / "cpp.rvt", "--etrace"), [], elf, {0: [pcs]}, set(pcs))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    def folder(name: str) -> Path:
        return tmp_path_factory.mktemp(name)

    whole = interrupted(folder("interrupted"))
    return {
        "interrupted": whole, "cut": cut(whole, folder("cut")), "two harts": two_harts(folder("two")),
        "C++": in_cpp(folder("cpp")),
    }  # fmt: skip


class Program(NamedTuple):
    """*starts*: the addresses of functions and labels by name, as binutils' nm lists them; *behind*: of each
    instruction the address behind it, as objdump does."""

    starts: dict[str, int]
    behind: dict[int, int]


@cache
def program_of(elf: Path) -> Program:
    found = {}
    for line in exported.binutils("nm", "-C", str(elf)).splitlines():
        address, kind, name = line.split(" ", 2)
        if kind in "tTwW":
            found[re.sub(r"^\w+ (?=.*<)", "", name)] = int(address, 16)  # instances of templates come with their type
    found |= {f"{name}()": address for name, address in found.items() if name == "main"}  # which C++ does not mangle
    return Program(found, following(elf))


def ran_in(case: Case, names: set[str]) -> Counter[str]:
    """Instructions by function. A label that is in no export belongs to the function before it."""
    starts = {address: name for name, address in program_of(case.elf).starts.items() if name in names}
    addresses = sorted(starts)
    found = Counter[str]()
    for pc, count in case.counts().items():
        found[starts[addresses[bisect_right(addresses, pc) - 1]]] += count
    return found


def check(case: Case, read: ReadBack, hart: int | None) -> None:
    """*hart*: the one that was exported, if not all."""
    totals = case.totals() if hart is None else {hart: case.totals()[hart]}
    if read.totals is not None:
        assert read.totals == totals or read.totals == {-1: sum(totals.values())}
    if read.pcs is not None:
        assert read.pcs == case.counts(hart)
    if read.functions is not None:
        assert read.functions == ran_in(case, set(read.functions))
    if read.gaps is not None:
        assert read.gaps == case.gaps()
    if read.transfers is not None:
        # Execution may also jump to the next instruction.
        assert {it: n for it, n in read.transfers.items() if not case.is_next(*it)} == case.transfers()
    if read.called is not None and read.before is not None:
        check_calls(case, read.called, read.before)
    if read.entries is not None:
        check_entries(case, read.entries)
    if read.lines is not None:
        check_lines(case, read.lines)


def check_calls(case: Case, called: Counter[str], before: Counter[str]) -> None:
    """Each time the first instruction of a function ran it was called, or had been running already."""
    counts, starts = case.counts(), program_of(case.elf).starts
    for name in called | before:
        assert called[name] <= counts[starts[name]] <= called[name] + before[name], name
    assert sum(called.values()) > 10


def check_entries(case: Case, entries: dict[str, int]) -> None:
    """A function that ran in a gap alone is left out."""
    counts, starts = case.counts(), program_of(case.elf).starts
    for name, count in entries.items():
        assert count == counts[starts[name]], name
    assert len(entries) > 5 or not case.has_lines


def check_lines(case: Case, lines: dict[tuple[str, int], int]) -> None:
    """Lines ran of which an instruction ran; of those that did not, none ran in a gap either."""
    places = lines_of(case.elf)
    ran, ever = ({place for pc in pcs for place in places.get(pc, ())} for pcs in (case.counts(), case.ever))
    for place, count in lines.items():
        assert (count > 0) == (place in ran) and (count or place not in ever), place
    assert ran <= set(lines) and (len(lines) > 25 or not case.has_lines)


@pytest.mark.parametrize("form", [row.name for row in EXPORTS])
def test_what_is_exported_is_what_retired(form: str, cases: dict[str, Case], tmp_path: Path) -> None:
    for name, case in cases.items():
        if form in ONE_HART and name == "interrupted":
            continue  # values take long, and "cut" is the same trace
        hart = max(case.ran) if form in ONE_HART else None
        of_hart = () if hart is None else ("--hart", str(hart))
        file = tmp_path / f"it.{form}"
        exported.export(form, file, case.trace, case.words, *OPTIONS.get(form, ()), *of_hart)
        try:
            check(case, READERS[form](file), hart)
        except AssertionError as error:
            error.add_note(f"of {name}")
            raise
