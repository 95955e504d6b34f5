"""What Spike executed, as a history that has addresses and traps only, and as the state after each instruction."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import History, Path
from tests.transport.simulated.hart.spike import Commit, SpikeRun, SpikeTrap


def history_of(run: SpikeRun) -> History:
    """As from a trace without causes of traps. Straight code is one path, and the same path each time."""
    builder, paths, pcs = HistoryBuilder(), dict[tuple[int, ...], Path](), list[int]()

    def end() -> None:
        if pcs:
            builder.append(paths.setdefault(tuple(pcs), Path((tuple(pcs),))))
            pcs.clear()

    for step in run.steps:
        if isinstance(step, SpikeTrap):
            end()
            interrupt = isinstance(step.name, int)
            kind = TrapKind.INTERRUPT if interrupt else TrapKind.EXCEPTION
            builder.event(EventKind.TRAP, 0, Trap(kind, step.name if isinstance(step.name, int) else None))
            continue
        if pcs and not 0 < step.pc - pcs[-1] <= 4:
            end()
        pcs.append(step.pc)
    end()
    return builder.finish(Accounting(0, 0, 0, 0))


@dataclass
class Truth:
    """The state of Spike's hart: what was written since its boot ROM ended."""

    x: dict[int, int] = field(default_factory=lambda: {0: 0})
    f: dict[int, int] = field(default_factory=dict)
    csrs: dict[int, int] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)

    def apply(self, commit: Commit) -> None:
        self.x |= commit.x
        self.f |= commit.f
        self.csrs |= commit.csrs
        for address, size, value in commit.stores:
            self.memory |= dict(enumerate(value.to_bytes(size, "little"), address))


def states(run: SpikeRun) -> Iterator[tuple[int, Truth, Commit]]:
    """Yield (position, the state before it, the instruction there); the same `Truth` each time."""
    truth, position = Truth(), 0
    for step in run.steps:
        if isinstance(step, Commit):
            yield position, truth, step
            truth.apply(step)
            position += 1
