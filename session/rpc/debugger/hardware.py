"""The methods of the session protocol for the hardware: trace components, Control Transfer Records, USB, ESP32 memory.

| method     | params                                   | result                                                      |
|------------|------------------------------------------|-------------------------------------------------------------|
| regs       | context, access, names, everything, live | {lines, csrs}; see `session.queries.hardware.registers`     |
| info       | context, live                            | {lines, capture: whether a file is described}               |
| components | context                                  | {names} that `regs` accepts; raises nothing                 |
| choices    | context                                  | {option: its values}, for `trace start`                     |
| propose    | context, chip                            | {wanted, lines}; wanted: no target description applies;     |
|            |                                          | lines: which shipped target the chip is, see below          |
| ctr_start  | context, access, options                 | {lines}; options: see `session.sources.ctr_commands`        |
| ctr_stop   | context, access                          | {lines}                                                     |
| ctr_connected | access                                | {}; gdb has connected anew                                  |
| ctr_clear  | context, access                          | {lines}                                                     |
| ctr_status | context, access                          | {lines}                                                     |
| ctr_stack  | context, access                          | {lines, ras, full, frames}: [{pc, call, to}, ...]           |
| usb        | context                                  | {usb}: the adapter's description; null: no table [usb]      |
| usb_harts  | context                                  | {lines}: the debug module, and the state of each hart       |
| usb_halt   | context, hart                            | {lines}: each hart's state afterwards; hart: null: all      |
| usb_resume | context, hart                            | as usb_halt                                                 |
| usb_step   | context, hart                            | as usb_halt; hart: null: the context's, else hart 0         |
| usb_reg    | context, hart, names                     | {lines}: registers; names: "mepc"; "a0=5" writes;           |
|            |                                          | none: pc and x1-x31                                         |
| snapshot   | context, elves, address, answer          | {need}: (address, size) of memory to read, for the next     |
|            |                                          | request; at last {lines}                                    |

everything, live: true, or null. access: how a hart's CSRs are accessed, see `session.target.csr_access`; null if
gdb has no target. chip: {idcodes: [number], harts: [[mvendorid, marchid]], device_tree: its bytes in base64, or null},
what a chip says of itself; null: nothing is looked for. Entry 0 of the records is the youngest; so is the first frame
of their stack. snapshot: the trace that an ESP32's firmware keeps in the chip's memory, which gdb reads for the
session.
"""

import os
from collections.abc import Callable, Mapping, Sequence

from rvtrace_gdb.decode.etrace.esp32.readout import MemoryAnswer
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError, UsbDescription
from rvtrace_gdb.session.errors import NoElf, NoTrace, NoUsbTable, NoWay
from rvtrace_gdb.session.queries.hardware import info, registers
from rvtrace_gdb.session.queries.lists import ctr_records
from rvtrace_gdb.session.rpc import protocol
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params, answer
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import ctr_commands, esp32_memory
from rvtrace_gdb.session.sources.esp32_memory import ChipReading
from rvtrace_gdb.session.target.csr_access import resolved
from rvtrace_gdb.session.target.usb import HartState, bench, hart_lines, register_lines
from rvtrace_gdb.support.errors import Progress


def show_registers(session: Session, params: Params, progress: Progress) -> JsonMessage:
    access = resolved(params.table("access"), params.context()) if params.given("access") else None
    wish = registers.RegisterRequest(params.texts("names"), params.given("everything"), params.given("live"), access)
    return registers.show(session, params.context(), wish, progress)._asdict()


def topology(session: Session, params: Params, progress: Progress) -> JsonMessage:
    live = params.given("live")
    lines = info.info(session, params.context(), live=live, progress=progress)
    return {"lines": lines, "capture": registers.in_capture(session) and not live}


def components(session: Session, params: Params, progress: Progress) -> JsonMessage:
    return {"names": registers.names(session, params.context())}


