"""Every kind of component, built in every way and with every fault, in a chip that traces a program.

What the hart executed is what the trace says, or one line says which component is to blame, and nothing goes on.
"""

from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import (
    ComponentAccess,
    ComponentTimeout,
    SettingRefused,
    UnsupportedVersion,
    WasReset,
    WrongComponent,
)
from rvtrace_gdb.controlregs.graph import RATIFIED
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.capabilities import capabilities
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.procedures import read_status
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from tests.controlregs.graph.board import BUFFER, KINDS, SIZE, TYPES, Board, built
from tests.controlregs.interruptions import one_line
from tests.helpers.amounts import crossed
from tests.transport.simulated.encoder.traces import compiled

NAMES = list(KINDS)
PREFIX = {"ram0": "trRam", "pib0": "trPib", "atb0": "trAtbBridge", "f0": "trFunnel", "enc0": "trTe"}
OFFSETS = [
    (name, register.offset)
    for name, kind in KINDS.items()
    for register in RATIFIED[kind].registers
    if register.offset < 0x100
]
NEEDED = {
    "enc0": (0, 4, 8, 0xC, 0x10, 0x1C, 0x40, 0x50, 0x54, 0x58), "f0": (0, 4, 8, 0x40), "pib0": (0, 4), "atb0": (0, 4),
    "ram0": range(0, 0x28, 4),
}  # fmt: skip
"""By a start, of a buffer in memory."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("builds"), "rv64imac")


def traced(board: Board, **asked: Any) -> None:
    """A whole run: nothing is lost, and all three ways out had the same trace."""
    got = board.start(**asked)
    board.rig.run(1500)
    stopped = procedures.stop(board.graph)
    assert (stopped.lost, stopped.notes, stopped.failures) == ((), (), ())
    assert board.enabled() == []
    drained = procedures.drain_all(board.graph, got)
    assert not drained.failures and not drained.drained["ram0"].wrapped
    for data in (drained.drained["ram0"].data, board.pins.data, bytes(board.bus)):
        board.decoded(data, got)


# How they may be built


MINIMAL_ENCODER = {
    "trTeInstMode": 3, "trTeInstSyncMode": 1, "trTeInstSyncMax": 4, "trTeInhibitSrc": 0, "trTeSrcID": 0,
    "trTeSrcBits": 0, "trTeInstStallOrOverflow": 0,
}  # fmt: skip
ABSENT = (
    "trTeContext", "trTeInstTrigEnable", "trTeInstEnSequentialJump", "trTeInstEnImplicitReturn",
    "trTeInstImplicitReturnMode", "trTeInstEnRepeatedHistory", "trTeInstEnAllJumps", "trTeInstExtendAddrMSB",
    "trTsActive", "trTsCount", "trTsRunInDebug", "trTsMode", "trTsPrescale", "trTsEnable",
)  # fmt: skip
MINIMAL: dict[str, dict[str, Any]] = {
    "enc0": {"fixed": MINIMAL_ENCODER},
    "f0": {"fixed": {"trFunnelDisInput": 0}},
    "pib0": {"fixed": {"trPibMode": 10, **dict.fromkeys(("trPibClkCenter", "trPibDivider", "trPibAsyncFreq"), 0)}},
    "atb0": {"fixed": {"trAtbBridgeAsyncFreq": 0}},
    "ram0": {"fixed": {"trRamStopOnWrap": 0, "trRamAsyncFreq": 0}},
}  # fmt: skip


@pytest.mark.parametrize("mode", list(RamMode), ids=["SRAM", "SMEM"])
def test_the_minimal_implementation_of_all(elf: Path, mode: RamMode) -> None:
    """As in the document's chapter of this name, the RAM sink's registers that may be hard-wired excepted."""
    builds = {name: ComponentBuild(**build) for name, build in MINIMAL.items()}
    board = Board(elf, {"absent": ABSENT}, {"modes": (mode,)}, **builds)
    got = board.start()
    assert got.notes[0] == "enc0 has no HTM; using BTM" or mode is RamMode.SRAM
    procedures.raise_failures(procedures.stop(board.graph))
    traced(Board(elf, {"absent": ABSENT}, {"modes": (mode,)}, **builds))


@pytest.mark.parametrize("name", NAMES)
def test_the_minimal_implementation_of_one(elf: Path, name: str) -> None:
    traced(Board(elf, {"absent": ABSENT} if name == "enc0" else None, **built(name, **MINIMAL[name])))


@pytest.mark.parametrize("size", [0x1000, 0x4000])
def test_sram_and_memory_with_a_fixed_place(elf: Path, size: int) -> None:
    """"trRamLimit can be hard coded": to 2^M - 4, or to 2^N + 2^M - 4 with trRamStart at 2^N."""
    sram = {"trRamStartLow": 0, "trRamLimitLow": (size - 4) >> 2}
    board = Board(elf, None, {"modes": (RamMode.SRAM,)}, **built("ram0", fixed=sram))
    got = board.start()
    assert got.ram_sinks[0].size == size
    assert f"ram0 cannot use system memory; using its own SRAM of {size} bytes" in got.notes
    memory = {"trRamStartLow": BUFFER >> 2, "trRamLimitLow": (BUFFER + size - 4) >> 2}
    board = Board(elf, None, {"modes": (RamMode.SMEM,)}, **built("ram0", fixed=memory))
    got = board.start(stop_on_wrap=True)
    assert (got.ram_sinks[0].start, got.ram_sinks[0].end) == (BUFFER, BUFFER + size)
    assert got.notes == (f"ram0: the buffer has {size} bytes, not {SIZE}",)


@pytest.mark.parametrize("alone", [False, True])
def test_everything_optional_is_asked_for(elf: Path, alone: bool) -> None:
    board = Board(elf, None, {"modes": (RamMode.SMEM,)} if alone else None)
    features = ("trTeInstEnSequentialJump", "trTeInstEnRepeatedHistory", "trTeInstEnAllJumps", "trTeInstExtendAddrMSB")
    traced(board, features=features, implicit_return=3, context=True, timestamps=True, src_bits=5, src_id=9)


ALLOWED: dict[str, dict[str, Any]] = {
    "slow-flush": {"flush_polls": 12}, "powered-down": {"powered_down": True}, "vendor": {"vendor": 0xA5},
    "1.0": {"version": (1, 0)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "build"), [*product(NAMES, ("slow-flush", "powered-down")), *crossed(NAMES, ("vendor", "1.0"))]
)
def test_what_is_allowed(elf: Path, name: str, build: str) -> None:
    traced(Board(elf, **built(name, **ALLOWED[build])))


@pytest.mark.parametrize(
    ("name", "fixed", "note"),
    [
        ("enc0", {"trTeInstSyncMode": 3, "trTeInstSyncMax": 2}, None),
        ("enc0", {"trTeInstSyncMode": 2, "trTeInstSyncMax": 7}, "enc0: synchronises every 2048 clock cycles, "),
        ("enc0", {"trTeInstEnImplicitReturn": 1, "trTeInstImplicitReturnMode": 2}, "enc0 always uses implicit return"),
        ("enc0", {"trTeSrcID": 0xABC, "trTeSrcBits": 12}, "enc0: source IDs in messages have 12 bits, not 0"),
        ("enc0", {"trTeInhibitSrc": 1, "trTeSrcBits": 12}, "enc0: source IDs in messages have 12 bits, not 0"),
        ("enc0", {"trTeInstMode": 3}, "enc0 has no HTM; using BTM"),
        ("enc0", {"trTeContext": 1}, None),
        ("enc0", {"trTsActive": 1}, None),
        ("f0", {"trFunnelDisInput": 2}, None),
        ("pib0", {"trPibDivider": 0xFFFF, "trPibMode": 10}, None),
        ("atb0", {"trAtbBridgeID": 0x6F}, "atb0: its ID on ATB is 111, not 3"),
        ("atb0", {"trAtbBridgeAsyncFreq": 5}, None),
        ("ram0", {"trRamAsyncFreq": 7}, None),
        ("ram0", {"trRamStopOnWrap": 1}, "ram0 always stops when the buffer is full"),
    ],
)
def test_odd_values_that_are_hard_wired(elf: Path, name: str, fixed: dict[str, int], note: str | None) -> None:
    board = Board(elf, **built(name, fixed=fixed))
    notes = board.start().notes
    assert [one for one in notes if note and one.startswith(note)] if note else notes == ()
    procedures.raise_failures(procedures.stop(board.graph))
    traced(Board(elf, **built(name, fixed=fixed)))


# What may be wrong with them


def impl_in(said: str) -> int:
    """The full value of tr??Impl, which a message has to show."""
    return int(said.split("tr??Impl reads ")[1][:10], 16)


@pytest.mark.parametrize(("name", "version"), crossed(NAMES, [(0, 0), (0, 7), (2, 0), (15, 0), (15, 15)]))
def test_versions_that_are_refused(elf: Path, name: str, version: tuple[int, int]) -> None:
    board = Board(elf, **built(name, version=version))
    with pytest.raises(UnsupportedVersion) as caught:
        board.start()
    base = board.components[name].base
    kind = "pre-ratified" if version[0] == 0 else "newer"
    said = one_line(caught.value)
    assert said.startswith(f"{name} at {base:#x}: trace control interface {version[0]}.{version[1]}, {kind} and not")
    assert f"(rvtrace knows 1.0; tr??Impl reads {impl_in(said):#010x})" in said
    assert impl_in(said) & 0xFFF == version[0] | version[1] << 4 | TYPES[name] << 8
    assert ("set `version = 0` there" in said) == (version[0] == 0)
    assert board.enabled() == []
    assert not board.devices[name].active, "what is not known is left in reset"


@pytest.mark.parametrize(("name", "version"), crossed(NAMES, [(1, 1), (1, 15)]))
def test_versions_that_are_used_with_a_warning(elf: Path, name: str, version: tuple[int, int]) -> None:
    kind = "experimental" if version == (1, 15) else "a newer one"
    board = Board(elf, **built(name, version=version))
    (note,) = board.start().notes
    text = f"trace control interface {version[0]}.{version[1]} is {kind}"
    assert note.startswith(f"{name} at {board.components[name].base:#x}: {text}")
    assert note.endswith(f"used as 1.0 (tr??Impl reads {impl_in(note):#010x})")
    assert impl_in(note) & 0xFFF == version[0] | version[1] << 4 | TYPES[name] << 8
    board.rig.run(1000)
    procedures.raise_failures(procedures.stop(board.graph))
    traced(Board(elf, **built(name, version=version)))


@pytest.mark.parametrize(("name", "found"), crossed(NAMES, [0, 1, 5, 8, 9, 0xA, 0xE]))
def test_another_type(elf: Path, name: str, found: int) -> None:
    board = Board(elf, **built(name, comp_type=found))
    if found == TYPES[name]:
        assert board.start().notes == ()
        return
    with pytest.raises(WrongComponent) as caught:
        board.start()
    said = one_line(caught.value)
    assert said.startswith(f"{name} at {board.components[name].base:#x}: this is a") and "tr??Impl reads 0x" in said
    assert board.enabled() == [] and not board.devices[name].active


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bit", ["Active", "Enable"])
def test_bits_that_never_come(elf: Path, name: str, bit: str) -> None:
    board = Board(elf, **built(name, stuck={bit: 0}))
    with pytest.raises(ComponentTimeout) as caught:
        board.start()
    prefix, base = PREFIX[name], board.components[name].base
    text = f"{name} at {base:#x}: {prefix}Control did not reach {prefix}{bit}=1 within 1 s (it reads 0x"
    assert one_line(caught.value).startswith(text)
    assert board.enabled() == []


@pytest.mark.parametrize("name", NAMES)
def test_active_that_is_always_on(elf: Path, name: str) -> None:
    """Its other registers hold nothing: it is in reset all the same."""
    board = Board(elf, **built(name, stuck={"Active": 1}))
    with pytest.raises(WrongComponent, match=rf"^{name} at 0x.* answers here \(tr\?\?Impl reads 0x00000000\)"):
        board.start()
    assert board.enabled() == []


@pytest.mark.parametrize("name", NAMES)
def test_enable_that_is_always_on(elf: Path, name: str) -> None:
    board = Board(elf, **built(name, stuck={"Enable": 1}))
    with pytest.raises(SettingRefused) as caught:
        board.start()
    where = f"{name} at {board.components[name].base:#x}: is on right after its reset ({PREFIX[name]}Control reads 0x"
    assert one_line(caught.value).startswith(where)
    assert board.enabled() == []


@pytest.mark.parametrize("name", NAMES)
def test_never_empty(elf: Path, name: str) -> None:
    """It is named, everything else is stopped, and what reached the sink is all that was executed."""
    board = Board(elf, **built(name, stuck={"Empty": 0}))
    got = board.start()
    board.rig.run(1500)
    stopped = procedures.stop(board.graph)
    prefix = PREFIX[name]
    (failure,) = stopped.failures
    assert one_line(failure).startswith(
        f"{name} at {board.components[name].base:#x}: {prefix}Control did not reach {prefix}Enable=0 {prefix}Empty=1"
    )
    assert board.enabled() == []
    board.decoded(procedures.drain_all(board.graph, got).drained["ram0"].data, got)


@pytest.mark.parametrize(("name", "offset"), OFFSETS)
def test_a_register_that_is_a_bus_error(elf: Path, name: str, offset: int) -> None:
    """One that is needed is named with its address. What does not need it works."""
    board = Board(elf, **built(name, faults={offset}))
    register = RATIFIED[KINDS[name]].by_offset[offset]
    component = board.components[name]
    where = f"{name} at {component.base:#x}: {register.name} ({component.base + offset:#x}) cannot be "
    try:
        capabilities(component)
    except ComponentAccess as error:
        assert one_line(error).startswith(where)
    assert board.enabled() == []
    if offset in NEEDED[name]:
        with pytest.raises(ComponentAccess) as caught:
            board.start()
        assert one_line(caught.value).startswith(where)
        assert board.enabled() == []
    else:
        traced(board)


# What may happen to them while they trace


@pytest.mark.parametrize("name", NAMES)
def test_bus_errors_while_tracing(elf: Path, name: str) -> None:
    """Everything else is stopped. Once it answers again it can be stopped as well, and all its trace is there."""
    board = Board(elf)
    got = board.start()
    board.rig.run(1500)
    device = board.devices[name]
    device.build = replace(device.build, faults=range(0, 0x1000, 4))
    assert list(read_status(board.graph).problems) == [name]
    stopped = procedures.stop(board.graph)
    assert [failure.component for failure in stopped.failures] == [name]
    assert board.enabled() == [name]
    drains = procedures.drain_all(board.graph, got)
    assert list(drains.failures) == (["ram0"] if name == "ram0" else [])
    device.build = replace(device.build, faults=())
    with suppress(ComponentTimeout) if name == "f0" else nullcontext():  # what it sends to is off already
        procedures.raise_failures(procedures.stop(board.graph))
    assert board.enabled() == []
    if name in ("ram0", "pib0", "atb0"):  # the way to the sink was whole
        board.decoded(procedures.drain_all(board.graph, got).drained["ram0"].data, got)


@pytest.mark.parametrize("name", NAMES)
def test_reset_while_tracing(elf: Path, name: str) -> None:
    board = Board(elf)
    got = board.start()
    board.rig.run(1500)
    if name != "ram0":
        before = procedures.drain_all(board.graph, got).failures["ram0"]
        assert "is still storing trace; stop the trace first" in str(before)
    board.devices[name].write(0, 4, 0)
    board.devices[name].settle()
    assert not [each for each in read_status(board.graph).encoders if each.lost]
    stopped = procedures.stop(board.graph)
    assert f"{name} was reset while tracing; its trace ends there" in stopped.notes
    assert (stopped.failures, board.enabled()) == ((), [])
    with pytest.raises(WasReset, match=f"^{name} at 0x"):
        procedures.resume(board.graph, got)
    assert board.enabled() == []
    drains = procedures.drain_all(board.graph, got)
    assert list(drains.failures) == (["ram0"] if name == "ram0" else [])
    again = board.start()
    board.rig.run(1000)
    procedures.raise_failures(procedures.stop(board.graph))
    assert procedures.drain_all(board.graph, again).drained["ram0"].data
