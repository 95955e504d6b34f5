"""A naive gdb that records, and what it records: a hart that was traced.

The naive gdb follows gdb/btrace.c of gdb 13.1 (btrace_fetch, btrace_stitch_bts, btrace_compute_ftrace_bts) word for
word, assertions included.
"""

import random
import re
import threading
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, History, Path
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.replay.record_btrace import Btrace, BtraceRequest
from rvtrace_gdb.support.errors import RvtraceError
from tests.helpers.event_facts import lost

BASE = 0x8000_0000
NOP, C_NOP, C_RET = (bytes.fromhex(code) for code in ("13000000", "0100", "8280"))
BEQ_8, J_16, ECALL = (bytes.fromhex(code) for code in ("63040000", "6f000001", "73000000"))
GAP_TEXT = "gap"


class Code:
    """Instructions one behind the other; *at*: their addresses."""

    def __init__(self, *instructions: bytes) -> None:
        self.data = b"".join(instructions)
        self.at = [BASE + sum(map(len, instructions[:i])) for i in range(len(instructions))]
        self.instruction = dict(zip(self.at, instructions, strict=True))
        image = Image(64)
        image.add_code(BASE, self.data)
        self.program = ContextImages(image)

    def length(self, pc: int) -> int:
        """As gdb sees it, 0 where there is no code."""
        offset = pc - BASE
        return (4 if self.data[offset] & 3 == 3 else 2) if 0 <= offset < len(self.data) else 0


def soup(rng: random.Random, size: int) -> Code:
    return Code(*rng.choices((NOP, C_NOP, C_RET), weights=(5, 5, 2), k=size), C_RET)


def run(rng: random.Random, code: Code, pc: int, count: int) -> tuple[list[int], int]:
    """What ran from *pc* on, and where it stands then. Interrupts lead anywhere, but not at the very end."""
    ran: list[int] = []
    for i in range(count):
        ran.append(pc)
        jumps = code.instruction[pc] == C_RET or (i < count - 1 and rng.random() < 0.05)
        pc = rng.choice(code.at) if jumps else pc + len(code.instruction[pc])
    return ran, pc


def history_of(pcs: list[int]) -> History:
    builder = HistoryBuilder()
    for pc in pcs:
        if pc == GAP:
            builder.gap(EventKind.LOSS, 0, lost())
        else:
            builder.append(Path([(pc,)]))
    return builder.finish(Accounting(0, 0, 0, 0))


class Target:
    """A hart that was traced, as the extension sees it: it is the session and what the proxy asks, too."""

    def __init__(self, code: Code, pcs: list[int], pc: int) -> None:
        self.code, self.pcs, self.pc, self.resumes = code, pcs, pc, 0
        self.wrapped, self.broken, self.in_past = False, False, False
        self.said: list[str] = []
        self.lock = threading.RLock()
        self.past = SimpleNamespace(away=lambda: self.in_past)
        self.hart = 0
        self._read: tuple[list[int], History] | None = None

    @property
    def debugger(self) -> Any:
        return SimpleNamespace(resumes=self.resumes)

    def harts(self, context: Context, progress: Any) -> Any:
        """As `Session.harts`: the same bytes are decoded once."""
        if self.broken:
            raise RvtraceError("reading out takes longer than gdb waits")
        if self._read is None or self._read[0] != self.pcs:
            self._read = list(self.pcs), history_of(self.pcs)
        harts = SimpleNamespace(histories={0: self._read[1]}, number=lambda wanted, likely: 0)
        sink = SimpleNamespace(wrapped=self.wrapped)
        return SimpleNamespace(harts=harts, program=self.code.program, sink_of=lambda hart: sink)

    @property
    def breakpoint_addresses(self) -> frozenset[int]:
        return frozenset()

    def live(self) -> bool:
        return True

    def live_pc(self) -> int | None:
        return self.pc

    def transact(self, packet: bytes) -> bytes:
        raise AssertionError(packet)

    def transact_all(self, packets: list[bytes], hart: int | None = None) -> list[bytes]:
        raise AssertionError(packets)

    def monitor(self, command: str) -> str:
        raise AssertionError(command)

    def extended(self, packet: bytes) -> bytes | None:
        raise AssertionError(packet)

    def print(self, line: str) -> None:
        raise AssertionError(line)

    def is_interrupted(self) -> bool:
        return False

    def is_unheard(self) -> bool:
        return False

    def say(self, line: str) -> None:
        self.said.append(line)


