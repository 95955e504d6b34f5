"""The CSRs of both versions against facts compiled from the documents (tests/data/ctr), and what their text says."""

import json
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.ctr import entries, registers_0_1_4, registers_1_0
from rvtrace_gdb.controlregs.ctr.entries import RECORDABLE, TransferType
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS, CtrVersion
from rvtrace_gdb.controlregs.fields import Csr, Field, FieldAccess, FieldSet, IndirectRegister, Reset, reserved

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data/ctr/ctr_versions.json").read_text())
CSRS = {csr.name: csr for csr in registers_1_0.REGISTERS} | {
    f"draft {csr.name}": csr for csr in registers_0_1_4.REGISTERS
}


def bits(fields: FieldSet) -> dict[str, list[int]]:
    return {name: [fields.lsb(name) + field.width - 1, fields.lsb(name)] for name, field in fields.by_name.items()}


@pytest.mark.parametrize("key", ["v1.0", "v0.1.4"])
def test_numbers(key: str) -> None:
    registers = registers_1_0.REGISTERS if key == "v1.0" else registers_0_1_4.REGISTERS
    assert {csr.name: csr.number for csr in registers} == FACTS[key]["csrs"]


@pytest.mark.parametrize("name", ["mctrctl", "sctrdepth", "sctrstatus", "sctrctl", "vsctrctl"])
def test_fields_of_1_0(name: str) -> None:
    facts = FACTS["v1.0"]
    expected = facts.get(name) or {
        field: where for field, where in facts["mctrctl"].items() if field not in facts[f"{name}_hidden"]
    }
    assert bits(CSRS[name]) == expected


@pytest.mark.parametrize("name", ["mctrcontrol", "mctrstatus", "sctrstatus"])
def test_fields_of_0_1_4(name: str) -> None:
    facts = FACTS["v0.1.4"]["mctrcontrol" if name == "mctrcontrol" else "mctrstatus"]
    assert bits(CSRS[f"draft {name}"]) == {field: at for field, at in facts.items() if field != "custom_reserved"}


def test_sctrcontrol_hides_m_and_mte() -> None:
    """2.2: bits 0 and 8 are read-only 0, all other fields are accessible."""
    seen = bits(registers_0_1_4.MCTRCONTROL)
    assert bits(registers_0_1_4.SCTRCONTROL) == {name: at for name, at in seen.items() if name not in ("M", "MTE")}


def test_vsctrcontrol() -> None:
    """2.3: VS, VU and VSTE where S, U and STE are; DEPTH is a copy that cannot be written; all else as mctrcontrol."""
    expected = bits(registers_0_1_4.SCTRCONTROL)
    for guest, host in (("VS", "S"), ("VU", "U"), ("VSTE", "STE")):
        expected[guest] = expected.pop(host)
    assert bits(registers_0_1_4.VSCTRCONTROL) == expected
    assert registers_0_1_4.VSCTRCONTROL.by_name["DEPTH"].access is FieldAccess.RO


@pytest.mark.parametrize("name", ["mctrcontrol", "sctrcontrol", "vsctrcontrol"])
def test_upper_halves(name: str) -> None:
    """Bits 63:32 under the same names, for RV32."""
    whole, half = CSRS[f"draft {name}"], CSRS[f"draft {name}h"]
    assert bits(half) == {n: [high - 32, low - 32] for n, (high, low) in bits(whole).items() if low >= 32}
    assert (half.bits, half.number) == (32, whole.number + 1)


@pytest.mark.parametrize("name", CSRS)
def test_register(name: str) -> None:
    """Widths: 1.0 has 64-bit control and 32-bit depth and status; the draft's control is as wide as the hart."""
    csr = CSRS[name]
    control = "ctl" in name or "control" in name
    half = name.endswith("h") and control
    assert csr.bits == (64 if control and not half else 32)
    assert csr.wide == (name.startswith("draft") and control and not half)
    assert csr.doc and all(f.doc for f in csr.fields)
    assert all(f.width == 1 for n, f in csr.by_name.items() if n not in ("DEPTH", "WRPTR", "Custom"))


def test_what_has_to_be_there() -> None:
    """1.0: all fields are optional except M, S, U and BPFRZ (of `mctrctl`): those can simply be written."""
    access = {name: f.access for name, f in registers_1_0.MCTRCTL.by_name.items()}
    assert {name for name, kind in access.items() if kind is FieldAccess.RW} == {"M", "S", "U", "BPFRZ"}
    assert {name for name, kind in access.items() if kind is FieldAccess.WARL} == access.keys() - {
        "M",
        "S",
        "U",
        "BPFRZ",
    }


