"""What a verifier cannot hold against the model: results of what is not known since a loss, or since the reset.

After a reset registers hold anything; after a loss, and where a trace does not begin with a reset, so do CSRs and
memory. An instruction that reads such a thing has a result nobody can foretell: it is copied, and is no divergence.
CSRs that decide whether there is a trap, and where it leads, are presumed to be so that the model does what the hart
did.
"""

from rvtrace_gdb.decode.memory_access import CSR, reach
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.index import Trapped
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR
from rvtrace_gdb.decode.tandem.state import State
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.session.tandem.comparing import is_load
from rvtrace_gdb.session.tandem.mirror import Mirror
from rvtrace_gdb.session.tandem.model import PRIVILEGE
from rvtrace_gdb.session.tandem.operands import sources
from rvtrace_gdb.session.tandem.told import Told

_OP_FP, _FUSED = 0x53, range(0x43, 0x50, 4)
_TRAPPING = (0x105, 0x302, csrs.MIDELEG, 0x305, csrs.MSTATUS, csrs.MIE)
_RETURNING = (csrs.MSTATUS, csrs.MEPC, 0x141)
_SUPERVISOR, _MACHINE = 1, 3
_VECTORS = {_SUPERVISOR: 0x105, _MACHINE: 0x305}
_MEDELEG = 0x302
_FS = 0x6000


class Doubts:
    """*lost*: CSRs and memory need not be what they were, either."""

    def __init__(self, tandem: Tandem, mirror: Mirror) -> None:
        self._tandem, self._mirror = tandem, mirror
        self._columns = tandem.index.registers.columns
        self._xlen = tandem.trace.parameters.xlen
        self._registers: set[int] = set()
        self.lost = False

    def begin(self, *, lost: bool) -> None:
        """No register is known. *lost*: and nothing else, either."""
        self._registers = set(range(GPR + 1, FPR_END))
        self.lost = lost
        if lost:  # floating point may be on, and an instruction that needs it says nothing of that
            self._presume(csrs.MSTATUS, _FS, _FS)

    def known(self, group: int) -> None:
        """The model got what is known after a group."""
        state = self._tandem.after(group)
        self._registers = {regno for regno in self._registers if state.register(regno) is None}

    def told(self, told: Told) -> None:
        """What a group tells is known after it."""
        if self._registers:
            self._registers.difference_update(told.registers)

    def presume(self, told: Told, trap: Trapped) -> None:
        """Before a trap since a loss: the model gets what it must have for it, where the trace does not tell that."""
        before, after = self._tandem.after(told.group - 1), self._tandem.after(told.group)
        mode = _MACHINE if after.privilege is None else after.privilege
        handler, status = self._tandem.index.pcs[told.group], after.register(csrs.MSTATUS)
        delegated = mode == _SUPERVISOR
        presumed = [(csrs.MIDELEG if trap.interrupt else _MEDELEG, 1 << trap.cause, delegated << trap.cause)]
        if trap.interrupt:
            presumed += [(csrs.MIE, 1 << trap.cause, 1 << trap.cause), (csrs.MSTATUS, 1 << mode, 1 << mode)]
        if mode in _VECTORS and handler != NOWHERE:
            presumed.append((_VECTORS[mode], (1 << self._xlen) - 1, handler & ~3))
        for regno, bits, value in presumed:
            if trap.cause >= 0 and before.register(regno) is None:
                self._presume(regno, bits, value)
        if before.privilege is None and status is not None:
            self._mirror.set(PRIVILEGE, status >> 8 & 1 if delegated else status >> 11 & 3)

    def _presume(self, regno: int, bits: int, value: int) -> None:
        """These bits of a CSR of the model."""
        found = self._mirror.get(regno)
        if found is not None and found & bits != value:
            self._mirror.set(regno, found & ~bits | value)

    def about(self, told: Told, trap: Trapped | None) -> bool:
        """Whether what a group does depends on something that is not known."""
        word = 0 if told.instr is None else told.instr.word
        if self._registers and word and not self._registers.isdisjoint(sources(word, self._xlen)):
            return True
        return self.lost and self._is_lost(told, trap, self._tandem.after(told.group - 1), word)

    def _is_lost(self, told: Told, trap: Trapped | None, state: State, word: int) -> bool:
        needed = self._needed(word, trap)
        if any(state.register(regno) is None for regno in needed):
            return True
        address = told.effective if told.effective is not None else told.physical
        if address is None or not word or not is_load(word, self._xlen):
            return False
        found = reach(word, self._xlen)
        size = found.size if found is not None and found.size else 1
        return None in state.memory(address, size, loads=True)

    def _needed(self, word: int, trap: Trapped | None) -> list[int]:
        """The CSRs that decide what an instruction, or a trap, does; of those the trace tells at all, most."""
        if trap is not None:
            return [regno for regno in _TRAPPING if regno in self._columns]
        if word in csrs.XRETS:
            return [regno for regno in _RETURNING if regno in self._columns]
        if word & 0x7F == _OP_FP or word & 0x7F in _FUSED:
            return [csrs.FCSR]
        found = reach(word, self._xlen) if word else None
        return [found.number] if found is not None and found.kind == CSR else []
