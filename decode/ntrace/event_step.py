"""The steps of messages that are events of a hart: what they say, and the address to which the next one is relative.

They are not about the flow: where the decoder knows the pc, it still does afterwards, and no code follows from them.
The address in one is the last address transmitted, like that of any other message. While the pc is not known, the
states that differ in nothing but that address keep it.
"""

from collections.abc import Mapping
from typing import Protocol

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.hart_events import HartEvent, HartEventKind
from rvtrace_gdb.decode.ntrace.in_circuit import HART_EVENTS, IN_CIRCUIT, hart_event, sent_addresses
from rvtrace_gdb.decode.ntrace.messages import Message
from rvtrace_gdb.decode.ntrace.state import Mode, State, Step
from rvtrace_gdb.decode.ntrace.walk import Walker
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.decode.stepping.reports import Report, contradiction_report

UNKNOWN_REFERENCE = 0
"""The last address while the pc is not known, where that is not known either. No event is at address 0."""

_JUMPS: Mapping[IType, HartEventKind] = {
    IType.INFERABLE_CALL: HartEventKind.CALL,
    IType.UNINFERABLE_CALL: HartEventKind.CALL,
    IType.COROUTINE_SWAP: HartEventKind.RETURN,
    IType.RETURN: HartEventKind.RETURN,
    IType.INFERABLE_TAIL_CALL: HartEventKind.JUMP,
    IType.UNINFERABLE_TAIL_CALL: HartEventKind.JUMP,
    IType.UNINFERABLE_JUMP: HartEventKind.JUMP,
    IType.OTHER_INFERABLE: HartEventKind.JUMP,
    IType.OTHER_UNINFERABLE: HartEventKind.JUMP,
}


class FlowStates(Protocol):
    """The states of the decoder of a flow, as far as events need them: `step.StepFunction`.

    program  what runs; *mask*: all bits of an address
    """

    program: Program
    mask: int

    def walker(self, state: State) -> Walker: ...
    def full_address(self, faddr: int) -> int: ...
    def unique_address(self, reference: int, uaddr: int) -> int: ...

    def after_event(self, state: State, address: int) -> State:
        """Return *state* after an event with this address, to which the next one is relative."""


def is_hart_event(message: Message) -> bool:
    """Whether a message is a known event of a hart, in the dialect it was parsed with."""
    return message.layout is not None and message.tcode in HART_EVENTS and hart_event(message, ports=True) is not None


def is_remembered(message: Message) -> bool:
    """Whether the step of an event is worth remembering: data and counters hardly repeat."""
    return message.tcode in IN_CIRCUIT and sent_addresses(message) is not None


def hart_event_step(function: FlowStates, state: State, message: Message, event: HartEvent) -> Step:
    """Return the step of a message that is this event."""
    sent = sent_addresses(message)
    if sent is None:
        return Step(None, state, 0, (Report(EventKind.HART_EVENT, event),), counted=False)
    unknown = state.mode is not Mode.ON and state.reference == UNKNOWN_REFERENCE
    if unknown and not sent.full:
        return Step(None, state, 0, (Report(EventKind.HART_EVENT, event),), counted=False)
    pc = function.full_address(sent.pc) if sent.full else function.unique_address(state.reference, sent.pc)
    target = None if sent.target is None else function.unique_address(pc, sent.target)
    report = place_report(function, state, message.name, event, pc, target)
    return Step(None, function.after_event(state, pc if target is None else target), 0, (report,), counted=False)


def place_report(
    function: FlowStates, state: State, name: str, event: HartEvent, pc: int, target: int | None = None
) -> Report:
    """Return the report of an event at *pc* in the message *name*; of a contradiction, if the program has no
    instruction there, or no jump for a call. The flow is not lost with it.
    """
    image = function.walker(state).image
    try:
        instruction = image.instruction(pc)
    except (CodeMissing, UndecodableInstruction):
        return _contradiction(function, image, pc, "there is no instruction", name)
    kind = event.kind
    if kind is HartEventKind.CALL:
        if instruction.itype not in _JUMPS:
            return _contradiction(function, image, pc, "there is no call, return or jump", name)
        kind = _JUMPS[instruction.itype]
        if target is None and instruction.offset is not None:
            target = pc + instruction.offset & function.mask
    return Report(EventKind.HART_EVENT, event._replace(kind=kind), last_pc=pc, next_pc=target)


def _contradiction(function: FlowStates, image: Image, pc: int, why: str, name: str) -> Report:
    return contradiction_report(function.program, image, pc, why, name)._replace(lost=False)


def sample_step(function: FlowStates, state: State, message: Message) -> Step:
    """Return the step of a synchronizing message that is a PC sample: no flow follows from it."""
    pc = function.full_address(message.fields["faddr"])
    report = place_report(function, state, message.name, HartEvent(HartEventKind.PC_SAMPLE), pc)
    return Step(None, function.after_event(state, pc), 0, (report,), counted=state.mode is Mode.ON)
