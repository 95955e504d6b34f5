"""Which trace component is at an address: by the words that the document gives each component."""

from dataclasses import dataclass, field

import pytest

from rvtrace_gdb.controlregs.trace_control.discovery import ProbeAnswer, ProbedComponent, look, wake
from rvtrace_gdb.support.errors import RvtraceError
from tests.controlregs.interruptions import no_waiting

BASE = 0x4A00_0000


class Refused(RvtraceError):
    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__("bus error")


class Lost(RvtraceError):
    """Not an answer to this access alone."""


@dataclass
class Words:
    """Two words at BASE; other words can be read while Active is 1. *sleeping*: what tr??Impl reads while it is 0, None
    is a bus error. *stuck*: Active cannot be written.
    """

    control: int
    impl: int
    sleeping: int | None = 0
    stuck: bool = False
    more: dict[int, int] = field(default_factory=dict)
    writes: list[tuple[int, int]] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)

    def read32(self, address: int) -> int:
        self.reads.add(address)
        if address == BASE:
            return self.control
        if address == BASE + 4 and not self.control & 1:
            if self.sleeping is None:
                raise Refused(address)
            return self.sleeping
        return self.impl if address == BASE + 4 else self.more.get(address - BASE, 0)

    def write32(self, address: int, value: int) -> None:
        assert address == BASE, "nothing but tr??Control is written"
        self.writes.append((address, value))
        if not self.stuck:
            self.control = value

    def read_block(self, address: int, nbytes: int, progress: object = None) -> bytes:
        raise AssertionError("registers are read one by one")


TYPES = [(0x1, "encoder"), (0x8, "funnel"), (0x9, "ram_sink"), (0xA, "pib_sink"), (0xE, "atb_bridge")]
"""Trace Control Interface 1.0, tr??CompType."""


@pytest.mark.parametrize(("code", "kind"), TYPES)
def test_an_active_component_says_what_it_is(code: int, kind: str) -> None:
    target = Words(0x9, code << 8 | 0x01)
    seen = look(target, BASE)
    assert (seen.answer, seen.kind, seen.version) == (ProbeAnswer.COMPONENT, kind, (1, 0))
    assert target.writes == []
    if kind != "ram_sink":
        assert target.reads == {BASE, BASE + 4}


@pytest.mark.parametrize(
    ("control", "impl", "answer"),
    [
        (0xFFFF_FFFF, 0xFFFF_FFFF, ProbeAnswer.NOTHING),
        (0x1, 0x0, ProbeAnswer.NOTHING),
        (0x0, 0x0, ProbeAnswer.MAYBE_IN_RESET),
        (0x8, 0x0, ProbeAnswer.MAYBE_IN_RESET),  # Empty
        (0x2, 0x0, ProbeAnswer.NOTHING),  # Enable without Active
        (0x9, 0x0000_0701, ProbeAnswer.UNKNOWN_TYPE),  # 7 is reserved
        (0x9, 0x0000_0102, ProbeAnswer.RESERVED_VERSION),  # 2.0
        (0x9, 0x0000_010F, ProbeAnswer.RESERVED_VERSION),  # 15: an unknown encoding
        (0x1, 0x0001_0110, ProbeAnswer.PRE_RATIFIED),
        (0x9, 0x0000_01F1, ProbeAnswer.COMPONENT),  # 1.15: experimental
        (0x1234_5678, 0x9ABC_DE73, ProbeAnswer.NOTHING),
    ],
)
def test_what_answers(control: int, impl: int, answer: ProbeAnswer) -> None:
    seen = look(Words(control, impl, sleeping=impl), BASE)
    assert seen.answer is answer
    assert seen.newer == (impl == 0x1F1)


def test_a_ram_sink_says_where_it_can_store_and_does() -> None:
    """Bits 12 and 13 of trRamImpl; bit 4 of trRamControl is SMEM mode; the limit is the last word."""
    smem = Words(0x19, 0x2901, more={0x10: 0x8000_0000, 0x14: 1, 0x18: 0x8000_0FFC, 0x1C: 1})
    assert (look(smem, BASE).storage, look(smem, BASE).buffer) == (("SMEM",), (0x1_8000_0000, 0x1000))
    both = Words(0x9, 0x3901)
    assert (look(both, BASE).storage, look(both, BASE).buffer) == (("SRAM", "SMEM"), None)


def test_one_in_reset_is_woken_and_put_back() -> None:
    for sleeping in (0, None):
        target = Words(0x8, 0x3901, sleeping)
        before = look(target, BASE)
        assert before.answer is ProbeAnswer.MAYBE_IN_RESET
        seen = wake(target, before)
        assert (seen.answer, seen.kind, seen.buffer) == (ProbeAnswer.COMPONENT, "ram_sink", None)
        assert target.writes == [(BASE, 0x9), (BASE, 0x8)]


def test_memory_is_left_as_it_was() -> None:
    memory = Words(0, 0)
    assert wake(memory, look(memory, BASE)).answer is ProbeAnswer.NOTHING
    assert memory.control == 0


def test_active_that_refuses() -> None:
    target = Words(0, 0x101, stuck=True)
    with no_waiting():
        assert wake(target, look(target, BASE)).answer is ProbeAnswer.STAYS_IN_RESET


def test_a_bus_error_is_one_of_this_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: int, value: int = 0) -> int:
        raise Refused(address)

    target = Words(0, 0)
    monkeypatch.setattr(target, "write32", refuse)
    assert wake(target, look(target, BASE)).answer is ProbeAnswer.REFUSED
    monkeypatch.setattr(target, "read32", refuse)
    seen = look(target, BASE)
    assert (seen.answer, str(seen.cause)) == (ProbeAnswer.REFUSED, "bus error")


def test_a_lost_target_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(address: int, value: int = 0) -> int:
        raise Lost("the cable is out")

    target = Words(0, 0)
    for method in ("read32", "write32"):
        monkeypatch.setattr(target, method, lose)
        with pytest.raises(Lost):
            (
                look(target, BASE)
                if method == "read32"
                else wake(target, ProbedComponent(BASE, ProbeAnswer.MAYBE_IN_RESET))
            )
