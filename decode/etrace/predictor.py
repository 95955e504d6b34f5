"""Branch predictor and jump target cache, as encoder and decoder both keep them.

Source: Efficient Trace for RISC-V 2.0, "Branch prediction mode" and "Jump target cache mode".
"""

from collections.abc import Iterable
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.options import Parameters

NOT_CACHED = -1
"""In place of an address where the cache has none."""

_INITIAL = 0b01
# "00: to 01 if prediction fails; 01: to 00 if it succeeds, else 11; 11: to 10 if it fails; 10: to 11 if it succeeds,
# else 00." The high bit is the prediction, the low one the last outcome.
_AFTER = (bytes((0b00, 0b00, 0b00, 0b10)), bytes((0b01, 0b11, 0b11, 0b11)))

Training = tuple[tuple[int, bytes], ...]
"""What branches do to the predictor: for each index, the state after each of the four states before."""


Entries = tuple[tuple[int, int], ...]
"""Jump targets for the cache, each with its index."""


class Effect(NamedTuple):
    """What a packet does to the tables: trains branches, enters jump targets, or resets both.

    *resets*: before *training*, which is then that of the instruction the synchronization reports.
    """

    training: Training = ()
    targets: Entries = ()
    resets: bool = False


class Tables:
    """One hart's predictor and cache."""

    def __init__(self, parameters: Parameters) -> None:
        self._lsb = parameters.iaddress_lsb
        self._branch_mask = (1 << parameters.bpred_size) - 1
        self._jump_mask = (1 << parameters.cache_size) - 1
        self.states = bytearray([_INITIAL]) * (1 << parameters.bpred_size)
        """Of the predictor, by index."""
        self.targets: dict[int, int] = {}
        """Of the cache, by index."""

    def reset(self) -> None:
        """As when a synchronization packet is sent."""
        self.states[:] = bytes([_INITIAL]) * len(self.states)
        self.targets.clear()

    def apply(self, effect: Effect) -> None:
        """What a packet does."""
        if effect.resets:
            self.reset()
        for index, after in effect.training:
            self.states[index] = after[self.states[index]]
        for index, target in effect.targets:
            self.targets[index] = target

    def branch_index(self, pc: int) -> int:
        """The entry of the predictor for a branch."""
        return pc >> self._lsb & self._branch_mask

    def jump_index(self, target: int) -> int:
        """The entry of the cache for a jump target."""
        return target >> self._lsb & self._jump_mask

    def entries(self, targets: Iterable[int]) -> Entries:
        """These jump targets with their indices."""
        return tuple((self.jump_index(target), target) for target in targets)

    def predicts(self, pc: int) -> bool:
        """Whether a branch is predicted to be taken."""
        return self.states[self.branch_index(pc)] > 1

    def train(self, pc: int, taken: bool, before: dict[int, int]) -> bool:
        """A branch had this outcome. True: its entry has changed. *before*: the first state of each entry used."""
        index = self.branch_index(pc)
        state = self.states[index]
        before.setdefault(index, state)
        self.states[index] = after = _AFTER[taken][state]
        return state != after

    def change(self, before: dict[int, int]) -> Training:
        """What has become of the entries in *before*, which is put back."""
        change = tuple((index, bytes([self.states[index]]) * 4) for index in before)
        for index, state in before.items():
            self.states[index] = state
        return change

    def training(self, outcomes: Iterable[tuple[int, bool]]) -> Training:
        """What these (address, taken) do, one after the other."""
        known: dict[int, bytes] = {}
        for pc, taken in outcomes:
            index = self.branch_index(pc)
            before = known.get(index)
            known[index] = _AFTER[taken] if before is None else before.translate(_TRANSLATE[taken])
        return tuple(known.items())


_TRANSLATE = tuple(after + bytes(range(4, 256)) for after in _AFTER)
