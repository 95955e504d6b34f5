"""The session's reports about a trace: lines that are ready to print."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.controlregs.encoder_features import SWITCHES
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import InstMode, SyncMode, TeFormat
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.rows.answer_text import AGREES, CANNOT_TELL, COMPARED, DIFFERS, check_line, folded_checks
from rvtrace_gdb.rows.answers import OFF_HART, CheckRow
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.capture.model import (
    Capture,
    Captured,
    CapturedBranches,
    CapturedEncoder,
    CapturedImage,
    CapturedRecords,
    CapturedSink,
    CapturedTandem,
    SavedAt,
    SavedMemory,
    SavedRegisters,
    Unpacked,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NotResumed
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.numbered import alike, component_number, folded, names_text
from rvtrace_gdb.support.system import memory_size
from rvtrace_gdb.support.text import Line, Problem, counted, printable, warning

if TYPE_CHECKING:
    from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, SinkSettings
    from rvtrace_gdb.session.capture.etrace_settings import SettingValue
    from rvtrace_gdb.session.description.model import Description

_PROTOCOLS = {int(TeFormat.N_TRACE): "N-Trace", int(TeFormat.E_TRACE): "E-Trace"}
_UNITS = {SyncMode.CLOCK_CYCLES: "clock cycles", SyncMode.HALFWORDS: "halfwords"}


def line(topic: str, text: str, **facts: Any) -> Line:
    """Return `topic:   text` with texts in a column. *facts*: the same for programs, see `session.rpc.protocol`."""
    return Line(f"{topic + ':':<10}{printable(text)}", **facts)


def notes(texts: Iterable[str]) -> list[str]:
    """Return a line for each note; a warning is a line already. What holds for several encoders is one line."""
    return [text if isinstance(text, Problem) else line("note", text) for text in folded(texts)]


def target(description: "Description") -> str:
    """Describe the target, and how it is reached."""
    file = f" ({description.file})" if description.file else ""
    if description.qemu:
        return line("target", f"{description.name}{file}")
    return line("target", f"{description.name}{file}, {description.way}, {harts_text(description.harts)}")


def nothing(description: "Callable[[], Description]") -> list[str]:
    """Return the status if there is no trace."""
    try:
        found = target(description())
    except RvtraceError as error:
        found = line("target", str(error))
    return [Line("Nothing is being traced.", nothing=True), found]


def protocol(encoder: "EncoderSettings") -> str:
    """Describe an encoder's settings: "N-Trace 1.0 HTM, implicit return, timestamps, sync every 4096 messages".

    E-Trace has one mode only. The synchronization period is given only if registers contain it: not for imported
    traces.
    """
    name = _PROTOCOLS.get(encoder.format, f"trTeFormat {encoder.format}")
    major, minor = encoder.protocol_version
    mode, unit = encoder.sync
    what = _UNITS.get(SyncMode(mode), "packets" if encoder.format == TeFormat.E_TRACE else "messages")
    sync = f"sync every {1 << unit + 4} {what}" if mode else "no periodic sync"
    stall = ", stalls the hart rather than lose trace" if encoder.stall else ""
    parts = [*_in_use(encoder), sync] if encoder.base else [*_in_use(encoder)]
    of_etrace = encoder.format == TeFormat.E_TRACE and not major
    number = f"{major}.{minor}" if encoder.version else "older than 1.0,"
    title = name if of_etrace else f"{name} {number} {InstMode(encoder.inst_mode).name}"
    return ", ".join([title, *parts]) + stall


def _in_use(encoder: "EncoderSettings") -> Iterator[str]:
    """Yield the optional features that are enabled."""
    if encoder.implicit_return is not None:
        mode = encoder.implicit_return.name.lower().replace("_", " ")
        yield f"implicit return{f' ({mode})' if encoder.implicit_return else ''}"
    yield from (feature.name for feature in SWITCHES if encoder.feature(feature.field))
    if encoder.timestamps:
        yield "timestamps"
    if encoder.data("trTeDataTracing"):
        yield "data"
    if encoder.context:
        yield "context"


def place(sink: "SinkSettings") -> str:
    """Return where a sink's buffer is: "SMEM 0x30000000"."""
    if sink.mode is not RamMode.SMEM:
        return "SRAM"
    scattered = getattr(sink, "scattered", False)
    return f"{'pages of the table at' if scattered else 'SMEM'} {sink.start:#x}"


