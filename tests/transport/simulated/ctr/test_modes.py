"""The CTR recorder against the independent model in all privilege modes, on flows no program need lead to.

The simulated hart has M and U mode only; S, VS and VU are here: random walks through modes by traps and their returns,
with jumps of all types and writes to the control, depth and status registers in between.
"""

import random
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.transport.simulated.ctr.hart_side import CtrRegisters
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild, CtrTransfer, PrivilegeMode, Recorder
from tests.ctr_model.model import Event, Instruction, Model, Trap, Write
from tests.ctr_model.transfers import Kind
from tests.helpers.amounts import LONG, each_seed
from tests.transport.simulated.ctr.test_recorder import ALL_MODES, VERSIONS

M, S, U, VS, VU = PrivilegeMode.M, PrivilegeMode.S, PrivilegeMode.U, PrivilegeMode.VS, PrivilegeMode.VU
TRAPS_TO = {U: (M, S), S: (M, S), M: (M,), VU: (M, S, VS), VS: (M, S, VS)}
RETURNS_TO = {M: (M, S, U, VS, VU), S: (S, U, VS, VU), VS: (VS, VU), U: (), VU: ()}
JUMPS = [Kind(code) for code in (4, 5, 8, 9, 10, 11, 12, 13, 14, 15)]
CONTROLS = {"1.0": (0x34E, 0x24E), "0.1.4": (0x381, 0x281)}
STATUS = {"1.0": 0x14F, "0.1.4": 0x383}
DRAFT_DEPTHS = (0b0000, 0b0001, 0b0011, 0b0111, 0b1111)
CODE = 0x8000_0000


class FakeCode:
    """A program whose instruction at CODE + 256 * type + anything is a transfer of that type; type 0 is none."""

    xlen = 64

    def word(self, pc: int) -> int:
        return pc >> 8 & 0xF

    def kind(self, word: int) -> Kind | None:
        if word == Kind.NOT_TAKEN_BRANCH:  # the model takes any branch for taken until it knows better
            return Kind.TAKEN_BRANCH
        return Kind(word) if word else None


class Swapping(Model):
    """A swap overwrites entry 0 and leaves WRPTR (draft, 5.4), so WRAP, too; the model pops and pushes instead."""

    def _emulate(self, kind: Kind, source: int | None, target: int | None) -> None:
        wrap = self.wrap
        super()._emulate(kind, source, target)
        if kind is Kind.COROUTINE_SWAP:
            self.wrap = wrap


class Walk:
    """A random flow."""

    def __init__(self, version: str, chance: random.Random) -> None:
        self._version, self._chance = version, chance
        self._mode, self._cycle = M, 0
        self.events: list[Event] = []

    def step(self) -> None:
        what = self._chance.random()
        self._cycle += self._chance.choice([1, 1, 2, 30, 5000])
        if what < 0.07:
            self._write()
        elif what < 0.25:
            self._trap()
        elif what < 0.45 and RETURNS_TO[self._mode]:
            self._instruction(Kind.TRAP_RETURN)
            self._mode = self._chance.choice(RETURNS_TO[self._mode])
        else:
            self._instruction(self._chance.choice([*JUMPS, None]))

    def _instruction(self, kind: Kind | None) -> None:
        taken = {4: False, 5: True}.get(kind or 0)
        self.events.append(Instruction(self._pc(kind or 0), self._mode, self._cycle, taken))

    def _trap(self) -> None:
        interrupt = self._chance.random() < 0.5
        cause = self._chance.choice([3, 13, 2, 7])
        self.events.append(Trap(self._pc(0), self._mode, cause, interrupt, self._cycle))
        self._mode = self._chance.choice(TRAPS_TO[self._mode])

    def _pc(self, type: int) -> int:
        return CODE | type << 8 | self._chance.randrange(1, 128) << 1

    def _write(self) -> None:
        register = self._chance.randrange(4)
        virtual = self._mode.virtual
        if register < 2:
            self.events.append(Write(CONTROLS[self._version][register], self._control(), virtual))
        elif register == 2:
            self.events.append(Write(STATUS[self._version], self._chance.getrandbits(15), virtual))
        elif self._version == "1.0":
            self.events.append(Write(0x15F, self._chance.randrange(5), virtual))

    def _control(self) -> int:
        """Modes mostly on, filters mostly off."""
        chance = self._chance
        value = 7 & (chance.getrandbits(3) | chance.getrandbits(3))
        value |= chance.getrandbits(13) & chance.getrandbits(13) & 0x1F00
        value |= (chance.getrandbits(16) & chance.getrandbits(16) & chance.getrandbits(16)) << 32
        value |= chance.choice([0, 0, 1 << 7])  # RASEMU, or the draft's CLR
        return value & ~(0xF << 16) | chance.choice(DRAFT_DEPTHS) << 16


