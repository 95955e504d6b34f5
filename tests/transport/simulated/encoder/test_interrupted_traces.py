"""Filters and triggers switch the simulated encoder on and off: the history is exactly what ran meanwhile, and between
two stretches that do not follow each other is a gap, whatever the format.

What ran is the unfiltered list of what the hart retired; what is let through is worked out here.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode as decode_etrace
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode as decode_ntrace
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import classify
from tests.decode.filtered import Stretch, check
from tests.helpers.amounts import crossed
from tests.transport.simulated.devices.rig import Step
from tests.transport.simulated.encoder.test_filtered_traces import ETraceRun, Run
from tests.transport.simulated.encoder.test_filters import (
    BY_COMP1,
    BY_PRIVILEGE,
    GE,
    LE,
    M,
    Settings,
    U,
    both,
    comparator,
    executed,
    one_filter,
)
from tests.transport.simulated.encoder.test_triggers import EXECUTE, TRACE_OFF, TRACE_ON, set_trigger
from tests.transport.simulated.encoder.traces import BTM, HTM, TRIGGERS, compiled

INSTRUCTIONS = 4000
E_TRACE = 0
FORMATS = {"E-Trace": E_TRACE, "HTM": HTM, "BTM": BTM}
Wanted = Callable[[Step], bool]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("stretches"), "rv64imac")


@pytest.fixture(scope="module")
def steps(elf: Path) -> list[Step]:
    """All that is executed, traps in between."""
    run = begun(elf, one_filter(BY_PRIVILEGE, inst=1 << U | 1 << M), HTM)
    run.rig.run(INSTRUCTIONS)
    run.stop()
    return run.log.steps


def begun(elf: Path, set_up: Settings, mode: int, control: int = 0) -> Run:
    return ETraceRun(elf, set_up, control) if mode == E_TRACE else Run(elf, set_up, mode | control)


def history_of(run: Run, elf: Path, mode: int) -> History:
    data, image = run.stop(), Image.from_elf(elf)
    if isinstance(run, ETraceRun):
        return decode_etrace(data, image, run.options, run.encapsulation)
    return decode_ntrace(data, image, Options(btm=mode == BTM))


def check_history(history: History, steps: list[Step], wanted: Wanted, mode: int) -> int:
    """Returns how many stretches there are. E-Trace does not tell where the jump leads that ends one."""
    found, words = stretches(steps, wanted)
    jumps = [classify(word, 64).is_uninferable for word in words]
    check(history, found, lambda index: mode != E_TRACE or not jumps[index])
    return len(found)


def stretches(steps: list[Step], wanted: Wanted) -> tuple[list[Stretch], list[int]]:
    """What is let through, and the word of the last instruction of each."""
    found: list[Stretch] = []
    words: list[int] = []
    pcs: list[int] = []
    last = trapped = -1  # the last word that was let through; where a trap hit since the last instruction
    for step in steps:
        if step.trap is not None:
            trapped = step.pc if trapped < 0 else trapped
            continue
        if wanted(step):
            pcs.append(step.pc)
            last = step.word
        elif pcs:
            found.append(Stretch(pcs, step.pc if trapped < 0 else trapped))
            words.append(last)
            pcs = []
        trapped = -1
    return (found, words) if not pcs else ([*found, Stretch(pcs, -1)], [*words, last])


@pytest.mark.parametrize(("seed", "trace_format"), crossed(range(5), list(FORMATS)))
def test_an_address_range(trace_format: str, seed: int, elf: Path, steps: list[Step]) -> None:
    """From any instruction to any other: single ones, loops, functions, parts of them."""
    mode = FORMATS[trace_format]
    places = sorted(pc for pc, times in Counter(step.pc for step in executed(steps)).items() if times > 2)
    first = random.Random(seed + 1).randrange(len(places))
    low, high = places[first], places[min(first + 8 * seed, len(places) - 1)]
    run = begun(elf, both(comparator(GE << 4 | LE << 8 | 1 << 12, low, high), one_filter(BY_COMP1)), mode)
    run.rig.run(INSTRUCTIONS)
    assert check_history(history_of(run, elf, mode), steps, lambda step: low <= step.pc <= high, mode) > 1


@pytest.mark.parametrize(("trace_format", "privilege"), crossed(list(FORMATS), (U, M)))
def test_a_privilege_mode(trace_format: str, privilege: int, elf: Path, steps: list[Step]) -> None:
    """Over ecall, interrupts and mret."""
    mode = FORMATS[trace_format]
    run = begun(elf, one_filter(BY_PRIVILEGE, inst=1 << privilege), mode)
    run.rig.run(INSTRUCTIONS)
    assert check_history(history_of(run, elf, mode), steps, lambda step: step.privilege == privilege, mode) > 5


@pytest.mark.parametrize(("seed", "trace_format"), crossed(range(4), list(FORMATS)))
def test_triggers(trace_format: str, seed: int, elf: Path, steps: list[Step]) -> None:
    """On before one instruction, off before another. When an interrupt is taken depends on the triggers, so none is."""
    mode = FORMATS[trace_format]
    quiet = steps[: next(n for n, step in enumerate(steps) if step.trap is not None and step.trap.interrupt)]
    user = [step.pc for step in executed(quiet) if step.privilege == U]
    often = sorted(pc for pc, times in Counter(user).items() if 3 < times < 60)
    on, off = random.Random(seed).sample(often, 2)
    run = begun(elf, lambda te: None, mode, TRIGGERS)
    run.rig.hart.trigger_effects.trace_action = run.encoder.triggered
    set_trigger(run.rig.hart, 0, TRACE_ON, EXECUTE, on)
    set_trigger(run.rig.hart, 1, TRACE_OFF, EXECUTE, off)
    run.rig.run(len(executed(quiet)) - 16)
    while len(executed(quiet)) > run.rig.hart.instret:
        del quiet[-1]
    inside = True

    def wanted(step: Step) -> bool:
        nonlocal inside
        inside = (inside or step.pc == on) and step.pc != off
        return inside

    assert check_history(history_of(run, elf, mode), quiet, wanted, mode) > 1
