"""The values of a trace that has only addresses, as a `Past`.

What follows from the beginning is asked first (`execution`); what does not, of windows that also use what came later.
"""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import CSRS, FCSR, FFLAGS, FRM, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.compiler import RESULTS
from rvtrace_gdb.decode.reconstruction.facts import KnownValue
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.known_memory import PAGE
from rvtrace_gdb.session.past.data_trace.accesses import LocatedAccesses
from rvtrace_gdb.session.past.named_registers import NamedRegisters
from rvtrace_gdb.session.past.past import PC, AccessedBytes, NoWrite, PastWrite, TracedRegisters, WantedAccess
from rvtrace_gdb.session.past.program_memory import ProgramMemory
from rvtrace_gdb.session.past.reconstructed.accesses import ReconstructedAccesses
from rvtrace_gdb.session.past.reconstructed.execution import Execution
from rvtrace_gdb.session.past.reconstructed.facts import Disagreement, HartFacts
from rvtrace_gdb.session.past.reconstructed.kept_states import KeptStates
from rvtrace_gdb.session.past.reconstructed.knowledge import (
    Knowledge,
    reasons,
    remedies,
    sampled_positions,
    share,
)
from rvtrace_gdb.session.past.reconstructed.values import ReconstructedValues, RegistersAt
from rvtrace_gdb.session.past.reconstructed.windows import Windows
from rvtrace_gdb.session.past.reconstructed.writers import with_values
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.support.errors import Progress, silent

_MACHINE = "mstatus misa mie mtvec mscratch mepc mcause mtval mip"
_RESULTS = ("a0", "a1", "fa0", "fa1")
assert len(_RESULTS) == len(RESULTS)


