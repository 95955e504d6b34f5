from array import array
from collections.abc import Callable
from typing import Any, overload

SOURCE: str
PYTHON: int

_Buffer = bytes | bytearray | array[int]
_Stack = tuple[int, Any, int] | None

class Kernel:
    """The remembered steps of a hart, and the loop that takes them. See loop.h for the numbers.

    kinds       one `FrameKind` of loop.h for each value of a frame's first byte
    timed       whether frames end with timestamps
    xor_times   whether timestamps are the XOR with the last time
    time_bits   width of the counter of timestamps; 0: it does not wrap
    max_depth   greatest depth of the call stack; kept_depth: what is kept of a deeper one
    """

    def __new__(
        cls, kinds: bytes, timed: bool, xor_times: bool, time_bits: int, max_depth: int, kept_depth: int, /
    ) -> Kernel: ...
    def append(self, path: Any, /) -> None: ...
    def time(self, now: int, /) -> None: ...
    def place(self) -> tuple[int, int, _Stack, int | None, bool]:
        """Return (state, ahead, stack, now, unsure)."""
    def before(self) -> tuple[int | None, bool]:
        """Return (now, unsure) as before the last timestamp."""
    def go(self, state: int, ahead: int, stack: _Stack, now: int | None, unsure: bool, /) -> None: ...
    def flow(self) -> tuple[int, int, int]:
        """Return and forget the last frame about the flow: whether it is a branch (1, else 2), where it is in the data,
        and its length; 0 first if there was none."""
    def accept_earlier_times(self) -> None:
        """Do not stop where the time goes back."""
    def learn(
        self,
        state: int,
        frame: bytes,
        ahead: int,
        taken: tuple[int | None, ...],
        following: int,
        change: int,
        path: Any,
        left: tuple[int, ...],
        flags: int,
        /,
    ) -> int:
        """Remember a step, and return its number."""
    def learn_packet(
        self,
        state: int,
        payload: bytes,
        look_up: tuple[int, int | None] | None,
        conditions: tuple[tuple[int, int], ...],
        taken: tuple[int | None, ...],
        following: int,
        path: Any,
        landing: Any,
        left: tuple[int, ...],
        peak: int,
        flags: int,
        initial: int,
        training: tuple[tuple[int, bytes], ...],
        targets: tuple[tuple[int, int], ...],
        /,
    ) -> int:
        """Remember the step of a packet, and return its number. See `Lesson` and `Effect` of packets.h."""
    def unlearn_packet(self, state: int, payload: bytes, /) -> None:
        """Do not take the steps of a packet any more."""
    def run_packets(
        self,
        data: bytes,
        at: int,
        index: int,
        length_bits: int,
        with_idle: bool,
        depth: int,
        stops_at_sync: bool,
        times: _Buffer | None,
        present: _Buffer | None,
        predictor: bytearray,
        cache: _Buffer,
        known: bytearray,
        /,
    ) -> tuple[int, int, int, int, int]:
        """Take the steps that are known from byte *at* on, where packet *index* starts. Return (why it stopped, at,
        index, the length of the payload, the number of the step that was taken). See `PacketRun` of packets.h.
        """
    def forget(self) -> None: ...
    def run(self, data: bytes, at: int, end: int, /) -> tuple[int, int, int, int, int]:
        """Take the steps that are known from byte *at* on. Return (why it stopped, where, the length of the frame,
        the length without its timestamp, the number of the step that was taken)."""
    def flush(
        self, entries: list[Any], length: int, repeated: Callable[[Any, int], Any], /
    ) -> tuple[int, bytes, bytes, bytes]:
        """Append to *entries* what ran. Return (their length, indexed positions, positions of times, times)."""
    def idle(self) -> int:
        """Return and forget the number of idle bytes."""
    def unused(self) -> int:
        """Return and forget the number of bytes of frames that were ignored."""
    def outcomes(self, fields: bytes, limit: int, shift: int, mask: int, successors: bytes, /) -> None:
        """*fields*: one `OutcomeField` of outcomes.h by the first byte. *limit*: the size of all steps that
        may be remembered. The others: as in `Trainer`."""
    def group(self, walker: Walker, /) -> int:
        """Return the number of a new group of states, which differ in their addresses alone."""
    def state(self, group: int, pc: int, last: int, shared: bool, /) -> int:
        """Return the number of a state: of a *shared* one always the same, until all is forgotten."""
    def state_place(self, number: int, /) -> tuple[int, int, int]:
        """Return (group, pc, last pc) of a state."""
    def count(self, steps: int, /) -> bool:
        """Count steps, and return whether there was room for them."""
    def known(self, frame: bytes, /) -> tuple[Any, int, int, int, tuple[int, ...], int, int] | None:
        """Return the step of a frame: (path, following state, change of ahead, number of addresses popped, left, flags,
        number)."""
    def sizes(self) -> tuple[int, int, int, int]:
        """Return the number of steps, of their paths, of other paths that are pending, and of bytes."""