def buffer(sink: "SinkSettings") -> str:
    """Describe a sink's buffer: "SMEM 0x30000000, 65536 bytes, keeps the newest"."""
    return f"{place(sink)}, {sink.size} bytes, {'stops when full' if sink.stop_on_wrap else 'keeps the newest'}"


def failure(trace: TraceSource | None) -> list[str]:
    """Return a line that says why the trace is incomplete, or could not be resumed, if there is such an error."""
    if trace is None or trace.failure is None:
        return []
    if isinstance(trace.failure, NotResumed):
        return [warning(trace.failure)]
    return [incomplete(trace.failure)]


def incomplete(error: RvtraceError) -> Line:
    """Return a line that says why the read-out is incomplete."""
    text = f"the trace is not complete: {error}"
    return warning(text, lost=text)


def histories(harts: HartHistories) -> list[str]:
    """Describe how much ran on each hart, and lost bytes."""
    total, decoded, idle, skipped = harts.accounting
    accounted = f"{counted(total, 'byte')}: {decoded} decoded, {idle} idle, {skipped} skipped"
    if len(harts.histories) == 1:
        return [history(f"{_ran(*harts.histories.values())}; {accounted}")]
    return [*_ran_on_each(harts.histories), line("trace", accounted)]


def _ran_on_each(histories: Mapping[int, History]) -> Iterator[str]:
    """Yield a line for each hart, and one for three or more that follow each other of which the same is said."""
    ran = {hart: _ran(histories[hart]) for hart in sorted(histories)}
    for group in alike(ran, lambda hart: f"hart{hart}", lambda hart: ran[hart]):
        text = ran[group[-1]]
        yield line("history", f"{harts_text(group)}: {text}", history=f"hart {group[-1]}: {text}")


def checks(checked: Sequence[CheckRow]) -> list[str]:
    """Describe what a check has found out about each hart."""
    return [line("check", f"{of}{check_line(row)}{_CONCLUSIONS[row.conclusion]}") for of, row in folded_checks(checked)]


_CONCLUSIONS = {AGREES: "", COMPARED: "", DIFFERS: ": damaged", CANNOT_TELL: ": cannot tell for this encoder"}


def positions(harts: HartHistories, numbers: Mapping[int, int]) -> list[str]:
    """Describe where harts are in the past. *numbers*: by the hart whose history it is."""
    lines: list[str] = []
    for hart, number in numbers.items():
        length = len(harts.histories[hart])
        of = "" if len(harts.histories) == 1 else f"hart {hart} "
        at = f"at instruction {number} of {length}" if number <= length else f"after the newest of {length}"
        lines.append(line("past", f"{of}{at} (`trace live` returns to the present)"))
    return lines


def history(text: str) -> Line:
    """Return the line about the history: how much ran, or why that is unknown."""
    return line("history", text, history=text)


def _ran(history: History) -> str:
    kinds = history.kind_counts
    parts = [counted(history.instructions, "instruction"), counted(history.gaps, "gap")]
    if kinds.get(EventKind.HART_EVENT):
        from rvtrace_gdb.session.queries.hart_events import counted_events, hart_event_counts  # few traces have any

        parts += counted_events(hart_event_counts(history))
    parts += [
        counted(kinds[kind], name)
        for kind, name in ((EventKind.TRAP, "trap"), (EventKind.OVERFLOW, "overflow"))
        if kinds.get(kind)
    ]
    return ", ".join(parts)


def losses(captured: CapturedSink) -> list[str]:
    """Describe known losses, apart from the gaps in the history."""
    texts = [f"{name} dropped messages or stalled its hart" for name in captured.lost]
    if captured.missing:
        texts.append(f"{counted(captured.missing, 'byte')} of {captured.in_force.name} could not be read")
    return [line("lost", text, lost=text) for text in texts]


def elsewhere() -> str:
    """Return the line about a trace that is not of the debugger's target."""
    return line("note", "gdb is connected to another OpenOCD than the one of this trace, which is of the target there")


