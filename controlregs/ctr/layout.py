"""What both versions declare alike: filter bits, the words of an entry, and the CSRs that lead to the entries.

Ref: RISC-V Control Transfer Records 1.0, "Entry Registers"; draft 0.1.4, chapter 3. RISC-V Indirect CSR Access
(Smcsrind/Sscsrind) 1.0 for the numbers of the select and alias CSRs; 1.0 uses those of S and VS mode only.
"""

from collections.abc import Mapping

from rvtrace_gdb.controlregs.ctr.transfers import RECORDABLE, TransferType
from rvtrace_gdb.controlregs.fields import Csr, Field, Part, reserved

ENTRY_SELECT = 0x200  # entry 0, the youngest; entry n is selected by 0x200 + n
ENTRIES_MAX = 256
DEPTHS = (16, 32, 64, 128, 256)

FILTER_DOC = {t: f"leave out {t.plural}" for t in RECORDABLE}
FILTER_DOC[TransferType.NOT_TAKEN_BRANCH] = "record not taken branches"


def flag(name: str, doc: str) -> Field:
    """A bit that an implementation may lack."""
    return Field(name, 1, doc=doc)


def filters(names: Mapping[TransferType, str], external: Field | None = None) -> tuple[Field, ...]:
    """Bits 63:32 of a control register without what is custom: 59:48 reserved. *external*: bit 38, if any."""
    fields: list[Field] = []
    for code in range(16):
        if code in names:
            fields.append(flag(names[TransferType(code)], FILTER_DOC[TransferType(code)]))
        else:
            fields.append(external if code == 6 and external else reserved(1))
    return (*fields, reserved(12))


def whole(name: str, number: int, doc: str) -> Csr:
    """A CSR of XLEN bits that is one field."""
    return Csr(name, number, doc, (Field(name, 64, doc=doc),), wide=True)


def indirect(prefix: str, first: int) -> tuple[Csr, Csr, Csr, Csr]:
    """The select CSR of a privilege level, and what it then shows as source, target and data."""
    return (
        whole(f"{prefix}iselect", first, "which entry the alias CSRs show: 0x200 + n"),
        whole(f"{prefix}ireg", first + 1, "ctrsource of the selected entry"),
        whole(f"{prefix}ireg2", first + 2, "ctrtarget of the selected entry"),
        whole(f"{prefix}ireg3", first + 3, "ctrdata of the selected entry"),
    )


MACHINE = indirect("m", 0x350)
SUPERVISOR = indirect("s", 0x150)
VIRTUAL = indirect("vs", 0x250)

SOURCE = Part("ctrsource", "where a transfer came from", (
    Field("V", 1, doc="the entry is valid"),
    Field("PC", 63, doc="address of the instruction, bits 63:1; 0: in a mode that is not recorded"),
))
TARGET = Part("ctrtarget", "where a transfer went", (
    Field("MISP", 1, doc="target or direction was mispredicted"),
    Field("PC", 63, doc="address of the next instruction, bits 63:1; 0: in a mode that is not recorded"),
))
DATA = Part("ctrdata", "what is known besides", (
    Field("TYPE", 4, doc="kind of transfer", values=TransferType),
    reserved(11),
    Field("CCV", 1, doc="the cycle count is valid"),
    Field("CCM", 12, doc="cycle count, mantissa"),
    Field("CCE", 4, doc="cycle count, exponent: 0 to 4 bits are implemented"),
    reserved(32),
))
