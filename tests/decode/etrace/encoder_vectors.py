"""The E-Trace vectors as an encoder sees them: what a hart would have told it, its options, and the packets expected.

Layout of the files: README.md beside them.
"""

import csv
import gzip
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.helpers.core_captures import VECTORS

ROOT = VECTORS / "etrace"
PROGRAMS = ("br_j_asm", "dhrystone", "pmp", "qsort", "test_discon_branch_exception", "torture64", "towers", "xrle")
BOOT = 0x1000
MACHINE = 3
ROWS = 5000
"""Of Spike's log, after which the field context changes in the streams of option o12."""
_SUPPORT = {"ref": SupportLayout.REFERENCE, "std08": SupportLayout.STANDARD}
_NEVER = 1 << 30
_ECALLS = (3, 8, 9, 11)  # causes of ebreak and ecall

Item = Block | IngressTrap | ProgramContext


class Vector(NamedTuple):
    """One stream: *what* is its description, *options* the decoder's, *packets* the payloads."""

    what: dict[str, Any]
    options: Options
    packets: list[bytes]

    @property
    def resync(self) -> int | None:
        """Packets after which to synchronize, None for never."""
        count: int = self.what["options"]["resync"]
        return None if count >= _NEVER else count


def vector(program: str, option: str) -> Vector:
    """A stream by its program and option: vector("pmp", "o01"). Fails, saying so, where the vectors are absent."""
    assert ROOT.exists(), f"{ROOT} is missing: these tests need the vectors beside the repository, or RVTRACE_VECTORS"
    description = next((ROOT / program).glob(f"{option}_*.json"))
    what = json.loads(description.read_text())
    return Vector(what, _options(what), packets(description.with_suffix(".te_inst_raw").read_bytes()))


def packets(raw: bytes) -> list[bytes]:
    """The payloads of a te_inst_raw file: each has a byte before it whose low five bits are its length."""
    found, at = [], 0
    while at < len(raw):
        size = raw[at] & 31
        found.append(raw[at + 1 : at + 1 + size])
        at += 1 + size
    return found


def _options(what: dict[str, Any]) -> Options:
    given, modes = what["params"], what["options"]
    parameters = Parameters(
        iaddress_width=given["iaddress_width_p"],
        iaddress_lsb=given["iaddress_lsb_p"],
        privilege_width=given["privilege_width_p"],
        ecause_width=given["ecause_width_p"],
        context_width=0 if given["nocontext_p"] else given["context_width_p"],
        time_width=0 if given["notime_p"] else given["time_width_p"],
        bpred_size=given["bpred_size_p"],
        cache_size=given["cache_size_p"],
        return_stack_size=given["return_stack_size_p"],
        call_counter_size=given["call_counter_size_p"],
        f0s_width=given["f0s_width_p"],
        iret_ext=bool(modes["ir_ext"]),
        ecall_retires=bool(modes["ecall_retires"]),
    )
    return Options(
        parameters,
        Modes(
            full_address=bool(modes["full_address"]),
            implicit_exception=bool(modes["implicit_except"]),
            sijump=bool(modes["sijump"]),
            implicit_return=bool(modes["implicit_return"]),
            branch_prediction=bool(modes["branch_pred"]),
            jump_target_cache=bool(modes["jtc"]),
            resync_disabled=False,
        ),
        support=_SUPPORT[modes["support"]],
        dialect=Dialect.STANDARD,
    )


@cache
def image(program: str) -> Image:
    """The program's code, the boot ROM included."""
    what = json.loads(next((ROOT / program).glob("o01_*.json")).read_text())
    found = Image.from_elf(_elf(program, what["elf"][0]))
    found.add_code(BOOT, bytes.fromhex(what["bootrom"].rpartition(" = ")[2]))
    return found


def _elf(program: str, name: str) -> Path:
    own = ROOT / program / name
    return own if own.exists() else ROOT / "reference" / "common" / name


@cache
def items(program: str, pcs_file: str = "pcs.txt.gz") -> tuple[Item, ...]:
    """What the hart told."""
    pcs = [int(line, 16) for line in gzip.decompress((ROOT / program / pcs_file).read_bytes()).split()]
    retired = pcs_file == "pcs.txt.gz"
    return tuple(told(pcs, _events(ROOT / program / "events.csv", retired), image(program)))


