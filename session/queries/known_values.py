"""How much is known of registers and memory in the past, from what, and why not more: `trace values`."""

from rvtrace_gdb.decode.history.positions import history_number, history_number_if_known
from rvtrace_gdb.decode.tandem.wording import F, X
from rvtrace_gdb.rows.answers import Contradicted, KnownRegisters, ValueLimit, ValuesRow
from rvtrace_gdb.session.capture.model import Capture, SavedAt
from rvtrace_gdb.session.past.choice import OFF
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.past.reconstructed.knowledge import Knowledge, KnowledgeLimit, sampled_positions
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import Progress, silent

INTEGERS, FLOATS = "integer registers", "floating-point registers"


def known_values(
    selected: SelectedHistory, past: Past | None, capture: Capture, position: int, progress: Progress = silent
) -> ValuesRow:
    """Return how much a past knows."""
    if past is None or past.traced_registers() is None:
        return ValuesRow(selected.hart, "off" if selected.values == OFF else "none", history_number(position))
    row = ValuesRow(selected.hart, "trace", history_number(position), here=_known_registers(past, [position]))
    found = past.knowledge(progress, overwritten=selected.overwritten)
    if found is None:
        positions = [at for at in sampled_positions(0, len(selected.history)) if at < len(selected.history)]
        return row._replace(known=_known_registers(past, positions, progress), places=len(positions))
    return row._replace(
        source="reconstructed",
        start=_start_source(found, capture, selected.hart),
        stop=_stop_source(found, capture),
        ram=[(begin, begin + size) for begin, size in found.rams],
        known=[KnownRegisters(INTEGERS, found.known_count, found.registers)],
        places=found.sampled,
        limits=[
            ValueLimit(why.limit, history_number_if_known(why.position), why.places, why.pc)
            for why in found.reasons
            if why.limit is not KnowledgeLimit.CONTRADICTION
        ],
        remedies=[str(remedy) for remedy in found.remedies],
        contradicted=[Contradicted(history_number(it.position), it.pc, it.dropped) for it in found.disagreements],
    )


def _known_registers(past: Past, positions: list[int], progress: Progress = silent) -> list[KnownRegisters]:
    """Return how many registers are known, summed over some positions."""
    traced = past.traced_registers()
    kinds = {INTEGERS: X[1:], **({FLOATS: F} if traced is not None and traced.flen else {})}
    counts = dict.fromkeys(kinds, 0)
    for done, position in enumerate(positions):
        progress("looking at values", done, len(positions))
        registers = past.registers(position)
        for kind, names in kinds.items():
            counts[kind] += sum(name in registers for name in names)
    return [KnownRegisters(kind, counts[kind], len(names) * len(positions)) for kind, names in kinds.items()]


def _start_source(knowledge: Knowledge, capture: Capture, hart: int) -> str:
    if not knowledge.beginning:
        return ""
    saved = [it for it in capture.registers if it.hart == hart and it.at is SavedAt.START]
    if knowledge.memory and any(it.at_entry for it in saved):
        return "program"
    return "memory" if knowledge.memory else "registers"


def _stop_source(knowledge: Knowledge, capture: Capture) -> str:
    if not knowledge.stop:
        return ""
    return "memory" if knowledge.stop_memory or any(it.at is SavedAt.STOP for it in capture.memory) else "registers"
