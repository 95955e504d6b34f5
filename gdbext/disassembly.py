"""The text of instructions from gdb's disassembler, also for code that gdb cannot read, and with execution counts.

`DisassemblyTexts` returns the text that the command `disassemble` prints. `code_texts` returns the text of code that is
not in gdb's memory: of a process or a kernel in a capture, or of the ROM of another machine. From version 13 on, gdb
lets Python pass the bytes to its disassembler; for older versions the bytes themselves are shown.

`set trace disassemble-counts` lets `disassemble`, `x/i` and the TUI's assembly window print how often each instruction
ran, by a disassembler in Python that adds text before and after an instruction (gdb.disassembler, gdb >= 13). With such
a disassembler gdb is slower; gdb also calls it just for the length of an instruction; and gdb does not carry over from
one instruction to the next the address that two of them form (`# 0x80001130 <table>`), which is then taken from a
listing without the Python disassembler. Therefore it is installed only while the setting is on.
"""

from __future__ import annotations

import contextlib
import re
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.source_lines import NEVER
from rvtrace_gdb.gdbext.text import columns
from rvtrace_gdb.gdbext.tracer import tracer

_ROW = re.compile(r"(?:=> |   )0x(?P<address>[0-9a-f]+)(?: <.*?>)?:\t(?P<text>.*)$")
_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit


def code_texts(codes: Mapping[int, bytes], raw: bool) -> dict[int, str]:
    """Return what `disassemble` would print after each address for these instructions. *raw*: with the bytes.

    Each is disassembled by itself: without gdb's comment on an address that two instructions form (`# 0x80001130
    <table>`).
    """
    found: dict[int, str] = {}
    for start, code in _code_runs(codes):
        found.update(_disassembled(start, code))
    return {pc: _given_line(code, found.get(pc), raw) for pc, code in codes.items()}


def disassemble_memory(start: int, last: int, raw: bool) -> dict[int, str]:
    """Return the texts of the instructions that begin at *start* to *last* in gdb's memory. Raises gdb.MemoryError.

    This does without the command `disassemble`: while the TUI shows code, that prints nothing and moves the window.
    """
    inferior = gdb.selected_inferior()
    found = inferior.architecture().disassemble(start, last)
    codes = [bytes(inferior.read_memory(it["addr"], it["length"])) if raw else b"" for it in found]
    return {it["addr"] & _ADDRESSES: _given_line(code, columns(it["asm"]), raw) for it, code in zip(found, codes)}