class Walker:
    """The walk over a program for the usual case, see walk.c.

    segment_at, run_of  what Python knows: a `Segment` by its pc; of a run by (pc, outcomes, call stack) what
                        `ProgramWalker._run_contents` returns
    path_type, no_code  `Path`, and its `code` where that is the program's
    stacked             whether walks depend on the call stack
    lowest_first        whether the lowest outcome is the first one, and 0 is taken; else the highest one, and 1
    falls_through       whether a branch without an outcome, before the limit, is not taken
    pops_known          whether a return pops, too, if the code determines its target
    trains              whether the branches are wanted
    entries             of the encoder's call stack; 0: any number
    most_instructions, most_runs  bounds of what it keeps
    """

    def __new__(
        cls,
        segment_at: Callable[[int], Any],
        run_of: Callable[[int, int, _Stack], tuple[Any, ...] | None],
        path_type: type,
        no_code: object,
        stacked: bool,
        lowest_first: bool,
        falls_through: bool,
        pops_known: bool,
        trains: bool,
        entries: int,
        most_instructions: int,
        most_runs: int,
        /,
    ) -> Walker: ...
    def walk(
        self, pc: int, outcomes: int, bits: int, limit: int, stack: _Stack, runs: bool, /
    ) -> tuple[list[Any], int, int, tuple[int, ...], tuple[int, ...], Any, list[tuple[int, bool]], int] | None:
        """Walk over *bits* outcomes, and *limit* halfwords if that is not negative. Return (parts, next pc or -1,
        halfwords, taken, left, last segment, branches, how much deeper the call stack was); None if Python has to."""
    def forget(self) -> None: ...
    def sizes(self) -> tuple[int, int]:
        """Return the number of segments and of runs."""

class RowWriter:
    """Rows of a listing: a number, which rises from row to row, between texts that repeat."""

    def __new__(cls) -> RowWriter: ...
    def add(self, text: bytes, /) -> int:
        """Return the number of a new text, which ends rows."""
    def learn(self, entry: Any, numbers: bytes, /) -> None:
        """Note an entry of a history, with the text of each instruction: its number, in 32 bits."""
    def repeat(self, entry: Any, unit: Any, times: int, /) -> bool:
        """Note an entry that is another one so many times. Return False if that is not known."""
    def forget(self) -> None:
        """Forget the entries."""
    def write(
        self, entries: list[Any], at: int, first: int, count: int, number: int, before: bytes, after: bytes, /
    ) -> tuple[bytes, int, int, int]:
        """Make rows of at most *count* instructions, from instruction *first* of the entry at index *at* on, up to an
        entry that is not known. *number*: of the first one. Return them, how many, and where the next one is: index of
        its entry, and which instruction."""
    def sizes(self) -> tuple[int, int, int]:
        """Return the number of texts, of entries, and of the texts in these."""

_Counters = tuple[int, int, int, int, int, int, int]

class Encoder:
    """What an encoder sent before, and the loop that sends it again. See encoder.h for the numbers.

    uses, changes   the counters that the messages of each event depend on, and those that they change
    icnt_full, hist_full, message_period, period  the values at which the loop stops, for the encoder to do what is due
    call_mask, most_calls  the bits of return addresses that are kept, and how many
    timed           whether messages depend on the time since the last one
    """

    def __new__(
        cls, uses: bytes, changes: bytes, icnt_full: int, hist_full: int, message_period: int, period: int,
        call_mask: int, most_calls: int, timed: bool, /,
    ) -> Encoder: ...
    def add(
        self, item: Any, pc: int, fall: int, inferred: int, halfwords: int, instructions: int, flags: int, /
    ) -> int:
        """Add a block, or a trap, which is known by its identity from now on. Return how many there are."""
    def form(
        self, event: int, head: int, head_bits: int, least: int, fields: bytes, address_mask: int, delay_mask: int, /
    ) -> None:
        """Let messages of this event be made by their form, see `MessageForm` of encoder.h."""
    def learn(self, message: bytes, icnt: int, hist: int, /) -> int:
        """Remember the message that was missed last, and the counters after it. Return how many are remembered."""
    def forget(self) -> None: ...
    def run(
        self, items: list[Any], at: int, out: list[bytes], last: Any, counters: _Counters, calls: tuple[int, ...],
        count_time: int, count_period: int, /,
    ) -> tuple[int, int, int, int, int, int, int, int, int, tuple[int, ...]]:
        """Encode the items from *at* on, as long as they are known, and append the messages to *out*. Return (why it
        stopped, where, the counters, the calls)."""
    def __deepcopy__(self, memo: Any, /) -> Encoder: ...

