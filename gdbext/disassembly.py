"""`disassemble`, `x/i` and the TUI's assembly window with how often each instruction ran.

gdb's disassembler is told what to print before and behind an instruction (gdb.disassembler, gdb >= 13). With such a
disassembler gdb is slower, it uses it also where it only wants to know how long an instruction is, and it forgets from
one instruction to the next the address that two make (`# 0x80001130 <table>`), which is then taken from a listing made
without it. So it is there only while `set trace disassemble-counts` is on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import listing
from rvtrace_gdb.gdbext.coverage_lines import NEVER
from rvtrace_gdb.gdbext.tracer import tracer

with contextlib.suppress(ImportError):  # gdb < 13
    import gdb.disassembler

_api: Any = getattr(gdb, "disassembler", None)

_BYTES = 1 << 12  # counts are asked for of so much code at once
_SECONDS = 1.0  # and are taken for what is the case for so long, while gdb goes through code
_ADDRESSES = (1 << 64) - 1
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
        self._texts: listing.Texts | None = None

    def around(self, pc: int, length: int, text: str) -> tuple[str, str]:
        """(what to print before an instruction, what behind it); counts only where they are known."""
        if pc != self._expected or time.monotonic() >= self._until or (self._window and pc not in self._window):
            self._until = time.monotonic() + _SECONDS
            self._texts = None if _tui_is_active() else listing.Texts(raw=False)
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
