"""How much is known of registers and memory in the past, from what, and why not more: `trace values`."""

from collections.abc import Iterable, Iterator

from rvtrace_gdb.decode.history.events import Start
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.tandem.wording import X
from rvtrace_gdb.gdbext.rows import KnownRegisters, ValuesRow
from rvtrace_gdb.session.capture.model import Capture, SavedAt
from rvtrace_gdb.session.lists import SelectedHistory
from rvtrace_gdb.session.past.choice import OFF
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.past.reconstructed.facts import Known
from rvtrace_gdb.session.past.saved_facts import REGISTERS
from rvtrace_gdb.support.errors import Progress, silent

_PLACES = 64  # places of a history at which registers are counted


def known_values(
    it: SelectedHistory, past: Past | None, facts: Known | None, capture: Capture, position: int,
    progress: Progress = silent,
) -> ValuesRow:  # fmt: skip
    """Return how much a past knows. *facts*: from which it is reconstructed, None: the trace has the values."""
    source = "trace" if facts is None else "off" if it.values == OFF else "reconstructed"
    if past is None or past.traced_registers() is None:
        return ValuesRow(it.hart, "off" if it.values == OFF else "none", "", "", [], [], [], 0, [], position + 1)
    places = list(_places(it))
    known = _counted(past, places, progress)
    row = ValuesRow(it.hart, source, "", "", [], [], known, len(places), _counted(past, [position]), position + 1)
    if facts is None:
        return row
    ram = [] if it.values == REGISTERS else [(begin, begin + size) for begin, size in facts.machine.rams]
    return row._replace(
        start=_start(facts, capture, it.hart), stop=_stop(facts, capture), ram=ram,
        absent=list(_absent(it, facts, capture)),
    )  # fmt: skip


def _places(it: SelectedHistory) -> Iterator[int]:
    length = len(it.history)
    for position in sorted({number * length // _PLACES for number in range(_PLACES)}):
        if position < length and it.history.pc(position) != GAP:
            yield position


def _counted(past: Past, places: Iterable[int], progress: Progress = silent) -> list[KnownRegisters]:
    """Return how many registers are known, summed over some places."""
    traced = past.traced_registers()
    kinds = {"integer registers": X[1:]}
    if traced is not None and traced.flen:
        kinds["floating-point registers"] = tuple(f"f{number}" for number in range(32))
    counts = dict.fromkeys(kinds, 0)
    places = list(places)
    for done, position in enumerate(places):
        progress("looking at values", done, len(places))
        registers = past.registers(position)
        for kind, names in kinds.items():
            counts[kind] += sum(name in registers for name in names)
    return [KnownRegisters(kind, counts[kind], len(kinds[kind]) * len(places)) for kind in kinds]


def _start(facts: Known, capture: Capture, hart: int) -> str:
    if facts.beginning is None:
        return ""
    if any(it.hart == hart and it.at is SavedAt.START and it.at_entry for it in capture.registers):
        return "program"
    return "memory" if facts.beginning.memory else "registers"


def _stop(facts: Known, capture: Capture) -> str:
    if facts.stop is None:
        return ""
    return "memory" if any(it.at is SavedAt.STOP for it in capture.memory) else "registers"


def _absent(it: SelectedHistory, facts: Known, capture: Capture) -> Iterator[str]:
    """Yield why no more is known, as `gdbext.values_text.ABSENT` has it."""
    saved = any(saved.hart == it.hart and saved.at is SavedAt.START for saved in capture.registers)
    if facts.beginning is None:
        yield "overwritten" if saved and it.overwritten else "begins-late" if saved else "not-saved"
    elif not facts.beginning.memory:
        yield "no-memory"
    if facts.stop is None:
        yield "not-stopped"
    if it.values == REGISTERS:
        yield "registers-only"
    elif not facts.machine.rams:
        yield "shared-ram" if capture.ranges else "no-ram"
    if it.history.gap_positions:
        yield "gaps"
    starts = (event.fact for event in it.history.events if event.position and isinstance(event.fact, Start))
    if any(start.reason.resumes for start in starts):
        yield "halts"
