"""What an E-Trace encoder sends, in words, for tests that say what it must send.

    on, off, ...            a support packet: ienable, and qual_status if that is not no_change
    start 1000              format 3, subformat 0 (then m=, t=, c=: privilege if not M, time, context if not 0)
    trap 4000 cause 2       subformat 1 with thaddr 1; "thaddr 0" is said; i3 is interrupt 3; tval if not 0
    context                 subformat 2
    1000                    format 2; full addresses
    TN 1000                 format 1: taken, not taken; without an address 31 of them
    33 1000                 format 0, subformat 0: so many predicted; "fails": the last one was not
    TN [5]                  subformat 1: an index

and behind an address notify, updiscon, irets=, irdepth=.
"""

from typing import Any

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.packets import read

Item = Block | IngressTrap | ProgramContext
M, S, U = ProgramContext(3), ProgramContext(1), ProgramContext(0)
_SYNCS = ("start", "trap", "context")
_QUAL_STATUS = ("", " ended_rep", " trace_lost", " ended_ntr")


def plain(pc: int, count: int = 1) -> Block:
    """So many instructions of 2 bytes, the last one no jump."""
    return Block(pc, bytes([1] * count))


def ends(pc: int, itype: IType, count: int = 1, to: int = -1) -> Block:
    """So many instructions of 2 bytes, the last one of this type, which goes *to* there if the code tells where."""
    return Block(pc, bytes([1] * count), itype, to)


def branch(pc: int, to: int = 0x10, count: int = 1) -> Block:
    return ends(pc, IType.NOT_TAKEN, count, to)


def jr(pc: int, count: int = 1) -> Block:
    return ends(pc, IType.OTHER_UNINFERABLE, count)


def exception(epc: int, handler: int, cause: int = 2, tval: int = 0) -> IngressTrap:
    return IngressTrap(epc, False, cause, tval, handler)


def interrupt(epc: int, handler: int, cause: int = 7) -> IngressTrap:
    return IngressTrap(epc, True, cause, 0, handler)


class Told:
    """An encoder with full addresses, and what it has sent."""

    def __init__(self, parameters: Parameters | None = None, modes: Modes | None = None, **options: Any) -> None:
        self.parameters = parameters or Parameters(iaddress_width=32)
        self.modes = modes or Modes(full_address=True)
        self.packets: list[bytes] = []
        self.encoder = Encoder(EncoderOptions(self.parameters, self.modes, **options), self.packets.append)
        self.encoder.context(M)

    def retires(self, *items: Item) -> "Told":
        """Starts if need be."""
        if not self.packets:
            self.encoder.start()
        self.encoder.retire(items)
        return self

    def words(self) -> list[str]:
        """What was sent since the last time."""
        sent, self.packets[:] = [words(packet, self.parameters, self.modes) for packet in self.packets], [b""]
        return [said for said in sent if said]


def sent(*items: Item, next_pc: int | None = None, **options: Any) -> list[str]:
    """What an encoder sends for these items, between the support packets of start and stop."""
    told = Told(**options).retires(*items)
    told.encoder.stop(next_pc)
    said = told.words()
    assert said[0] == "on" and said[-1] in ("off ended_rep", "off ended_ntr")
    return said[1:-1]


def words(packet: bytes, parameters: Parameters, modes: Modes) -> str:
    """One packet."""
    if not packet:
        return ""
    fields = read(packet, parameters, modes)
    match fields["format"], fields.get("subformat"):
        case 3, 3:
            return ("on" if fields["bits"] & 1 else "off") + _QUAL_STATUS[fields["bits"] >> 2 & 3]
        case 3, subformat:
            return " ".join(_synchronizing(fields, _SYNCS[subformat or 0]))
        case 0, 0:
            count = [str(fields["branch_count"] + 31)]
            return " ".join(count + ["fails"] * (fields["branch_fmt"] in (0, 3)) + _said(fields))
        case 0, _:
            return " ".join([*_outcomes(fields), f"[{fields['index']}]", *_said(fields)])
    return " ".join(_outcomes(fields) + _said(fields))


def _outcomes(fields: dict[str, Any]) -> list[str]:
    if "branch_map" not in fields:
        return []
    return ["".join("TN"[fields["branch_map"] >> i & 1] for i in range(fields["branches"] or 31))]


def _said(fields: dict[str, Any]) -> list[str]:
    address = [f"{fields['address']:x}"] if "address" in fields else []
    flags = [name for name in ("notify", "updiscon") if fields.get(name)]
    counts = [f"{name}={fields[name]}" for name in ("irets", "irdepth") if name in fields]
    if fields.get("irreport") and not counts:
        flags.append("irreport")
    return address + flags + counts


def _synchronizing(fields: dict[str, Any], name: str) -> list[str]:
    said = [name] + ([f"{fields['address']:x}"] if "address" in fields else [])
    if name == "trap":
        said += [] if fields["thaddr"] else ["thaddr 0"]
        said.append(f"i{fields['ecause']}" if fields["interrupt"] else f"cause {fields['ecause']}")
        said += [f"tval {fields['tval']:x}"] if fields.get("tval") else []
    said += ["taken"] if fields.get("branch") == 0 else []
    said += [f"m={fields['privilege']}"] if fields["privilege"] != 3 else []
    said += [f"t={fields['time']}"] if fields.get("time") else []
    return said + ([f"c={fields['context']}"] if fields.get("context") else [])