def start_choices(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the words that options of `trace start` accept, by option; none without a target description."""
    try:
        description = params.context().description()
    except DescriptionError:
        return {}
    sinks = [sink.name for sink in (*description.all_sinks, *description.tandem, *description.tracers)]
    sinks += [encoder.name for encoder in description.tacit]
    return {"-to": sinks, "-hart": list(map(str, description.harts))}


def propose_target(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return which shipped target a chip may be, if no target description applies; see the module."""
    wanted = not params.context().is_described()
    if not wanted or not params.given("chip"):
        return {"wanted": wanted, "lines": []}
    from rvtrace_gdb.session.queries.hardware.known_chip import lines  # only here: sessions seldom need it

    return {"wanted": wanted, "lines": lines(params.table("chip"))}


_NO_TARGET = "Nothing to record: gdb is not connected to a target. `trace connect` does that."


def _access(params: Params) -> Mapping[str, object] | None:
    return resolved(params.table("access"), params.context()) if params.given("access") else None


def ctr_start(session: Session, params: Params, progress: Progress) -> JsonMessage:
    way = _access(params)
    if way is None:
        raise NoWay(_NO_TARGET)
    return answer(ctr_commands.start(session, params.context(), way, params.table("options"), progress))


def ctr_stop(session: Session, params: Params, progress: Progress) -> JsonMessage:
    return answer(ctr_commands.stop(session, _access(params), progress))


def ctr_clear(session: Session, params: Params, progress: Progress) -> JsonMessage:
    return answer(ctr_commands.clear(session, params.context(), _access(params), progress))


def ctr_status(session: Session, params: Params, progress: Progress) -> JsonMessage:
    return answer(ctr_commands.status(session, params.context(), _access(params), progress))


def ctr_stack(session: Session, params: Params, progress: Progress) -> JsonMessage:
    return ctr_records.stack(session, params.context(), _access(params), progress)


def ctr_connected(session: Session, params: Params, progress: Progress) -> JsonMessage:
    ctr_commands.connected(session, params.table("access") if params.given("access") else None)
    return {}


def _usb(params: Params) -> UsbDescription:
    """Return the USB adapter of the target description. Raises DescriptionError, NoUsbTable."""
    description = params.context().description(os.environ)
    if description.usb is None:
        raise NoUsbTable(description.file or "the target description")
    return description.usb


def usb_adapter(session: Session, params: Params, progress: Progress) -> JsonMessage:
    try:
        usb = params.context().description(os.environ).usb
    except DescriptionError:
        usb = None
    return {"usb": None if usb is None else str(usb)}


def usb_harts(session: Session, params: Params, progress: Progress) -> JsonMessage:
    from rvtrace_gdb.session.queries.hardware.known_chip import lines_of_usb  # only here: sessions seldom need it

    described = params.context().description(os.environ).encoders
    with bench(_usb(params)) as it:
        return {"lines": [it.description(), *hart_lines(it.harts()), *([] if described else lines_of_usb(it))]}


def usb_halt(session: Session, params: Params, progress: Progress) -> JsonMessage:
    with bench(_usb(params)) as it:
        return _states(it.halt(params.optional_number("hart")))


def usb_resume(session: Session, params: Params, progress: Progress) -> JsonMessage:
    session.check_present("trace usb resume")
    session.changed()
    with bench(_usb(params)) as it:
        return _states(it.resume(params.optional_number("hart")))


def usb_step(session: Session, params: Params, progress: Progress) -> JsonMessage:
    session.check_present("trace usb step")
    session.changed()
    with bench(_usb(params)) as it:
        return _states(it.step(_requested_hart(params)))


def usb_registers(session: Session, params: Params, progress: Progress) -> JsonMessage:
    with bench(_usb(params)) as it:
        return {"lines": register_lines(it.registers(_requested_hart(params), params.texts("names")))}


def _requested_hart(params: Params) -> int:
    """Return the requested hart, by default the context's."""
    if params.given("hart"):
        return params.number("hart")
    context: Context = params.context()
    found = context.thread_hart if context.hart is None else context.hart
    return 0 if found is None else found


def _states(states: list[HartState]) -> JsonMessage:
    return {"lines": hart_lines(states)}


def snapshot(session: "Session", params: Params, progress: Progress) -> JsonMessage:
    """Open the trace in an ESP32's memory.

    *elves*: ELF files besides the context's. *address*: of the snapshot, None: where the ELF says. *answer*: the memory
    requested by the previous result, None to begin. Raises Busy, NoElf, NoTrace, BadSnapshot, BadElf.
    """
    session.check_idle()
    context, answer = params.context(), params.memory("answer")
    if answer is None:
        if context.elf is None:
            raise NoElf("no program: load the ELF that runs on the chip first (`file app.elf`)")
        session.chip = ChipReading(
            esp32_memory.live_capture(context.elf, params.paths("elves"), params.optional_number("address"))
        )
    elif session.chip is None:
        raise NoTrace("no snapshot is being read")
    chip, session.chip = session.chip, None
    try:
        need = next(chip.reading) if answer is None else chip.reading.send(_whole_extents(answer, chip.extents))
    except StopIteration as done:
        return protocol.answer(session.open_capture(done.value, "the chip's memory", None))
    session.chip = chip._replace(extents=need)
    return {"need": need}


def _whole_extents(answer: MemoryAnswer, extents: Sequence[tuple[int, int]]) -> MemoryAnswer:
    """Return *answer* without pieces of the wrong size, which could not be read. Raises BadRequest for a wrong number
    of pieces.
    """
    if len(answer) != len(extents):
        raise BadRequest(f"snapshot: the answer has {len(answer)} pieces of memory, and {len(extents)} were asked for")
    pairs = zip(extents, answer, strict=True)
    return [data if data is not None and len(data) == size else None for (_, size), data in pairs]


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {
    "regs": show_registers,
    "info": topology,
    "components": components,
    "choices": start_choices,
    "propose": propose_target,
    "snapshot": snapshot,
    "ctr_start": ctr_start,
    "ctr_stop": ctr_stop,
    "ctr_connected": ctr_connected,
    "ctr_clear": ctr_clear,
    "ctr_status": ctr_status,
    "ctr_stack": ctr_stack,
    "usb": usb_adapter,
    "usb_harts": usb_harts,
    "usb_halt": usb_halt,
    "usb_resume": usb_resume,
    "usb_step": usb_step,
    "usb_reg": usb_registers,
}