class Chain:
    """Objects by number, and which of them have followed each other."""

    def add(self, item: Any, weight: int, /) -> None: ...
    def pair(self, before: int, after: int, /) -> None: ...
    def run(self, words: Any, at: int, last: int, out: list[Any], /) -> tuple[int, int, int]:
        """Append to *out* the object of each number that is followed by one which has followed it before. Return (where
        it stopped, the number that is last there, the weight of what was appended)."""

HART_OPERATIONS: tuple[str, ...]
"""The names of the operations of a `HartLoop`, by number."""

class HartLoop:
    """The blocks of a hart that are executed here, by their numbers, and the loop over them. See hart.h.

    memory      main memory, of which the first *size* bytes, a power of two, are accessed here
    base        address of the memory
    odd         bits that are clear in the address of an instruction
    """

    def __new__(cls, xlen: int, memory: Any, base: int, size: int, odd: int, /) -> HartLoop: ...
    def forget(self, tohost: int, /) -> None:
        """Forget all blocks. From now on stores to this offset in memory, if there is one, are left to Python."""
    def add(self, pc: int, end: int, instructions: int, operations: bytes, /) -> None:
        """Add the block of the next number. *operations*: one `CodeOperation` after the other."""
    def run(
        self, x: list[int], pc: int, budget: int, blocks: list[Any], retired: list[Any] | None, /
    ) -> tuple[int, int, int]:
        """Execute blocks from *pc* on until *budget* instructions have retired, and append the objects of their numbers
        in *blocks* to *retired*. Return (why it stopped, pc, how many have retired)."""

def sort(data: bytes, low: int, bits: int, /) -> tuple[int, list[tuple[int, bytes, bytes]]] | None:
    """Sort frames by the number in their bits from *low* on. Return the number of idle bytes, and for each number its
    frames, and from where in the data they come: pairs of 32-bit numbers (from this byte of the frames on, from that of
    the data on). None: there is something else than frames."""

class Parts:
    """The different parts of a history, numbered, each after what it contains; their addresses, numbered, too, the gap
    with 0; and steps to entries. See counts.h. The types are those of paths and of repeated ones.
    """

    def __new__(cls, path_type: type, rounds_type: type, /) -> Parts: ...
    def add_step(self, part: Any, last: int | None, trapped: bool, /) -> None:
        """Add a step to a part from the instruction at *last*, None at the beginning. Its number is the next one."""
    def addresses(self) -> list[int]: ...
    def size(self) -> tuple[int, int, int]:
        """Return the number of addresses, parts and steps."""
    def match(self, flags: bytes, inner: bytearray, ends: bytearray, first: int, last: int, /) -> None:
        """Fill in the matches of the parts from one number up to another. *flags*: of each address, `WANTED`..."""
    def before(self, flags: bytes, /) -> bytes:
        """Return, for each address, whether it may run directly before one that is wanted."""
    def counts(
        self, flags: bytes, inner: bytearray, ends: bytearray, entered: bool, steps: Any, /
    ) -> bytes:
        """Return how many matches are in the entry to which each step leads: 64-bit numbers for 32-bit ones."""
    def total(
        self, flags: bytes, inner: bytearray, ends: bytearray, entered: bool, steps: Any, times: Any, /
    ) -> int:
        """Return how many matches are in the entries to which steps lead, each so many times (32-bit numbers)."""
    def excluded(self, flags: bytes, /) -> list[int]:
        """Return the steps to an entry that begins with a wanted address, from one that excludes that."""

class Executions:
    """How often what is in parts ran: first entries are added, then `spread` counts what is in them."""

    def __new__(cls, parts: Parts, /) -> Executions: ...
    def add_steps(self, steps: Any, times: Any, /) -> None:
        """Add the entries to which steps lead, each so many times: two arrays of 32-bit numbers."""
    def add_entries(self, entries: list[Any], begin: int, end: int, /) -> None:
        """Add those numbered *begin* to *end* - 1, each after the one before."""
    def spread(self, count: int, /) -> int:
        """Count what is in *count* more parts, and return how many are left."""
    def result(self) -> tuple[bytes, list[tuple[int, int, int]]]:
        """Return how often each address ran, as 64-bit numbers, and [(from, to, times)] of steps between them."""

