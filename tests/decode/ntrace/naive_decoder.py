"""A decoder of undamaged traces for the tests: slow, short, and written from the document without looking at ours.

It gathers I-CNT and HIST up to the next message that says where the flow goes, and then walks instruction by
instruction over what the tests themselves know of a synthetic program.
"""

from collections import deque
from copy import copy
from typing import Any

from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from tests.decode.ntrace.messages import read
from tests.decode.synthetic import Program
from tests.decode.synthetic_code import BRANCHES, DIRECT, INDIRECT, Spot

_TERMINAL = ("DirectBranch", "IndirectBranch", "IndirectBranchHist", "ProgTraceCorrelation")


class NaiveDecoder:
    """Decodes what one encoder sent of one program. *pcs*: what ran."""

    def __init__(self, program: Program, options: EncoderOptions) -> None:
        self.program, self.options = program, options
        self.pcs: list[int] = []
        self.pc = -1
        self.reference = 0
        self.count = 0  # halfwords reported and not walked yet
        self.bits: deque[int] = deque()  # outcomes reported and not used yet
        self.calls: list[int] = []
        self.repeatable: dict[str, Any] = {}
        self.last = ""  # kind of the instruction before, in the same walk
        self.missing = False  # a branch found no bit in HIST

    def decode(self, messages: list[bytes]) -> list[int]:
        """All messages, in order."""
        options = self.options
        for raw in messages:
            if raw[0] != 0xFF:
                self.message(dict(read(raw, options.src_bits, extend_addr_msb=options.extend_addr_msb)))
        return self.pcs

    def message(self, fields: dict[str, Any]) -> None:
        """One message (chapter 7)."""
        name = fields["name"]
        if name == "ResourceFull":
            self.resource_full(fields)
        elif name == "RepeatBranch":
            for _ in range(fields["bcnt"]):
                self.terminal(self.repeatable | {"uaddr": 0})  # to the same target, which is the reference now
        elif name in _TERMINAL:
            self.terminal(fields)
            self.repeatable = fields
        elif "sync" in fields:
            self.synchronize(fields)

    def resource_full(self, fields: dict[str, Any]) -> None:
        """More I-CNT, or more HIST (RCODE 8 and 9 are SiFive's: so many branches not taken, or taken)."""
        rcode, value = fields["rcode"], fields["rdata"]
        if rcode == 0:
            self.count += value
        elif rcode in (8, 9):
            self.bits.extend([rcode - 8] * value)
        else:
            self.hist(value, fields.get("hrepeat", 1))

    def hist(self, value: int, times: int = 1) -> None:
        """The outcomes in HIST, oldest first, after the stop bit (8.2)."""
        self.bits.extend([value >> i & 1 for i in reversed(range(value.bit_length() - 1))] * times)

    def terminal(self, fields: dict[str, Any]) -> None:
        """A message behind which the flow is known, or over."""
        self.hist(fields.get("hist", 1))
        self.walk(fields["icnt"])
        if fields["name"] == "DirectBranch":
            spot = self.program.spots[self.pcs[-1]]
            if spot.kind in BRANCHES:
                self.pc = spot.targets[0]
        elif "uaddr" in fields:
            self.pc = self.reference = self.address(self.reference ^ self.sent(fields["uaddr"]))

    def synchronize(self, fields: dict[str, Any]) -> None:
        """F-ADDR says where the flow is; in 1.0 the encoder begins anew, in rc7 not for 0, 4 and 6."""
        keeps = self.options.dialect.name == "rc7" and fields["sync"] in (0, 4, 6)
        self.hist(fields.get("hist", 1))
        waits = keeps and "hist" not in fields and self.pc >= 0 and self.lacks_bits(fields["icnt"])
        self.reference = self.address(self.sent(fields["faddr"]))
        if waits:
            self.count += fields["icnt"]  # HIST goes on, and what it leads over cannot be walked before it has come
            return
        if self.pc >= 0:
            self.walk(fields["icnt"])
        self.pc = self.reference
        if not keeps:
            self.calls = []
        self.bits.clear()

    def lacks_bits(self, icnt: int) -> bool:
        """Whether some of what I-CNT has reported waits for HIST."""
        trial = copy(self)
        trial.pcs, trial.bits, trial.calls = [], deque(self.bits), [*self.calls]
        trial.missing, trial.count = False, self.count + icnt
        while trial.count > 0 and not trial.missing:
            trial.step()
        return trial.missing

    def sent(self, field: int) -> int:
        return field << 1

    def address(self, value: int) -> int:
        """Of XLEN bits; SiFive's is sent in 48 bits and sign-extended."""
        if self.options.dialect.name == "sifive" and self.program.xlen == 64:
            value &= (1 << 49) - 1
            value -= (value >> 48) << 49
        return value & self.program.mask

    def walk(self, icnt: int) -> None:
        """All that I-CNT has reported; its end is where a message follows."""
        self.count += icnt
        self.last = ""
        while self.count > 0:
            self.step()
        assert self.count == 0, "I-CNT ends inside an instruction"

    def step(self) -> None:
        """One instruction."""
        spot = self.program.spots[self.pc]
        self.pcs.append(self.pc)
        self.count -= spot.length // 2
        self.pc = self.successor(spot, self.pc + spot.length & self.program.mask)
        self.last = spot.kind

    def outcome(self) -> int:
        """The next bit of HIST; only the last instruction of a walk may lack it."""
        if self.bits:
            return self.bits.popleft()
        self.missing = True
        return 0

    def successor(self, spot: Spot, fall: int) -> int:
        """Where the instruction goes; of a jump that ends the walk, the message tells."""
        options = self.options
        target = fall
        if spot.kind in BRANCHES and not options.btm:
            target = spot.targets[0] if self.outcome() else fall
        elif spot.kind in DIRECT:
            target = spot.targets[0]
            if options.all_jumps and not options.btm:
                self.outcome()
        elif spot.kind in INDIRECT:
            due = self.calls.pop() if spot.pops and self.calls else fall
            constant = options.sequential_jump and self.last == "upper" and spot.targets
            target = spot.targets[0] if constant else due if options.implicit_return and spot.pops else fall
        if spot.pushes:
            self.calls.append(fall)
        return target
