"""The text of instructions from gdb's disassembler, also of code that gdb cannot read, and with execution counts.

`Texts` is the text that the command `disassemble` prints. `given_texts` is the text of code that gdb's memory does not
have: of a process or a kernel in a capture, or of the ROM of another machine. gdb 13 and later let Python give the
bytes to their disassembler; for other versions the bytes themselves are shown.

`set trace disassemble-counts` lets `disassemble`, `x/i` and the TUI's assembly window say how often each instruction
ran. gdb's disassembler is told what to print before and after an instruction (gdb.disassembler, gdb >= 13). With such a
disassembler gdb is slower, it uses it also where it only wants to know how long an instruction is, and it forgets from
one instruction to the next the address that two of them make (`# 0x80001130 <table>`), which is then taken from a
listing made without it. Therefore it is installed only while the setting is on.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import gdb

from rvtrace_gdb.gdbext.source_lines import NEVER
from rvtrace_gdb.gdbext.text import columns
from rvtrace_gdb.gdbext.tracer import tracer

_ROW = re.compile(r"(?:=> |   )0x(?P<address>[0-9a-f]+)(?: <.*?>)?:\t(?P<text>.*)$")
_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit


def given_texts(codes: Mapping[int, bytes], raw: bool) -> dict[int, str]:
    """What `disassemble` would print behind each address if these instructions were there. `raw`: with the bytes.

    Each by itself: gdb's comment on an address that two instructions make (`# 0x80001130 <table>`) is not there.
    """
    found: dict[int, str] = {}
    for start, code in _runs(codes):
        found.update(_disassembled(start, code))
    return {pc: _given_line(code, found.get(pc), raw) for pc, code in codes.items()}


def by_python(start: int, last: int, raw: bool) -> dict[int, str]:
    """The instructions that begin at `start` to `last` in gdb's memory, as `texts`, without the command `disassemble`:
    while the TUI shows code, that prints nothing and moves the window. Raises gdb.MemoryError.
    """
    inferior = gdb.selected_inferior()
    found = inferior.architecture().disassemble(start, last)
    codes = [bytes(inferior.read_memory(it["addr"], it["length"])) if raw else b"" for it in found]
    return {it["addr"] & _ADDRESSES: _given_line(code, columns(it["asm"]), raw) for it, code in zip(found, codes)}


def _runs(codes: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Stretches without holes: address and bytes."""
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
    """Words of 4 bytes, or of 2 if those do not fit, as gdb shows them."""
    size = 4 if len(code) % 4 == 0 else 2
    return [code[at : at + size][::-1].hex() for at in range(0, len(code), size)]


def _disassembled(start: int, code: bytes) -> dict[int, str]:
    """Nothing where this gdb cannot be asked, or takes the program for one of another architecture."""
    if not hasattr(gdb, "disassembler") or "riscv" not in gdb.execute("show architecture", to_string=True):
        return {}
    with _given(start, code), contextlib.suppress(gdb.error):
        if assembly_window():
            return by_python(start, start + len(code) - 1, raw=False)
        printed = gdb.execute(f"disassemble {start:#x},{start + len(code):#x}", to_string=True)
        found = parsed_instructions(printed)
        return by_python(start, start + len(code) - 1, raw=False) if found is None else found
    return {}


def parsed_instructions(printed: str) -> dict[int, str] | None:
    """What `disassemble` printed, by address. None where the lines are not those of instructions in their order: names
    in a program may hold the end of a line, and what looks like another one.
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
def _given(start: int, code: bytes) -> Iterator[None]:
    """While this lasts, gdb's disassembler finds `code` at `start`, and nothing anywhere else."""
    before = gdb.disassembler.register_disassembler(_disassembler_of(start, code), None)
    try:
        yield
    finally:
        gdb.disassembler.register_disassembler(before, None)


def _disassembler_of(start: int, code: bytes) -> Any:
    class Info(gdb.disassembler.DisassembleInfo):
        def read_memory(self, length: int, offset: int = 0) -> bytes:
            address = self.address + offset & _ADDRESSES  # gdb 13 has negative ones
            at = address - start
            if not 0 <= at <= len(code) - length:
                raise gdb.MemoryError(f"Cannot access memory at address {address:#x}")
            return code[at : at + length]

    class Disassembler(gdb.disassembler.Disassembler):
        def __init__(self) -> None:
            super().__init__("rvtrace")

        def __call__(self, info: Any) -> Any:
            return gdb.disassembler.builtin_disassemble(Info(info))

    return Disassembler()


FUNCTION_BYTES = 1 << 16  # longer ones are not read as a whole
AHEAD_BYTES = 256  # read with an instruction, at least, of the code that follows it in its function


