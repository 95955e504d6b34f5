"""Executions and packets held against each other: both decoders, and the encoder, for the worked examples."""

from collections.abc import Iterable, Sequence
from typing import Any

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, TrapHandlers
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.naive_decoder import NaiveDecoder
from tests.decode.etrace.packets import read, write
from tests.decode.etrace.vectors import framed

Fields = dict[str, int]
NO_CHANGE, ENDED_REP, TRACE_LOST, ENDED_NTR = range(4)
"""Values of qual_status."""
MACHINE = 3
NOTIFY = "notify"
"""In an execution: trigger[2] asks for a report of the next instruction."""

_IOPTIONS = ("implicit_return", "implicit_exception", "full_address", "jump_target_cache", "branch_prediction")


def code(xlen: int, listing: str, plain: Iterable[tuple[int, int]] = ()) -> Image:
    """The program of a listing: an address and an opcode in each line. *plain*: c.nop from here to there, where the
    document has dots."""
    image = Image(xlen)
    for line in filter(None, map(str.strip, listing.splitlines())):
        address, opcode = line.split()[:2]
        image.add_code(int(address, 16), int(opcode, 16).to_bytes(len(opcode) // 2, "little"))
    for start, end in plain:
        image.add_code(start, (end - start) // 2 * b"\x01\x00")
    return image


def support(modes: Modes, qual_status: int = NO_CHANGE, *, enabled: bool = True) -> Fields:
    """A support packet in the reference layout: ienable, encoder_mode, qual_status, ioptions."""
    ioptions = sum(getattr(modes, name) << bit for bit, name in enumerate(_IOPTIONS))
    return {"format": 3, "subformat": 3, "bits": enabled | qual_status << 2 | ioptions << 4}


def start(address: int, branch: int = 1, privilege: int = MACHINE, **more: int) -> Fields:
    """Format 3, subformat 0."""
    return {"format": 3, "subformat": 0, "address": address, "branch": branch, "privilege": privilege, **more}


def trap(address: int, thaddr: int, ecause: int, branch: int = 1, privilege: int = MACHINE, **more: int) -> Fields:
    """Format 3, subformat 1."""
    named = {"branch": branch, "privilege": privilege, "ecause": ecause, "thaddr": thaddr}
    return {"format": 3, "subformat": 1, "address": address, **named, **more}


def address(to: int, **more: int) -> Fields:
    """Format 2; a difference may be negative."""
    return {"format": 2, "address": to, **more}


def branches(*outcomes: int, to: int | None = None, **more: int) -> Fields:
    """Format 1: the bits of branch_map, the oldest first (1: not taken); without an address 31 of them."""
    bits = sum(bit << i for i, bit in enumerate(outcomes))
    if to is None:
        assert len(outcomes) == 31
        return {"format": 1, "branches": 0, "branch_map": bits}
    return {"format": 1, "branches": len(outcomes), "branch_map": bits, "address": to, **more}


class Example:
    """A program, what an encoder is, and how packets and execution belong together."""

    def __init__(
        self,
        image: Image,
        parameters: Parameters | None = None,
        modes: Modes | None = None,
        handlers: TrapHandlers | None = None,
    ) -> None:
        self.image = image
        self.parameters = parameters or Parameters(iaddress_width=image.xlen)
        self.modes = modes or Modes()
        self.options = Options(self.parameters, self.modes, pinned=True, trap_handlers=handlers or TrapHandlers())

    def payloads(self, packets: Sequence[Fields]) -> list[bytes]:
        """The packets as bytes."""
        return [write(packet, self.parameters, self.modes) for packet in packets]

    def history(self, packets: Sequence[Fields]) -> History:
        """What the decoder makes of packets."""
        return decode(framed(self.payloads(packets)), self.image, self.options, Encapsulation())

    def decodes(self, packets: Sequence[Fields], pcs: Sequence[int]) -> History:
        """Both decoders find the execution in these packets, and nothing to complain about."""
        naive = NaiveDecoder(self.image, self.options).decode(self.payloads(packets))
        assert [*map(hex, naive)] == [*map(hex, pcs)]
        history = self.history(packets)
        assert [*map(hex, history.pcs())] == [*map(hex, pcs)]
        troubles = {EventKind.LOSS, EventKind.MISMATCH, EventKind.OVERFLOW}
        assert not [event for event in history.events if event.kind in troubles]
        assert history.accounting.skipped == 0
        return history

    def encodes(
        self, pcs: Sequence[int | IngressTrap | str], packets: Sequence[Fields], next_pc: int | None = None, **more: Any
    ) -> None:
        """The encoder, told that these instructions retired and traps were taken, sends these packets, byte by byte.

        *next_pc*: where the execution would have gone on. *more*: of `EncoderOptions`.
        """
        found: list[bytes] = []
        encoder = Encoder(EncoderOptions(self.parameters, self.modes, **more), found.append)
        encoder.context(ProgramContext(MACHINE))
        encoder.start()
        for i, group in enumerate(self.groups(pcs)):
            if i:
                encoder.notify()
            encoder.retire(self.items(group))
        encoder.stop(next_pc)
        wanted = self.payloads(packets)
        assert [read(payload, self.parameters, self.modes) for payload in found] == [
            read(payload, self.parameters, self.modes) for payload in wanted
        ]
        assert found == wanted

    def groups(self, pcs: Sequence[int | IngressTrap | str]) -> list[list[int | IngressTrap]]:
        """What comes before, between and after notifications."""
        found: list[list[int | IngressTrap]] = [[]]
        for pc in pcs:
            if isinstance(pc, str):
                found.append([])
            else:
                found[-1].append(pc)
        return found

    def items(self, pcs: Sequence[int | IngressTrap]) -> list[Block | IngressTrap]:
        """What the hart tells: a block for each straight run."""
        items: list[Block | IngressTrap] = []
        run: list[int] = []
        for i, pc in enumerate(pcs):
            if isinstance(pc, IngressTrap):
                items.append(pc)
                continue
            run.append(pc)
            instruction = self.image.instruction(pc)
            follows = i + 1 < len(pcs) and pcs[i + 1] == pc + instruction.length
            if instruction.itype is not IType.NONE or not follows:
                items.append(Block.from_instructions(run[0], map(self.image.instruction, run), self.image.xlen))
                run = []
        return items
