"""The tandem verifier on what a trace can do besides: groups, and a hart as the model, that the tests make."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.semantics.addressed import addressed
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import ROCKET, Element, Group, Instr, TandemParameters
from rvtrace_gdb.session.verify.masks import BadMask, Masks, foreign_code, masks_of, pages
from rvtrace_gdb.session.verify.model import (
    PC,
    Difference,
    DifferenceKind,
    ModelFailed,
    ModelStep,
    ModelStore,
    ModelTrap,
)
from rvtrace_gdb.session.verify.nondeterminism import sources
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from rvtrace_gdb.support.errors import Cancelled
from tests.decode.tandem.corpus import decoded, program_of
from tests.decode.tandem.groups import INIT, MRET, NOP, RESET, RV64, csr, f, group, loose, pc, priv, store, sw, x
from tests.session.verify.logged_model import Replay


class Hart:
    """A model for traces made by hand: it does what it is told, step by step."""

    def __init__(self, *steps: ModelStep, registers: dict[int, int] | None = None) -> None:
        self._steps = list(steps)
        self.registers = {**dict.fromkeys(range(0x1001, 0x1040), 0), PRIVILEGE: 3, PC: 0, 0x300: 0, 0x344: 0, 0x304: 0}
        self.registers |= {0x341: 0, 0x342: 0, 0x343: 0}
        self.registers |= registers or {}
        self.memory: dict[int, int] = {}
        self.asked: list[int] = []

    def reset(self) -> None:
        return None

    def read_register(self, regno: int) -> int | None:
        return self.registers.get(regno)

    def write_register(self, regno: int, value: int) -> None:
        self.registers[regno] = value

    def read_memory(self, address: int, size: int) -> bytes | None:
        return bytes(self.memory.get(address + at, 0) for at in range(size)) if address >= 0x8000_0000 else None

    def write_memory(self, address: int, data: bytes) -> bool:
        self.memory |= {address + at: byte for at, byte in enumerate(data)}
        return address >= 0x8000_0000

    def step(self) -> ModelStep:
        self.asked.append(self.registers[0x344])
        if not self._steps:
            raise ModelFailed("no more steps")
        step = self._steps.pop(0)
        self.registers |= step.registers
        self.registers[PC] = step.next_pc
        return step

    def configuration(self) -> list[str]:
        return []

    def close(self) -> None:
        return None


START = 0x8000_0000
BEGIN = (group(RESET), group(INIT, pc(START)))
CSRRS_TIME = Instr(0xC010_22F3, 4)  # csrrs t0, time, zero
LW = Instr(0x0003_2283, 4)  # lw t0, 0(t1)


def trace(*groups: Group, parameters: TandemParameters = RV64) -> DecodedTandem:
    return decode(encode(groups, parameters), Image(parameters.xlen), parameters)


def run(hart: Hart, *groups: Group, masks: Sequence[str] = (), parameters: TandemParameters = RV64) -> Verifier:
    verifier = Verifier(trace(*BEGIN, *groups, parameters=parameters), hart, VerifyOptions(masks_of(masks)))
    verifier.found = list(verifier.run())  # type: ignore[attr-defined]
    return verifier


def differences(verifier: Verifier) -> list[Difference]:
    return [difference for one in verifier.found for difference in one.differences]  # type: ignore[attr-defined]


def step(instr: Instr, registers: dict[int, int], at: int = START, **more: object) -> ModelStep:
    return ModelStep(at, instr.word, at + instr.length, registers, **more)  # type: ignore[arg-type]


def test_counters_are_copied() -> None:
    """What rdtime read is not a divergence, and is what the model goes on with."""
    hart = Hart(step(CSRRS_TIME, {0x1005: 7}), step(NOP, {}, START + 4))
    verifier = run(hart, group(pc(START + 4), CSRRS_TIME, x(5, 1000)), group(pc(START + 8), NOP))
    assert not differences(verifier) and hart.registers[0x1005] == 1000
    assert verifier.counts.copied["what CSR instructions read"] == 1


def test_an_interrupt_is_taken_where_the_trace_has_it() -> None:
    """mip is set for that step alone, whatever it was told to be before: the hart saw it then."""
    taken = {0x341: START + 4, 0x342: 1 << 63 | 7, 0x343: 0, 0x300: 0x1880, 0x1005: 0}
    hart = Hart(
        step(NOP, {}),
        ModelStep(START + 4, None, START + 0x100, taken, (), ModelTrap(7, True)),
        step(NOP, {}, START + 0x100),
    )
    regs = [csr(regno, value) for regno, value in taken.items() if regno < 0x1000]
    interrupt = group(pc(START + 0x100), priv(3), *regs)
    verifier = run(
        hart, loose(csr(0x344, 0x80)), group(pc(START + 4), NOP), interrupt, group(pc(START + 0x104), NOP)
    )  # fmt: skip
    assert not differences(verifier) and hart.asked == [0, 0x80, 0]
    assert (verifier.counts.interrupts, verifier.counts.loose) == (1, 1)


def test_a_pending_interrupt_waits_until_the_trace_has_it() -> None:
    hart = Hart(step(NOP, {}), registers={0x344: 2, 0x304: 2})
    assert not differences(run(hart, group(pc(START + 4), NOP)))
    assert hart.asked == [0] and hart.registers[0x344] == 2


def test_an_interrupt_the_model_does_not_take_is_a_divergence() -> None:
    hart = Hart(step(NOP, {}))
    interrupt = group(pc(START + 0x100), priv(3), csr(0x341, START), csr(0x342, 1 << 63 | 7), csr(0x300, 0x1800))
    kinds = {difference.kind for difference in differences(run(hart, interrupt))}
    assert kinds >= {DifferenceKind.TRAP, DifferenceKind.PC, DifferenceKind.CSR}


def test_a_fault_of_the_model_is_a_divergence_where_it_has_memory() -> None:
    """Else it is an access nobody modelled: but that the model has no memory there is what decides."""
    fault = {0x341: START, 0x342: 1, 0x343: START, 0x300: 0x1800}
    hart = Hart(ModelStep(START, None, START + 0x100, fault, (), ModelTrap(1)))
    assert {d.kind for d in differences(run(hart, group(pc(START + 4), NOP)))} >= {
        DifferenceKind.TRAP,
        DifferenceKind.PC,
    }
    fault |= {0x342: 5, 0x343: START + 8}
    hart = Hart(ModelStep(START, LW.word, START + 0x100, fault, (), ModelTrap(5)), registers={0x1006: START + 8})
    load = group(pc(START + 4), LW, x(5, 42), store(START + 8, 4, 0)[1])
    assert {d.kind for d in differences(run(hart, group(INIT, x(6, START + 8)), load))} >= {
        DifferenceKind.TRAP,
        DifferenceKind.PC,
    }
    low = Hart(ModelStep(0x1000, None, 0x2000, fault | {0x342: 1}, (), ModelTrap(1)))
    verifier = run(low, group(INIT, pc(0x1000)), group(pc(0x1004), NOP))
    assert not differences(verifier) and low.registers[PC] == 0x1004
    assert (low.registers[0x341], low.registers[0x300]) == (0, 0)


@pytest.mark.parametrize("wrong", [None, "address", "register"])
def test_a_device(wrong: str | None) -> None:
    """What is read is taken over; where, and into what, is compared. The model does not execute it."""
    told: list[Element] = [
        f(5, 42) if wrong == "register" else x(5, 42),
        store(0x1004 if wrong == "address" else 0x1000, 4, 0)[1],
    ]
    hart = Hart(registers={0x1006: 0x1000})
    lines = [group(INIT, x(6, 0x1000)), group(pc(START + 4), LW, *told)]
    verifier = run(hart, *lines)
    assert verifier.counts.copied["accesses to devices"] == 1 and not hart.asked
    assert [d.kind for d in differences(verifier)] == ([] if wrong is None else [DifferenceKind[wrong.upper()]])
    assert hart.registers[0x1005] == 42 or wrong == "register"


def test_what_a_model_cannot_hold() -> None:
    """A debugger's write that the model does not take is not a divergence, until somebody sees it."""

    class Small(Hart):
        def write_register(self, regno: int, value: int) -> None:
            super().write_register(regno, value & 0xF if regno == 0x340 else value)

    read = Instr(0x3400_22F3, 4)  # csrrs t0, mscratch, zero
    lines = [group(INIT, csr(0x340, 0x21), x(5, 0)), group(pc(START + 4), NOP)]
    verifier = run(Small(step(NOP, {}), registers={0x340: 0}), *lines)
    assert not differences(verifier) and not verifier.refused
    told = group(pc(START + 8), read, x(5, 0x21))
    verifier = run(Small(step(NOP, {}), step(read, {0x1005: 1}, START + 4), registers={0x340: 0}), *lines, told)
    assert [(d.kind, d.bits) for d in differences(verifier)] == [(DifferenceKind.REGISTER, 0x20)]


