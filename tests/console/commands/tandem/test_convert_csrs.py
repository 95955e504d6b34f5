"""`rvtrace tandem convert --to spike`: CSRs that stand for others are in the log as Spike logs them, a real one."""

from collections.abc import Iterable
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder, Retired
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import Instr, TandemParameters
from rvtrace_gdb.views.tandem.groups import Groups
from tests.console.commands.tandem.test_convert import log_of, made, of_program, rows_of, spike_lines
from tests.decode.executed.logs import PROGRAMS, spike_log
from tests.transport.simulated.hart.programs import build

FFLAGS, FRM, FCSR, SSTATUS, SIE, SIP = 1, 2, 3, 0x100, 0x104, 0x144
MSTATUS, MIDELEG, MIE, MVIP, MIP, MHPMCOUNTER3 = 0x300, 0x303, 0x304, 0x309, 0x344, 0xB03
SSTATUS_BITS = 0x8000_0003_000D_E722, 0x800D_E722
"""Of RV64 and RV32: SD, UXL, MXR, SUM, XS, FS, VS, SPP, UBE, SPIE, SIE."""


class Core:
    """What encoders of cores tell of a CSR instruction: the CSR that it names, and mstatus with everything floating."""

    def __init__(self, xlen: int) -> None:
        self._held = {MIDELEG: 0, MSTATUS: 0}
        self._sstatus = SSTATUS_BITS[xlen == 32]

    def tells(self, retired: Retired) -> Retired:
        written = dict(retired.csrs)
        self._held |= written
        word = 0 if retired.instr is None else retired.instr.word
        if word & 0x7F != 0x73 or not word >> 12 & 3 or (not written and word >> 20 != MHPMCOUNTER3):
            return retired
        named = word >> 20
        told = {named: self._view(named, written)}
        if named in (FFLAGS, FRM, FCSR):
            told[MSTATUS] = self._held[MSTATUS]
        return retired._replace(csrs=tuple(told.items()))

    def _view(self, named: int, written: dict[int, int]) -> int:
        if named == FCSR:
            return written[FRM] << 5 | written[FFLAGS]
        views = {SSTATUS: (MSTATUS, self._sstatus), SIP: (MIP, self._held[MIDELEG])}
        whole, mask = views.get(named, (named, -1))
        return written.get(whole, 0) & mask


def core_trace(log: Path, image: Image, xlen: int) -> DecodedTandem:
    sent: list[bytes] = []
    encoder, core = GroupEncoder(TandemParameters(xlen, 64), sent.append), Core(xlen)
    encoder.begin(image.entry, 3)
    with Log(str(log)) as opened:
        for retired in CommitLog(opened, xlen, image).retired():
            if (retired.own or 0) >= image.entry:
                encoder.put(core.tells(retired))
    encoder.finish()
    return decode(b"".join(sent), image, TandemParameters(xlen, 64))


def to_the_end(lines: Iterable[str]) -> list[str]:
    """Up to where the program waits."""
    return list(takewhile(lambda line: " j " not in line, lines))


def with_unknown_mip(lines: list[str]) -> list[str]:
    """Before its first write mip is not known, and so not what Spike's mvip is."""
    first = next(number for number, line in enumerate(lines) if " c777_mvip" in line)
    words = lines[first].split(" ")
    at = words.index("c777_mvip")
    del words[at : at + 2]
    return [*lines[:first], " ".join(words), *lines[first + 1 :]]


@pytest.mark.parametrize("march", ["rv64imac", "rv32imac"])
def test_the_log_of_csr_instructions_is_the_one_spike_writes(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, PROGRAMS / "csrs.S", march=march)
    image = Image.from_elf(elf)
    log = spike_log(elf, tmp_path, "-l", "--log-commits", extensions="IMAFDC", priv="msu", lines=300)
    expected = [line for line in to_the_end(of_program(log.read_text().splitlines())) if ">>>>" not in line]
    found = to_the_end(spike_lines(core_trace(log, image, image.xlen), image))
    assert found == with_unknown_mip(expected)
    commits = [line for listed, line in pairwise(found) if "csr" in listed]
    assert len(commits) > 50
    for name in ("c260_sie", "c777_mvip", "c1_fflags", "c2_frm"):
        assert sum(f" {name} " in line for line in commits) > 2, name


def test_the_csv_has_what_spike_logs() -> None:
    whole = (Retired(0x8000_0004, Instr(0x3040_1073, 4), csrs=((MIE, 0x888),)),
             Retired(0x8000_0008, Instr(0x3030_1073, 4), csrs=((MIDELEG, 0x222),)))  # fmt: skip
    tandem = made(*whole, Retired(0x8000_000C, Instr(0x1043_1073, 4), csrs=((SIE, 0x222),)))
    assert [row[3] for row in rows_of(tandem, Image(64))] == [
        "mie:0000000000000888", "mideleg:0000000000000222", "sie:0000000000000222;mie:0000000000000aaa"
    ]  # fmt: skip


def test_a_part_whose_whole_is_not_known_is_not_in_the_log() -> None:
    """Spike never logs sstatus or sip; of sie the log has what is known."""
    words = {SSTATUS: 0x1003_1073, SIE: 0x1043_1073, SIP: 0x1443_1073}
    for named, expected in ((SSTATUS, ""), (SIE, " c260_sie 0x0000000000000002"), (SIP, "")):
        tandem = made(Retired(0x8000_0004, Instr(words[named], 4), csrs=((named, 2),)))
        log = log_of(tandem, Image(64), mode=3)
        commits = [line for line in log.lines(Groups(tandem).rows(range(len(tandem.trace)))) if ": 3 " in line]
        assert [line.partition(")")[2] for line in commits] == [expected]
        assert list(log.left_out.items()) == [("registers whose new value the trace does not tell", 1)]
