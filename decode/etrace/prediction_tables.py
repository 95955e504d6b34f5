"""The branch predictor and the jump target cache of an encoder, which are not part of a state.

Source: Efficient Trace for RISC-V 2.0, "Branch prediction mode" and "Jump target cache mode".
"""

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.decode.etrace.options import Parameters
from rvtrace_gdb.decode.history.checkpoints import packed, unpacked

NOT_CACHED = -1
"""Stands for the address of an empty cache entry."""

INITIAL = 0b01
"""The state of each entry of the predictor after a reset."""

# "00: to 01 if prediction fails; 01: to 00 if it succeeds, else 11; 11: to 10 if it fails; 10: to 11 if it succeeds,
# else 00." The high bit is the prediction, the low one the last outcome.
_SUCCESSORS = (bytes((0b00, 0b00, 0b00, 0b10)), bytes((0b01, 0b11, 0b11, 0b11)))

Training = tuple[tuple[int, bytes], ...]
"""The effect of branches on the predictor: for each index, the new state for each of the four old states."""


CacheEntries = tuple[tuple[int, int], ...]
"""Jump targets to enter in the cache, as (index, target)."""


@dataclass(slots=True)
class TableEffect:
    """The effect of a packet on the tables: it trains the predictor, enters jump targets, or resets both.

    *resets* precedes *training*, which is then that of the instruction that the synchronization reports.
    """

    training: Training = ()
    targets: CacheEntries = ()
    resets: bool = False


class PredictionTables:
    """The branch predictor and the jump target cache of one hart."""

    def __init__(self, parameters: Parameters) -> None:
        self._lsb = parameters.iaddress_lsb
        self._branch_mask = (1 << parameters.bpred_size) - 1
        self._jump_mask = (1 << parameters.cache_size) - 1
        self.states = bytearray([INITIAL]) * (1 << parameters.bpred_size)
        """The states of the predictor by index."""
        self.targets: MutableMapping[int, int] = {}
        """The targets in the cache by index."""

    def reset(self) -> None:
        """Reset both tables, as at a synchronization packet."""
        self.states[:] = bytes([INITIAL]) * len(self.states)
        self.targets.clear()

    def entry_values(self) -> list[Any]:
        """Return the entries of both as JSON values."""
        return [packed(self.states), [list(entry) for entry in self.targets.items()]]

    def use_entries(self, entries: Sequence[Any]) -> None:
        """Take the entries that `entry_values` of the tables of such an encoder returned. Raises BadCheckpoint."""
        states, targets = entries
        self.states[:] = unpacked(states)
        self.targets.update(targets)

    def apply(self, effect: TableEffect) -> None:
        """Apply the effect of a packet."""
        if effect.resets:
            self.reset()
        for index, successor in effect.training:
            self.states[index] = successor[self.states[index]]
        for index, target in effect.targets:
            self.targets[index] = target

    @property
    def predictor(self) -> tuple[int, int, bytes]:
        """How the index of a branch comes from its address: shift and mask; and what each state becomes if a branch is
        not taken, and if it is.
        """
        return self._lsb, self._branch_mask, b"".join(_SUCCESSORS)

    def branch_index(self, pc: int) -> int:
        """Return the index of the predictor entry for a branch."""
        return pc >> self._lsb & self._branch_mask

    def jump_index(self, target: int) -> int:
        """Return the index of the cache entry for a jump target."""
        return target >> self._lsb & self._jump_mask

    def entries(self, targets: Iterable[int]) -> CacheEntries:
        """Return these jump targets with their indices."""
        return tuple((self.jump_index(target), target) for target in targets)

    def predicts(self, pc: int) -> bool:
        """Whether a branch is predicted to be taken."""
        return self.states[self.branch_index(pc)] > 1

    def train(self, pc: int, taken: bool, before: dict[int, int]) -> bool:
        """Train the predictor with the outcome of a branch, and return whether its entry changed.

        *before* receives the first state of each entry used.
        """
        index = self.branch_index(pc)
        state = self.states[index]
        before.setdefault(index, state)
        self.states[index] = successor = _SUCCESSORS[taken][state]
        return state != successor

    def change(self, before: dict[int, int]) -> Training:
        """Return the change of the entries in *before*, and restore these entries."""
        change = tuple((index, bytes([self.states[index]]) * 4) for index in before)
        for index, state in before.items():
            self.states[index] = state
        return change

    def training(self, outcomes: Iterable[tuple[int, bool]]) -> Training:
        """Return the effect of these outcomes (address, taken), in order."""
        known: dict[int, bytes] = {}
        for pc, taken in outcomes:
            index = self.branch_index(pc)
            before = known.get(index)
            known[index] = _SUCCESSORS[taken] if before is None else before.translate(_TRANSLATE[taken])
        return tuple(known.items())


_TRANSLATE = tuple(successor + bytes(range(4, 256)) for successor in _SUCCESSORS)
