"""Every declared register against the register map compiled from the ratified document (tests/data/trace-control)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.fields import Field, Register, RegisterBlock, Reset
from rvtrace_gdb.controlregs.graph import KINDS, PRE_RATIFIED, RATIFIED, NoSuchBlock, block, major
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.encoder_registers import COMPARATORS, FILTERS

FACTS = json.loads((Path(__file__).parents[2] / "data/trace-control/trace_control.json").read_text())
COMPONENTS: dict[str, dict[str, Any]] = FACTS["components"]


def in_units(array: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The registers of all units of an array, whose names have {i} or {j} where the number goes."""
    for n in range(array["count"]):
        for register in array["registers"]:
            name = re.sub(r"{\w}", str(n), register["name"])
            yield {**register, "name": name, "offset": register["offset"] + n * array["stride"]}


def registers(kind: str) -> list[dict[str, Any]]:
    facts = COMPONENTS[kind]
    return [*facts["registers"], *(r for array in facts.get("register_arrays", ()) for r in in_units(array))]


REGISTERS = [
    pytest.param(RATIFIED[kind], facts, id=f"{kind}-{facts['name']}") for kind in KINDS for facts in registers(kind)
]


def bits(register: Register) -> dict[str, list[int]]:
    return {
        name: [register.lsb(name) + field.width - 1, register.lsb(name)] for name, field in register.by_name.items()
    }


@pytest.mark.parametrize("kind", COMPONENTS)
def test_block(kind: str) -> None:
    facts, block = COMPONENTS[kind], RATIFIED[kind]
    assert (block.prefix, block.comp_type) == (facts["field_prefix"], facts["comp_type"])
    assert [r.name for r in block.registers] == [r["name"] for r in registers(kind)]
    assert (block.control.offset, block.impl.offset) == (
        component_registers.CONTROL_OFFSET,
        component_registers.IMPL_OFFSET,
    )


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
    known = {int(code): re.sub(r"\W+", "_", name).lower() for code, name in facts.items() if name != "reserved"}
    codes = {int(code): code.name.lower() for code in declared.values or ()}
    assert codes.keys() == known.keys(), declared.name
    assert all(name in known[code] for code, name in codes.items()), declared.name


def test_common_facts() -> None:
    facts = FACTS["common"]
    assert facts["control_offset"] == component_registers.CONTROL_OFFSET
    assert facts["impl_offset"] == component_registers.IMPL_OFFSET
    assert [component_registers.VENDOR_RANGE.start, component_registers.VENDOR_RANGE.stop - 1] == facts["vendor_range"]
    assert {str(int(kind)): kind.name.lower() for kind in component_registers.CompType} == facts["component_types"]
    assert ".".join(map(str, component_registers.VERSION)) == FACTS["spec"]["version"]


def test_every_register_was_compared() -> None:
    """42 registers and 136 fields: units, the timestamp unit of the second component, trigger fields counted once."""
    facts = [r for c in COMPONENTS.values() for array in c.get("register_arrays", ()) for r in array["registers"]]
    facts += [r for c in COMPONENTS.values() for r in c["registers"]]
    once = {r["name"]: r for r in facts}
    fields = {(r["name"], re.sub(r"(Action|Event)\d$", r"\1", f["name"])) for r in once.values() for f in r["fields"]}
    assert (len(once), len(fields)) == (42, 136)
    assert len(REGISTERS) == sum(len(block.registers) for block in RATIFIED.values()) == 185
    assert set(COMPONENTS) == set(KINDS)


def test_arrays() -> None:
    arrays = {array["name"]: array for array in COMPONENTS["encoder"]["register_arrays"]}
    assert {name: array["count"] for name, array in arrays.items()} == {"trTeFilter": 16, "trTeComp": 8}
    for unit, array in ((FILTERS, arrays["trTeFilter"]), (COMPARATORS, arrays["trTeComp"])):
        assert [one.control.offset for one in unit] == [
            array["first_offset"] + n * array["stride"] for n in range(array["count"])
        ]


@pytest.mark.parametrize("unit", [FILTERS[5], COMPARATORS[5]], ids=["filter", "comparator"])
def test_units_have_their_registers_by_name(unit: Any) -> None:
    """The attribute is the register's name in small letters, without the unit's."""
    for attribute, register in unit._asdict().items():
        name = re.sub(r"^trTe(Filter|Comp)5", "", register.name)
        assert re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", name).lower().lstrip("_") == attribute
        assert RATIFIED["encoder"].by_name[register.name] is register
        assert " 5" in register.doc and "{" not in register.doc


def test_only_ports_are_not_read_for_a_look() -> None:
    """Reading trRamData moves the read pointer; no other register does anything when it is read."""
    assert [r.name for block in RATIFIED.values() for r in block.registers if r.port] == ["trRamData"]


def test_block_by_kind_and_version() -> None:
    assert [block(kind) for kind in KINDS] == [RATIFIED[kind] for kind in KINDS]
    assert block("funnel", 2) is RATIFIED["funnel"]
    assert block("funnel", 0).control.name == "tfControl"
    with pytest.raises(NoSuchBlock, match=r"version 0 .* no component of type 'ram_sink'; use one of encoder, funnel"):
        block("ram_sink", 0)
    with pytest.raises(NoSuchBlock, match=r"version 1 .* no component of type 'sink'; use one of encoder, funnel, ram"):
        block("sink")


def test_major_version() -> None:
    """The same bits in all components of both versions."""
    for one in RATIFIED.values():
        assert major(one.impl.pack(**{one.prefix + "VerMajor": 9, one.prefix + "VerMinor": 15})) == 9
    for one in PRE_RATIFIED.values():
        assert major(one.impl.pack(version=9, hasSRAMSink=1)) == 9
