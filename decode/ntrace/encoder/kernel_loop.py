"""An N-Trace encoder's items through the compiled kernel; see `decode.executed.kernel_loop`."""

from collections.abc import Callable
from sys import maxsize
from typing import Any, NamedTuple

from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, UNINFERABLE, Block
from rvtrace_gdb.decode.executed.fast_path import HonouredOptions
from rvtrace_gdb.decode.executed.kernel_loop import (
    LARGEST,
    MOST_CALLS,
    BlockEnd,
    CountingLimits,
    EncoderCounter,
    EncoderItem,
    EventCounters,
    FormField,
    KernelLoop,
    LoopCounters,
    LoopEvent,
)
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace.encoder.output import DIRECT_JUMPS, POP, PUSH, CallCounter, MessageOutput
from rvtrace_gdb.decode.ntrace.encoder.state import (
    NO_BLOCK,
    PendingBlock,
    Registers,
    ReportedContext,
    SyncRequests,
    SyncTimer,
)
from rvtrace_gdb.decode.ntrace.messages import BType, Rcode, Tcode
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode

_HONOURED = HonouredOptions(
    # EncoderOptions
    "src_bits", "src_id", "btm", "sync_mode", "sync_max", "implicit_return", "sequential_jump", "all_jumps",
    "extend_addr_msb", "context", "timestamps", "dialect", "xlen", "icnt_limit", "hist_limit", "return_depth",
    "partial_bits", "hrepeat_limit", "bcnt_limit", "timestamp_bits", "full_at_once", "icnt_full_sync", "icnt_by_block",
    "hist_full_first", "repeat_trims", "repeat_shortest", "repeat_broken_by_icnt", "run_minimum", "b_type_extended",
    "indirect_without_hist", "correlation_without_hist", "sync_placement", "linear_sync", "marks_keep_hist",
    "trap_return_sync", "ownership_full", "exact_context", "context_by_sync", "empty_fields", "field_padding",
    "idle_before_sync",
    # Dialect
    "name", "layouts", "keeps_state", "xor_timestamps", "address_bits", "run_rcodes", "jump_ends_branch",
    "scontext_first", "omits_empty_hist", "recounts_branch", "stimulus_ports", "starts", "stops", "traps",
)  # fmt: skip
"""The fields of the options that the kernel's loop honours, as long as messages are neither counted nor repeated."""

_LONGEST_HIST = 60  # bits
_FORM_BITS = 36  # of I-CNT and HIST in the kernel's messages
_LEAST_ICNT = 512
"""Where I-CNT is full every few blocks, as nothing else reports it, the kernel costs more than it gives."""


class LoopParts(NamedTuple):
    """The parts of an encoder. *encode*: its way to encode an item without the kernel. *emit_all*: sends messages, None
    if they are sent one at a time.
    """

    options: EncoderOptions
    registers: Registers
    requests: SyncRequests
    pending: PendingBlock
    out: MessageOutput
    timer: SyncTimer | None
    stack: CallCounter | None
    context: ReportedContext | None
    encode: Callable[[EncoderItem], None]
    emit_all: Callable[[list[bytes]], None] | None


