"""The decoder of one hart whose remembered steps the kernel takes (decode/kernel/steps/packets.h).

The kernel has each step that is remembered, and works on whole batches of packets. It stops at a packet for which it
has no step, and at one whose step has reports. Such a packet is decoded here, as without the kernel, which learns the
step. So what a packet means is known only here, and the history is the same either way. Most packets that are new have
nothing but outcomes of branches; the kernel is told which these are and makes their steps itself. Python remembers only
packets whose steps are worked out anew each time. The encoder's tables are memory that the kernel and Python share.
"""

from array import array
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from rvtrace_gdb.decode.etrace.encapsulation import SourcePackets
from rvtrace_gdb.decode.etrace.encapsulation.cutting import FramedPayloads, PacketTimes
from rvtrace_gdb.decode.etrace.hart import HartDecoder
from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.loss_detection import LOOKAHEAD, SyncVerdict
from rvtrace_gdb.decode.etrace.options import Options, Parameters, Setup
from rvtrace_gdb.decode.etrace.prediction_tables import INITIAL, PredictionTables, TableEffect
from rvtrace_gdb.decode.etrace.state import HartKnowledge, Mode, NotCached, State, Step
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.control_flow import KEPT_DEPTH, MAX_DEPTH, NOWHERE
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT
from rvtrace_gdb.decode.stepping.kernel_states import KernelMemory, KernelStates, WalkStart

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import Kernel

# enum Stop of decode/kernel/steps/loop.h: why the loop stopped.
_AT_END, _UNKNOWN, _REPORTS = range(3)

# The flags of a step.
_HAS_REPORTS, _CALLS, _CLEARS, _SYNCHRONIZES, _IGNORED = 2, 4, 8, 16, 32

_NO_KINDS = bytes(256 * 6)  # of N-Trace's frames
_NO_EFFECT = TableEffect()
_LARGEST = (1 << 64) - 1