def test_clear_bit() -> None:
    """Draft 2.1: an action, and it reads 0; 2.3 the same for V=1. No other field is one."""
    for csr in registers_0_1_4.REGISTERS:
        actions = {name for name, f in csr.by_name.items() if f.access is FieldAccess.W1}
        assert actions == ({"CLR"} if csr.name.endswith("control") else set())
    assert registers_0_1_4.CLR.reset == 0
    assert all(f.reset is Reset.UNDEFINED for csr in registers_1_0.REGISTERS for f in csr.by_name.values())


@pytest.mark.parametrize(
    ("prefix", "csrs"),
    [("m", entries.MACHINE), ("s", entries.SUPERVISOR), ("vs", entries.VIRTUAL)],
    ids=["m", "s", "vs"],
)
def test_indirect_csrs(prefix: str, csrs: tuple[Csr, ...]) -> None:
    select, *entry = csrs
    first = {"m": 0x350, "s": 0x150, "vs": 0x250}[prefix]
    assert [(csr.name, csr.number) for csr in csrs] == [
        (f"{prefix}iselect", first),
        (f"{prefix}ireg", first + 1),
        (f"{prefix}ireg2", first + 2),
        (f"{prefix}ireg3", first + 3),
    ]
    assert all(csr.wide for csr in csrs) and select.mask(select.name) == (1 << 64) - 1
    if prefix != "m":  # 1.0 says the same
        named = FACTS["v1.0"]["indirect"]
        assert f"{select.name} {select.number:#x}" in named["select"]
        for role, csr in zip(("source", "target", "data"), entry, strict=True):
            assert f"{csr.name} {csr.number:#x}" in named[role]


def test_range_of_entries() -> None:
    for key in ("v1.0", "v0.1.4"):
        assert FACTS[key]["indirect"]["range"] == [entries.ENTRY_SELECT, entries.ENTRY_SELECT + entries.ENTRIES_MAX - 1]


@pytest.mark.parametrize("part", [entries.SOURCE, entries.TARGET, entries.DATA], ids=lambda part: str(part.name))
def test_entry_registers(part: FieldSet) -> None:
    assert (bits(part), part.bits) == (FACTS["common_entry"][part.name], 64)
    assert part.doc and all(f.doc for f in part.fields)


def test_transfer_types() -> None:
    """1.0 "Control Transfer Type Definitions" and draft 3.3 number them alike."""
    names = {
        "exception": TransferType.EXCEPTION,
        "interrupt": TransferType.INTERRUPT,
        "trap_return": TransferType.TRAP_RETURN,
        "not_taken_branch": TransferType.NOT_TAKEN_BRANCH,
        "taken_branch": TransferType.TAKEN_BRANCH,
        "indirect_call": TransferType.INDIRECT_CALL,
        "direct_call": TransferType.DIRECT_CALL,
        "indirect_jump": TransferType.INDIRECT_JUMP,
        "direct_jump": TransferType.DIRECT_JUMP,
        "coroutine_swap": TransferType.COROUTINE_SWAP,
        "function_return": TransferType.FUNCTION_RETURN,
        "other_indirect_jump_with_link": TransferType.OTHER_INDIRECT_JUMP,
        "other_direct_jump_with_link": TransferType.OTHER_DIRECT_JUMP,
    }
    assert {str(int(kind)): name for name, kind in names.items()} == FACTS["common_entry"]["type"]
    assert set(RECORDABLE) == set(names.values())
    assert set(TransferType) - set(RECORDABLE) == {0, 6, 7}


def test_plurals() -> None:
    assert TransferType.TAKEN_BRANCH.plural == "taken branches"
    assert TransferType.FUNCTION_RETURN.plural == "function returns"


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_filters_are_at_32_plus_type(version: CtrVersion) -> None:
    control = version.machine.control.csr
    assert version.filters.keys() == set(RECORDABLE)
    assert {kind: control.lsb(name) for kind, name in version.filters.items()} == {k: 32 + k for k in RECORDABLE}
    for view in (version.supervisor.control.csr, version.virtual.csr):
        assert all(view.lsb(name) == 32 + kind for kind, name in version.filters.items())


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_roles(version: CtrVersion) -> None:
    """Every field that a role names is one of its register, and every mode has its bit."""
    facts = FACTS[f"v{version.key}"]
    machine = facts["mctrctl" if version.key == "1.0" else "mctrcontrol"]
    control = version.machine.control
    assert {mode: [control.csr.lsb(name)] * 2 for mode, name in control.modes.items()} == {
        mode: machine[mode.upper()] for mode in "msu"
    }
    assert {mode: [control.csr.lsb(name)] * 2 for mode, name in control.external.items()} == {
        mode: machine[mode.upper() + "TE"] for mode in "ms"
    }
    below = version.supervisor.control
    assert (set(below.modes), set(below.external)) == ({"s", "u"}, {"s"})
    for guest, host in (("vs", "s"), ("vu", "u")):
        assert version.virtual.csr.lsb(version.virtual.modes[guest]) == control.csr.lsb(control.modes[host])
    assert version.virtual.csr.lsb(version.virtual.external["vs"]) == control.csr.lsb(control.external["s"])
    assert version.stateen_bit == facts["stateen_bit"]


