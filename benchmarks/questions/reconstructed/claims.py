"""Claims that a reconstruction makes, compared with the truth: how many values are known, and which are wrong.

What claims is anything with the members of `Claimed`: the hart of `decode.reconstruction.forward`, or a window.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from benchmarks.questions.reconstructed.truth import Run, Truth
from rvtrace_gdb.decode.reconstruction.facts import KnownValue
from rvtrace_gdb.decode.reconstruction.known_memory import PAGE, KnownMemory
from rvtrace_gdb.session.verify.nondeterminism import sources

CLASSES: Mapping[str, tuple[int, ...]] = {
    "sp": (2,), "ra": (1,), "gp tp": (3, 4), "s": (8, 9, *range(18, 28)), "a": tuple(range(10, 18)),
    "t": (5, 6, 7, *range(28, 32)),
}  # fmt: skip
_FIRST_X, _FIRST_F = 0x1000, 0x1020
_SHOWN = 20
_GRANULES = [bytes(255 if mask >> bit & 1 else 0 for bit in range(8)) for mask in range(256)]
"""The bytes of a granule that are known, by `KnownRam.known_bytes`."""


class Wrong(NamedTuple):
    """A wrong value."""

    what: str
    position: int
    pc: int
    claimed: int
    true: int

    def __str__(self) -> str:
        return f"WRONG {self.what} at {self.position} (pc {self.pc:#x}): {self.claimed:#x}, truth {self.true:#x}"


class Share:
    """How many values were asked for, and how many of these were known."""

    def __init__(self) -> None:
        self.asked = self.known = 0

    def add(self, known: int, asked: int = 1) -> None:
        self.asked += asked
        self.known += known

    def join(self, other: "Share") -> None:
        self.add(other.known, other.asked)

    def __str__(self) -> str:
        return f"{100 * self.known / self.asked:.1f}" if self.asked else "-"


class Shares(dict[str, Share]):
    """Shares by name, created on first use."""

    def __missing__(self, name: str) -> Share:
        share = self[name] = Share()
        return share

    def join(self, others: "Shares") -> None:
        for name, share in others.items():
            self[name].join(share)


class Claimed(Protocol):
    """The state that a reconstruction claims."""

    x: list[KnownValue]
    f: list[KnownValue]
    csrs: dict[int, int]
    status: tuple[int, int]


class Claims:
    """All that was compared, over all programs. *wrong*: the first ones; *compared*: values, by kind."""

    def __init__(self) -> None:
        self.wrong: list[Wrong] = []
        self.wrong_count = 0
        self.compared: Counter[str] = Counter()

    @property
    def registers(self) -> int:
        return self.compared["x"] + self.compared["f"]

    def note(self, what: str, position: int, pc: int, claimed: int, true: int) -> None:
        self.wrong_count += 1
        if len(self.wrong) < _SHOWN:
            self.wrong.append(Wrong(what, position, pc, claimed, true))
            print(self.wrong[-1], flush=True)

    def integers(self, x: list[KnownValue], truth: Truth, pc: int) -> int:
        """Compare all x registers. Return how many are known."""
        if x == truth.x:
            self.compared["x"] += 31
            return 31
        known = 0
        for number in range(1, 32):
            value = x[number]
            if value is not None:
                known += 1
                if value != truth.x[number]:
                    self.note(f"x{number}", truth.position, pc, value, truth.x[number])
        self.compared["x"] += known
        return known

    def floats(self, f: list[KnownValue], truth: Truth, pc: int) -> int:
        """Compare all f registers. Return how many are known."""
        if f == truth.f:
            self.compared["f"] += 32
            return 32
        known = 0
        for number, (value, true) in enumerate(zip(f, truth.f, strict=True)):
            if value is not None:
                known += 1
                if value != true:
                    self.note(f"f{number}", truth.position, pc, value, true)
        self.compared["f"] += known
        return known

    def others(self, hart: Claimed, truth: Truth, pc: int) -> None:
        """Compare the CSRs of which the truth is known."""
        for number, value in hart.csrs.items():
            true = truth.csrs.get(number)
            if true is not None:
                self.compared["csr"] += 1
                if true != value:
                    self.note(f"csr {number:#x}", truth.position, pc, value, true)
        value, mask = hart.status
        status = truth.csrs.get(0x300)
        if status is not None and mask:
            self.compared["csr"] += 1
            if (value ^ status) & mask:
                self.note(f"mstatus bits {mask:#x}", truth.position, pc, value, status & mask)

    def memory(self, memory: KnownMemory, truth: Truth, pc: int) -> None:
        """Compare each byte of RAM that is known."""
        for ram in memory.rams:
            for page in range(ram.size // PAGE):
                if not (ram.filled[page] or ram.dirty[page]):
                    continue
                granules = ram.known_bytes[page * PAGE // 8 : (page + 1) * PAGE // 8]
                mask = int.from_bytes(b"".join(_GRANULES[it] for it in granules), "little")
                begin = ram.base + page * PAGE - truth.base
                claimed = int.from_bytes(ram.data[page * PAGE : (page + 1) * PAGE], "little")
                true = int.from_bytes(truth.memory[begin : begin + PAGE], "little")
                self.compared["memory"] += sum(it.bit_count() for it in granules)
                if (claimed ^ true) & mask:
                    at = next(n for n in range(PAGE) if ((claimed ^ true) & mask) >> 8 * n & 255)
                    values = claimed >> 8 * at & 255, true >> 8 * at & 255
                    self.note(f"byte {ram.base + page * PAGE + at:#x}", truth.position, pc, *values)


class Shown:
    """Which share of a stretch is known: registers by class, what instructions read, what they load."""

    def __init__(self, run: Run) -> None:
        self._run, self._sources = run, dict[int, tuple[int, ...]]()
        self.shares = Shares()

    def registers(self, x: Sequence[KnownValue]) -> None:
        for name, numbers in CLASSES.items():
            known = sum(x[number] is not None for number in numbers)
            self.shares[name].add(known, len(numbers))
            self.shares["x"].add(known, len(numbers))

    def reads(self, position: int, x: Sequence[KnownValue], f: Sequence[KnownValue]) -> None:
        """Count the registers that the instruction at a position reads."""
        word = self._run.words[position]
        numbers = self._sources.get(word)
        if numbers is None:
            numbers = self._sources[word] = tuple(sources(word, self._run.xlen))
        for number in numbers:
            value = x[number - _FIRST_X] if number < _FIRST_F else f[number - _FIRST_F]
            self.shares["reads"].add(value is not None)

    def loaded(self, position: int, x: Sequence[KnownValue], f: Sequence[KnownValue]) -> None:
        """Count what the instruction at a position has loaded; the registers are those behind it."""
        effects = self._run.others.get(position)
        if effects is None or not effects.loads:
            return
        rd = self._run.rd[position]
        if rd >= 0:
            self.shares["loads"].add(x[rd] is not None)
        for kind, number, _ in effects.registers:
            if kind == "f":
                self.shares["loads"].add(f[number] is not None)