def test_a_partial_trace() -> None:
    """What no group tells at all is not compared, and is said."""
    hart = Hart(
        step(sw(), {}, stores=(ModelStore(START, b"\0" * 4),)), ModelStep(START + 4, MRET.word, START, {0x300: 0x80})
    )
    verifier = run(hart, group(pc(START + 4), sw()), group(pc(START), MRET))
    assert not differences(verifier) and verifier.missing == {"stores", "trap-status"}
    silent = [group(pc(START + 0x40), Instr(0x73, 4), csr(0x341, START), csr(0x342, 11), csr(0x343, 0), priv(3))]
    took = {0x341: START, 0x342: 11, 0x343: 0, 0x300: 0x1800}
    verifier = run(Hart(ModelStep(START, 0x73, START + 0x40, took, (), ModelTrap(11))), *silent)
    assert not differences(verifier) and verifier.missing == {"trap-status"}


def test_floating_point_makes_mstatus_dirty() -> None:
    """FS becomes Dirty with any of it, told or not; nothing else of mstatus may change."""
    flw = Instr(0x0003_2087, 4)
    lines = [group(INIT, csr(0x300, 0x2000), x(6, START)), group(pc(START + 4), flw, f(1, 0))]
    dirty = 1 << 63 | 0x6000
    assert not differences(run(Hart(step(flw, {0x1021: 0, 0x300: dirty})), *lines))
    assert differences(run(Hart(step(flw, {0x1021: 0, 0x300: dirty | 8})), *lines))