def _code_runs(codes: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Return contiguous runs of code: (address, bytes)."""
    start, run = 0, b""
    for pc in sorted(codes):
        if run and pc != start + len(run):
            yield start, run
            run = b""
        if not run:
            start = pc
        run += codes[pc]
    if run:
        yield start, run


def _given_line(code: bytes, instruction: str | None, raw: bool) -> str:
    if instruction is not None and not raw:
        return instruction
    units = _units(code)
    if instruction is None:
        instruction = f".{len(units[0]) // 2}byte\t" + ", ".join(f"0x{unit}" for unit in units)
    return (f"{' '.join(units):<{_RAW_WIDTH[len(units[0])]}}\t" if raw else "") + instruction


def _units(code: bytes) -> list[str]:
    """Return the code in words of 4 bytes, or of 2 if its length is not a multiple of 4, in hex, as gdb shows it."""
    size = 4 if len(code) % 4 == 0 else 2
    return [code[at : at + size][::-1].hex() for at in range(0, len(code), size)]


def _disassembled(start: int, code: bytes) -> dict[int, str]:
    """Return the texts by address; none if this gdb cannot do it, or takes the program for another architecture."""
    if not hasattr(gdb, "disassembler") or "riscv" not in neutral.printed("show architecture"):
        return {}
    with _given_code(start, code), contextlib.suppress(gdb.error):
        if shows_assembly_window():
            return disassemble_memory(start, start + len(code) - 1, raw=False)
        printed = neutral.execute(f"disassemble {start:#x},{start + len(code):#x}")
        found = parse_disassembly(printed)
        return disassemble_memory(start, start + len(code) - 1, raw=False) if found is None else found
    return {}


def parse_disassembly(printed: str) -> dict[int, str] | None:
    """Return the texts in the output of `disassemble`, by address.

    None if the lines are not instructions in ascending order: names in a program may contain line breaks, and text that
    looks like an instruction.
    """
    found: dict[int, str] = {}
    before = -1
    for line in printed.split("\n")[1:-2]:
        match = _ROW.match(line)
        address = -1 if match is None else int(match["address"], 16)
        if match is None or address <= before:
            return None
        found[address] = columns(match["text"])
        before = address
    return found


@contextlib.contextmanager
def _given_code(start: int, code: bytes) -> Iterator[None]:
    """Within this context gdb's disassembler reads *code* at *start*, and nothing anywhere else."""
    before = gdb.disassembler.register_disassembler(_disassembler_of(start, code), None)
    try:
        yield
    finally:
        gdb.disassembler.register_disassembler(before, None)


def _disassembler_of(start: int, code: bytes) -> Any:
    class Info(gdb.disassembler.DisassembleInfo):
        def read_memory(self, length: int, offset: int = 0) -> bytes:
            address = self.address + offset & _ADDRESSES  # in gdb 13 it may be negative
            at = address - start
            if not 0 <= at <= len(code) - length:
                raise gdb.MemoryError(f"Cannot access memory at address {address:#x}")
            return code[at : at + length]

    class GdbDisassembler(gdb.disassembler.Disassembler):
        def __init__(self) -> None:
            super().__init__("rvtrace")

        def __call__(self, info: Any) -> Any:
            return gdb.disassembler.builtin_disassemble(Info(info))

    return GdbDisassembler()


FUNCTION_BYTES = 1 << 16  # longer functions are not read as a whole
AHEAD_BYTES = 256  # the least number of bytes read after an instruction, in its function


class DisassemblyTexts:
    """The text of instructions as the command `disassemble` prints it for the function.

    The disassembler carries the upper half of an address from one instruction to the next (`# 0x80001130 <table>`), so
    the text of an instruction depends on where the listing begins. gdb.Architecture.disassemble carries nothing over,
    therefore the command is used; it also groups raw bytes as this gdb does.
    """

    def __init__(self, raw: bool) -> None:
        self._raw = raw
        self._command = "disassemble /r" if raw else "disassemble"
        self._texts: dict[int, str] = {}
        self._given: dict[tuple[int, bytes], str] = {}  # code that gdb does not have at these addresses
        self._code: set[tuple[int, bytes]] = set()  # code that it has

    def text_at(self, pc: int) -> str:
        """Return the text of the instruction at an address. Raises gdb.MemoryError if there is no code."""
        if pc not in self._texts:
            _, offset = symbol_of(pc)
            if not 0 < offset <= FUNCTION_BYTES or pc not in self._read_function(pc - offset, pc):
                self._texts[pc] = self._disassemble(pc, pc)[pc]
        return self._texts[pc]

    def add_codes(self, codes: Iterable[tuple[int, bytes]]) -> None:
        """Disassemble instructions, given by their bytes, that differ from gdb's memory or are not in it. Several may
        be at one address.
        """
        new = {key for key in codes if key not in self._given and key not in self._code}
        there = _those_in_memory(new)
        self._code |= there
        rest = sorted(new - there)
        while rest:
            some: dict[int, bytes] = {}
            for pc, code in rest:
                some.setdefault(pc, code)
            texts = code_texts(some, self._raw)
            self._given.update(((pc, code), texts[pc]) for pc, code in some.items())
            rest = [key for key in rest if key not in self._given]

    def of_code(self, pc: int, code: bytes) -> str:
        """Return the text of an instruction with these bytes."""
        if (pc, code) not in self._given:
            self.add_codes([(pc, code)])
            if (pc, code) in self._code:
                return self.text_at(pc)
        return self._given[pc, code]

    def _read_function(self, start: int, pc: int) -> dict[int, str]:
        """Read the instructions of a function up to *pc* and well beyond it, if one of them begins at *pc*.

        Without the rest, a listing of a function would read its beginning again for each line. Returns all texts known.
        """
        with contextlib.suppress(gdb.error):  # code that cannot be read: the single instruction will raise the error
            found = self._disassemble(start, _last_of_function(start, pc, pc + max(2 * (pc - start), AHEAD_BYTES)))
            if pc in found:
                self._texts.update(found)
        return self._texts

    def _disassemble(self, start: int, last: int) -> dict[int, str]:
        # First, because gdb 13 ends itself when the disassembler cannot read memory while the program runs.
        gdb.selected_inferior().read_memory(start, last + 2 - start)
        if shows_assembly_window():
            return disassemble_memory(start, last, self._raw)
        with without_counts():
            printed = neutral.execute(f"{self._command} {start:#x},{last + 1:#x}")
        found = parse_disassembly(printed)
        return disassemble_memory(start, last, self._raw) if found is None else found


def _those_in_memory(codes: Collection[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
    """Return which of these instructions gdb's memory has; code that lies together is read at once."""
    pieces = [(start, _code_bytes(start, len(code))) for start, code in _code_runs(dict(codes))]
    starts = [start for start, _ in pieces]

    def is_there(pc: int, code: bytes) -> bool:
        start, memory = pieces[bisect_right(starts, pc) - 1]
        inside = memory[pc - start : pc - start + len(code)]
        return inside == code if len(inside) == len(code) else _code_bytes(pc, len(code)) == code

    return {key for key in codes if is_there(*key)}


def _code_bytes(address: int, size: int) -> bytes:
    """Return what gdb's memory has; nothing if gdb cannot read it."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except gdb.error:
        return b""


def symbol_of(pc: int) -> tuple[str | None, int]:
    """Return (name, offset) as gdb prints them after an address; (None, 0) if it prints none."""
    if hasattr(gdb, "format_address"):  # gdb >= 13
        match = re.search(r" <(.*?)(?:\+(\d+))?>$", gdb.format_address(pc), re.DOTALL)
    else:
        text = neutral.execute(f"info symbol {pc:#x}")
        match = re.match(r"(\S+)(?: \+ (\d+))? in section", text)
    return (match.group(1), int(match.group(2) or 0)) if match else (None, 0)


def _last_of_function(start: int, pc: int, limit: int) -> int:
    """Return the last even address up to *limit* that gdb attributes to the function at *start*, as it does *pc*."""
    inside, outside = pc // 2, limit // 2 + 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if 2 * middle - symbol_of(2 * middle)[1] == start:
            inside = middle
        else:
            outside = middle
    return 2 * inside


with contextlib.suppress(ImportError):  # gdb < 13
    import gdb.disassembler

_ADDRESSES = (1 << 64) - 1

_API: Any = getattr(gdb, "disassembler", None)

_BYTES = 1 << 12  # half the size of the code whose counts are requested at once
_SECONDS = 1.0  # how long counts are reused while gdb disassembles one instruction after the other
_NAME = "rvtrace counts"


class Slot:
    """gdb's one Python disassembler: ours takes the place of the one *before*, which ours calls first."""

    def __init__(self) -> None:
        self.ours: Any = None
        self.before: Any = None

    def take(self, ours: Any) -> None:
        """Install our disassembler."""
        self.before = _API.register_disassembler(None, None)
        self.ours = ours
        _API.register_disassembler(ours, None)

    def clear(self) -> None:
        """Remove the disassembler that an earlier `source` of rvtrace installed."""
        now = _API.register_disassembler(None, None)
        _API.register_disassembler(now.slot.before if getattr(now, "name", "") == _NAME else now, None)

    def leave(self) -> None:
        """Restore the disassembler from before, unless another one has replaced ours."""
        now = _API.register_disassembler(None, None)
        _API.register_disassembler(self.before if now is self.ours else now, None)
        self.ours = None


_slot = Slot()


@contextlib.contextmanager
def without_counts() -> Iterator[None]:
    """Within this context gdb disassembles without the execution counts."""
    ours = _slot.ours
    if ours is None:
        yield
        return
    _slot.leave()
    try:
        yield
    finally:
        _slot.take(ours)


def shows_assembly_window() -> bool:
    """Whether the TUI shows its assembly window: then the command `disassemble` prints nothing, but moves it."""
    return any(line.startswith("asm ") for line in neutral.printed("info win").splitlines())


def _tui_is_active() -> bool:
    """Whether the TUI is on. It may be about to show code: a window under construction is not in the list yet."""
    return "not active" not in neutral.printed("info win")


class InstructionCounts:
    """How often instructions ran; requested when gdb begins to disassemble at another address."""

    def __init__(self) -> None:
        self._window = range(0)
        self._counts: dict[int, int] = {}
        self._branches: dict[int, tuple[int, int]] = {}
        self._expected = -1  # the address after the last instruction: if gdb continues there, nothing is requested
        self._until = 0.0
        self._texts: DisassemblyTexts | None = None

    def around(self, pc: int, length: int, text: str) -> tuple[str, str]:
        """Return (text before an instruction, text after it); empty where no counts are known."""
        if pc != self._expected or time.monotonic() >= self._until or (self._window and pc not in self._window):
            self._until = time.monotonic() + _SECONDS
            self._texts = None if _tui_is_active() else DisassemblyTexts(raw=False)
            with contextlib.suppress(gdb.error, gdb.GdbError):  # there is no trace
                self._ask(pc)
        self._expected = pc + length
        before = f"{self._counts.get(pc, 0) or NEVER:>9}: " if pc in self._window else ""
        taken = self._branches.get(pc) if before else None
        return before, self._comment(pc, text) + (f"\t# taken {taken[0]}, not taken {taken[1]}" if taken else "")

    def _comment(self, pc: int, text: str) -> str:
        """Return the comment that gdb would have printed after an instruction, because of those before it."""
        with contextlib.suppress(gdb.error):
            whole = self._texts.text_at(pc) if self._texts is not None else ""
            if whole.startswith(text) and whole[len(text) :].startswith(" #"):
                return whole[len(text) :]
        return ""

    def _ask(self, pc: int) -> None:
        """Request the counts around an address. While the program runs, none are known."""
        self._window = range(0)
        thread = gdb.selected_thread()
        if thread is not None and thread.is_running():
            return
        window = range(pc & -_BYTES, (pc & -_BYTES) + 2 * _BYTES)
        ranges = [window.start, window.stop]
        found = tracer().request("coverage", context=tracer().context(), ranges=ranges, branches=True)
        self._counts = dict(found["counts"])
        self._branches = {address: (taken, not_taken) for address, taken, not_taken, *_ in found["branches"]}
        self._window = window


_counts = InstructionCounts()


def _annotated(info: Any, result: Any) -> Any:
    """Return what gdb disassembled, with the counts; *result* unchanged if anything fails."""
    try:
        before, after = _counts.around(info.address & _ADDRESSES, result.length, result.string)
        if not before and not after:
            return result
        if not getattr(result, "parts", None):  # gdb 13
            return _API.DisassemblerResult(result.length, f"{before}{result.string}{after}")
        parts = [info.text_part(_API.STYLE_TEXT, before)] if before else []
        parts += result.parts
        parts += [info.text_part(_API.STYLE_COMMENT_START, after)] if after else []
        return _API.DisassemblerResult(result.length, parts=parts)
    except KeyboardInterrupt:
        if hasattr(_API, "STYLE_TEXT"):  # gdb >= 14
            raise
        raise gdb.GdbError("Quit") from None
    except Exception:  # noqa: BLE001 - there is no trace, or no session: the code can be read all the same
        return result


def _make() -> Any:
    class Counted(_API.Disassembler):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(_NAME)
            self.slot = _slot

        def __call__(self, info: Any) -> Any:
            result = None if _slot.before is None else _slot.before(info)
            if result is None:
                result = _API.builtin_disassemble(info)
            return _annotated(info, result)

    return Counted()


class DisassembleCounts(gdb.Parameter):
    """When on, `disassemble`, `x/i` and the TUI's assembly window show before
    each instruction how often it ran, "#####" if it never did, and after a
    conditional branch how often it was taken. gdb is slower then."""

    set_doc = "Set whether disassembled code shows how often each instruction ran."
    show_doc = "Show whether disassembled code shows how often each instruction ran."

    def __init__(self) -> None:
        super().__init__("trace disassemble-counts", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = False
        if _API is not None:
            _slot.clear()

    def get_set_string(self) -> str:
        if bool(self.value) == (_slot.ours is not None):
            return ""
        if _API is None:
            self.value = False
            raise gdb.GdbError("set trace disassemble-counts: this gdb cannot, version 13 or later can.")
        if self.value:
            _slot.take(_make())
        else:
            _slot.leave()
        return ""

    def get_show_string(self, svalue: str) -> str:
        return f"Showing how often instructions ran in disassembled code is {svalue}."


COMMANDS = (DisassembleCounts,)