def other_hart(hart: int, context: Context) -> list[str]:
    """Return a line if the history of *hart* is not that of the debugger's hart."""
    if context.thread_hart == OFF_HART:
        where = "" if context.on_hart is None else f", which thread {context.on_hart} is on"
        return [line("note", f"the selected thread is a task that is not on a hart: this is hart {hart}{where}")]
    if context.hart is None and context.thread_hart is None and context.candidates > 1:
        said = f"which of OpenOCD's {context.candidates} targets gdb is connected to is not known: this is hart {hart}"
        return [line("note", f"{said}; `set trace hart N` shows another one")]
    if context.hart is not None or context.thread_hart in (None, hart):
        return []
    return [line("note", f"hart {context.thread_hart} is not in this trace: this is hart {hart}")]


def stopped(captured: Captured) -> list[str]:
    """Return a line if the trace ends although the program continued."""
    if not isinstance(captured, CapturedSink) or not captured.in_force.stop_on_wrap:
        return []
    if len(captured.data) < captured.in_force.size:
        return []
    return [warning(f"the trace ends where {captured.in_force.name} was full: what ran after that is not in it")]


def saved(capture: Capture, file: str, *, replaced: bool = False) -> str:
    """Describe what was written to which file. *replaced*: in place of an earlier one."""
    instead = ", in place of the file that was there" if replaced else ""
    if not capture.captured:
        return (
            f"Saved the settings of the trace to {file}{instead}: `rvtrace decode --settings {file} RECORD` decodes a"
            " probe's recording with them."
        )
    stored = sum(len(stored.data) for stored in capture.captured)
    code = sum(len(data) for _, data in capture.code)
    parts = [f"{counted(stored, 'byte')} of trace"]
    parts += [f"{counted(code, 'byte')} of code that is not in the ELF"] if code else []
    parts += _kept(capture.registers, capture.memory)
    listed = ", ".join(parts[:-1]) + (" and " if parts[1:] else "") + parts[-1]
    return f"Saved {listed} to {file}{instead}."


def _kept(registers: Iterable[SavedRegisters], memory: Iterable[SavedMemory]) -> list[str]:
    """Return e.g. ["registers", "64 KiB of memory"]."""
    size = sum(len(saved.data) for saved in memory)
    return ["registers"] * any(registers) + ([f"{memory_size(size)} of memory"] if size else [])


def kept(registers: Sequence[SavedRegisters], memory: Sequence[SavedMemory]) -> list[str]:
    """Describe what is saved of the target, where a trace begins and ends; no line if nothing is."""
    parts = []
    for at in SavedAt:
        found = _kept((it for it in registers if it.at is at), (it for it in memory if it.at is at))
        parts += [f"{' and '.join(found)} at the {at}"] if found else []
    return [line("saved", ", ".join(parts))] if parts else []


def opened(capture: Capture) -> list[str]:
    """Describe the contents of a capture file."""
    elf = f" of {PurePath(capture.elf.path).name}" if capture.elf else ""
    first = f"RV{capture.xlen}{elf} on {capture.target}, {capture.created}, by {capture.tool}"
    lines: list[str] = [line("trace", first)]
    lines += encoders(capture.encoders, lambda it: f": {protocol(it.in_force)}{_unregistered(it)}")
    for stored in capture.sinks:
        fill = counted(len(stored.data), "byte") + (", older trace was overwritten" if stored.wrapped else "")
        fill += _frames_text(stored)
        lines += [line("sink", f"{stored.in_force.name}: {fill}", filled=(len(stored.data), 0)), *losses(stored)]
    lines += [_records(records) for records in capture.records]
    lines += [line("tandem", tandem(port)) for port in capture.tandem]
    lines += [line("branches", branches(one), filled=(len(one.data), 0)) for one in capture.branches]
    lines += [line("image", _image_text(image)) for image in capture.images]
    lines += kept(capture.registers, capture.memory)
    lines += [] if capture.unpacked is None else [line("files", _unpacked_text(capture.unpacked))]
    return lines + notes(capture.notes)


def encoders(captured: Iterable[CapturedEncoder], text: Callable[[CapturedEncoder], str], state: str = "") -> list[str]:
    """Return lines of encoders, whose harts they name: "encoder0, hart 0: ...". *text*: what follows the hart. *state*:
    that of all, for programs; "": unknown.
    """
    lines: list[str] = []

    def words(encoder: CapturedEncoder) -> tuple[str, int]:
        return text(encoder), encoder.hart - component_number(encoder.in_force.name)

    for group in alike(captured, lambda it: it.in_force.name, words):
        whose = f"{names_text([it.in_force.name for it in group])}, {harts_text([it.hart for it in group])}"
        facts = {"encoders": [(it.in_force.name, state) for it in group]} if state else {}
        lines.append(line("encoder", f"{whose}{text(group[0])}", **facts))
    return lines