class NtraceKernelLoop(KernelLoop):
    """The loop of an encoder that consists of these *parts*."""

    def __init__(self, kernel: Any, parts: LoopParts) -> None:
        options, registers, counter = parts.options, parts.registers, EncoderCounter
        message = counter.ICNT | counter.HIST | counter.REFERENCE
        super().__init__(
            kernel,
            EventCounters(counter.HIST, counter.ICNT, message | counter.PC),
            EventCounters(counter.HIST, counter.ICNT, message),
            CountingLimits(
                registers.icnt_full,
                registers.hist_full,
                options.sync_period if options.sync_mode is InstSyncMode.MESSAGES else maxsize,
                maxsize if parts.timer is None else parts.timer.period,
            ),
            (0, 0) if parts.stack is None else (options.return_depth, parts.stack.mask),
            timed=options.timestamps,
            traps=not options.trap_return_sync,
        )
        self._parts = parts
        if options.hist_limit <= _FORM_BITS and options.icnt_limit < 1 << _FORM_BITS:
            self._set_forms()

    def _set_forms(self) -> None:
        """Tell the kernel how messages are built whose values hardly repeat: `Encoder._append_hist` sends them, and
        `Encoder._indirect`.
        """
        options = self._parts.options
        if options.full_at_once:
            self._set_message_form(LoopEvent.HISTORY_FULL, Tcode.RESOURCE_FULL, Rcode.HIST, FormField.HIST)
        if options.indirect_without_hist and not options.btm:
            return  # HIST decides which message it is
        tcode = Tcode.INDIRECT_BRANCH if options.btm else Tcode.INDIRECT_BRANCH_HIST
        fields = (FormField.ICNT, FormField.ADDRESS, *(() if options.btm else (FormField.HIST,)))
        extended = options.b_type_extended
        for event, b_type in (
            (LoopEvent.JUMPED, BType.JUMP),
            (LoopEvent.EXCEPTED, BType.EXCEPTION if extended else BType.TRAP),
            (LoopEvent.INTERRUPTED, BType.INTERRUPT if extended else BType.TRAP),
        ):
            self._set_message_form(event, tcode, b_type, *fields)

    def _set_message_form(self, event: LoopEvent, tcode: Tcode, value: int, *fields: FormField) -> None:
        """Set the form of an event's messages, if it is one that the kernel takes. *value*: of the first field."""
        options, out = self._parts.options, self._parts.out
        head = out.form(int(tcode), int(value))
        if head is not None:
            with_time = (*fields, FormField.DELAY) if options.timestamps else fields
            self._set_form(event, head, with_time, options.address_mask, out.ticks)

    def _is_quiet(self) -> bool:
        parts, requests, pending = self._parts, self._parts.requests, self._parts.pending
        if requests.due is not None or requests.starting is not None or pending.split or pending.icnt_postponed:
            return False
        return parts.out.now < LARGEST and (parts.context is None or parts.context.sent is parts.context.current)

    def _last_block(self) -> Block:
        return self._parts.pending.block

    def _counters(self) -> LoopCounters:
        registers, out, timer = self._parts.registers, self._parts.out, self._parts.timer
        since = 0 if timer is None else timer.since
        return LoopCounters(
            registers.icnt, registers.hist, registers.reference, out.now, out.sent, out.messages, since
        )

    def _set_counters(self, counters: LoopCounters, last: EncoderItem) -> None:
        registers, out, timer = self._parts.registers, self._parts.out, self._parts.timer
        registers.icnt, registers.hist, registers.reference, out.now, sent, out.messages, since = counters
        if self._parts.options.timestamps:
            out.sent = sent
        if timer is not None:
            timer.since = since
        self._parts.requests.synchronized = False
        self._parts.pending.block = last if isinstance(last, Block) else NO_BLOCK

    def _calls(self) -> tuple[int, ...]:
        stack = self._parts.stack
        return () if stack is None else tuple(stack.addresses)

    def _set_calls(self, calls: tuple[int, ...]) -> None:
        stack = self._parts.stack
        if stack is not None:
            stack.addresses.clear()
            stack.addresses.extend(calls)

    def _block_end(self, block: Block) -> tuple[int, int]:
        options, itype = self._parts.options, block.itype
        follows = self._parts.stack is not None
        end = BlockEnd(0)
        if block.ending == BRANCH:
            end = BlockEnd.REPORT if options.btm else BlockEnd.OUTCOME
        elif block.ending == UNINFERABLE:
            end = BlockEnd.JUMP
            end |= BlockEnd.INFERRED if options.sequential_jump and block.inferred >= 0 else 0
        elif options.all_jumps and itype in DIRECT_JUMPS:
            end = BlockEnd.ALWAYS | (BlockEnd.REPORT if options.btm else BlockEnd.OUTCOME)
        if follows and (block.ending == UNINFERABLE or itype in DIRECT_JUMPS):
            end |= BlockEnd.PUSH if itype in PUSH else 0
            end |= BlockEnd.POP if itype in POP else 0
        return end, block.inferred

    def _encode(self, item: EncoderItem) -> list[bytes]:
        out, sent = self._parts.out, list[bytes]()
        emit, out.emit = out.emit, sent.append
        try:
            self._parts.encode(item)
        finally:
            out.emit = emit
            self._send_all(sent)
        return sent

    def _send_all(self, messages: list[bytes]) -> None:
        if self._parts.emit_all is not None:
            self._parts.emit_all(messages)
            return
        emit = self._parts.out.emit
        for message in messages:
            emit(message)

    def _before(self, item: EncoderItem) -> tuple[int, int] | None:
        registers = self._parts.registers
        icnt = registers.icnt - (item.halfwords if isinstance(item, Block) else 0)
        return None if icnt < 0 else (icnt, registers.hist)

    def _period_over(self) -> None:
        self._parts.requests.period_over()


def kernel_loop(parts: LoopParts) -> NtraceKernelLoop | None:
    """Return the loop for an encoder, None if there is no kernel or it does not honour the options."""
    options = parts.options
    compiled = kernel()
    counted = options.repeated_history or options.repeat_branch or options.idle_bytes or options.timestamp_sparse > 1
    if compiled is None or counted or (options.timestamps and options.dialect.xor_timestamps):
        return None
    if options.icnt_limit >= LARGEST or options.hist_limit > _LONGEST_HIST or options.return_depth > MOST_CALLS:
        return None
    if not options.btm and options.icnt_limit < _LEAST_ICNT:
        return None
    return NtraceKernelLoop(compiled, parts) if _HONOURED.suffice(options, options.dialect) else None