class Happened(NamedTuple):
    """A trap taken after so many retired instructions, in privilege mode *before*."""

    after: int
    trap: IngressTrap
    before: int


def _events(path: Path, ecall_retires: bool) -> list[Happened]:
    """The traps. index_in_pcs does not count ecall and ebreak."""
    found, more = [], 0
    for row in csv.DictReader(path.read_text().splitlines()):
        epc, cause, tval = int(row["epc"], 16), int(row["cause"]), int(row["tval"], 16)
        trap = IngressTrap(epc, row["kind"] == "interrupt", cause, tval, int(row["handler_pc"], 16))
        if ecall_retires and not trap.interrupt and cause in _ECALLS:
            more += 1
        found.append(Happened(int(row["index_in_pcs"]) + more, trap, int(row["priv_before"])))
    return found


def told(pcs: list[int], events: list[Happened], image: Image) -> Iterator[Item]:
    """Blocks, traps and changes of privilege.

    The list tells privilege only at traps; a trap return leads to the one of the next trap if no other trap return is
    between the two, else to M-mode, where alone the other one can have run.
    """
    ends = [event.after for event in events] + [len(pcs)]
    at, privilege = 0, MACHINE
    yield ProgramContext(MACHINE)
    for number, end in enumerate(ends):
        before = events[number].before if number < len(events) else None
        returns = [i for i in range(at, end) if image.instruction(pcs[i]).itype is IType.TRAP_RETURN]
        for i in returns:
            yield from blocks(pcs[at : i + 1], image)
            at = i + 1
            goal = before if i == returns[-1] and before is not None else MACHINE
            if goal != privilege:
                privilege = goal
                yield ProgramContext(privilege)
        yield from blocks(pcs[at:end], image)
        at = end
        if number < len(events):
            yield events[number].trap
            if privilege != MACHINE:
                privilege = MACHINE
                yield ProgramContext(MACHINE)


def rows(items: Iterable[Item]) -> Iterator[tuple[int, Item]]:
    """The items with their times, for the streams of option o12: one tick for each row of Spike's log.

    A row is an instruction, or a trap of one that did not retire. The field context is the privilege mode times 256
    plus the number of the block of 5000 rows; a block that lies across the border of two is cut.
    """
    now, number, privilege = 0, 0, MACHINE
    last: Item | None = None
    for item in items:
        if isinstance(item, ProgramContext):
            privilege = item.prv or 0
            yield now, ProgramContext(privilege, scontext=privilege << 8 | number)
            continue
        left: Block | IngressTrap | None = item
        while left is not None:
            own = (
                isinstance(left, IngressTrap)
                and isinstance(last, Block)
                and left.epc == last.fall - 2 * last.lengths[-1]
            )
            if now // ROWS != number and not own:
                number = now // ROWS
                yield now, ProgramContext(privilege, scontext=privilege << 8 | number)
            first, left = _cut(left, ROWS - now % ROWS)
            yield now, first
            now += first.instructions if isinstance(first, Block) else not own
            last = first


def _cut(item: Block | IngressTrap, room: int) -> tuple[Block | IngressTrap, Block | None]:
    if isinstance(item, IngressTrap) or item.instructions <= room:
        return item, None
    first = Block(item.pc, item.lengths[:room])
    return first, Block(first.fall, item.lengths[room:], item.itype, item.taken_target)


_known: dict[tuple[int, int, int], Block] = {}


def blocks(pcs: list[int], image: Image) -> Iterator[Block]:
    """The straight runs in a list of addresses, equal ones the same object."""
    start = 0
    for i, pc in enumerate(pcs):
        instruction = image.instruction(pc)
        if instruction.itype is IType.NONE and i + 1 < len(pcs):
            continue
        key = (id(image), pcs[start], pc)
        block = _known.get(key)
        if block is None:
            run = [image.instruction(each) for each in pcs[start : i + 1]]
            block = _known[key] = Block.from_instructions(pcs[start], run, image.xlen)
        yield block
        start = i + 1