class Texts:
    """Instruction text as the command `disassemble` prints it for the function.

    The disassembler carries the upper half of an address from one instruction to the next (`# 0x80001130 <table>`), so
    an instruction on its own would read differently, and differently again depending on where a listing begins. The
    command, not gdb.Architecture.disassemble, which carries nothing; and it groups raw bytes as this gdb does.
    """

    def __init__(self, raw: bool) -> None:
        self._raw = raw
        self._command = "disassemble /r" if raw else "disassemble"
        self._known: dict[int, str] = {}
        self._given: dict[tuple[int, bytes], str] = {}  # of code that gdb does not have there

    def at(self, pc: int) -> str:
        """Raises gdb.MemoryError where there is no code."""
        if pc not in self._known:
            _, offset = symbol_of(pc)
            if not 0 < offset <= FUNCTION_BYTES or pc not in self._read(pc - offset, pc):
                self._known[pc] = self._disassemble(pc, pc)[pc]
        return self._known[pc]

    def learn(self, codes: dict[int, bytes]) -> None:
        """Instructions whose bytes are known, where gdb's memory may have others, or none."""
        new = {pc: code for pc, code in codes.items() if (pc, code) not in self._given and not _has(pc, code)}
        self._given.update(((pc, codes[pc]), text) for pc, text in given_texts(new, self._raw).items())

    def of(self, pc: int, code: bytes) -> str:
        """Of an instruction whose bytes are known."""
        if (pc, code) not in self._given:
            if _has(pc, code):
                return self.at(pc)
            self._given[pc, code] = given_texts({pc: code}, self._raw)[pc]
        return self._given[pc, code]

    def _read(self, start: int, pc: int) -> dict[int, str]:
        """All instructions of a function up to `pc` and well beyond it, unless they turn out not to lead to it.

        Beyond, because a listing that goes through a function would else read its beginning anew for each line.
        """
        with contextlib.suppress(gdb.error):  # code that cannot be read: the instruction alone will say so
            found = self._disassemble(start, _last_of_function(start, pc, pc + max(2 * (pc - start), AHEAD_BYTES)))
            if pc in found:
                self._known.update(found)
        return self._known

    def _disassemble(self, start: int, last: int) -> dict[int, str]:
        # First, because gdb 13 ends itself when the disassembler cannot read memory while the program runs.
        gdb.selected_inferior().read_memory(start, last + 2 - start)
        if assembly_window():
            return by_python(start, last, self._raw)
        with plain():
            printed = gdb.execute(f"{self._command} {start:#x},{last + 1:#x}", to_string=True)
        found = parsed_instructions(printed)
        return by_python(start, last, self._raw) if found is None else found


def _has(pc: int, code: bytes) -> bool:
    """Whether gdb finds these bytes in its memory."""
    try:
        return bytes(gdb.selected_inferior().read_memory(pc, len(code))) == code
    except gdb.error:
        return False


def symbol_of(pc: int) -> tuple[str | None, int]:
    """(name, offset) as gdb prints them after an address; (None, 0) where it prints none."""
    if hasattr(gdb, "format_address"):  # gdb >= 13
        match = re.search(r" <(.*?)(?:\+(\d+))?>$", gdb.format_address(pc), re.DOTALL)
    else:
        text = gdb.execute(f"info symbol {pc:#x}", to_string=True)
        match = re.match(r"(\S+)(?: \+ (\d+))? in section", text)
    return (match.group(1), int(match.group(2) or 0)) if match else (None, 0)


def _last_of_function(start: int, pc: int, limit: int) -> int:
    """The last even address up to `limit` that gdb counts to the function at `start`, as it does `pc`."""
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

_api: Any = getattr(gdb, "disassembler", None)

_BYTES = 1 << 12  # counts are asked for of so much code at once
_SECONDS = 1.0  # and are taken for what is the case for so long, while gdb goes through code
_NAME = "rvtrace counts"


class Place:
    """Where gdb keeps its disassembler: ours is there instead of the one *before*, which it asks first."""

    def __init__(self) -> None:
        self.ours: Any = None
        self.before: Any = None

    def take(self, ours: Any) -> None:
        self.before = _api.register_disassembler(None, None)
        self.ours = ours
        _api.register_disassembler(ours, None)

    def clear(self) -> None:
        """Take out what an earlier `source` of rvtrace left there."""
        now = _api.register_disassembler(None, None)
        _api.register_disassembler(now.place.before if getattr(now, "name", "") == _NAME else now, None)

    def leave(self) -> None:
        """Unless somebody took it from us."""
        now = _api.register_disassembler(None, None)
        _api.register_disassembler(self.before if now is self.ours else now, None)
        self.ours = None


