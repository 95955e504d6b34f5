"""Executing a history again as far as it is asked for, and believing less after each contradiction.

A long execution is kept (`kept_states`), and used the next time instead of executing.
"""

from collections.abc import Callable
from typing import TypeVar

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.reconstruction.beliefs import BELIEFS, ImpossibleInstruction
from rvtrace_gdb.decode.reconstruction.facts import KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart
from rvtrace_gdb.session.past.reconstructed.facts import Disagreement, Dropped, HartFacts
from rvtrace_gdb.session.past.reconstructed.kept_states import LEAST, BelievedExecution, KeptStates
from rvtrace_gdb.support.errors import Progress, silent

_T = TypeVar("_T")
_DROPPED = (Dropped.RAM, Dropped.CONSTANTS, Dropped.EVERYTHING)


class Execution:
    """The states of a hart, from the beginning that is known on. *disagreements*: where more was believed than holds.
    *states*: where a long execution is kept.

    What was answered before a contradiction was found may have been wrong: an assumption did not hold.
    """

    def __init__(
        self, history: History, program: Program, facts: HartFacts, states: KeptStates | None = None
    ) -> None:
        self._history, self._program, self._facts = history, program, facts
        self._states = states if len(history) >= LEAST else None
        self._beginning = facts.beginning or KnownState()
        self.disagreements: list[Disagreement] = []
        self._level = 0 if facts.memory else 1
        self._forward: Forward | None = self._new()
        self._is_checked = self._is_looked_for = False

    @property
    def first(self) -> int:
        """The first position of which anything is known."""
        return self._beginning.position

    @property
    def length(self) -> int:
        """The position after the last instruction."""
        return len(self._history)

    @property
    def forward(self) -> Forward | None:
        """What has been executed so far; None: nothing is believed any more."""
        return self._forward

    def hart_at(self, position: int, progress: Progress = silent) -> ExecutedHart | None:
        """Return the hart before the instruction at a position, which is moved by the next question; None: nothing is
        known there.
        """
        if position < self.first:
            return None
        if position >= len(self._history):
            self.complete(progress)
        elif position >= self.first + LEAST:
            self._use_kept()
        return self.ask(lambda forward: forward.hart_at(position, progress))

    def complete(self, progress: Progress = silent) -> Forward | None:
        """Execute the whole history. Return what came of it."""
        self._use_kept()
        self.ask(lambda forward: forward.run(progress))
        while not self._is_checked and self._forward is not None:
            if self._agrees_with_stop():
                self._is_checked = True
                self._keep_states()
            else:
                self._believe_less(len(self._history) - 1, at_stop=True)
                self.ask(lambda forward: forward.run(progress))
        return self._forward

    def ask(self, question: Callable[[Forward], _T]) -> _T | None:
        """Ask what was executed; after a contradiction, again with less belief. None: nothing is believed any more."""
        while self._forward is not None:
            try:
                return question(self._forward)
            except ImpossibleInstruction as error:
                self._believe_less(error.position)
        return None

    @property
    def believes_stop(self) -> bool:
        """Whether the registers that were read at the stop agree with the rest, as far as known."""
        return not any(it.at_stop for it in self.disagreements)

    @property
    def believes_ram(self) -> bool:
        """Whether RAM is believed."""
        return self._level < len(BELIEFS) and BELIEFS[self._level].ram

    def disagree(self, position: int, window: tuple[int, int]) -> None:
        """Believe less: what is known in a part of the history contradicts itself at a position."""
        if self._forward is not None:
            self._believe_less(position, window=window)

    def _agrees_with_stop(self) -> bool:
        stop, length = self._facts.stop, len(self._history)
        if stop is None or self._forward is None or not length:
            return True
        hart = self._forward.hart_at(length)
        pairs = (*zip(hart.x, stop.x, strict=False), *zip(hart.f, stop.f, strict=False))
        return all(a is None or b is None or a == b for a, b in pairs)

    def _believe_less(self, position: int, *, at_stop: bool = False, window: tuple[int, int] | None = None) -> None:
        dropped = _DROPPED[self._level]
        self.disagreements.append(Disagreement(position, self._history.pc(position), dropped, at_stop, window))
        self._level += 1
        self._is_checked = False
        self._forward = self._new() if self._level < len(BELIEFS) else None

    def _use_kept(self) -> None:
        """Go on with what was kept, if there is something, and nothing that contradicts it was found out before."""
        if self._states is None or self._is_looked_for:
            return
        self._is_looked_for = True
        found = None if self.disagreements else self._states.read(len(self._history))
        if found is not None:
            self._level, self._is_checked = found.level, True
            self.disagreements.extend(found.disagreements)
            self._forward = self._new()
            self._forward.use_execution(found.execution)

    def _keep_states(self) -> None:
        if self._states is None or self._forward is None or any(it.window for it in self.disagreements):
            return
        kept = self._forward.kept()
        if kept is not None:
            self._states.write(BelievedExecution(kept, self._level, self.disagreements))

    def _new(self) -> Forward:
        known = self._facts
        belief = BELIEFS[self._level]
        return Forward(self._history, self._program, known.machine, self._beginning, halts=known.halts, belief=belief)
