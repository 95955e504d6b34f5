"""What is saved of a target where a trace begins and ends: registers and memory, of halted harts, without any error."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import Capture, SavedAt, SavedMemory, SavedRegisters
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.proxy.protocol.register_numbers import PC
from rvtrace_gdb.session.proxy.writes.write_log import KeptWrites
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.saved_registers import read_registers
from rvtrace_gdb.session.target.target_state import SavedTarget, SaveRequest, ranges_of
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from rvtrace_gdb.support.extents import Extent
from tests.session.board import DEMO, Board, BoardCsrs, BoardLink, board

RAM = 0x8000_0000
DECLARED = f"""
[[memory]]
address = {RAM}
size = 0x100000
kind = "ram"
"""
SP, MISA, MSTATUS, FCSR = 0x1002, 0x301, 0x300, 0x003


class Registers:
    """A `CsrAccess` to values; those that are not there are refused. *asked*: how many batches there were."""

    name, xlen = "test", 64

    def __init__(self, values: dict[CsrName, int]) -> None:
        self._values, self.asked = values, 0

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        self.asked += 1
        answers: list[CsrAnswer] = []
        for register, written in accesses:
            assert written is None, "nothing is changed"
            answers.append(self._values.get(register, "it is not there"))
            if isinstance(answers[-1], str):
                break
        return answers


def test_what_cannot_be_read_is_missing() -> None:
    integers: dict[CsrName, int] = {0x1000 + number: number for number in range(1, 32)}
    values = {"pc": 0x99, "priv": 3, MISA: 0x100, MSTATUS: 0x1800, **integers}
    access = Registers(values)
    found = read_registers(access, 2, SavedAt.START)
    numbers = {it: value for it, value in values.items() if isinstance(it, int)}
    assert found == SavedRegisters(2, SavedAt.START, 0x99, numbers, privilege=3)
    assert read_registers(Registers({"priv": 3}), 0, SavedAt.START) is None


def test_floating_point_registers_that_are_off_are_tried_once() -> None:
    """mstatus.FS is 0, or there are none, and misa does not say so."""
    access = Registers({"pc": 0, "priv": 3, MISA: 0, FCSR: 1})
    found = read_registers(access, 0, SavedAt.STOP)
    assert found is not None and found.registers == {MISA: 0, FCSR: 1}
    assert access.asked < 60


class Target:
    """A `Reader` of two harts and memory. *readable*: (address, bytes)."""

    piece, usual, is_fast = 1 << 14, 1 << 16, False

    def __init__(self, *halted: int, pc: int = 0, readable: tuple[int, bytes] = (RAM, bytes(1 << 20))) -> None:
        self._halted, self.pc, self._readable = set(halted), pc, readable
        self.read: list[tuple[int, int]] = []
        self.asked: list[int] = []  # the harts whose registers were read

    def unpolled(self) -> AbstractContextManager[None]:
        return nullcontext()

    def halted(self, harts: Collection[int]) -> set[int]:
        return self._halted & set(harts)

    def all_halted(self) -> bool:
        return self._halted == {0, 1}

    def registers(self, hart: int, at: SavedAt) -> SavedRegisters | None:
        self.asked.append(hart)
        return SavedRegisters(hart, at, self.pc, {SP: RAM + 0x8_0008})

    def memory(self, address: int, size: int, progress: Progress) -> bytes:
        assert address % 4 == size % 4 == 0
        self.read.append((address, size))
        start, data = self._readable
        return data[address - start :][:size] if address >= start else b""


RANGES = (MemoryRange(RAM, 1 << 20, MemoryKind.RAM), MemoryRange(RAM + 0x9_0000, 0x10, MemoryKind.VOLATILE))


OWN = (MemoryRange(RAM, 1 << 20, MemoryKind.RAM, (0,)),)
NOTHING = SaveRequest()


def state(target: Target, wishes: SaveRequest = NOTHING, ranges: Sequence[MemoryRange] = RANGES) -> SavedTarget:
    return SavedTarget(target, [0, 1], Image.from_elf(DEMO), ranges, wishes)


def stretches(memory: Sequence[SavedMemory]) -> list[tuple[int, int]]:
    return [(it.address, len(it.data)) for it in memory]


def test_a_hart_that_runs_is_left_alone() -> None:
    target = Target(1)
    it = state(target, SaveRequest(memory=True))
    it.begin()
    assert [saved.hart for saved in it.registers] == [1]
    assert it.memory == () and target.read == []
    assert it.unsaid() == ["-with-memory: memory is not saved, because not all harts are halted"]
    assert it.unsaid() == []


@pytest.mark.parametrize("at_start", [True, False])
def test_a_program_that_was_loaded_elsewhere(at_start: bool) -> None:
    """What is saved of it is as far away as the program itself: at its entry its data, at the stop that first."""

    def saved(bias: int) -> tuple[int, int]:
        image, ram = Image.from_elf(DEMO, bias), MemoryRange(RAM + bias, 1 << 20, MemoryKind.RAM)
        target = Target(0, 1, pc=image.entry, readable=(RAM + bias, bytes(1 << 20)))
        it = SavedTarget(target, [0], image, [ram], NOTHING)
        if at_start:
            it.begin()
        else:
            it.end([0])
            it.end_memory()
        return stretches(it.memory)[0]

    address, size = saved(0)
    assert saved(0x4000_0000) == (address + 0x4000_0000, size)


def test_ranges_that_the_user_names() -> None:
    target = Target(0, 1)
    it = state(target, SaveRequest(True, ranges_of(f"{RAM + 1},+5 {RAM + 0x100:#x}-{RAM + 0x200:#x}")), ())
    it.begin()
    assert stretches(it.memory) == [(RAM + 1, 5), (RAM + 0x100, 0x100)]
    it = state(target, SaveRequest(memory=True), ())
    it.begin()
    assert it.memory == () and "declares no RAM" in it.unsaid()[0]


def test_memory_that_cannot_be_read_ends_nothing() -> None:
    target = Target(0, 1, readable=(RAM, bytes(range(256)) * 3))
    it = state(target, SaveRequest(True, (Extent(RAM + 0x100, 0x400),)))
    it.begin()
    assert it.memory == (SavedMemory(SavedAt.START, RAM + 0x100, bytes(range(256)) * 2),)
    assert it.unsaid() == ["512 bytes of memory could not be read, and are not saved"]


def test_ctrl_c_keeps_what_was_read() -> None:
    def progress(label: str, done: int, total: int | None = None) -> None:
        if done >= 0x8000:
            raise Cancelled

    it = state(Target(0, 1), SaveRequest(memory=True))
    it.begin(progress)
    assert sum(size for _, size in stretches(it.memory)) >= 0x8000
    [note] = it.unsaid()
    assert note == "saving memory was interrupted: 36.4 KiB of 1024.0 KiB are saved"


def test_the_end_is_dropped_when_the_trace_goes_on() -> None:
    target = Target(0, 1, pc=4)
    it = state(target)
    it.end([0, 1])
    target.pc = 8
    it.end_memory()
    assert it.memory == (), "the harts are elsewhere: something ran"
    assert {saved.pc for saved in it.registers} == {4}
    it.forget_end()
    assert not it.registers
    again = state(target)
    again.end([0])
    again.end_memory()
    assert ([saved.hart for saved in again.registers], again.memory) == ([0], ()), "hart 1 has been running since"


def test_what_a_debugger_wrote_at_the_stop_is_taken_back() -> None:
    """The program has not left it there; what was there before and is not known is missing."""
    it = SavedTarget(Target(0, 1, pc=4), [0], Image.from_elf(DEMO), (MemoryRange(RAM, 0x10, MemoryKind.RAM),), NOTHING)
    it.kept = lambda hart: KeptWrites({SP: None, 0x100A: 5, PC: 8}, {RAM + 1: 7, RAM + 2: None, RAM + 0x99: 1})
    it.end([0])
    it.end_memory()
    assert it.registers == (SavedRegisters(0, SavedAt.STOP, 8, {0x100A: 5}),)
    assert it.memory == (
        SavedMemory(SavedAt.STOP, RAM, b"\0\7"), SavedMemory(SavedAt.STOP, RAM + 3, bytes(0xD)),
    )  # fmt: skip
    other = state(Target(0, 1, pc=4), ranges=(MemoryRange(RAM, 0x10, MemoryKind.RAM, (0,)),))
    other.kept = lambda hart: None
    other.end([0, 1])
    other.end_memory()
    assert (other.registers, other.memory) == ((), ()), "it may have written anything"


@pytest.mark.parametrize(("ranges", "asked"), [((), [0, 1]), (RANGES[1:], [0, 1]), (OWN, [0, 1, 0, 1])])
def test_registers_are_compared_only_where_memory_is_saved(ranges: Sequence[MemoryRange], asked: list[int]) -> None:
    target = Target(0, 1)
    it = state(target, ranges=ranges)
    it.end([0, 1])
    it.end_memory()
    assert target.asked == asked


def test_little_memory_is_saved_whole_at_the_end() -> None:
    """Not what several harts may write: nothing is known of it."""
    small = MemoryRange(RAM + 0x1000, 0x8000, MemoryKind.RAM, (1,))
    large = MemoryRange(RAM, 1 << 20, MemoryKind.RAM, (0,))
    for ranges, least, most in (((small,), 0x8000, 0x8000), ((large,), 0x4000, 1 << 16), (RANGES, 0, 0)):
        it = state(Target(0, 1, pc=4), ranges=ranges)
        it.end([0, 1])
        it.end_memory()
        assert least <= sum(size for _, size in stretches(it.memory)) <= most


@pytest.mark.parametrize("text", ["0x80000000", "main,+4", "4,+0", "8-4", "0xffffffffffffffff,+2", "0x10,+", "1-2-3"])
def test_wrong_ranges_are_one_line(text: str) -> None:
    with pytest.raises(BadOption, match=r"^save-memory: .+$"):
        ranges_of(text)


@pytest.fixture
def target(tmp_path: Path) -> Board:
    return replace(board(tmp_path), registers=True)


@pytest.fixture
def session(target: Board) -> Session:
    return Session(target.connect, environ={})


class Unpolled:
    """Counts the contexts in which OpenOCD does not look after harts by itself."""

    def __init__(self) -> None:
        self.inside = 0

    @contextmanager
    def context(self) -> Iterator[None]:
        self.inside += 1
        yield
        self.inside -= 1


def test_openocd_does_not_poll_while_registers_are_read(
    target: Board, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look after all harts before each command: 16 times 16 times in a group of 16."""
    unpolled, run = Unpolled(), BoardCsrs.run
    asked: list[int] = []  # in how many contexts a request was made

    def counted(access: BoardCsrs, requests: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        asked.append(unpolled.inside)
        return run(access, requests, progress)

    monkeypatch.setattr(BoardLink, "unpolled", unpolled.context)
    monkeypatch.setattr(BoardCsrs, "run", counted)
    context = replace(target.describe(extra=DECLARED), runs=1)
    session.start(context)
    at_start = len(asked)
    target.run(500)
    session.save(tmp_path / "x.rvt", replace(context, runs=2))
    assert 0 < at_start < len(asked) and all(asked) and not unpolled.inside


def of_capture(capture: Capture, at: SavedAt) -> tuple[SavedRegisters, dict[int, int]]:
    """The registers of hart 0, and the bytes of memory."""
    [registers] = [it for it in capture.registers if it.at is at]
    memory = [it for it in capture.memory if it.at is at]
    return registers, {it.address + n: byte for it in memory for n, byte in enumerate(it.data)}


def test_a_trace_from_the_entry(target: Board, session: Session, tmp_path: Path) -> None:
    """The registers and the memory are those of the simulated hart, at both ends."""
    hart, bus = target.machine.hart, target.machine.bus
    hart.x[5], hart.f[3] = 0x1234, 0x4000_0000_0000_0000
    context = replace(target.describe(extra=DECLARED), runs=1)
    session.start(context)
    begun, data = of_capture(session.capture(), SavedAt.START)
    assert begun.at_entry and begun.pc == Image.from_elf(DEMO).entry
    assert (begun.registers[0x1005], begun.registers[0x1023], begun.privilege) == (0x1234, 0x4000_0000_0000_0000, 3)
    assert all(bus.read(address, 1) == byte for address, byte in data.items())
    target.run(500)
    session.save(tmp_path / "x.rvt", replace(context, runs=2))
    capture = load(tmp_path / "x.rvt")
    ended, memory = of_capture(capture, SavedAt.STOP)
    assert [ended.registers[0x1000 + n] for n in range(1, 32)] == hart.x[1:]
    assert [ended.registers[0x1020 + n] for n in range(32)] == hart.f
    assert ended.pc == hart.csr.debug.dpc and not ended.at_entry
    assert len(memory) > 0x1000 and all(bus.read(address, 1) == byte for address, byte in memory.items())
    assert of_capture(capture, SavedAt.START) == (begun, data)
    assert [(it.kind, it.name) for it in capture.ranges] == [
        (MemoryKind.RAM, ""), (MemoryKind.VOLATILE, "the buffer of ram0"),
    ]  # fmt: skip


def test_a_program_that_was_changed_does_not_stand_at_its_entry(target: Board, session: Session) -> None:
    target.machine.bus.write(Image.from_elf(DEMO).entry + 4, 2, 0x9002)
    session.start(target.describe(extra=DECLARED))
    assert not session.capture().registers[0].at_entry


def test_another_setting_reads_other_memory(target: Board, session: Session, tmp_path: Path) -> None:
    context = replace(target.describe(extra=DECLARED), runs=1)
    session.start(context)
    target.run(100)
    for size in (0x100, 0x80):
        session.save(tmp_path / "x.rvt", replace(context, runs=2, save_memory=f"{RAM},+{size}"))
        assert len(of_capture(load(tmp_path / "x.rvt"), SavedAt.STOP)[1]) == size


def test_without_memory_tables_there_are_only_registers(target: Board, session: Session, tmp_path: Path) -> None:
    context = target.describe()
    session.start(context)
    target.run(100)
    session.save(tmp_path / "x.rvt", Context(context.elf, context.target_file))
    capture = load(tmp_path / "x.rvt")
    assert [it.at for it in capture.registers] == [SavedAt.START, SavedAt.STOP]
    assert capture.memory == () and capture.ranges == ()


def test_with_memory(target: Board, session: Session) -> None:
    context = replace(target.describe(extra=DECLARED), save_memory=f"{RAM:#x},+0x2000")
    lines = session.start(context, {"with_memory": True})
    assert lines[-1] == "saved:    registers and 8 KiB of memory at the start"
    [memory] = session.capture().memory
    assert memory == SavedMemory(SavedAt.START, RAM, target.machine.bus.read_bytes(RAM, 0x2000))
    with pytest.raises(BadOption, match=r"^save-memory: x is not a range"):
        session.start(replace(context, save_memory="x"))
