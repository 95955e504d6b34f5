"""Windows that end at a stop, of which nothing else is known: compared with the truth."""

import random
import resource
from collections.abc import Iterator, Sequence
from functools import partial
from time import process_time
from typing import NamedTuple, Protocol

from benchmarks.questions.reconstructed.claims import Claims, Shares, Shown
from benchmarks.questions.reconstructed.local_variables import LocalVariables
from benchmarks.questions.reconstructed.truth import Run, Truth
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownValue, StopState
from rvtrace_gdb.decode.reconstruction.window.edges import edge_of_stop
from rvtrace_gdb.decode.reconstruction.window.window import Window

STOPS = {1_000: (0.61, 0.87), 10_000: (0.61, 0.87), 100_000: (0.61,)}
"""Where a run stops, as parts of it, for windows of so many instructions; as in the measurements of the design."""
_BYTES = 8  # near sp, and of the program's data, at each place
DISTANCES = (10, 100, 1_000, 10_000, 100_000)


class Done(Protocol):
    """A program that ran."""

    @property
    def image(self) -> Image: ...
    @property
    def run(self) -> Run: ...
    @property
    def history(self) -> History: ...
    @property
    def machine(self) -> HartMachine: ...


class Cost(NamedTuple):
    """us and bytes an instruction."""

    spent: float
    size: float


def stops(length: int, size: int) -> Iterator[int]:
    """Yield the stops of windows of so many instructions in a history of this length."""
    yield from (int(length * part) for part in STOPS[size] if int(length * part) > size // 2)


def window_at(
    done: Done, ram: tuple[int, int], stop: int, size: int, fault: int | None = None
) -> tuple[Window, int, Cost]:
    """Return a solved window and its first position. *fault*: an address of which the debugger reads a wrong byte."""
    truth = Truth(done.run, done.image, ram)
    truth.go(stop)
    content = bytearray(truth.memory)
    if fault is not None:
        content[fault - truth.base] ^= 0x41

    def read(address: int, count: int) -> bytes:
        offset = address - truth.base
        return bytes(content[max(offset, 0) : offset + count]) if offset >= 0 else b""

    csrs = {0x340: truth.csrs[0x340]} if 0x340 in truth.csrs else {}
    known = StopState(done.run.pcs[stop], list(truth.x), list(truth.f), csrs, read)
    first = max(stop - size, 0)
    before, begin = _resident(), process_time()
    window = Window(
        done.history, ContextImages(done.image), done.machine, first, stop, end=edge_of_stop(known)
    )  # fmt: skip
    window.solve()
    count = stop - first
    return window, first, Cost((process_time() - begin) / count * 1e6, (_resident() - before) / count)


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Compared:
    """Compares windows of one program."""

    def __init__(self, done: Done, ram: tuple[int, int], claims: Claims, variables: LocalVariables) -> None:
        self._done, self._ram, self._claims, self._variables = done, ram, claims, variables

    def window(self, window: Window, first: int, stop: int, shares: Shares, near: Shares, every: int) -> None:
        """Compare registers and loads at each place that is a multiple of *every*, and memory and locals at some."""
        done, claims = self._done, self._claims
        truth, shown = Truth(done.run, done.image, self._ram), Shown(done.run)
        chance = random.Random(f"{first} {stop}")
        looked_at = set(chance.sample(range(first, stop), min(stop - first, 200)))
        has_f = "F" in done.machine.extensions
        for position in range(first, stop):
            if position % every and position not in looked_at:
                continue
            truth.go(position)
            pc = done.run.pcs[position]
            x, f = self._registers(window, position, has_f)
            claims.integers(x, truth, pc)
            if has_f:
                shares["f"].add(claims.floats(f, truth, pc), 32)
            shown.registers(x)
            shown.reads(position, x, f)
            self._loaded(window, position, stop, shown, near)
            if position in looked_at:
                self._anywhere(window, truth, pc, [*x, *f], chance, shares)
        shares.join(shown.shares)

    def _registers(self, window: Window, position: int, has_f: bool) -> tuple[list[KnownValue], list[KnownValue]]:
        x: list[KnownValue] = [0, *(window.x(position, number) for number in range(1, 32))]
        return x, [window.f(position, number) for number in range(32)] if has_f else [None] * 32

    def _loaded(self, window: Window, position: int, stop: int, shown: Shown, near: Shares) -> None:
        before = shown.shares["loads"].asked, shown.shares["loads"].known
        effects = self._done.run.others.get(position)
        if effects is None or not effects.loads:
            return
        rd = self._done.run.rd[position]
        x: list[KnownValue] = [None] * 32
        if rd >= 0:
            x[rd] = window.x(position + 1, rd)
        f: list[KnownValue] = [None] * 32
        for kind, number, _ in effects.registers:
            if kind == "f":
                f[number] = window.f(position + 1, number)
        shown.loaded(position, x, f)
        distance = next((it for it in DISTANCES if stop - position <= it), DISTANCES[-1])
        share = shown.shares["loads"]
        near[f"loads {distance}"].add(share.known - before[1], share.asked - before[0])

    def _anywhere(
        self,
        window: Window,
        truth: Truth,
        pc: int,
        registers: Sequence[KnownValue],
        chance: random.Random,
        shares: Shares,
    ) -> None:
        """Compare bytes near sp and of the program's data, and what gdb would print of variables."""
        position = truth.position
        places = [truth.x[2] + chance.randrange(128) for _ in range(_BYTES)]
        places += [0x8020_0000 + chance.randrange(4096) for _ in range(_BYTES)]
        for address in places:
            byte, true = window.byte(position, address), truth.byte(address)
            if true is None:
                continue
            shares["memory"].add(byte is not None)
            self._claims.compared["memory"] += byte is not None
            if byte is not None and byte != true:
                self._claims.note(f"byte {address:#x}", position, pc, byte, true)
        read = partial(window.byte, position)
        self._variables.compare(list(registers).__getitem__, read, truth, pc, self._claims, shares)
