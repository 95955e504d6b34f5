"""A real Linux on two harts: what QEMU has recorded of each, and its tasks, which go from one to the other."""

import json
from array import array
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.endtoend.linux.guest_system import Booted, KernelTask, boot, btf, kernel_address, tasks_of_hart
from tests.helpers.amounts import thorough

_UNIQUE = 5000  # instructions; most pieces that are so long run once

pytestmark = thorough("endtoend/linux/test_boot.py::test_what_qemu_has_recorded_needs_nothing_else")


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Booted:
    return boot(tmp_path_factory.mktemp("boot"), "ntrace", harts=2)


def test_each_instruction_of_both(booted: Booted) -> None:
    """It begins later than the other recorder where the ring was full, and ends later where a hart goes on alone."""
    session = Session()
    session.open(booted.capture, None)
    found = session.harts()
    assert not found.warnings and sorted(found.harts.histories) == [0, 1]
    for hart, executed in enumerate(booted.executed):
        history = found.harts.histories[hart]
        pcs = array("Q", history.pcs())
        assert not history.gaps
        ahead = distance(pcs, executed)
        one, other = pcs[max(-ahead, 0) :], executed[max(ahead, 0) :]
        both = min(len(one), len(other))
        assert both > 300_000 and one[:both] == other[:both]


def distance(pcs: "array[int]", executed: "array[int]") -> int:
    """Where the first of *pcs* is in *executed*, by a piece that is in it once: a hart may begin in a loop in which it
    waits for the other.
    """
    whole = executed.tobytes()
    for at in range(0, len(pcs), _UNIQUE):
        piece = pcs[at : at + _UNIQUE].tobytes()
        if whole.count(piece) == 1:
            return whole.index(piece) // pcs.itemsize - at
    raise AssertionError("they have nothing in common")


def test_no_task_of_either_is_wrong(booted: Booted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the hart on which init did not run begin somewhere among the kernel's events."""
    words = ["tasks", str(booted.capture), "--switches", "--top", "0", "--json", "--quiet"]
    words += ["--symbols", str(booted.kallsyms), "--memory", btf(booted, tmp_path)]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    switch = kernel_address(booted.kallsyms, "__switch_to")
    switches = known = 0
    for hart, executed in enumerate(booted.executed):
        labels = [it.get("after") for it in answer["switches"] if it["hart"] == hart]
        ran = tasks_of_hart(booted, hart)
        assert len(labels) <= executed.count(switch) + 1
        assert any(fits(labels, ran[begin:]) for begin in range(len(ran) - len(labels) + 1)), hart
        switches += len(labels)
        known += sum(label is not None for label in labels)
    assert switches > 20 and known > 5
    assert {"init", "swapper/0", "swapper/1", "kthreadd"} & {it["task"] for it in answer["tasks"] if it.get("state")}


def fits(labels: Sequence[Any], ran: Sequence[KernelTask]) -> bool:
    """Whether each name is the kernel's, and each number of an address space that of one process."""
    pids: dict[str, set[int]] = defaultdict(set)
    for label, task in zip(labels, ran, strict=False):
        if label is None:
            continue
        if not label.startswith(("context ", "0x")) and label != task.name:
            return False
        pids[label].add(task.pid)
    return all(len(each) == 1 for label, each in pids.items() if label.startswith("context "))
