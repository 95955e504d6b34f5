"""A software E-Trace encoder: retired blocks and traps in, payloads of te_inst packets out.

Source: Efficient Trace for RISC-V 2.0 and the v0.8 extensions "Standard Support Packet" and "Implicit Return". The
rules are in `encoder_chart` and `encoder_rules`; here is what a hart calls.
"""

from collections.abc import Sequence

from rvtrace_gdb.decode.etrace.encoder_chart import Next
from rvtrace_gdb.decode.etrace.encoder_options import ContextType as ContextType
from rvtrace_gdb.decode.etrace.encoder_options import EncoderOptions as EncoderOptions
from rvtrace_gdb.decode.etrace.encoder_options import Stop as Stop
from rvtrace_gdb.decode.etrace.encoder_options import SyncMode as SyncMode
from rvtrace_gdb.decode.etrace.encoder_rules import Rules
from rvtrace_gdb.decode.etrace.support import QualStatus
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.ingress import Block, Trap


class Encoder(Rules):
    """Encodes one hart. `emit` gets the payload of one packet at a time.

    Between `start` and `stop` the hart's retired blocks and traps go to `retire`, in order, in batches of any size;
    outside, `retire` ignores blocks and traps. A block with a jump whose register the instruction before it loads
    with a constant has both of them, where `Modes.sijump` is on: a decoder sees that from the code.
    """

    denable = False
    """What support packets say of data trace: it is on."""
    _enabled = False
    _next_pc: int | None = None

    def enable(self) -> None:
        """The encoder is switched on: a support packet says how it is configured. `start` does it if need be."""
        self._enabled = True
        self._support(QualStatus.NO_CHANGE)

    def disable(self) -> None:
        """The encoder is switched off: a support packet says so, unless `stop` has done so."""
        if self._enabled:
            self._enabled = False
            self._support(QualStatus.NO_CHANGE)

    def start(self, trap: Trap | None = None) -> None:
        """Tracing starts: what retires next is announced by a synchronization packet.

        *trap*: what has just brought the hart there, if tracing begins with a trap handler.
        """
        if not self._enabled:
            self.enable()
        self._reset()
        self._context = self._trap_context = self._entered
        self._trap, self._tracing = trap, True

    def notify(self) -> None:
        """The next instruction that retires is to be reported (trigger[2], "Using trigger outputs")."""
        self._notify_next = True

    def lost(self, *, data: bool = False) -> None:
        """Packets were lost on the way out: says so and, while tracing, starts again ("Format 3 subformat 3").

        *data*: data packets too.
        """
        self._support(QualStatus.TRACE_LOST, dloss=data)
        if self._tracing:
            trap = self._trap if self._pending is None and not self._trap_told else None
            self._reset()
            self._trap = trap

    def data_lost(self) -> None:
        """Data packets alone were lost on the way out: says so."""
        self._support(QualStatus.NO_CHANGE, dloss=True)

    def time(self, now: int) -> None:
        """The clock shows *now*: that is the time of what retires next."""
        self._now = now

    def context(self, context: Context, ctype: ContextType | None = None) -> None:
        """After what retired so far the hart runs in this context. *ctype*: what is done about it, if not the usual."""
        self._step(context)
        if ctype is not None:
            self._entered_as = ctype

    def retire(
        self, items: Sequence[Block | Trap | Context], next_pc: int | None = None, cycles: int | None = None
    ) -> None:
        """What the hart did next. *next_pc*: where it goes on, in case `stop` comes before anything else retires.

        A Context among the items is as `context` between them. *cycles*: clock cycles these took; one per instruction
        unless told.
        """
        self._each = 1 if cycles is None else 0
        if self._tracing:
            self._run(items)
        else:
            for item in items:
                if isinstance(item, Context):
                    self._step(item)
        if cycles is not None:
            self._now += cycles
            if self._tracing and self.options.sync_mode is SyncMode.CYCLES:
                self._spend(cycles)
        self._next_pc = next_pc

    def stop(self, next_pc: int | None = None, *, disable: bool = True) -> None:
        """Tracing stops before the instruction at *next_pc* (None: unknown; a branch before it counts as not taken).

        *disable*: the encoder is switched off with it; else it just is told that nothing more is traced for now: the
        hart halts, is reset, runs what a filter leaves out.
        """
        if not self._tracing:
            return
        next_pc = self._next_pc if next_pc is None else next_pc
        status = QualStatus.ENDED_REP
        if self._pending is not None:
            if self._is_target() and self.options.stop is Stop.LATE:
                status = QualStatus.ENDED_NTR
            self._finish(self._pending.fall if next_pc is None else next_pc, Next.END)
        if self._trap is not None and not self._trap_told:  # its handler does not retire any more
            self.at = self._now
            now = self._where(self._trap_context, self._now)
            self._report_trap(self._trap, 0, self._trap.epc, None, now)
        self._tracing = False
        self._enabled = not disable
        self._support(status)
        self._reset()

    def _support(self, qual_status: QualStatus, *, dloss: bool = False) -> None:
        self._out.support(qual_status, ienable=self._enabled, denable=self.denable, dloss=dloss)

    def _is_target(self) -> bool:
        """Whether the last instruction is reported for the uninferable discontinuity that led there."""
        return self._updiscon and self._trap is None and not self._synchronizes()
