"""A debugger that serves an ebreak halts the program, and lets it go on behind it: the calls under way are the same."""

import re

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.events import EventKind, Fact, StartReason, Stop, StopReason
from rvtrace_gdb.decode.history.history import Event
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import CALL, NOP, RET, Code
from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb
from tests.helpers.event_facts import DISABLED, ENABLED, STARTS, STOPS, lost

FOLDER = HOME / "tests" / "data" / "cases" / "semihosting"
EBREAK = (0x0010_0073).to_bytes(4, "little")
CODE = Code(main=[NOP, CALL, NOP, RET], say=[NOP, asm.jal(1, 8), RET, EBREAK, NOP, RET], host=[NOP, EBREAK, NOP, RET])
HALTED = Stop(StopReason.DEBUG_MODE, then=STARTS._replace(reason=StartReason.EXIT_FROM_DEBUG))
SERVED = "main.0 main.1 host.0 - host.2 host.3 main.2"


def listing(places: str, fact: Fact, kind: EventKind = EventKind.TRACE_OFF) -> list[str]:
    pcs = CODE.pcs(places)
    gap = pcs.index(-1)
    history = history_of(pcs)
    history.events = [Event(gap, kind, 0, fact, pcs[gap - 1], pcs[gap + 1])]
    return [line.partition(" ")[0] for line in CODE.lines(history)]


@pytest.mark.parametrize("fact", [HALTED, STOPS._replace(then=STARTS)], ids=["N-Trace", "E-Trace"])
def test_the_callers_wait(fact: Stop) -> None:
    assert listing(SERVED, fact) == ["main", ".host", "-", ".host", "main"]


def test_the_first_instruction_of_a_function() -> None:
    """What leads to the ebreak is the call."""
    found = listing("main.0 main.1 say.0 say.1 - say.4 say.5 say.2 main.2", HALTED)
    assert found == ["main", ".say", "-", "..say", ".say", "main"]


@pytest.mark.parametrize(
    ("places", "fact", "kind"),
    [
        (SERVED, lost(), EventKind.LOSS),
        (SERVED, DISABLED._replace(then=ENABLED), EventKind.TRACE_OFF),
        (SERVED, Stop(StopReason.DEBUG_MODE), EventKind.TRACE_OFF),
        ("main.0 main.1 host.0 - host.3 main.2", HALTED, EventKind.TRACE_OFF),  # behind no ebreak
        ("main.0 main.1 say.0 - host.2 host.3 main.2", HALTED, EventKind.TRACE_OFF),  # does not lead there
    ],
)
def test_other_gaps_end_what_is_known(places: str, fact: Fact, kind: EventKind) -> None:
    found = listing(places, fact, kind)
    assert found[found.index("-") + 1 :][0] == ".host"  # main is only known to be a caller when host returns
    assert found[-1] == "main" and found[:2] == ["main", ".say" if "say" in places else ".host"]
    history = history_of(pcs := CODE.pcs(places))
    history.events = [Event(3, kind, 0, fact, pcs[2], pcs[4])]
    assert len(list(CallFrames(history, CallHistory(history, CODE.image)).frames(4))) == 1


def test_frames_across_it() -> None:
    pcs = CODE.pcs(SERVED)
    history = history_of(pcs)
    history.events = [Event(3, EventKind.TRACE_OFF, 0, HALTED, pcs[2], pcs[4])]
    frames = CallFrames(history, CallHistory(history, CODE.image))
    assert [(frame.pc, frame.call) for frame in frames.frames(5)] == [(CODE.at("host.3"), None), (CODE.at("main.2"), 1)]
    assert list(frames.frames(3)) == []


@pytest.mark.parametrize("name", ["ntrace", "etrace"])
def test_a_program_that_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """semi.c: main calls work three times, that calls say, that calls semihost."""
    assert main(["calls", str(FOLDER / f"{name}.rvt"), "--elf", str(FOLDER / "semi.elf"), "--quiet"]) == 0
    rows = re.findall(r"^ +(\S+) +\d+ +\d+  ( *\w+)$", capsys.readouterr().out, re.M)
    assert rows == [("-", "_start"), ("1", "  main"), ("3", "    work"), ("3", "      say"), ("3", "        semihost")]


def test_gdb_steps_over_it() -> None:
    """As in the present: from work(), line 16, back to line 15, which calls say(), and forward again; out of work()."""
    steps = ["trace goto 128", "reverse-next", "next", "trace goto work", "finish"]
    said = run_gdb(FOLDER / "semi.elf", [SOURCE, f"trace open {FOLDER / 'ntrace.rvt'}", "trace replay", *steps])
    assert re.search(r"^15\t.*\n\[108 of 141\]", said["reverse-next"], re.M)
    assert "\n[128 of 141]" in said["next"]
    assert "in main ()" in said["finish"] and "\n[135 of 141]" in said["finish"]
