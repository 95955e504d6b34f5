"""The options of `trace start`: what they ask of the hardware, what is said of it, and how the trace is then decoded.

Registers and bits are numbers here, from the Trace Control Interface 1.0.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.encoder_features import NTRACE
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.errors import BadOption, Unsupported
from rvtrace_gdb.session.formats.ntrace import ntrace_options
from rvtrace_gdb.session.formats.sinks import options_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import build
from tests.session.board import DEMO, ENCODER, SMALL_RAM, Board

CONTROL, FEATURES, TS_CONTROL = 0x00, 0x08, 0x40
N_TRACE, HTM, BTM = 1 << 24, 6 << 4, 3 << 4
N_TRACE_1_0 = 0x0001_0101
HEAD = EncoderSettings("encoder0", ENCODER, N_TRACE | HTM, N_TRACE_1_0, 0, 0)


def board_with(folder: Path, *absent: str) -> Board:
    """A board whose encoder lacks these fields."""
    machine = build(DEMO, memory_map=SMALL_RAM, absent=absent)
    machine.halt_at_start()
    return Board(machine, DEMO, folder)


def started(board: Board, **options: Any) -> list[str]:
    """What `trace start` says."""
    return Session(board.connect, {}).start(board.describe(), options)


def register(board: Board, offset: int) -> int:
    return board.machine.bus.read(ENCODER + offset, 4)


# What the registers hold


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"implicit_return": "deep"}, "implicit_return is 'deep', it must be off, on, counter, partial or full"),
        ({"implicit_return": True}, "implicit_return is True, it must be off, on, counter, partial or full"),
        ({"implicit_return": ["off"]}, "implicit_return is ['off'], it must be off, on, counter, partial or full"),
    ],
)  # fmt: skip
def test_what_is_no_option(options: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(BadOption) as caught:
        started(board_with(tmp_path), **options)
    assert str(caught.value) == line


# What the user is told


LACKING: list[tuple[str, dict[str, Any], str]] = [
    ("trTeInstEnImplicitReturn", {"implicit_return": "full"},
     "encoder0 has no implicit return (trTeInstEnImplicitReturn stays 0)"),
    ("trTeInstImplicitReturnMode", {"implicit_return": "counter"},
     "encoder0 does not report how it tracks calls for implicit return (trTeInstImplicitReturnMode stays 0)"),
    ("trTeInstEnSequentialJump", {"sequential_jumps": True},
     "encoder0 has no sequential jumps (trTeInstEnSequentialJump stays 0)"),
    ("trTeInstEnRepeatedHistory", {"repeated_history": True},
     "encoder0 has no repeated history (trTeInstEnRepeatedHistory stays 0)"),
    ("trTeInstEnAllJumps", {"all_jumps": True},
     "encoder0 has no messages for all jumps (trTeInstEnAllJumps stays 0)"),
    ("trTeInstExtendAddrMSB", {"address_compression": True},
     "encoder0 has no address compression (trTeInstExtendAddrMSB stays 0)"),
    ("trTsEnable", {"timestamps": True}, "encoder0 has no timestamps"),
    ("trTeContext", {"context": True}, "encoder0 does not report context and privilege"),
]  # fmt: skip
"""What an encoder has not, an option that asks for it, and what is said."""


def test_each_feature_may_be_lacking() -> None:
    assert {feature.request for feature in NTRACE} <= {name for _, it, _ in LACKING for name in it}


@pytest.mark.parametrize(("absent", "options", "note"), LACKING)
def test_what_the_hardware_lacks_is_said(absent: str, options: dict[str, Any], note: str, tmp_path: Path) -> None:
    assert [line for line in started(board_with(tmp_path, absent), **options) if line.startswith("note:")] == [
        f"note:     {note}"
    ]
    assert not [line for line in started(board_with(tmp_path, absent)) if line.startswith("note:")]


def test_a_period_longer_than_there_is_is_said(tmp_path: Path) -> None:
    """trTeInstSyncMax has 4 bits: 2**(15 + 4) halfwords."""
    lines = started(board_with(tmp_path), sync_period=1_000_000)
    assert "sync every 524288 halfwords" in lines[0]
    assert lines[2:] == ["note:     a sync period of 1000000 halfwords is not possible, 524288 is the longest"]
    assert len(started(board_with(tmp_path), sync_period=1 << 19)) == 2


# Somebody else


@pytest.mark.parametrize(
    ("offset", "change", "name"),
    [(FEATURES, 1 << 3, "trTeInstFeatures"), (TS_CONTROL, 1 << 15, "trTsControl"), (TS_CONTROL, 1, "trTsControl")],
)
def test_settings_that_changed_while_tracing_are_named(offset: int, change: int, name: str, tmp_path: Path) -> None:
    """What would be sent from then on cannot be read as what was sent before."""
    board = board_with(tmp_path)
    session = Session(board.connect, {})
    context = board.describe()
    session.start(context, {"timestamps": True, "context": True, "implicit_return": "full"})
    board.run(200)
    board.machine.bus.write(ENCODER + offset, 4, register(board, offset) ^ change)
    board.run(200)
    (line,) = session.history("", 10, context).lines
    assert f"encoder0 was reset or set up by other software while tracing ({name} has changed)" in line


# From registers to the decoder


def test_encoders_with_different_periods_can_feed_one_sink() -> None:
    """The messages of all are read alike; how many there have to be is not known then."""
    plain, other = (CapturedEncoder(0, replace(HEAD, control=HEAD.control | 1 << 16 | n << 20)) for n in (3, 4))
    assert options_of([plain, plain]) == Options(sync_period=128)
    assert options_of([plain, other]) == Options()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda head: replace(head, impl=0x0002_0101), "N-Trace 2.0"),
        (lambda head: replace(head, impl=0x0010_0101), "N-Trace 0.1"),
        (lambda head: replace(head, control=HTM), "E-Trace"),
        (lambda head: replace(head, control=HTM | 7 << 24), "trTeFormat 7"),
    ],
)
def test_protocols_that_cannot_be_decoded(change: Callable[[EncoderSettings], EncoderSettings], what: str) -> None:
    """N-Trace 1.0, "N-Trace Specific Trace Controls": another major version must be rejected, a minor one accepted."""
    with pytest.raises(Unsupported, match=f"^encoder0 produces {what}, which cannot be decoded yet"):
        ntrace_options(change(HEAD), alone=True)
