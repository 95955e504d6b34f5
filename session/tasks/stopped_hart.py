"""What a halted hart and the memory of all harts were where the trace ends: of several harts that is all that is
certain of memory which they share.
"""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.reconstruction.facts import StopState
from rvtrace_gdb.decode.tandem.wording import X
from rvtrace_gdb.session.past.choice import PastSource, facts_of
from rvtrace_gdb.session.selected_history import SelectedHistory

_MACHINE_MODE = 3


class StoppedHart:
    """A `MomentValues` of the end of a history alone."""

    def __init__(self, stop: StopState) -> None:
        self._stop = stop
        self._registers = {name: value for name, value in zip(X, stop.x, strict=True) if value is not None}

    def registers(self, position: int) -> Mapping[str, int]:
        return {**self._registers, "pc": self._stop.pc}

    def memory(self, position: int, address: int, size: int) -> Sequence[int | None]:
        found: list[int | None] = list(self._stop.memory(address, size))
        return [*found, *[None] * (size - len(found))]


def stopped_hart(session: PastSource, selected: SelectedHistory) -> StoppedHart | None:
    """Return what a hart and memory were where its history ends; None: it was not saved, or addresses may have been
    translated there.
    """
    facts = facts_of(session, selected)
    if facts is None or facts.stop is None:
        return None
    saved = (it for it in session.capture().registers if it.hart == selected.hart and it.pc == facts.stop.pc)
    is_bare = facts.machine.machine_only or facts.is_bare_at_stop
    is_bare = is_bare or any(it.privilege == _MACHINE_MODE for it in saved)
    return StoppedHart(facts.stop) if is_bare else None
