"""The memory of steps: what is found again, and when all is dropped."""

from typing import Any

from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.stepping.control_flow import CallEffect
from rvtrace_gdb.decode.stepping.hart import Fork, StepMemory


def test_a_step_that_pops_return_addresses_is_found_by_each_of_them() -> None:
    known: dict[Any, Any] = {}
    StepMemory.add(known, b"message", "step", CallEffect((0x100, None), ()))
    first = known[b"message"]
    assert isinstance(first, Fork) and isinstance(first[0x100], Fork)
    assert first[0x100][None] == "step"
    StepMemory.add(known, b"message", "other", CallEffect((0x200,), ()))
    assert known[b"message"] is first and first[0x200] == "other"


def test_a_step_that_pops_very_many_is_not_remembered() -> None:
    known: dict[Any, Any] = {}
    StepMemory.add(known, b"message", "step", CallEffect((0x100,) * 1000, ()))
    assert not known


def test_at_the_limit_all_is_dropped() -> None:
    dropped: list[int] = []
    memory = StepMemory(lambda: dropped.append(1), 3)
    assert [memory.count(1) for _ in range(7)] == [True, True, True, False, True, True, True]
    assert len(dropped) == 1


def test_without_remembered_steps_the_states_are_dropped_all_the_same() -> None:
    dropped: list[int] = []
    memory = StepMemory(lambda: dropped.append(1), 0)
    assert not memory.count(1) and not dropped
    assert not memory.count(1 << 20) and dropped


def test_a_long_step_counts_as_several() -> None:
    assert StepMemory.size(b"\x01", None, None) == 1
    assert StepMemory.size(b"\x01", Path([(2 * i,) for i in range(640)]), None) == 11
    assert StepMemory.size(b"\x01", None, CallEffect((), (0,) * 128)) == 3