class PacketKernelHart(HartDecoder):
    """Decodes the packets of one hart. *module* has the kernel; the other arguments are those of `HartDecoder`.

    Between two calls everything is here, as in a `HartDecoder`; the kernel has it while it runs.
    """

    _tables: "_SharedTables"

    def __init__(
        self,
        module: ModuleType,
        program: Program,
        options: Options,
        *,
        memo_limit: int = MEMO_LIMIT,
        builder: HistoryBuilder | None = None,
    ) -> None:
        super().__init__(program, options, memo_limit=memo_limit, builder=builder)
        self._step_function.compiled_by(module)
        self._module = module
        self._kernel: Kernel = module.Kernel(_NO_KINDS, False, False, 0, MAX_DEPTH, KEPT_DEPTH)
        self._builder.collect_in(self._kernel)
        self._memory: KernelMemory = KernelMemory(self._kernel, self._forget, memo_limit)
        self._memo_limit = memo_limit
        self._states = KernelStates(self._kernel, self._place_of, self._state_of)
        self._tell_outcomes()
        self._stopping: dict[int, Step] = {}  # steps at which the kernel may stop, by its number of the step
        self._payloads = FramedPayloads(module, b"", 0, None)  # what the kernel works on
        self._next = 0  # where in it the packet after that at which the kernel stopped starts

    def _decode_timeless(self, packets: SourcePackets, default: SyncVerdict) -> int:
        payloads = packets.payloads
        if not isinstance(payloads, FramedPayloads):
            payloads = self._framed(payloads)
        times = None if packets.times is None else PacketTimes.listed(packets.times)
        self._payloads = payloads
        at = index = 0
        self._give_place()
        while True:
            stop, at, index, length, step = self._run(payloads, at, index, times)
            if stop == _AT_END:
                break
            offset = packets.offsets[index] if payloads.base is None else payloads.base + at
            self._next = at + 1 + length
            if stop == _REPORTS:
                self._end_step(self._stopping.get(step), packets, index, offset)
            else:
                self._take_place()
                payload = payloads.data[at + 1 : self._next]
                if not self._decode_unknown(packets, index, payload, offset, default):
                    return index
                self._give_place()
            if self._stopped:
                self._take_place()
                return self._stop_after(packets, index)
            if times is not None and times.present[index]:
                self._builder.time(times.values[index])
            at, index = self._next, index + 1
        self._take_place()
        return -1

    def _run(
        self, payloads: FramedPayloads, at: int, index: int, times: PacketTimes | None
    ) -> tuple[int, int, int, int, int]:
        tables = self._tables
        return self._kernel.run_packets(
            payloads.data,
            at,
            index,
            payloads.length_bits,
            payloads.plain,
            self._depth,
            self._has_data,
            None if times is None else times.values,
            None if times is None else times.present,
            tables.states,
            tables.cache.targets,
            tables.cache.present,
        )

    def _framed(self, payloads: Sequence[bytes]) -> FramedPayloads:
        data = self._module.join_packets(payloads if isinstance(payloads, list) else list(payloads))
        return FramedPayloads(self._module, data, len(payloads), None)

    def _decode_unknown(
        self, packets: SourcePackets, index: int, payload: bytes, offset: int, default: SyncVerdict
    ) -> bool:
        """Decode a packet without a step. False: it has to wait for further packets."""
        known = self._state.get(payload)
        packet = known.packet if isinstance(known, NotCached) else None
        size = 1 + len(payload) if packets.payloads is self._payloads and self._payloads.plain else packets.sizes[index]
        single = SourcePackets(packets.source, packets.kind, [payload], (offset,), size, None, (size,))
        return self._decode_new(single, 0, packet, default)

    def _next_payloads(self, packets: SourcePackets, index: int) -> Iterable[bytes]:
        return self._payloads.after(self._next, LOOKAHEAD)

    def _first_earlier(self, times: Sequence[int | None]) -> int:
        if not isinstance(times, PacketTimes):
            return super()._first_earlier(times)
        index: int = self._module.first_earlier(times.values, times.present, self._order.last)
        return index

    def _end_step(self, step: Step | None, packets: SourcePackets, index: int, offset: int) -> None:
        """Do what is left of a step that the kernel took. None: of a packet that is ignored."""
        if step is None:
            self._unused += packets.sizes[index]
            return
        if step.reports:
            self._report(step.reports, offset)
            if self._stopped:
                return
            if step.landing is not None:
                self._builder.append(step.landing)
        if step.synchronizes and self._has_data:
            self._data.synchronize(self._builder.position - 1)

    # What the kernel has

    def _give_place(self) -> None:
        """Let the kernel go on from where this decoder is."""
        self._kernel.go(self._states.number_of(self._state), 0, self._stack, None, False)

    def _take_place(self) -> None:
        """Go on from where the kernel is."""
        number, _, self._stack, _, _ = self._kernel.place()
        self._state = self._states.state_at(number)
        self._unused += self._kernel.unused()

    def _place_of(self, state: State) -> WalkStart[HartKnowledge] | None:
        """Return where the hart is, if the kernel can walk from there."""
        known = state.knowledge
        if known.mode is not Mode.ON or known.inferred is not None or known.next_pc == NOWHERE:
            return None
        walker = self._step_function.walker(known)
        if walker.compiled is None or walker.start(known.next_pc, known.last_pc, None).pair is not None:
            return None
        group = known._replace(next_pc=NOWHERE, last_pc=NOWHERE)
        last = known.last_pc & _LARGEST
        return WalkStart(group, walker.compiled, known.next_pc, last, self._step_function.is_shared(state))

    def _state_of(self, group: HartKnowledge, pc: int, last: int) -> State:
        return self._step_function.state(group._replace(next_pc=pc, last_pc=last))

    def _set_up(self, setup: Setup) -> None:
        super()._set_up(setup)
        self._tell_outcomes()

    def _tell_outcomes(self) -> None:
        """Tell the kernel which packets have nothing but outcomes of branches, whose steps it makes itself."""
        full = self._codec.full_map()
        field = bytes(5) if full is None else bytes((0, full.prefix_bits, full.prefix, full.prefix_bits, full.outcomes))
        self._kernel.outcomes(256 * field, self._memo_limit, *self._tables.predictor)

    def _forget(self) -> None:
        """Forget all steps, here and in the kernel."""
        self._step_function.forget()
        self._kernel.forget()
        self._states.forget()
        self._stopping.clear()

    def _ignore(self, payload: bytes, size: int) -> None:
        """Teach that to the kernel, too: there may be many packets until the next synchronization."""
        super()._ignore(payload, size)
        if self._memory.has_room_to_ignore(payload):
            here = self._states.number_of(self._state)
            self._kernel.learn_packet(here, payload, None, (), (), here, None, None, (), 0, _IGNORED, -1, (), ())

    def _keep_packet(self, state: State, payload: bytes, packet: Packet) -> None:
        super()._keep_packet(state, payload, packet)
        self._kernel.unlearn_packet(self._states.number_of(state), payload)

    def _keep_step(
        self,
        state: State,
        payload: bytes,
        packet: Packet,
        step: Step,
        index: int | None,
        guard: Sequence[tuple[int, int]],
    ) -> None:
        if guard:  # others that the predictor leads to may come
            state[payload] = NotCached(packet)
        calls, effect = step.calls, step.tables or _NO_EFFECT
        flags = (_HAS_REPORTS if step.reports else 0) | (_SYNCHRONIZES if step.synchronizes else 0)
        if calls is not None:
            flags |= _CALLS | calls.clears * _CLEARS
        number = self._kernel.learn_packet(
            self._states.number_of(state),
            payload,
            None if index is None else (index, self._tables.targets.get(index)),
            tuple(guard),
            () if calls is None else calls.taken,
            self._states.number_of(step.state),
            step.path,
            None if step.reports else step.landing,
            () if calls is None else calls.left,
            0 if calls is None else calls.peak,
            flags,
            INITIAL if effect.resets else -1,
            effect.training,
            effect.targets,
        )
        if step.reports or step.synchronizes:
            self._stopping[number] = step

    def _new_tables(self, parameters: Parameters) -> PredictionTables:
        return _SharedTables(parameters)


class _SharedTables(PredictionTables):
    """Tables in memory that the kernel reads and changes, too."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self.targets = self.cache = _CacheMemory(1 << parameters.cache_size)


class _CacheMemory(MutableMapping[int, int]):
    """The targets in a cache of this size by index: *targets*, where they are *present*."""

    def __init__(self, size: int) -> None:
        self.targets = array("Q", bytes(8 * size))
        self.present = bytearray(size)

    def __getitem__(self, index: int) -> int:
        if not self.present[index]:
            raise KeyError(index)
        return self.targets[index]

    def __setitem__(self, index: int, target: int) -> None:
        self.targets[index] = target
        self.present[index] = 1

    def __delitem__(self, index: int) -> None:
        self.present[index] = 0

    def __iter__(self) -> Iterator[int]:
        return (index for index, present in enumerate(self.present) if present)

    def __len__(self) -> int:
        return sum(self.present)

    def clear(self) -> None:
        """Forget all targets."""
        self.present[:] = bytes(len(self.present))
