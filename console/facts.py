"""What is known of a trace, for programs: the fields of `--json` that are about a whole capture (docs/json.md)."""

from collections import Counter
from typing import Any

from rvtrace_gdb.decode.history import EventKind, History
from rvtrace_gdb.session import report
from rvtrace_gdb.session.captured import Capture, CapturedTandem
from rvtrace_gdb.session.harts import Harts


def of_capture(capture: Capture) -> dict[str, Any]:
    """How it was made, and where its bytes are from."""
    encoders = [
        {"name": one.in_force.name, "hart": one.hart, "protocol": report.protocol(one.in_force)}
        for one in capture.encoders
    ]
    sinks = [
        {"name": one.in_force.name, "bytes": len(one.data), "wrapped": one.wrapped, "encoders": list(one.encoders)}
        for one in capture.sinks
    ]
    records = [{"name": one.in_force.name, "hart": one.hart, "bytes": len(one.data)} for one in capture.records]
    tandem = [_of_tandem(one) for one in capture.tandem]
    return {
        "xlen": capture.xlen, "elf": capture.elf.path if capture.elf else None, "target": capture.target,
        "created": capture.created, "tool": capture.tool, "encoders": encoders, "sinks": sinks,
        "records": records or None, "tandem": tandem or None, "notes": list(capture.notes) or None,
    }  # fmt: skip


def _of_tandem(one: CapturedTandem) -> dict[str, Any]:
    told = one.in_force.parameters
    return {
        "name": one.in_force.name, "hart": one.hart, "dialect": told.dialect.name, "xlen": told.xlen,
        "flen": told.flen, "mlen": told.mlen_bits, "eaddr": 8 * told.widths.eaddr, "supervisor": told.supervisor,
        "bytes": len(one.data), "wrapped": one.wrapped,
    }  # fmt: skip


def of_histories(harts: Harts) -> dict[str, Any]:
    """How much ran on each hart, and what became of the bytes."""
    total, decoded, idle, skipped = harts.accounting
    return {
        "harts": [_of_history(hart, history) for hart, history in sorted(harts.histories.items())],
        "trace": {"bytes": total, "decoded": decoded, "idle": idle, "skipped": skipped},
    }


def _of_history(hart: int, history: History) -> dict[str, Any]:
    kinds = Counter(event.kind for event in history.events)
    counted = {"instructions": history.instructions, "gaps": history.gaps, "events": len(history.events)}
    return {"hart": hart, **counted, "traps": kinds[EventKind.TRAP], "overflows": kinds[EventKind.OVERFLOW]}