class Pair:
    """A recorder and a model that are told the same."""

    def __init__(self, version: str, elf: Path, exponent_bits: int) -> None:
        self.recorder = Recorder(CtrBuild(version, modes=ALL_MODES, exponent_bits=exponent_bits))
        self.model = Swapping(elf, version, exponent_bits=exponent_bits)
        self.model.code = FakeCode()  # type: ignore[assignment]
        self._registers = CtrRegisters(self.recorder, 64).by_number
        self._waiting: Instruction | Trap | None = None
        self._writes: list[Write] = []
        self._now = 0

    def tell(self, event: Event) -> None:
        self.model.run([event])
        if isinstance(event, Write):
            self._writes.append(event)
        else:
            self._reach(event.pc, PrivilegeMode(event.mode))
            self._waiting = event

    def _reach(self, pc: int, mode: PrivilegeMode) -> None:
        if self._waiting is not None:
            self._now = self._waiting.cycle
            self._transfer(self._waiting, pc, mode)
        for write in self._writes:
            self.recorder.elapse(self._now)
            self._registers[write.csr].write(write.value)
        self._writes = []

    def _transfer(self, event: Instruction | Trap, pc: int, mode: PrivilegeMode) -> None:
        before, now = PrivilegeMode(event.mode), event.cycle
        if isinstance(event, Trap):
            type = TransferType.INTERRUPT if event.interrupt else TransferType.EXCEPTION
            self.recorder.transfer(CtrTransfer(type, event.pc, pc, before, mode, now, event.cause))
        elif event.pc >> 8 & 0xF:
            self.recorder.transfer(CtrTransfer(TransferType(event.pc >> 8 & 0xF), event.pc, pc, before, mode, now))
        else:
            self.recorder.elapse(now)

    def compare(self) -> int:
        """Returns how many valid entries there are."""
        entries = [tuple(self.recorder.buffer.read(n)) for n in range(self.recorder.buffer.depth)]
        assert entries == self.model.entries()
        status = STATUS[self.recorder.build.version]
        assert self._registers[status].read() == self.model.status
        return sum(source & 1 for source, _, _ in entries)


@pytest.fixture(scope="module")
def any_elf() -> Path:
    """The model wants one; its code is not looked at."""
    return Path(__file__).resolve().parents[3] / "data" / "ntrace-reference" / "dhrystone.elf"


@pytest.mark.parametrize("version", VERSIONS)
@each_seed(range(30))
def test_random_walks(any_elf: Path, version: str, seed: int) -> None:
    chance = random.Random(seed)
    walk, pair = Walk(version, chance), Pair(version, any_elf, chance.randrange(5))
    walk.events += [Write(number, 7) for number in CONTROLS[version]]
    told = compared = 0
    for step in range(600):
        walk.step()
        for event in walk.events[told:]:
            pair.tell(event)
        told = len(walk.events)
        if LONG or step % 3 == 0:
            compared += pair.compare()
    assert compared > 200
