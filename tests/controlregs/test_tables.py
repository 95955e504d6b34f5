"""Every declared register against the register map compiled from the ratified document (tests/data/trace-control)."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlregs import common
from controlregs.encoder import ENCODER
from controlregs.fields import Field, Register, RegisterBlock, Reset
from controlregs.ram_sink import RAM_SINK

FACTS = json.loads((Path(__file__).parents[1] / "data/trace-control/trace_control.json").read_text())
BLOCKS = {"encoder": ENCODER, "ram_sink": RAM_SINK}
REGISTERS = [
    pytest.param(BLOCKS[kind], facts, id=facts["name"])
    for kind in BLOCKS
    for facts in FACTS["components"][kind]["registers"]
]


def bits(register: Register) -> dict[str, list[int]]:
    return {
        name: [register.lsb(name) + field.width - 1, register.lsb(name)] for name, field in register.by_name.items()
    }


@pytest.mark.parametrize("kind", BLOCKS)
def test_block(kind: str) -> None:
    facts, block = FACTS["components"][kind], BLOCKS[kind]
    assert (block.prefix, block.comp_type) == (facts["field_prefix"], facts["comp_type"])
    assert [r.name for r in block.registers] == [r["name"] for r in facts["registers"]]
    assert (block.control.offset, block.impl.offset) == (common.CONTROL_OFFSET, common.IMPL_OFFSET)


@pytest.mark.parametrize(("block", "facts"), REGISTERS)
def test_register(block: RegisterBlock, facts: dict[str, Any]) -> None:
    register = block.by_name[facts["name"]]
    expected = {f["name"]: f["bits"] for f in facts["fields"]}
    if register is block.impl:
        expected[block.prefix + "Vendor"] = FACTS["impl_vendor_bits"]
    assert (register.offset, register.compliance.value) == (facts["offset"], facts["compliance"])
    assert block.by_offset[facts["offset"]] is register
    assert bits(register) == expected
    assert register.doc and all(f.doc for f in register.fields)


@pytest.mark.parametrize(("block", "facts"), REGISTERS)
def test_fields(block: RegisterBlock, facts: dict[str, Any]) -> None:
    register = block.by_name[facts["name"]]
    for fact in facts["fields"]:
        declared = register.by_name[fact["name"]]
        assert declared.access.value == fact["access"], fact["name"]
        reset = declared.reset.value if isinstance(declared.reset, Reset) else declared.reset
        assert reset == fact["reset"], fact["name"]
        check_codes(declared, fact.get("enum", {}))


def check_codes(declared: Field, facts: dict[str, str]) -> None:
    """The same codes; our shorter name is part of the one in the register map."""
    known = {int(code): name.lower() for code, name in facts.items() if name != "reserved"}
    codes = {int(code): code.name.lower() for code in declared.values or ()}
    assert codes.keys() == known.keys(), declared.name
    assert all(name in known[code].replace(" ", "_") for code, name in codes.items()), declared.name


def test_common_facts() -> None:
    facts = FACTS["common"]
    assert facts["control_offset"] == common.CONTROL_OFFSET
    assert facts["impl_offset"] == common.IMPL_OFFSET
    assert [common.VENDOR_RANGE.start, common.VENDOR_RANGE.stop - 1] == facts["vendor_range"]
    assert {str(int(kind)): kind.name.lower() for kind in common.CompType} == facts["component_types"]
    assert ".".join(map(str, common.VERSION)) == FACTS["spec"]["version"]


def test_every_register_was_compared() -> None:
    assert len(REGISTERS) == sum(len(block.registers) for block in BLOCKS.values()) == 23
