"""A trace as the log that Spike writes of the same program (`spike -l --log-commits`).

Source of the log: riscv-isa-sim, riscv/execute.cc (commit_log_print_insn) and riscv/processor.cc (disasm, take_trap);
real logs. The lines are shown in `decode/executed/readers.py`, and `decode/tandem/logs/spike.py` reads them. What
the trace does not contain is not in the log: docs/tandem.md has the list.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from rvtrace_gdb.decode.executed.spike import CAUSES
from rvtrace_gdb.decode.program import csrs, debug_info
from rvtrace_gdb.decode.program.instructions import ATOMIC, CSR, LOAD, STORE
from rvtrace_gdb.decode.tandem.effects import UNKNOWN_CAUSE
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.protocol import FPR, GPR
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.logs.commits import (
    NO_ADDRESS,
    NO_MODE,
    NO_TRAP,
    NO_VALUE,
    Spelling,
    commits_of,
    written_registers,
)
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import rows
from rvtrace_gdb.views.tandem.groups import Groups, Row
from rvtrace_gdb.views.tandem.plain_groups import RowKind
from rvtrace_gdb.views.tandem.plain_rows import AT_ONCE, PlainRows

_WITHOUT_TVAL = frozenset({8, 9, 10, 11, 16})  # environment calls, double trap
_NAMES = {number: name.decode() for name, number in CAUSES.items()}


class SpikeLog:
    """The log of Spike. *hart*: its number; *symbols*: names by address; *mode*: the privilege mode if the trace does
    not report it.

    *left_out*: what is not in the log, counted.
    """

    def __init__(
        self, groups: Groups, spelling: Spelling, hart: int, symbols: Mapping[int, str], mode: int | None = None
    ) -> None:
        self._groups, self._spelling, self._symbols, self._mode = groups, spelling, symbols, mode
        self._xlen = groups.parameters.xlen
        self._core = f"core {hart:3}: "
        self._last: tuple[int, int] | None = None
        self._executions = 1
        self._came_from_csr = False
        self.left_out: Counter[str] = Counter()

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the log of some groups, in order."""
        for row in rows:
            yield from map(self.lost, row.lost)
            if (row.instr is None and row.trap is None) or row.initializes or row.loose:
                continue
            if row.instr is not None and row.pc is None:
                self.left_out[NO_ADDRESS] += 1
                continue
            if row.instr is not None:
                assert row.pc is not None
                yield from self._listed_lines(row.pc, row.instr.word, self._spelling.text(row))
            if row.trap is not None:
                yield from self._trap_lines(row)
            elif row.instr is not None:
                yield from self._commit(row)
            self._came_from_csr = row.trap is not None or (row.instr is not None and row.instr.word in csrs.XRETS)

    def lost(self, mark: Break) -> str:
        """Return a line for what is missing, in a form that Spike does not use, like the output of a program."""
        return f"[{mark.why}; trace byte {mark.offset:#x}]"

    def listed_again(self, kind: RowKind) -> list[str]:
        """Return the lines of `-l` for a plain row, whose commit follows."""
        lines = list(self._listed_lines(kind.pc, kind.word, kind.caption))
        self._came_from_csr = False
        return lines

    def plain_commit(self, row: Row) -> Iterator[str]:
        """Yield the line of the commit of a plain row; none if something has to be counted."""
        return iter(()) if self._mode is None and row.mode is None else self._commit(row)

    def _listed_lines(self, pc: int, word: int, text: str) -> Iterator[str]:
        """Yield the lines of `-l`: if the same instruction runs again, Spike only writes how often."""
        if (pc, word) == self._last:
            self._executions += 1
            return
        # On RV32 Spike looks for the address sign-extended, but for where traps and their returns lead.
        if pc in self._symbols and (self._came_from_csr or self._xlen == 64 or not pc >> 31):
            yield f"{self._core}>>>>  {self._symbols[pc]}"
        if self._executions != 1:
            yield f"{self._core}Executed {self._executions} times"
        self._last, self._executions = (pc, word), 1
        yield f"{self._core}{self._hex_text(pc)} (0x{word:08x}) {text}"

    def _trap_lines(self, row: Row) -> Iterator[str]:
        trap = row.trap
        assert trap is not None
        epc = row.pc if trap.epc is None else trap.epc
        if trap.cause == UNKNOWN_CAUSE or epc is None:
            self.left_out[NO_TRAP] += 1
            return
        if trap.interrupt:
            name = f"interrupt #{trap.cause}"
        else:
            name = f"trap_{_NAMES[trap.cause]}" if trap.cause in _NAMES else f"trap #{trap.cause}"
        yield f"{self._core}exception {name}, epc {self._hex_text(epc)}"
        if trap.tval is not None and not trap.interrupt and trap.cause in _NAMES and trap.cause not in _WITHOUT_TVAL:
            yield f"{self._core}          tval {self._hex_text(trap.tval)}"

    def _commit(self, row: Row) -> Iterator[str]:
        mode = self._mode if row.mode is None else row.mode
        if mode is None:
            self.left_out[NO_MODE] += 1
            return
        assert row.instr is not None and row.pc is not None
        encoding = f"(0x{row.instr.word:0{2 * row.instr.length}x})"
        written = "".join(self._register_texts(row)) + "".join(self._access_texts(row))
        yield f"{self._core}{mode} {self._hex_text(row.pc)} {encoding}{written}"

    def _register_texts(self, row: Row) -> list[str]:
        """Return the registers in Spike's order: by number, integer before floating-point register before CSR."""
        found: dict[tuple[int, int], str] = {}
        for regno, value in written_registers(self._groups, row):
            if value is None:
                self.left_out[NO_VALUE] += 1
            elif regno < GPR:
                found[regno, 2] = f" c{regno}_{csrs.NAMES.get(regno, 'unknown-csr')} {self._hex_text(value)}"
            elif regno < FPR:
                found[regno - GPR, 0] = f" x{regno - GPR:<2} {self._hex_text(value)}"
            else:
                digits = (self._groups.parameters.flen or self._xlen) // 4
                found[regno - FPR, 1] = f" f{regno - FPR:<2} 0x{value:0{digits}x}"
        return [text for _, text in sorted(found.items())]

    def _access_texts(self, row: Row) -> Iterator[str]:
        """Yield loads, then stores."""
        access = row.access
        if access is None or access.kind == CSR or access.address is None:
            return
        if access.kind == LOAD or (access.kind == ATOMIC and not access.operation.endswith("failure")):
            yield f" mem {self._hex_text(access.address)}"
        if access.kind == STORE and access.value is not None:
            yield f" mem {self._hex_text(access.address)} 0x{access.value:0{2 * access.size}x}"
        if access.kind == ATOMIC:
            for _, store in row.stored:
                if store.value is not None:
                    yield f" mem {self._hex_text(access.address)} 0x{store.value:0{2 * store.size}x}"

    def _hex_text(self, value: int) -> str:
        return f"0x{value:0{self._xlen // 4}x}"


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the log. Raises NoValues, BadElf."""
    path = trace.program.base.path
    with commits_of(trace, progress) as commits:
        symbols = debug_info.symbol_names(path) if path else {}
        log = SpikeLog(commits.groups, commits.spelling, trace.hart, symbols, trace.mode)
        count = 0
        plain = PlainRows(
            commits.groups, commits.spelling.learn, lambda row: log.lines([row]), log.plain_commit,
            before=log.listed_again, caption=commits.spelling.text,
        )  # fmt: skip
        for lines in plain.pages(commits.numbers(progress), AT_ONCE):
            count += len(lines)
            file.write(rows(lines).encode() if lines else b"")
        lines = list(map(log.lost, commits.losses_at_end()))
        file.write(rows(lines).encode() if lines else b"")
    return Written(count + len(lines), log.left_out)