class ReconstructedPast:
    """The past of a history. *program*: what is in memory, by context. *facts*: what is known besides the trace.
    *states*: where its values are kept for the next time, if it is long.
    """

    is_reconstructed = True

    def __init__(
        self, history: History, program: ContextImages, facts: HartFacts, states: KeptStates | None = None
    ) -> None:
        facts = facts.boxed()
        self._history, self._program, self._facts = history, program, facts
        self._execution = Execution(history, program, facts, states)
        self._windows = Windows(history, program, facts, self._execution)
        self._values = ReconstructedValues(history, facts, self._execution, self._windows)
        machine_only = facts.machine.machine_only
        self._writers = RegisterWriters(history, program, halts=facts.halts, machine_only=machine_only)
        lost = self._writers.lost_between
        self._traced = LocatedAccesses(history, program) if history.accesses else None
        self._accesses = ReconstructedAccesses(
            self._execution, self._values, self._windows, facts.halts, lost, self._traced
        )
        self._memories: dict[Image, ProgramMemory] = {}
        self._ends: dict[int, KnownValue] = {}
        self._ends_of: Forward | None = None

    @property
    def history(self) -> History:
        return self._history

    @property
    def disagreements(self) -> Sequence[Disagreement]:
        """Where more was believed than holds."""
        return self._execution.disagreements

    def prepare(self, progress: Progress = silent) -> None:
        """Execute the history, and look at its end as a whole."""
        if self._traced is not None:
            self._traced.unknown(progress)
        self._execution.complete(progress)
        self._windows.around(len(self._history), progress, block=False)

    def knowledge(self, progress: Progress = silent, *, overwritten: bool = False) -> Knowledge:
        """Return how much is known, from what, and why not more. *overwritten*: older trace was."""
        self.prepare(progress)
        forward = self._execution.complete(progress)
        is_forward = forward is not None and (self._facts.beginning is not None or not self._facts.is_bare_at_stop)
        found = list(reasons(
            self._history, self._facts, overwritten=overwritten, disagreements=self.disagreements,
            translated=forward.first_translated if forward is not None and is_forward else None,
            unknown=self._writers.unknown_instructions(self._facts.machine, progress),
        ))  # fmt: skip
        known, first, length = self._facts, self._execution.first, len(self._history)
        states = (self._values.integers(position, progress) for position in sampled_positions(first, length))
        return Knowledge(
            known.beginning is not None,
            bool(known.beginning is not None and known.beginning.memory and self._execution.believes_ram),
            known.stop is not None,
            first,
            length,
            known.machine.rams if self._execution.believes_ram else (),
            *share(states),
            found,
            remedies(found),
            self.disagreements,
            known.stop is not None and any(known.stop.memory(address, 1) for address, _ in known.machine.rams),
        )

    # -- registers

    def traced_registers(self) -> TracedRegisters:
        """Return which registers may be known: those of every hart in machine mode, and what a debugger read."""
        known, names = self._facts, {number: name for name, number in CSRS.items()}
        numbers = {CSRS[name] for name in _MACHINE.split()} | ({FFLAGS, FRM, FCSR} if self._facts.flen else set())
        for state in (known.beginning, known.stop):
            numbers |= set(state.csrs) & set(names) if state is not None else set()
        return TracedRegisters(self._facts.flen, {names[number]: number for number in sorted(numbers)})

    def registers(self, position: int) -> Mapping[str, int]:
        """Return the known registers before the instruction at a position; at the end of the history, after the last
        one.
        """
        values = self._registers_at(position)
        return NamedRegisters(
            lambda number: self._stop_pc(position) if number == PC else values(number), self._facts.flen
        )

    def _registers_at(self, position: int) -> RegistersAt:
        """Return the registers at a position: what nothing has written in the trace is what it is at the end."""
        values, length = self._values.registers_at(position), len(self._history)

        def value(number: int) -> KnownValue:
            found = values(number)
            if found is None and position < length and number in self._writers.unwritten:
                return self._at_end(number)
            return found

        return value

    def _at_end(self, number: int) -> KnownValue:
        """Return a register at the end, without going there for each question."""
        if self._ends_of is not self._execution.forward:  # what was believed is not any more
            self._ends.clear()
        if number not in self._ends:
            self._ends[number] = self._values.registers_at(len(self._history))(number)
            self._ends_of = self._execution.forward
        return self._ends[number]

    def _stop_pc(self, position: int) -> KnownValue:
        if position < len(self._history):
            pc = self._history.pc(position)
            return None if pc == GAP else pc
        return None if self._facts.stop is None else self._facts.stop.pc

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        """Return the known integer registers. *trapped*: those after the instruction; no trap changes them."""
        values = self._registers_at(min(position + trapped, len(self._history)))
        return {number: value for number in range(32) if (value := values(X + number)) is not None}

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        """Return whether registers are known at a position, and at every later one: followed for the registers of
        results only.
        """
        known = self.registers(position)
        followed = [name for name in names if name not in ("pc", "zero")]
        if not all(name in _RESULTS and name in known for name in followed):
            return False
        if not followed or self._execution.complete() is None or position < self._execution.first:
            return not followed
        lost = self._execution.ask(lambda forward: forward.lost_from(position))
        return lost is not None and not any(lost >> _RESULTS.index(name) & 1 for name in followed)

    # -- memory

    @property
    def has_memory(self) -> bool:
        """Whether RAM is declared, and wanted."""
        return self._facts.memory and bool(self._facts.machine.rams)

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        """Return each byte as it is at a position, code and constants included."""
        found = self._values.memory(position, address, size)
        if None in found and position >= len(self._history):
            read = self._facts.kernel_memory(address, size)
            found[: len(read)] = [now if byte is None else byte for byte, now in zip(found, read, strict=False)]
        if None not in found:
            return found
        image, rewritten = self._image(position), self._values.rewritten(position)
        for at, byte in enumerate(found):
            if byte is None and address + at & -PAGE not in rewritten:
                found[at : at + 1] = image.constant(address + at, 1) or [None]
        return found if self._traced is None else self._with_accesses(self._traced, found, position, address, image)

    def _with_accesses(
        self, traced: LocatedAccesses, content: list[int | None], position: int, address: int, image: Image
    ) -> list[int | None]:
        """Add what is accessed there, in the program's memory, by the trace itself."""
        if image not in self._memories:
            self._memories[image] = ProgramMemory(image)
        accessed: list[int | None] = [None] * len(content)
        traced.put_into(accessed, position, address, self._memories[image])
        return [other if byte is None else byte for byte, other in zip(content, accessed, strict=True)]

    def _image(self, position: int) -> Image:
        at = max(min(position, len(self._history) - 1), 0)
        return self._program.image_of(self._history.context_at(at))

    # -- writers

    def register_writer(self, position: int, register: int, below: int | None = None) -> PastWrite | NoWrite:
        """Return the last write to a register, which is certain whether or not values are known."""
        found = self._writers.last(position, register, below)
        return found if isinstance(found, NoWrite) else with_values(found, self._values, self._writers)

    def memory_writer(
        self, position: int, address: int, size: int, below: int | None = None
    ) -> PastWrite | NoWrite:
        """Return the last store to any of some bytes; a doubt counts the stores since that may have been to them."""
        return self._accesses.memory_writer(position, address, size, below)

    # -- accesses

    @property
    def has_accesses(self) -> bool:
        return self._accesses.are_known

    def nearest_access(self, position: int, query: WantedAccess, progress: Progress = silent) -> AccessedBytes | None:
        """Return the nearest access at a known address."""
        return self._accesses.nearest(position, **query._asdict(), progress=progress)

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        return self._accesses.unknown(first, last, loads=loads)

    def has_unmapped_stores(self, first: int, last: int) -> bool:
        forward = self._execution.forward
        return forward is not None and forward.is_translated(first, last)