def _frames_text(sink: CapturedSink) -> str:
    """Return e.g. ", CoreSight frames (ATB IDs: encoder0 0x01, encoder1 0x02)": the ATB ID of each encoder."""
    if sink.frames is None:
        return ""
    groups = alike(sink.atb_ids, str, lambda name: sink.atb_ids[name] - component_number(name))
    ids = ", ".join(f"{names_text(group)} {_ids_text([sink.atb_ids[name] for name in group])}" for group in groups)
    return f", CoreSight frames{' from pins' if sink.frames.value == 'tpiu' else ''} (ATB IDs: {ids})"


def _ids_text(ids: Sequence[int]) -> str:
    return " to ".join(f"{atb_id:#04x}" for atb_id in dict.fromkeys((ids[0], ids[-1])))


def _unpacked_text(files: Unpacked) -> str:
    sources = f" and {counted(len(files.sources), 'source file')}" if files.sources else ""
    return f"{counted(len(files.elfs), 'program')}{sources}, as they were packed"


def _records(records: CapturedRecords) -> Line:
    made, there = records.in_force, len(records.data) // ENTRY_BYTES
    held = f"{there} of {made.depth} entries"
    if records.samples:
        held = f"{there} entries of {counted(records.samples, 'sample')}"
    text = f"{made.name}, hart {records.hart}: CTR {made.version}, {held}"
    return line("records", text, records=(there, made.depth))


def tandem(captured: CapturedTandem) -> str:
    """Describe a tandem trace: "tandem0, hart 0: RV64, FLEN 64, MLEN 64, flute, 13237 bytes"."""
    port, fill = captured.in_force, ", older trace is missing" if captured.wrapped else ""
    return f"{port.name}, hart {captured.hart}: {port.parameters}, {counted(len(captured.data), 'byte')}{fill}"


_SENT_BY = {"neorv32": "pairs of NEORV32's TRACER", "tacit": "TACIT", "ctxp": "CTXP", "gem5": "E-Trace of gem5"}


def branches(captured: CapturedBranches) -> str:
    """Describe a trace of transfers: "tracer0, hart 0: pairs of NEORV32's TRACER, 240 bytes"."""
    port, fill = captured.in_force, ", older trace was overwritten" if captured.wrapped else ""
    return f"{port.name}, hart {captured.hart}: {_SENT_BY[port.kind]}, {counted(len(captured.data), 'byte')}{fill}"


def _unregistered(encoder: CapturedEncoder) -> str:
    """Describe what is known of an encoder without its registers; each item begins with a comma."""
    known = encoder.unregistered
    parts = [f"dialect {known.dialect}"] if known.dialect is not None else []
    if known.address_bits is not None:
        parts.append(f"{known.address_bits} address bits")
    if known.timestamp_bits is not None:
        parts.append(f"{known.timestamp_bits} timestamp bits")
    if known.repeat_bits is not None:
        parts.append(f"repetition counts of up to {known.repeat_bits} bits")
    parts += [_setting(key, value) for key, value in known.etrace.items()]
    return "".join(f", {part}" for part in parts)


def _setting(key: str, value: "SettingValue") -> str:
    name = key.replace("_", " ")
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if isinstance(value, Mapping):
        return f"{name} {' '.join(f'{cause}={address}' for cause, address in value.items())}"
    return f"{name} {value}"


def _image_text(image: CapturedImage) -> str:
    """Describe a program image: "maps.738 for scontext 738: 409600 bytes, /usr/lib/libc.so.6 is missing"."""
    named = (("scontext", image.scontext), ("hcontext", image.hcontext), ("V", image.virtual))
    values = ", ".join(f"{name} {int(value)}" for name, value in named if value is not None) or "all contexts"
    missing = "".join(f", {what} is missing" for what in dict.fromkeys(what for _, _, what in image.absent))
    return f"{image.name} for {values}: {counted(sum(len(data) for _, data in image.code), 'byte')}{missing}"
