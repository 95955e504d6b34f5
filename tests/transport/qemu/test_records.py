"""From the recorder's words to blocks and traps, word by word; transport/qemu/plugin/plugin.c says what they are."""

import socket
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.sources.qemu.log_recorder import LogSource
from rvtrace_gdb.session.sources.qemu.records import HartRecords, Jumped, QemuIngressItem, RecordedCode
from rvtrace_gdb.transport.qemu import recorder
from rvtrace_gdb.transport.qemu.recorder import QemuError, QemuGone, Ring

BEGIN = 0x80000000 | 1 << 29
STRAIGHT, LOOP, HANDLER = 0, 1, 2
BLOCKS = """80000000 3 00000013 00052503 00a58593
8000000c 3 0000006f
80000100 3 30200073
"""
"""nop, lw, addi; j to itself; mret"""


@pytest.fixture
def code(ring: Ring) -> Iterator[RecordedCode]:
    with closing(RecordedCode(ring, Image(64))) as code:
        yield code


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    made = Ring.create(tmp_path, 64, 1, stalling=False, recording=True)
    (tmp_path / "code").write_text(BLOCKS)
    made.set_code_bytes(len(BLOCKS))
    return made


def trap(epc: int, cause: int, tval: int = 0, *, interrupt: bool = False) -> list[int]:
    words = [0x80000000 | interrupt]
    for value in (epc, cause, tval):
        words += [0x40000000 | value >> shift & 0x3FFFFFFF for shift in (0, 30, 60)]
    return words


def partial(count: int) -> int:
    return 0xC0000000 | count


def told(ring: Ring, words: list[int]) -> list[object]:
    """Blocks as (pc, instructions)."""
    with closing(RecordedCode(ring, Image(64))) as code:
        return [_short(item) for item in HartRecords(code).feed(array("I", words))]


def _short(item: QemuIngressItem) -> object:
    return (item.pc, item.instructions) if isinstance(item, Block) else item


class Waits:
    """For `recorder`: no time passes. *ring* ends at the third wait."""

    def __init__(self, ring: Ring) -> None:
        self.ring, self.count = ring, 0

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.count += 1
        if self.count == 3:
            self.ring.end()