def test_groups_that_are_not_sent_are_no_divergence() -> None:
    rocket = TandemParameters(64, 64, dialect=ROCKET)
    lines = [group(INIT, pc(0x100)), group(pc(START + 4), NOP)]
    verifier = run(Hart(step(NOP, {})), *lines, parameters=rocket)
    assert not differences(verifier)


def test_it_can_be_interrupted_and_the_model_can_fail() -> None:
    def stop(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    verifier = Verifier(decoded("flute_rv64ui-p-lb"), Replay("flute_rv64ui-p-lb"), VerifyOptions(Masks()))
    with pytest.raises(Cancelled):
        list(verifier.run(stop))
    with pytest.raises(ModelFailed):
        run(Hart(), group(pc(START + 4), NOP))


def test_masks_and_their_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("masks") / "masks"
    path.write_text("# which differ\nmstatus:0x600\n\n  tdata1  # no triggers\nstores\nx5:0xff\nmstatus:1\n")
    masks = masks_of(["a0", "0x7a5"], [str(path)])
    assert masks.ignored[0x300] == 0x601 and masks.ignored[0x1005] == 0xFF and masks.absent == {"stores"}
    assert masks.ignored[0x7A1] == masks.ignored[0x100A] == masks.ignored[0x7A5] == (1 << 64) - 1
    for wrong in ("nothing", "mstatus:", "mstatus:x", "stores:1", "", "0x1040"):
        with pytest.raises(BadMask):
            Masks().add(wrong)
    path.write_text("tdata1\nmstat\n")
    with pytest.raises(BadMask, match=":2: there is no register 'mstat'"):
        Masks().add_file(path)


def test_code_outside_of_the_program() -> None:
    name = "flute_rv64ui-p-add"
    code = foreign_code(decoded(name), program_of(name))
    assert [address for address, _ in code] == [0x7000_0000 + 4 * i for i in range(5)] + [
        0xC000_0000 + 4 * i for i in range(3)
    ]
    assert pages(code) == [(0x7000_0000, 0x1000), (0xC000_0000, 0x1000)]


OPERANDS = [
    (0x0062_81B3, 64, {5, 6}, None),  # add gp, t0, t1
    (0x1000_1067 | 2 << 15, 64, {2}, None),  # jalr zero, 256(sp)
    (0x0082_A203, 64, {5}, (5, 8, -1)),  # lw tp, 8(t0)
    (0xFEA4_2C23, 64, {8, 10}, (8, -8, 0x100A)),  # sw a0, -8(s0)
    (0x3045_B4F3, 64, {11}, None),  # csrrc s1, mie, a1
    (0x3044_7073, 64, set(), None),  # csrci mie, 8
    (0x0000_0073, 64, set(), None),  # ecall
    (0x1234_50B7, 64, set(), None),  # lui
    (0x8D0D, 64, {10, 11}, None),  # c.sub a0, a1
    (0x852E, 64, {11}, None),  # c.mv a0, a1
    (0x952E, 64, {10, 11}, None),  # c.add a0, a1
    (0x8502, 64, {10}, None),  # c.jr a0
    (0x4505, 64, set(), None),  # c.li a0, 1
    (0x0505, 64, {10}, None),  # c.addi a0, 1
    (0x4588, 64, {11}, (11, 8, -1)),  # c.lw a0, 8(a1)
    (0xE588, 64, {10, 11}, (11, 8, 0x100A)),  # c.sd a0, 8(a1)
    (0x6522, 64, {2}, (2, 8, -1)),  # c.ldsp a0, 8(sp)
    (0xC42A, 64, {2, 10}, (2, 8, 0x100A)),  # c.swsp a0, 8(sp)
    (0xE119, 64, {10}, None),  # c.bnez a0, .+6
    (0x2009, 32, set(), None),  # c.jal .+2
]


@pytest.mark.parametrize(("word", "xlen", "read", "place"), OPERANDS, ids=[f"{o[0]:#x}" for o in OPERANDS])
def test_operands(word: int, xlen: int, read: set[int], place: tuple[int, int, int] | None) -> None:
    """The encodings are an assembler's."""
    assert sources(word, xlen) == {0x1000 + number for number in read}
    found = addressed(word, xlen)
    assert (None if found is None else (found.base - 0x1000, found.offset, found.data)) == place