class TandemReader:
    """Finds where groups begin. Nodes have numbers; an entry says what to do at a byte in a node: `GrammarEntry` of
    decode/tandem/group_grammar.py. The *shape* 0xffff: the group goes on."""

    def __new__(cls) -> TandemReader: ...
    def learn(self, node: int, byte: int, size: int, following: int, split: int, shape: int, /) -> None: ...
    def read(
        self, data: bytes | bytearray, at: int, start: int, node: int, /
    ) -> tuple[int, int, int, tuple[int, int] | None]:
        """Read from the element *at*, of the group that begins at *start*, on. Return where it stopped, and the node
        and byte that are not known, None at the end of the data."""
    def take(self) -> tuple[bytes, bytes]:
        """Return and forget the offsets (64 bits) and the shapes (16 bits) of the groups that were read."""

_Field = tuple[int, int]

class TandemIndexer:
    """Notes what plain groups did: `UnpackPlan` of decode/tandem/group_grammar.py. *kinds*: of registers, by number.
    Python does what runs below *lowest*."""

    def __new__(cls, xlen: int, mprv: int, lowest: int, kinds: bytes, /) -> TandemIndexer: ...
    @overload
    def plan(self) -> None: ...
    @overload
    def plan(
        self,
        size: int,
        pc: _Field,
        word: _Field,
        address: _Field,
        data: _Field,
        physical: bool,
        both: bool,
        registers: tuple[tuple[int, int, int], ...],
        /,
    ) -> None:
        """Add the plan of the next shape: the place of each field, and its bytes, 0 without it; nothing: Python does
        such groups."""
    def learn(self, word: int, stored: int, distances: tuple[int, ...] | None, is_store_odd: bool, /) -> None:
        """Add the facts of an instruction: how many bytes it stores, how far it may lead (None: anywhere), whether
        only Python knows what it stores."""
    def forget(self) -> None:
        """Forget which instructions ran where."""
    def run(
        self,
        data: bytes | bytearray,
        offsets: array[int],
        shapes: array[int],
        group: int,
        stop: int,
        pc: int,
        mprv: bool,
        in_physical: bool,
        /,
    ) -> tuple[int, int, int, int]:
        """Do plain groups from *group* on. Return why it stopped (`Indexing` of tandem.h), before which group, the pc
        there, and the instruction that is not known."""
    def take(self) -> tuple[bytes, bytes, list[tuple[int, int]], list[tuple[int, bytes, bytes]], _Stores, _Stores]:
        """Return and forget what the groups did: pcs, groups that made floating-point state dirty, instructions that
        ran at an address for the first time, writes by register, stores where loads and stores are, physical ones."""

_Stores = tuple[bytes, bytes, bytes, bytes]

class PathBlocks:
    """Numbers of consecutive addresses."""

    def __new__(cls) -> PathBlocks: ...
    def cut(self, pcs: array[int], longest: int, /) -> tuple[bytes, bytes]:
        """Cut addresses into blocks. Return the number of each, and where the new ones begin and end; all 32 bits."""
def cut_packets(form: bytes, data: bytes, at: int, /) -> tuple[int, int, int, list[PacketGroup] | None]:
    """Cut the packets of a stream from byte *at* on. Return (the byte after the last that is complete, idle bytes,
    packets, groups); no groups if the packets are as `run_packets` takes them. See packet_frames.h.
    """

PacketGroup = tuple[int, int, int, bytes, bytes, bytes, bytes | None, bytes | None, int]
"""(source, content, packets, payloads, offsets, sizes, times, which are present, bytes in the data)"""

def join_packets(payloads: list[bytes], /) -> bytes:
    """Return payloads of up to 255 bytes, each after a byte with its length."""

def split_packets(data: bytes, length_bits: int, with_idle: bool, /) -> tuple[list[bytes], bytes]:
    """Return the payloads, and where their packets start, as 32-bit numbers."""

def packet_heads(data: bytes, length_bits: int, with_idle: bool, /) -> bytes:
    """Return the first byte of each payload, 0 if it is empty."""

def first_earlier(times: _Buffer, present: _Buffer, last: int | None, /) -> int:
    """Return the index of the first time that is earlier than the one before it, -1 if there is none."""

class CallWalk:
    """The steps of an automaton, by the number of a state and what comes next there, which is known by its identity."""

    def __new__(cls) -> CallWalk: ...
    def learn(self, state: int, key: Any, step: int, following: int, begins: int, low: int, /) -> None:
        """Remember a step, whose number is a new one, and how many functions begin in it, and its lowest level."""
    def run(self, state: int, keys: list[Any], at: int, /) -> tuple[int, int]:
        """Take the steps that are known from the key at *at* on. Return where the first other one is, and the state."""
    def steps(self, state: int, keys: list[Any], /) -> bytes:
        """Return the steps from a state on, as 32-bit numbers, up to the first that is not known."""
    def block(self) -> tuple[int, int]:
        """Return how many functions began, and the lowest level, in the steps since this was called last."""
    def tally(self) -> tuple[bytes, bytes]:
        """Return the steps since this was called last, and how often each was taken, as 32-bit numbers."""
