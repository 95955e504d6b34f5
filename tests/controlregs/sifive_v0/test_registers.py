"""The tables of version 0 against SiFive's proposal, the P550's tables, and values of a real board."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.dump import describe
from rvtrace_gdb.controlregs.fields import Field, FieldAccess, Register, RegisterBlock, Reset
from rvtrace_gdb.controlregs.graph import PRE_RATIFIED
from rvtrace_gdb.controlregs.sifive_v0 import ENCODER, FUNNEL, component_registers

FACTS = json.loads((Path(__file__).parents[2] / "data/trace-control/sifive_v0.json").read_text())
RENAMED = {"teMessageFormat": "teSliceFormat", "teWrap": "teSinkWrapped"}
"""Fields the proposal calls otherwise than the P550's tables, whose names we use."""
BLOCKS = {"encoder": ENCODER, "funnel": FUNNEL}
SINKS = (*component_registers.MEMORY_REGISTERS, *component_registers.OUTSIDE_REGISTERS)


def owner(name: str) -> RegisterBlock:
    return FUNNEL if name.startswith("tf") else ENCODER


PROPOSAL = [pytest.param(r, id=r["name"]) for r in FACTS["proposal"]]
P550 = [pytest.param(r, id=f"{r['component']}-{r['name']}") for r in FACTS["p550"]]


def check_place(register: Register, fact: Mapping[str, Any]) -> Field:
    name = RENAMED.get(fact["name"], fact["name"])
    declared = register.by_name[name]
    assert [register.lsb(name) + declared.width - 1, register.lsb(name)] == fact["bits"], name
    names = {int(code): code.name.lower() for code in declared.values or ()}
    for code, known in fact.get("codes", {}).items():
        assert names[int(code)] == known, name
    return declared


@pytest.mark.parametrize("facts", PROPOSAL)
def test_as_the_proposal_has_it(facts: dict[str, Any]) -> None:
    """Every field, with its access and reset value."""
    register = owner(facts["name"]).by_name[facts["name"]]
    assert (register.offset, register.compliance.value == "required") == (facts["offset"], facts["required"])
    for fact in facts["fields"]:
        declared = check_place(register, fact)
        reset = declared.reset.value if isinstance(declared.reset, Reset) else declared.reset
        assert (declared.access.value, reset) == (fact["access"], fact["reset"]), fact["name"]


@pytest.mark.parametrize("facts", P550)
def test_as_the_p550_has_it(facts: dict[str, Any]) -> None:
    """Every field. What one core has fixed, or simply writable, may be declared as WARL."""
    block = BLOCKS[facts["component"]]
    name = facts["name"] if facts["name"] in block.by_name else facts["name"] + "0"
    register = block.by_name[name]
    assert register.offset == facts["offset"]
    allowed = {
        "RO": {FieldAccess.RO, FieldAccess.WARL},
        "RW": {FieldAccess.RW, FieldAccess.WARL, FieldAccess.RW0C},
        "WARL": {FieldAccess.WARL},
        "RW1C": {FieldAccess.RW1C},
        "WO": {FieldAccess.W1},
    }
    for fact in facts["fields"]:
        declared = check_place(register, fact)
        if (facts["name"], fact["name"]) != ("tfImpl", "version"):  # "RW" there can only be a slip
            assert declared.access in allowed[fact["access"]], fact["name"]
        if isinstance(declared.reset, int) and fact["reset"] not in ("sd", "none"):
            assert declared.reset == fact["reset"], fact["name"]


def known_fields(name: str) -> set[str]:
    facts = [r for r in (*FACTS["proposal"], *FACTS["p550"]) if r["name"] == name]
    return {RENAMED.get(f["name"], f["name"]) for r in facts for f in r["fields"]}


def test_nothing_is_declared_that_no_source_has() -> None:
    """evControl is from the scripts, which name its bits; wpControl has one field for all the vendor's bits."""
    for block in PRE_RATIFIED.values():
        for register in block.registers:
            known = known_fields("itcStimulus" if register in component_registers.ITC_STIMULUS else register.name)
            if register not in (component_registers.EV_CONTROL, component_registers.WP_CONTROL):
                assert register.by_name.keys() <= known, register.name
            assert register.doc and all(f.doc for f in register.fields)