def test_depth_codes() -> None:
    assert {int(code): entries for entries, code in VERSIONS["0.1.4"].depth_codes.items()} == {
        int(code): entries for code, entries in FACTS["v0.1.4"]["depth_encoding"].items()
    }
    assert {int(code): entries for entries, code in VERSIONS["1.0"].depth_codes.items()} == {
        code: 16 << code for code in range(5)
    }
    assert [VERSIONS["1.0"].entries(code) for code in range(8)] == [16, 32, 64, 128, 256, None, None, None]
    assert [VERSIONS["0.1.4"].entries(code) for code in (2, 7, 15)] == [None, 128, 256]


def test_what_the_versions_do_differently() -> None:
    ratified, draft = VERSIONS["1.0"], VERSIONS["0.1.4"]
    assert (ratified.clear, ratified.wrap, ratified.external_enable) == (None, None, None)
    assert (draft.clear, draft.wrap, draft.external_enable) == ("CLR", "WRAP", "ETEN")
    assert ratified.depth is registers_1_0.SCTRDEPTH and draft.depth is None
    assert [level.indirect.select.name for level in ratified.levels] == ["siselect", "siselect"]
    assert [level.indirect.select.name for level in draft.levels] == ["miselect", "siselect"]
    assert [level.status.name for level in ratified.levels] == ["sctrstatus", "sctrstatus"]
    assert [level.status.name for level in draft.levels] == ["mctrstatus", "sctrstatus"]
    assert {level.control.high for level in ratified.levels} | {ratified.virtual.high} == {None}
    assert draft.machine.control.high is registers_0_1_4.MCTRCONTROLH
    assert str(registers_1_0.SCTRCLR.to_bytes(4, "big").hex()) in FACTS["v1.0"]["clear"]


def test_external_traps() -> None:
    """1.0 "External Trap Enable Requirements", row by row; the draft (5.2.1) asks for the target's bit only."""
    rows = {
        ("u", "s"): "s", ("u", "m"): "m s", ("s", "m"): "m", ("vu", "vs"): "vs", ("vu", "s"): "s vs",
        ("vu", "m"): "m s vs", ("vs", "s"): "s", ("vs", "m"): "m s",
    }  # fmt: skip
    ratified, draft = VERSIONS["1.0"], VERSIONS["0.1.4"]
    assert {key: " ".join(sorted(needed)) for key, needed in ratified.external_traps.items()} == rows
    assert draft.external_traps == {key: frozenset({key[1]}) for key in rows}


def test_all_csrs_of_a_version() -> None:
    """What a user has to make accessible."""
    assert [csr.name for csr in VERSIONS["1.0"].csrs] == [
        "sctrctl", "sctrstatus", "siselect", "sireg", "sireg2", "sireg3", "sctrdepth", "vsctrctl", "mctrctl"
    ]  # fmt: skip
    assert [csr.name for csr in VERSIONS["0.1.4"].csrs] == [
        "siselect", "sireg", "sireg2", "sireg3", "sctrcontrol", "sctrcontrolh", "sctrstatus",
        "vsctrcontrol", "vsctrcontrolh", "miselect", "mireg", "mireg2", "mireg3",
        "mctrcontrol", "mctrcontrolh", "mctrstatus",
    ]  # fmt: skip
    assert VERSIONS["1.0"].key == next(iter(VERSIONS)) == "1.0"


def test_declarations_are_checked() -> None:
    with pytest.raises(ValueError, match="the fields of c have 31 bits, not 32 or 64"):
        Csr("c", 0x100, "", (Field("a", 31),))
    with pytest.raises(ValueError, match="the fields of c have 32 bits, not 64"):
        Csr("c", 0x100, "", (Field("a", 32),), wide=True)
    with pytest.raises(ValueError, match="c cannot be CSR 0x1000"):
        Csr("c", 0x1000, "", (Field("a", 32),))
    with pytest.raises(ValueError, match="the fields of e have 33 bits, not 64"):
        IndirectRegister("e", "", (Field("a", 32), reserved(1)))
