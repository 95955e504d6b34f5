"""Triggers of `trace start`: what its options mean, and the debug triggers of harts behind the real OpenOCD.

What OpenOCD does with triggers that are not its own is a fact about OpenOCD 0.12, on which docs/triggers.md relies.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from rvtrace_gdb.controlregs.debug_triggers import TriggersRefused
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TrigAction
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Triggers
from rvtrace_gdb.session.description.model import EncoderDescription
from rvtrace_gdb.session.errors import BadOption, HartUnreachable
from rvtrace_gdb.session.sources import options
from rvtrace_gdb.session.sources.options import Armed, arm, triggers_of
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.helpers.amounts import thorough
from tests.helpers.openocd_crash import kill_openocd
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.openocd import OpenOcd as Rig
from tests.transport.simulated.openocd import Tcl, TclError

ENTRY = 0x8000_0000
ON, OFF, NOTIFY = TrigAction.TRACE_ON, TrigAction.TRACE_OFF, TrigAction.TRACE_NOTIFY
OURS = 0x2000_0000_0000_0000  # type 2, dmode 0; on RV64
ON_HERE, OFF_HERE = OURS | 2 << 12 | 1 << 6 | 1 << 3 | 4, OURS | 3 << 12 | 1 << 6 | 1 << 3 | 4
HIT = 1 << 20
NUMBER = 4
ENCODERS = [EncoderDescription(f"encoder{hart}", 0x2000_0000 + 0x1000 * hart, hart, ("ram0",)) for hart in range(2)]


# Options


@pytest.mark.parametrize(
    ("options", "triggers"),
    [
        ({}, None),
        ({"trigger_on": []}, None),
        ({"btm": True}, None),
        ({"trigger_on": [2, 4, 2]}, Triggers(on=(2, 4))),
        ({"trigger_off": [(1 << 64) - 2]}, Triggers(off=((1 << 64) - 2,))),
        ({"trigger_notify": [2], "trigger_on": [2]}, Triggers(on=(2,), notify=(2,))),
        ({"trigger_control": 0}, Triggers(control=0)),
        ({"trigger_input": ["0=on,7=off", "2=notify"]}, Triggers(inputs=((0, ON), (7, OFF), (2, NOTIFY)))),
        ({"trigger_output": ["0=start,1=stop,2=stop", "2=start"]}, Triggers(outputs=((0, 1), (1, 2), (2, 3)))),
    ],
)
def test_what_options_ask_for(options: dict[str, Any], triggers: Triggers | None) -> None:
    assert triggers_of(options) == triggers


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"trigger_on": 2}, "trigger_on is 2, it must be a list of addresses"),
        ({"trigger_off": ["main"]}, "trigger_off is ['main'], it must be a list of addresses"),
        ({"trigger_off": [True]}, "trigger_off is [True], it must be a list of addresses"),
        ({"trigger_notify": [-2]}, "trigger_notify is [-2], it must be a list of addresses"),
        ({"trigger_notify": [1 << 64]}, f"trigger_notify is [{1 << 64}], it must be a list of addresses"),
        ({"trigger_control": "x"}, "trigger_control is 'x', it must be a number of 32 bits"),
        ({"trigger_control": 1 << 32}, "trigger_control is 4294967296, it must be a number of 32 bits"),
        ({"trigger_input": "0=on"}, "trigger_input is '0=on', it must be a list of texts"),
        ({"trigger_input": ["0"]}, "trigger_input has '0', give N=WORD: 0 to 7, and one of on, off, notify"),
        ({"trigger_input": ["8=on"]}, "trigger_input has '8=on', give N=WORD: 0 to 7, and one of on, off, notify"),
        ({"trigger_input": ["1=on,"]}, "trigger_input has '', give N=WORD: 0 to 7, and one of on, off, notify"),
        ({"trigger_output": ["1=on"]}, "trigger_output has '1=on', give N=WORD: 0 to 7, and one of start, stop"),
        ({"trigger_input": ["1=on,1=off"]}, "a trigger input can do one thing: name each of them once"),
        ({"trigger_on": [8, 6], "trigger_off": [2, 6]}, "0x6 is to switch the trace on and off: name different places"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, Any], line: str) -> None:
    with pytest.raises(BadOption) as caught:
        triggers_of(options)
    assert str(caught.value) == line


def test_the_options_there_are() -> None:
    places = {"trigger_on", "trigger_off", "trigger_notify"}
    assert set(options.TRIGGER_OPTIONS) == {*places, "trigger_control", "trigger_input", "trigger_output"}


class _Unreachable:
    """A link that nobody may use."""

    @property
    def targets(self) -> tuple[str, ...]:
        raise AssertionError

    def command(self, tcl: str) -> str:
        raise AssertionError


@pytest.mark.parametrize("triggers", [None, Triggers(control=5)])
def test_without_places_no_hart_is_touched(triggers: Triggers | None) -> None:
    link: Any = _Unreachable()
    armed = arm(link, ENCODERS, triggers)
    assert (bool(armed), armed.notes, armed.changed(), armed.disarm()) == (False, [], [], [])


# Harts behind OpenOCD


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("triggers")
    with Rig(compiled(folder), folder / "rig", "--harts", "2") as it:
        yield it


@pytest.fixture
def link(rig: Rig) -> Iterator[OpenOcd]:
    """Both harts halted at the beginning of the program, all triggers free."""
    rig.tcl("reset halt")
    with OpenOcd(port=rig.tcl_port) as it:
        yield it
    for hart in range(2):
        on(rig, hart)("halt")
        on(rig, hart)("rbp all")


def on(rig: Rig, hart: int) -> Tcl:
    rig.tcl(f"targets sim.cpu{hart}")
    return rig.tcl


def shown(rig: Rig, hart: int) -> list[tuple[int, int]]:
    """(tdata1, tdata2) of each trigger of a hart, as OpenOCD reads them."""
    tcl, found = on(rig, hart), []
    before = tcl.reg("tselect")
    for number in range(NUMBER):
        tcl.set_reg("tselect", number)
        found.append((tcl.reg("tdata1"), tcl.reg("tdata2")))
    tcl.set_reg("tselect", before)
    return found


def put(rig: Rig, hart: int, number: int, tdata1: int, tdata2: int) -> None:
    tcl = on(rig, hart)
    tcl.set_reg("tselect", number)
    tcl.set_reg("tdata2", tdata2)
    tcl.set_reg("tdata1", tdata1)


def used(rig: Rig, hart: int) -> dict[int, tuple[int, int]]:
    """Those at work, by number, whether they have fired or not."""
    return {n: (one & ~HIT, two) for n, (one, two) in enumerate(shown(rig, hart)) if one & 7}


def test_each_traced_hart_has_them_and_gives_them_back(rig: Rig, link: OpenOcd) -> None:
    for hart, number in ((0, 1), (1, 2)):
        on(rig, hart).set_reg("tselect", number)
    armed = arm(link, ENCODERS, Triggers(on=(ENTRY + 4,), off=(ENTRY + 8,)))
    wanted = {3: (ON_HERE, ENTRY + 4), 2: (OFF_HERE, ENTRY + 8)}
    assert armed and [used(rig, hart) for hart in range(2)] == [wanted, wanted]
    assert [on(rig, hart).reg("tselect") for hart in range(2)] == [1, 2], "the program may rely on it"
    assert (armed.changed(), armed.disarm(), bool(armed)) == ([], [], False)
    assert [used(rig, hart) for hart in range(2)] == [{}, {}]
    assert armed.disarm() == []


def test_of_the_traced_harts_only(rig: Rig, link: OpenOcd) -> None:
    armed = arm(link, ENCODERS[1:], Triggers(notify=(ENTRY + 4,)))
    assert used(rig, 0) == {} and len(used(rig, 1)) == 1
    armed.disarm()


def test_breakpoints_of_openocd_take_others_and_both_work(rig: Rig, link: OpenOcd) -> None:
    """It is as with `hbreak` in gdb: before and after them; the third one has no place left."""
    tcl = on(rig, 0)
    tcl(f"bp {ENTRY + 8:#x} 2 hw")
    armed = arm(link, ENCODERS[:1], Triggers(on=(ENTRY + 4,), off=(ENTRY + 0x100,)))
    tcl(f"bp {ENTRY + 12:#x} 2 hw")
    assert used(rig, 0)[3] == (ON_HERE, ENTRY + 4)
    assert sorted(address for _, address in used(rig, 0).values()) == [ENTRY + n for n in (4, 8, 12, 0x100)]
    with pytest.raises(TclError):
        tcl(f"bp {ENTRY + 16:#x} 2 hw")
    assert ENTRY + 16 not in dict(shown(rig, 0)).values()
    assert len(used(rig, 0)) == NUMBER
    for stop in (8, 12):
        tcl("resume")
        tcl("wait_halt 60000")
        assert tcl.reg("pc") == ENTRY + stop
    assert shown(rig, 0)[3][0] & HIT, "ours fired on the way"
    tcl("rbp all")
    assert (armed.changed(), armed.disarm(), used(rig, 0)) == ([], [], {})


def test_they_fire_while_openocd_steps(rig: Rig, link: OpenOcd) -> None:
    """One of dmode does not: OpenOCD switches it off for each step."""
    armed = arm(link, ENCODERS[:1], Triggers(on=(ENTRY,)))
    for number, dmode in ((0, 1), (1, 0)):
        put(rig, 0, number, ON_HERE | dmode << 59, ENTRY)
    tcl = on(rig, 0)
    tcl("step")
    fired = [bool(tdata1 & HIT) for tdata1, _ in shown(rig, 0)]
    assert (tcl.reg("pc"), fired) == (ENTRY + 4, [False, True, False, True])
    armed.disarm()


def test_all_are_in_use(rig: Rig, link: OpenOcd) -> None:
    for number in range(NUMBER):  # as the program does, for itself
        put(rig, 1, number, ON_HERE & ~0xF000, ENTRY + 0x40)
    with pytest.raises(TriggersRefused) as caught:
        arm(link, ENCODERS, Triggers(on=(ENTRY,)))
    line = "hart 1 has no free trigger, all 4 are in use: delete hardware breakpoints and watchpoints"
    assert str(caught.value) == line
    assert used(rig, 0) == {}, "taken back in the hart before it"


def test_a_reset_is_noticed(rig: Rig, link: OpenOcd) -> None:
    armed = arm(link, ENCODERS[:1], Triggers(on=(ENTRY + 4,)))
    rig.tcl("reset halt")
    line = "hart 0: trigger 3 (trace-on at 0x80000004) was cleared, by a reset or by the program"
    assert armed.changed() == [line]
    assert armed.disarm() == [line] and not armed


def test_harts_that_run(rig: Rig, link: OpenOcd) -> None:
    """They cannot be set then; what was set stays until the hart stands still."""
    armed = arm(link, ENCODERS, Triggers(on=(ENTRY + 4,)))
    on(rig, 0)("resume")
    with pytest.raises(HartRuns) as caught:
        arm(link, ENCODERS, Triggers(off=(ENTRY,)))
    assert str(caught.value) == "hart 0: the hart runs: stop it first (`interrupt` or Ctrl-C)"
    assert armed.changed() == []
    lines = armed.disarm()
    why = "the hart runs: stop it first (`interrupt` or Ctrl-C)"
    assert lines == [f"the triggers of hart {hart} stay set for now: hart {hart}: {why}" for hart in range(2)]
    assert armed
    rig.tcl("halt")
    for hart in range(2):
        on(rig, hart)("wait_halt 60000")
    assert (armed.disarm(), bool(armed)) == ([], False)
    assert [used(rig, hart) for hart in range(2)] == [{}, {}]


def test_harts_that_openocd_does_not_know(link: OpenOcd) -> None:
    with pytest.raises(HartUnreachable) as caught:
        arm(link, [EncoderDescription("encoder7", 0, 7, ("ram0",))], Triggers(on=(ENTRY,)))
    said = "hart 7 cannot be reached: OpenOCD counts 2 (sim.cpu0, sim.cpu1); correct `hart` in the target description"
    assert str(caught.value) == said


@thorough("endtoend/trace/test_failures.py::test_openocd_is_started_anew")
def test_openocd_is_started_again(rig: Rig, link: OpenOcd) -> None:
    """It clears triggers with dmode when it first looks at them, and leaves ours."""
    armed = arm(link, ENCODERS[:1], Triggers(on=(ENTRY + 4,)))
    put(rig, 0, 0, ON_HERE | 1 << 59, ENTRY + 0x40)
    kill_openocd(rig)
    rig.start_openocd()
    tcl = on(rig, 0)
    tcl(f"bp {ENTRY + 8:#x} 2 hw")
    tcl("rbp all")
    assert used(rig, 0) == {3: (ON_HERE, ENTRY + 4)}
    with OpenOcd(port=rig.tcl_port) as anew:
        left: Armed = arm(anew, ENCODERS[:1], Triggers(off=(ENTRY + 8,)))  # by another session
        check_taken_over(rig, armed, left)


def check_taken_over(rig: Rig, armed: Armed, left: Armed) -> None:
    assert left.notes == ["hart 0: trigger 3 was still set (trace-on at 0x80000004); removed"]
    assert used(rig, 0) == {3: (OFF_HERE, ENTRY + 8)}
    assert armed.disarm() == [
        "hart 0: trigger 3 (trace-on at 0x80000004) was set to something else, by a reset or by the program"
    ]
    assert left.disarm() == [] and used(rig, 0) == {}