def test_codes_are_known() -> None:
    """Each code of a field is one of either source."""
    facts = [f for r in (*FACTS["proposal"], *FACTS["p550"]) for f in r["fields"]]
    for name, declared in (it for b in PRE_RATIFIED.values() for r in b.registers for it in r.by_name.items()):
        known = {int(c) for f in facts if RENAMED.get(f["name"], f["name"]) == name for c in f.get("codes", ())}
        # Codes of modes and prescalers are in the proposal's prose; all triggers are as the first.
        if not name.startswith(("pibMode", "tsPrescale", "xtiAction")):
            assert {int(code) for code in declared.values or ()} <= known, name


def test_blocks() -> None:
    assert {kind: (block.prefix, block.comp_type) for kind, block in PRE_RATIFIED.items()} == {
        "encoder": ("te", 0),
        "funnel": ("tf", 0),
    }
    assert (ENCODER.control.name, ENCODER.impl.name) == ("teControl", "teImpl")
    assert (FUNNEL.control.name, FUNNEL.impl.name) == ("tfControl", "tfImpl")
    for block in PRE_RATIFIED.values():
        assert all(register in block.registers for register in SINKS)
    assert [r.name for r in FUNNEL.registers if r.port] == ["teSinkData"]
    assert {r.name for r in ENCODER.registers if r.port} == {"teSinkData", *(f"itcStimulus{n}" for n in range(32))}


def test_stimulus_registers() -> None:
    """0x0080 to 0x00FF: 32 of them."""
    assert [r.offset for r in component_registers.ITC_STIMULUS] == list(range(0x80, 0x100, 4))


# What the scripts' README prints of a HiFive Premier P550, and what it says the values are.
BOARD = [
    (ENCODER, 0x004, 0x02040100, {"version": 0, "hasFunnelSink": 1, "srcID": 0, "nSrcBits": 2, "hartid": 0}),
    (ENCODER, 0x004, 0x32340100, {"version": 0, "hasFunnelSink": 1, "srcID": 3, "nSrcBits": 2, "hartid": 3}),
    (FUNNEL, 0x004, 0x00010080, {"version": 0, "hasSBASink": 1, "hasFunnelSink": 0, "sinkBytes": 1}),
    (ENCODER, 0x040, 0x280F8041, {"tsActive": 1, "tsType": 4, "tsBranch": 3, "tsInstrumentation": 1, "tsOwnership": 1}),
    (FUNNEL, 0x040, 0x28000023, {"tsActive": 1, "tsCount": 1, "tsType": 2, "tsBranch": 0, "tsWidth": 40}),
    (ENCODER, 0x000, 0x89A3107F, {"teEnable": 1, "teTracing": 1, "teInstruction": 7, "teSinkError": 1, "teSink": 8}),
    (FUNNEL, 0x000, 0x70000003, {"tfEnable": 1, "tfStopOnWrap": 0, "tfSink": 7}),
]


@pytest.mark.parametrize(
    ("block", "offset", "value", "expected"),
    [pytest.param(*row, id=f"{row[0].prefix}-{row[1]:03x}-{row[2]:08x}") for row in BOARD],
)
def test_values_of_a_board(block: RegisterBlock, offset: int, value: int, expected: dict[str, int]) -> None:
    """They have no bits set that are not declared."""
    register = block.by_offset[offset]
    assert expected.items() <= register.unpack(value).items()
    assert value & ~register.mask(*register.by_name) == 0


def test_a_board_in_words() -> None:
    """The README: trace mode htm, sent to the funnel; 0x375670 bytes were written to a buffer of 4 GiB less 8 bytes."""
    control = describe(ENCODER, 0, 0x81A3107B)
    assert "teInstruction=7 (htm_optimized)" in control and "teSink=8 (funnel)" in control
    assert "teSyncMaxBTM=3 (every 256)" in control
    assert describe(FUNNEL, 0x1C, 0x00375671) == "teSinkWP 0x00375671: teSinkWrapped=1 teSinkWP=0x375670"
    assert describe(FUNNEL, 0x18, 0xFFFFFFF8) == "teSinkLimit 0xfffffff8"
    assert "teSyncMaxInst=15 (off)" in describe(ENCODER, 0, 0x00F00000)
