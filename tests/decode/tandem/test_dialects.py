"""What encoders do differently, one switch each. Sources: see `decode/tandem/protocol.py`."""

from dataclasses import replace

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder, Retired
from rvtrace_gdb.decode.tandem.plausibility import better_parameters, fit, parameter_hint
from rvtrace_gdb.decode.tandem.protocol import (
    DIALECTS,
    FLUTE,
    PICCOLO,
    PICCOLO_2018,
    ROCKET,
    SPECIFICATION,
    TOOOBA,
    TWO_PC,
    AdditionalState,
    FullRegister,
    Instr,
    StateId,
    TandemDialect,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.trace import TraceGroups
from tests.decode.tandem.corpus import DATA, TRACES, parameters_of, trace_bytes
from tests.decode.tandem.groups import INIT, MRET, NOP, RESET, Line, csr, f, group, loose, pc, store, sw, x

SMALL = "flute_rv64-irq"


def read(raw: bytes, parameters: TandemParameters) -> DecodedTandem:
    return decode(raw, Image(parameters.xlen), parameters)


def test_the_names() -> None:
    names = ["specification", "flute", "piccolo", "piccolo-2018", "toooba", "rocket", "two-pc", "reconstructed"]
    assert list(DIALECTS) == names
    assert all(DIALECTS[name].name == name for name in DIALECTS)


def test_effective_addresses_of_xlen_bits() -> None:
    """RV32 with Sv32: MLEN is 34 bits, 5 bytes; Flute, Piccolo and Toooba send effective addresses of 4."""
    line = Line()
    line.add(RESET)
    line(store(0x100, 4, 7), instr=sw())
    for dialect, size in ((SPECIFICATION, 7), (FLUTE, 6), (TOOOBA, 6), (PICCOLO, 6)):
        parameters = TandemParameters(32, 32, 34, dialect=dialect)
        found = line.decoded(parameters)
        raw = bytes(found.trace.data)
        assert raw.count(b"\x07\x03\x00\x01" + bytes(size - 4)) == 1
        assert len(raw) == 3 + 1 + 6 + 5 + 6 + size + 1
        assert found.after(1).memory(0x100, 4) == [7, 0, 0, 0]
    given = TandemParameters(32, 32, 34, 34, dialect=FLUTE)  # the width given wins over the dialect's
    assert given.widths.eaddr == 5 and TandemParameters(32, 32, 34, 32).widths.eaddr == 4


def test_registers_a_debug_module_writes_have_xlen_bits() -> None:
    """Piccolo and Toooba write a floating-point register of a state initialization as if it were an integer one."""
    raw = bytes.fromhex("01 0b 04 2010 44332211 02  01 070a 04000080 11 13000000 04 2010 8877665544332211 02")
    found = read(raw, TandemParameters(32, 64, dialect=PICCOLO))
    assert [one.elements for one in found.trace.groups()] == [
        (INIT, f(0, 0x11223344)),
        (pc(0x8000_0004), NOP, f(0, 0x1122334455667788)),
    ]
    assert TraceGroups.from_bytes(raw, TandemParameters(32, 64, dialect=FLUTE)).losses


def test_the_pc_as_a_register() -> None:
    """Piccolo of September 2018: dpc stands for the pc, and mip comes outside of groups."""
    raw = bytes.fromhex(
        "01 0a 02  01 04 b107 04000080 11 13000000 02  04 4403 80000000"
        "01 04 b107 08000080 11 13000000 04 0510 01000000 02"
    )
    found = read(raw, TandemParameters(32, 64, dialect=PICCOLO_2018))
    assert list(found.history.pcs()) == [0x8000_0000, 0x8000_0004]
    assert found.trace.group(2) == loose(csr(0x344, 0x80))._replace(offset=17, size=7)
    assert [found.after(number).csr(0x344) for number in (1, 2, 3)] == [None, 0x80, 0x80]
    assert found.after(3).csr(0x7B1) is None and found.after(3).pc == 0x8000_0008
    plain = read(raw, TandemParameters(32, 64, dialect=PICCOLO))
    assert plain.after(3).csr(0x7B1) == 0x8000_0008


def test_a_return_with_its_own_address() -> None:
    """Toooba tells the address of mret and sret where it should tell the one they return to."""
    line = Line(0x1000)
    line.add(RESET)
    line(csr(0x341, 0x4000), csr(0x300, 0))
    line.groups.append(group(pc(0x1004), MRET, csr(0x300, 0x80)))
    line.pc = 0x4000
    line(x(5, 1))
    found = line.decoded(TandemParameters(64, 64, dialect=TOOOBA))
    assert list(found.history.pcs()) == [0x1000, 0x1004, 0x4000] and found.index.breaks == []
    assert found.after(2).pc == 0x4000
    elsewhere = line.decoded(TandemParameters(64, 64))  # read without the switch, a group seems to be missing
    assert len(elsewhere.index.breaks) == 1
    del line.groups[1]  # mepc is not known: neither is where it returns to
    unknown = line.decoded(TandemParameters(64, 64, dialect=TOOOBA))
    assert unknown.after(1).pc == 0x4000 and list(unknown.history.pcs()) == [0x1004, 0x4000]


def test_two_addresses() -> None:
    """A reader of such traces expects the instruction's own address and the next one behind state identifier 10."""
    raw = bytes.fromhex("01 070a 00000080 00200080 11 67800000 02  01 070a 00200080 04200080 11 13000000 02")
    found = read(raw, TandemParameters(32, 64, dialect=TWO_PC))
    assert found.trace.group(0).elements[0] == AdditionalState(StateId.PC, 0x8000_2000, 0x8000_0000)
    assert list(found.history.pcs()) == [0x8000_0000, 0x8000_2000]  # known though the first is a jump
    gone = read(raw[:16] + raw[16:].replace(b"\x00\x20\x00\x80", b"\x00\x30\x00\x80", 1), found.trace.parameters)
    assert [missing.why for missing in gone.index.breaks] == [
        "groups are missing: the pc was 0x80002000, and what follows is an instruction at 0x80003000"
    ]


def test_groups_below_an_address_are_dropped() -> None:
    """Rocket sends no group whose pc is below 0x8000000: the boot ROM."""
    parameters = TandemParameters(64, 64, dialect=ROCKET)
    sent: list[bytes] = []
    encoder = GroupEncoder(parameters, sent.append)
    for own, to in ((0x1_0000, 0x1_0004), (0x1_0004, 0x8000_0000), (0x8000_0000, 0x8000_0004)):
        instr = Instr(0x8067, 4) if to == 0x8000_0000 else NOP
        encoder.put(Retired(to, instr, own=own))
    encoder.put(Retired(0x2000, Instr(0x8067, 4), own=0x8000_0004))
    encoder.put(Retired(0x8000_0014, NOP, own=0x8000_0010))
    found = read(b"".join(sent), parameters)
    assert len(found.trace) == 3
    assert [address for address in found.history.pcs() if address > 0] == [0x8000_0000, 0x8000_0010]
    assert found.history.gaps == 1
    assert found.index.breaks[0].why.startswith("groups are missing: the pc was 0x80000004")


def test_operands_of_atomic_operations() -> None:
    """Flute sends what amoadd adds; the next amoadd of the corpus loads what that makes of it."""
    name = "flute_rv64ua-p-amoadd_d"
    for dialect, agrees in ((FLUTE, True), (SPECIFICATION, False), (ROCKET, None)):
        found = read(trace_bytes(name), TandemParameters(64, 64, dialect=dialect))
        amos = [
            number
            for number, one in enumerate(found.trace.groups())
            if one.instr is not None and one.instr.word & 0x7F == 0x2F
        ]
        first, second = amos[:2]
        loaded = next(e.value for e in found.trace.group(second).elements if isinstance(e, FullRegister))
        stored = found.after(first).memory(0x8000_2000, 8)
        assert stored == [None] * 8 if agrees is None else (stored == list(loaded.to_bytes(8, "little"))) == agrees


def test_no_instruction_does_not_mean_an_interrupt() -> None:
    """Flute leaves the instruction out on a fetch fault: the top bit of xcause tells."""
    line = Line(0x1000)
    line()
    line.add(pc(0x40), csr(0x342, 12), csr(0x341, 0x1004), csr(0x300, 0), csr(0x343, 0x1004))
    found = line.decoded()
    assert [(trap.cause, trap.interrupt) for trap in found.index.traps] == [(12, False)]


# --- which parameters a trace has


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_read_with_the_other_xlen_says_so(name: str) -> None:
    right = parameters_of(name)
    wrong = TandemParameters(96 - right.xlen, 64, dialect=right.dialect)
    data = trace_bytes(name)
    assert parameter_hint(data, right) == ""
    text = parameter_hint(data, wrong)
    assert text.startswith(f"the trace cannot be read as RV{wrong.xlen}, FLEN 64, MLEN {wrong.xlen}")
    assert f": this looks like RV{right.xlen}, " in text
    first = fit(data, wrong).first
    assert first is not None and first <= 0x40


def test_a_wrong_flen_or_mlen_or_dialect() -> None:
    line = Line(0x1000)
    line.add(RESET)
    for number in range(40):
        line(f(number % 32, number), csr(0x300, 3 << 13))
        line(store(0x100 + number, 4, number), instr=sw())
    every = [
        TandemParameters(32, 64),
        TandemParameters(32, 32),
        TandemParameters(32, 32, 34),
        TandemParameters(64, 32),
        TandemParameters(64, 64),
    ]
    for right in every:
        raw = bytes(line.decoded(right).trace.data)
        for wrong in every:
            found = better_parameters(raw, wrong)
            assert (found is None and wrong == right) or (found is not None and found.widths == right.widths)
    two = Line(0x1000)
    two.groups = [
        group(AdditionalState(StateId.PC, 0x1004 + 4 * n, 0x1000 + 4 * n), Instr(0x13, 4), x(5, n)) for n in range(50)
    ]
    raw = bytes(two.decoded(TandemParameters(64, 64, dialect=TWO_PC)).trace.data)
    found = better_parameters(raw, TandemParameters(64, 64))
    assert found is not None and found.dialect is TWO_PC


def test_what_is_no_tandem_trace_at_all() -> None:
    assert parameter_hint(b"\x7fELF" + bytes(400), TandemParameters()).endswith(
        "nor with other parameters: is it a tandem trace?"
    )
    assert parameter_hint(b"", TandemParameters()) == ""


@pytest.mark.parametrize(
    ("elf", "xlen", "flen"),
    [("rv32ui-p-add", 32, 64), ("rv64ui-p-add", 64, 64), ("rv32-hello", 32, 64), ("rv64-irq", 64, 64)],
)
def test_parameters_from_the_elf(elf: str, xlen: int, flen: int) -> None:
    found = TandemParameters.of_elf(DATA / "riscv-tests" / elf, dialect=FLUTE)
    assert (found.xlen, found.flen, found.mlen_bits) == (xlen, flen, xlen)
    assert str(found) == f"RV{xlen}, FLEN {flen}, MLEN {xlen}, flute"


BLUESPEC = (FLUTE, PICCOLO, PICCOLO_2018, TOOOBA)


@pytest.mark.parametrize("dialect", BLUESPEC)
@pytest.mark.parametrize("xlen", [32, 64])
def test_sstatus_of_these_cores_has_no_vs(dialect: TandemDialect, xlen: int) -> None:
    """CSR_MSTATUS.bsv: sstatus_mask has neither bits 10:9 nor 6, 23 and 24; mstatus of Flute keeps what is in 10:9."""
    dirty = 1 << xlen - 1
    line = Line(0x8000_0000)
    line(csr(0x300, dirty | 0x0066_6680))
    line(csr(0x100, dirty | 0x0004_6122))
    line(csr(0x100, 0))
    found = line.decoded(TandemParameters(xlen, 64, dialect=dialect))
    assert found.after(0).csr(0x100) == dirty | 0x0004_6000
    assert [found.after(n).csr(0x300) for n in (1, 2)] == [dirty | 0x0066_67A2, 0x0062_0680]
    assert line.decoded(TandemParameters(xlen, 64)).after(2).csr(0x300) == 0x0062_0080


@pytest.mark.parametrize("dialect", BLUESPEC)
def test_sie_of_these_cores_is_whatever_mideleg_says(dialect: TandemDialect) -> None:
    """CSR_MIE.bsv, CSR_MIP.bsv, CsrFile.bsv: sie and sip have fixed bits of mie and mip."""
    bits = 0x222 if dialect is TOOOBA else 0x333
    line = Line()
    line(csr(0x304, 0xAAA))
    line(csr(0x104, 0x020))  # mideleg was never told
    line(csr(0x303, 0))
    line(csr(0x104, 0x202))
    line(csr(0x344, 0x8A2))
    line(csr(0x144, 0x020))
    found = line.decoded(TandemParameters(64, 64, dialect=dialect))
    assert [found.after(n).csr(0x104) for n in range(4)] == [0x222, 0x020, 0x020, 0x202]
    assert [found.after(n).csr(0x304) for n in range(4)] == [0xAAA, 0x8A8, 0x8A8, 0xA8A]
    assert found.after(4).csr(0x144) == 0x022 and found.after(5).csr(0x344) == 0x8A0
    line.groups[4:] = []
    line(csr(0x304, 0xFFF))
    assert line.decoded(TandemParameters(64, 64, dialect=dialect)).after(4).csr(0x104) == bits


def sent(parameters: TandemParameters, steps: list[Retired]) -> bytes:
    found: list[bytes] = []
    encoder = GroupEncoder(parameters, found.append)
    encoder.reset()
    encoder.begin(0x8000_0000)
    for step in steps:
        encoder.put(step)
    encoder.finish()
    return b"".join(found)


def returning() -> list[Retired]:
    """Functions that are called by mret."""
    steps: list[Retired] = []
    for number in range(30):
        pc, to = 0x8000_0000 + 64 * number, 0x8000_0040 + 64 * number
        steps += [Retired(pc + 4, NOP, gpr=(5, number)), Retired(pc + 8, NOP, csrs=((0x341, to),))]
        steps.append(Retired(to, MRET, csrs=((0x300, 0x88),), privilege=3))
    return steps


@pytest.mark.parametrize(
    ("right", "wrong"), [(TOOOBA, FLUTE), (FLUTE, TOOOBA), (PICCOLO_2018, FLUTE), (FLUTE, PICCOLO_2018)]
)
def test_a_dialect_whose_addresses_mean_something_else(right: TandemDialect, wrong: TandemDialect) -> None:
    """The bytes have the same layout: what the trace says of itself tells."""
    said = TandemParameters(64, 64, dialect=right)
    raw = sent(said, returning())
    assert parameter_hint(raw, said) == ""
    text = parameter_hint(raw, replace(said, dialect=wrong))
    if (right, wrong) == (FLUTE, PICCOLO_2018):  # that the pc is told in the usual way, too, is no contradiction
        assert text == ""
    else:
        what = "cannot be read" if wrong is TOOOBA else "contradicts itself"  # one of Toooba's widths is another
        assert text.startswith(f"the trace {what} as RV64, FLEN 64, MLEN 64, {wrong.name}: ")
        assert text.endswith(f"this looks like RV64, FLEN 64, MLEN 64, {right.name}")


@pytest.mark.parametrize("name", TRACES)
def test_the_right_dialect_is_not_doubted(name: str) -> None:
    right = parameters_of(name)
    assert parameter_hint(trace_bytes(name), right) == ""
    damaged = trace_bytes(name)[:600] + trace_bytes(name)[700:]
    assert parameter_hint(damaged, right) == ""


def test_a_wrong_dialect_is_not_blamed_on_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Read as Toooba's, Flute's mret seems to be where it returned to."""
    tvt, elf = (str(DATA / name) for name in ("tandem/flute_rv64si-p-csr.tvt", "riscv-tests/rv64si-p-csr"))
    assert main(["decode", tvt, "--tandem", "--dialect", "toooba", "--elf", elf]) == 0
    err = capsys.readouterr().err
    assert (
        "this looks like RV64, FLEN 64, MLEN 64, flute: for raw bytes give --dialect flute;" in err
    )
    assert "is this the program that ran" not in err