_place = Place()


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """While this lasts, gdb disassembles as if rvtrace were not there."""
    ours = _place.ours
    if ours is None:
        yield
        return
    _place.leave()
    try:
        yield
    finally:
        _place.take(ours)


def assembly_window() -> bool:
    """Whether the TUI shows code: then the command `disassemble` prints nothing, but moves that window."""
    return any(line.startswith("asm ") for line in gdb.execute("info win", to_string=True).splitlines())


def _tui_is_active() -> bool:
    """It may be about to show code: a window that is being made is not in the list yet."""
    return "not active" not in gdb.execute("info win", to_string=True)


class Known:
    """How often instructions ran, asked for when gdb begins to disassemble somewhere."""

    def __init__(self) -> None:
        self._window = range(0)
        self._counts: dict[int, int] = {}
        self._branches: dict[int, tuple[int, int]] = {}
        self._expected = -1  # the instruction behind the last one: gdb goes on, and nothing is asked again
        self._until = 0.0
        self._texts: Texts | None = None

    def around(self, pc: int, length: int, text: str) -> tuple[str, str]:
        """(what to print before an instruction, what behind it); counts only where they are known."""
        if pc != self._expected or time.monotonic() >= self._until or (self._window and pc not in self._window):
            self._until = time.monotonic() + _SECONDS
            self._texts = None if _tui_is_active() else Texts(raw=False)
            with contextlib.suppress(gdb.error, gdb.GdbError):  # there is no trace
                self._ask(pc)
        self._expected = pc + length
        before = f"{self._counts.get(pc, 0) or NEVER:>9}: " if pc in self._window else ""
        taken = self._branches.get(pc) if before else None
        return before, self._comment(pc, text) + (f"\t# taken {taken[0]}, not taken {taken[1]}" if taken else "")

    def _comment(self, pc: int, text: str) -> str:
        """What gdb would have printed behind an instruction, because of those before it."""
        with contextlib.suppress(gdb.error):
            whole = self._texts.at(pc) if self._texts is not None else ""
            if whole.startswith(text) and whole[len(text) :].startswith(" #"):
                return whole[len(text) :]
        return ""

    def _ask(self, pc: int) -> None:
        """Without a trace, or while the program runs, nothing is known."""
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


_known = Known()


def _annotated(info: Any, result: Any) -> Any:
    """What gdb disassembled, with the counts. `result` as it is, whatever goes wrong."""
    try:
        before, behind = _known.around(info.address & _ADDRESSES, result.length, result.string)
        if not before and not behind:
            return result
        if not getattr(result, "parts", None):  # gdb 13
            return _api.DisassemblerResult(result.length, f"{before}{result.string}{behind}")
        parts = [info.text_part(_api.STYLE_TEXT, before)] if before else []
        parts += result.parts
        parts += [info.text_part(_api.STYLE_COMMENT_START, behind)] if behind else []
        return _api.DisassemblerResult(result.length, parts=parts)
    except KeyboardInterrupt:
        if hasattr(_api, "STYLE_TEXT"):  # gdb >= 14
            raise
        raise gdb.GdbError("Quit") from None
    except Exception:  # noqa: BLE001 - there is no trace, or no session: the code can be read all the same
        return result


def _make() -> Any:
    class Counted(_api.Disassembler):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(_NAME)
            self.place = _place

        def __call__(self, info: Any) -> Any:
            result = None if _place.before is None else _place.before(info)
            if result is None:
                result = _api.builtin_disassemble(info)
            return _annotated(info, result)

    return Counted()


class DisassembleCounts(gdb.Parameter):
    """When on, `disassemble`, `x/i` and the TUI's assembly window have before
    each instruction how often it ran, "#####" if it never did, and behind a
    conditional branch how often it was taken. gdb is slower then."""

    set_doc = "Set whether disassembled code shows how often each instruction ran."
    show_doc = "Show whether disassembled code shows how often each instruction ran."

    def __init__(self) -> None:
        super().__init__("trace disassemble-counts", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = False
        if _api is not None:
            _place.clear()

    def get_set_string(self) -> str:
        if bool(self.value) == (_place.ours is not None):
            return ""
        if _api is None:
            self.value = False
            raise gdb.GdbError("set trace disassemble-counts: this gdb cannot, version 13 or later can.")
        if self.value:
            _place.take(_make())
        else:
            _place.leave()
        return ""

    def get_show_string(self, svalue: str) -> str:
        return f"Showing how often instructions ran in disassembled code is {svalue}."


COMMANDS = (DisassembleCounts,)