@pytest.fixture
def waits(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits(ring)
    monkeypatch.setattr(recorder, "time", made)
    return made


def test_the_end_of_qemu_is_waited_for(ring: Ring, waits: Waits, tmp_path: Path) -> None:
    """Its sockets close before its last instructions are in the ring."""
    with closing(socket.socket(socket.AF_UNIX)) as control:
        control.bind(str(tmp_path / "control"))
        control.listen()
        recorder.wait_for_end(ring)
    assert ring.ended and waits.count == 3


def test_a_qemu_that_was_killed_is_not_waited_for(ring: Ring, waits: Waits, tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as control:
        control.bind(str(tmp_path / "control"))  # and nobody listens any more
    recorder.wait_for_end(ring)
    assert not ring.ended and waits.count == 0


def test_a_block_is_told_when_the_next_is_entered(ring: Ring) -> None:
    assert told(ring, [BEGIN, STRAIGHT]) == []
    assert told(ring, [BEGIN, STRAIGHT, LOOP]) == [(0x80000000, 3)]


def test_what_raises_an_exception_does_not_retire(ring: Ring) -> None:
    words = [BEGIN, STRAIGHT, partial(2), *trap(0x80000004, 5, 0x10), HANDLER, LOOP]
    expected = [(0x80000000, 1), IngressTrap(0x80000004, False, 5, 0x10, 0x80000100), (0x80000100, 1)]
    assert told(ring, words) == expected


def test_an_exception_at_the_first_instruction(ring: Ring) -> None:
    words = [BEGIN, STRAIGHT, partial(1), *trap(0x80000000, 2), HANDLER]
    assert told(ring, words) == [IngressTrap(0x80000000, False, 2, 0, 0x80000100)]


def test_code_that_cannot_be_fetched_leaves_the_block_before_whole(ring: Ring) -> None:
    words = [BEGIN, STRAIGHT, *trap(0x8000000C, 1, 0x8000000C), HANDLER]
    assert told(ring, words) == [(0x80000000, 3), IngressTrap(0x8000000C, False, 1, 0x8000000C, 0x80000100)]


def test_an_interrupt_after_a_jump_to_itself(ring: Ring) -> None:
    """The jump retired, though execution goes on with it."""
    words = [BEGIN, LOOP, LOOP, *trap(0x8000000C, 7, interrupt=True), HANDLER]
    assert told(ring, words) == [(0x8000000C, 1), (0x8000000C, 1), IngressTrap(0x8000000C, True, 7, 0, 0x80000100)]


def test_an_instruction_that_is_begun_anew_counts_once(ring: Ring) -> None:
    """A block whose last instruction begun is where execution goes on, and which is not a jump."""
    extra = "80000004 3 00052503\n"
    (ring.folder / "code").write_text(BLOCKS + extra)
    ring.set_code_bytes(len(BLOCKS + extra))
    assert told(ring, [BEGIN, STRAIGHT, partial(2), 3, LOOP]) == [(0x80000000, 1), (0x80000004, 1)]


def test_a_trap_in_a_trap(ring: Ring) -> None:
    words = [BEGIN, STRAIGHT, partial(1), *trap(0x80000000, 13), *trap(0x90000000, 1), HANDLER]
    first, second = IngressTrap(0x80000000, False, 13, 0, 0x90000000), IngressTrap(0x90000000, False, 1, 0, 0x80000100)
    assert told(ring, words) == [first, second]


def test_a_handler_that_traps_for_ever(code: RecordedCode) -> None:
    """Nothing runs: what is remembered of it has a bound."""
    records = HartRecords(code)
    records.feed(array("I", [BEGIN, STRAIGHT, partial(1), *(1000 * trap(0x80000000, 13))]))
    found = records.feed(array("I", [*trap(0x90000000, 1), HANDLER]))
    assert 10 < len(found) < 100 and found[-1] == IngressTrap(0x90000000, False, 1, 0, 0x80000100)


def test_where_no_code_leads(ring: Ring) -> None:
    assert told(ring, [BEGIN, STRAIGHT, HANDLER, STRAIGHT]) == [(0x80000000, 3), Jumped(0x80000100), (0x80000100, 1)]


def test_the_end_can_be_asked_again_and_again(code: RecordedCode) -> None:
    records = HartRecords(code)
    assert records.feed(array("I", [BEGIN, STRAIGHT])) == []
    for count in (0, 1, 2, 3):
        assert [_short(item) for item in records.open_end(count)] == ([(0x80000000, count)] if count else [])
    assert [_short(item) for item in records.feed(array("I", [LOOP]))] == [(0x80000000, 3)]


def test_the_end_before_a_handler_is_entered(code: RecordedCode) -> None:
    records = HartRecords(code)
    records.feed(array("I", [BEGIN, STRAIGHT, partial(2), *trap(0x80000004, 5)]))
    assert [_short(item) for item in records.open_end(2)] == [(0x80000000, 1)]
    rest = records.feed(array("I", [HANDLER]))
    assert [_short(item) for item in rest] == [(0x80000000, 1), IngressTrap(0x80000004, False, 5, 0, 0x80000100)]


def test_the_end_before_the_handler_of_an_interrupt_by_the_log(tmp_path: Path) -> None:
    """What ran before it is not forgotten: a debugger stops at the handler's first instruction."""
    ring = Ring.create(tmp_path, 64, 1, stalling=False, recording=True)
    log = LogSource(ring, 64)
    log.feed(b"IN: main\n0x80000162:  00002717          auipc   a4,2\n\n")
    log.feed(b"Trace 0: 0x7f9b08000100 [00000000/0000000080000162/02c24003/ff022e01] main\n")
    log.settle()
    records = HartRecords(code := RecordedCode(ring, Image(64)))
    assert records.feed(ring.words(0, 0, ring.written(0))) == []
    assert [_short(item) for item in records.open_end(ring.began(0))] == [(0x80000162, 1)]
    told_before = ring.written(0)
    log.feed(b"riscv_cpu_do_interrupt: hart:0, async:1, cause:07, epc:0x80000166, tval:0x0, desc=m_timer\n")
    log.settle()
    assert records.feed(ring.words(0, told_before, ring.written(0))) == []
    assert [_short(item) for item in records.open_end(ring.began(0))] == [(0x80000162, 1)]
    code.close()
    log.close()


LISTED = b"""IN: main
0x8000022c:  577d                    addi                    a4,zero,-1
0x8000022e:  c398                    sw                      a4,0(a5)
0x80000230:  0001                    nop

Trace 0: 0x7f1db40012c0 [0000000000000000/000000008000022c/00209003/ff020200] main
cpu_io_recompile: rewound execution of TB to %s
IN: main
0x8000022e:  c398                    sw                      a4,0(a5)

Trace 0: 0x7f1db4001500 [0000000000000000/000000008000022e/00209003/ff038201] main
"""


@pytest.mark.parametrize("named", [b"000000008000022c", b"000000008000022e"], ids=["7.2", "10"])
def test_what_the_log_says_is_executed_alone(tmp_path: Path, named: bytes) -> None:
    """QEMU 7.2 names the block, later ones the instruction."""
    ring = Ring.create(tmp_path, 64, 1, stalling=False, recording=True)
    log = LogSource(ring, 64)
    log.feed(LISTED % named)
    log.settle()
    assert told(ring, list(ring.words(0, 0, ring.written(0)))) == [(0x8000022C, 1)]
    log.close()


def test_words_in_pieces_of_any_size(ring: Ring, code: RecordedCode) -> None:
    words = [BEGIN, STRAIGHT, partial(2), *trap(1 << 63 | 4, 5, 1 << 62), HANDLER, STRAIGHT, LOOP, LOOP]
    whole = told(ring, words)
    for size in range(1, len(words)):
        records = HartRecords(code)
        items = [it for at in range(0, len(words), size) for it in records.feed(array("I", words[at : at + size]))]
        assert [_short(item) for item in items] == whole


def test_what_is_no_instruction(ring: Ring) -> None:
    """A halfword of ones, as QEMU lists it: it is only ever the one that traps."""
    extra = "80000004 3 00a58593 ffff\n"
    (ring.folder / "code").write_text(BLOCKS + extra)
    ring.set_code_bytes(len(BLOCKS + extra))
    found = told(ring, [BEGIN, 3, *trap(0x80000008, 2, 0xFFFF), HANDLER])
    assert found == [(0x80000004, 1), IngressTrap(0x80000008, False, 2, 0xFFFF, 0x80000100)]


def test_a_block_nobody_knows(ring: Ring) -> None:
    with pytest.raises(QemuError, match="the recorder has not described block 9"):
        told(ring, [BEGIN, 9])


def test_a_ring_that_goes_round(ring: Ring) -> None:
    for first in range(0, 200, 20):
        ring.write(0, array("I", range(first, first + 20)))
    assert (ring.written(0), ring.oldest(0)) == (200, 136)
    assert list(ring.words(0, 136, 200)) == list(range(136, 200))
    again = Ring.open(ring.folder)
    assert (again.size, again.harts, again.written(0), again.recording) == (64, 1, 200, True)


def test_a_folder_without_a_ring(tmp_path: Path) -> None:
    (tmp_path / "ring").write_bytes(bytes(8192))
    for folder in (tmp_path / "nothing", tmp_path):
        with pytest.raises(QemuGone):
            Ring.open(folder)


def test_what_cannot_be_opened_is_not_taken_for_a_qemu_that_has_gone(tmp_path: Path) -> None:
    (tmp_path / "ring").mkdir()
    with pytest.raises(QemuError) as caught:
        Ring.open(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'ring'}: cannot be opened: Is a directory"
    deep = tmp_path / ("n" * 120)
    with pytest.raises(QemuError) as caught:
        recorder.synchronize(deep)
    assert str(caught.value) == f"{deep / 'control'}: cannot be reached: AF_UNIX path too long"