class NaiveGdb:
    """What gdb has of a thread: *insns*, addresses and gaps. The last one has not run yet."""

    def __init__(self, target: Target, limit: int = 1000, size: int = 0x1000) -> None:
        self.target, self.size = target, size
        self.btrace = Btrace(target)  # type: ignore[arg-type]
        self.btrace.features()
        self.insns: list[int | str] = []
        self.asked: list[str] = []
        self.warned = 0
        self.begin(limit)

    def begin(self, limit: int) -> None:
        """`trace native`, and `record btrace`."""
        self.ask(b"Qbtrace:off")
        self.btrace.prepare(BtraceRequest(Context(), limit, 1))
        assert self.ask(b"Qbtrace:bts") == b"OK"
        self.insns = [self.target.pc]  # btrace_add_pc

    def ask(self, packet: bytes) -> bytes | None:
        return self.btrace.answer(packet, self.target)

    def read(self, annex: str) -> list[tuple[int, int]] | None:
        """The blocks, newest first; None when it fails."""
        self.asked.append(annex)
        text = b""
        while True:
            answer = self.ask(b"qXfer:btrace:read:%s:%x,%x" % (annex.encode(), len(text), self.size))
            assert answer
            if answer[:1] == b"E":
                return None
            assert len(answer) <= self.size + 1
            text += answer[1:]
            if answer[:1] == b"l":
                return blocks_of(text.decode())

    def fetch(self) -> None:
        """btrace_fetch."""
        blocks = self.read("delta")
        if blocks is not None:
            failed = not self.stitch(blocks)
        else:
            blocks = self.read("new")
            failed = blocks is None
            if blocks:
                self.insns = []
        if failed:
            self.insns = []
            blocks = self.read("all")
        assert blocks is not None, "Failed to read branch trace."
        self.compute(blocks)

    def stitch(self, blocks: list[tuple[int, int]]) -> bool:
        """btrace_stitch_bts."""
        assert blocks
        if not isinstance(self.insns[-1], int):
            blocks.pop()
            return True
        begin, end = blocks[-1]
        if end == self.insns[-1] and len(blocks) == 1:
            blocks.pop()
            return True
        if end < self.insns[-1]:
            return False
        assert begin == 0
        blocks[-1] = (self.insns[-1], end)
        self.insns.pop()
        return True

    def compute(self, blocks: list[tuple[int, int]]) -> None:
        """btrace_compute_ftrace_bts."""
        for begin, end in reversed(blocks):
            pc = begin
            while True:
                if end < pc:
                    self.insns.append(GAP_TEXT)
                    self.warned += 1
                    break
                self.insns.append(pc)
                if pc == end:
                    break
                size = self.target.code.length(pc)
                assert size, "Recorded trace may be incomplete"
                pc += size


def blocks_of(text: str) -> list[tuple[int, int]]:
    """By btrace.dtd: `btrace` version 1.0 has `block`s, which are empty and have begin and end."""
    assert text.startswith('<!DOCTYPE btrace SYSTEM "btrace.dtd">\n')
    root = ElementTree.fromstring(text)
    assert (root.tag, root.attrib) == ("btrace", {"version": "1.0"})
    for block in root:
        assert block.tag == "block" and set(block.attrib) == {"begin", "end"} and not len(block) and not block.text
        assert all(re.fullmatch("0x[0-9a-f]{1,16}", value) for value in block.attrib.values())
    return [(int(block.attrib["begin"], 16), int(block.attrib["end"], 16)) for block in root]
