"""An E-Trace encoder's items through the compiled kernel; see `decode.executed.kernel_loop`."""

from collections.abc import Callable
from sys import maxsize
from typing import Any, NamedTuple

from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.encoder.output import FULL_MAP, Branches, PacketOutput
from rvtrace_gdb.decode.etrace.encoder.state import HartClock, PendingBlock, ResyncTimer
from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, UNINFERABLE, Block
from rvtrace_gdb.decode.executed.kernel_loop import (
    LARGEST,
    BlockEnd,
    CountingLimits,
    EncoderCounter,
    EncoderItem,
    EventCounters,
    KernelLoop,
    LoopCounters,
)
from rvtrace_gdb.decode.kernel.loading import kernel


class LoopParts(NamedTuple):
    """The parts of an encoder. *quiet*: whether nothing is due. *encode*: its way to encode an item without the kernel.
    *send_all*: sends packets.
    """

    options: EncoderOptions
    branches: Branches
    out: PacketOutput
    timer: ResyncTimer
    clock: HartClock
    pending: PendingBlock
    quiet: Callable[[], bool]
    encode: Callable[[EncoderItem], None]
    send_all: Callable[[list[bytes]], None]


class EtraceKernelLoop(KernelLoop):
    """The loop of an encoder that consists of these *parts*."""

    def __init__(self, kernel: Any, parts: LoopParts) -> None:
        timer = parts.timer
        address = EncoderCounter.HIST | EncoderCounter.REFERENCE
        super().__init__(
            kernel,
            EventCounters(EncoderCounter.HIST, EncoderCounter.NONE, address | EncoderCounter.PC),
            EventCounters(EncoderCounter.HIST, EncoderCounter.NONE, address),
            CountingLimits(
                maxsize,
                1 << FULL_MAP,
                timer.period if timer.counts_packets else maxsize,
                maxsize if timer.counts_packets else timer.period,
            ),
            timed=False,
        )
        self._parts = parts

    def _is_quiet(self) -> bool:
        parts = self._parts
        return parts.pending.block is not None and parts.quiet() and parts.clock.now < LARGEST

    def _last_block(self) -> Block:
        last = self._parts.pending.block
        assert last is not None
        return last

    def _counters(self) -> LoopCounters:
        branches, out, parts = self._parts.branches, self._parts.out, self._parts
        hist = _hist_of(branches.map, branches.count)
        return LoopCounters(0, hist, out.reference, parts.clock.now, 0, out.count, parts.timer.since)

    def _set_counters(self, counters: LoopCounters, last: EncoderItem) -> None:
        assert isinstance(last, Block)
        parts = self._parts
        _, hist, reference, parts.clock.now, _, parts.out.count, parts.timer.since = counters
        parts.out.reference = reference
        parts.branches.map, parts.branches.count = _map_of(hist)
        parts.pending.block, parts.pending.time = last, parts.clock.now - parts.clock.step

    def _block_end(self, block: Block) -> tuple[int, int]:
        end, inferred = BlockEnd(0), block.absolute
        if block.ending == BRANCH:
            end = BlockEnd.OUTCOME
        elif block.ending == UNINFERABLE:
            if inferred < 0 and self._parts.options.modes.sijump:
                inferred = block.inferred
            end = BlockEnd.JUMP | (BlockEnd.INFERRED if inferred >= 0 else 0)
        return end | (BlockEnd.ALONE if block.instructions == 1 else 0), inferred

    def _encode(self, item: EncoderItem) -> list[bytes]:
        out, sent = self._parts.out, list[bytes]()
        emit = out.emit

        def tap(payload: bytes) -> None:
            sent.append(payload)
            emit(payload)

        out.emit = tap
        try:
            self._parts.encode(item)
        finally:
            out.emit = emit
        return sent

    def _send_all(self, messages: list[bytes]) -> None:
        self._parts.send_all(messages)

    def _before(self, item: EncoderItem) -> tuple[int, int] | None:
        branches = self._parts.branches
        return 0, _hist_of(branches.map, branches.count)

    def _period_over(self) -> None:
        self._parts.timer.spend(0)


def _hist_of(map: int, count: int) -> int:
    """Return the outcomes of branches with the newest one in bit 0, 1 for taken, after a stop bit."""
    return int("1" + f"{map ^ (1 << count) - 1:0{count}b}"[::-1], 2) if count else 1


def _map_of(hist: int) -> tuple[int, int]:
    """Return the outcomes of branches with the oldest one in bit 0, 0 for taken, and how many there are."""
    count = hist.bit_length() - 1
    return int(bin(hist)[:2:-1], 2) ^ (1 << count) - 1 if count else 0, count


def kernel_loop(parts: LoopParts) -> EtraceKernelLoop | None:
    """Return the loop for an encoder, None if there is no kernel or it does not honour the options."""
    modes, compiled = parts.options.modes, kernel()
    if compiled is None or modes.implicit_return or modes.branch_prediction or modes.jump_target_cache:
        return None
    return EtraceKernelLoop(compiled, parts)
