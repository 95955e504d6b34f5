"""Runs inside LLDB: executes commands one after the other and writes down where each led, and the registers there.

$WALK_COMMANDS: a file of commands, one a line; `goto N` stands for `rvtrace goto N`.
$WALK_RESULT: gets a line for each: the command, the number of the history, and the registers that are known, as JSON.
"""

from __future__ import annotations

import json
import os

import lldb

_WORDS = {
    "continue": "process continue --forward",
    "reverse-continue": "process continue --reverse", "run-back": "reverse-continue",
}  # fmt: skip
_PACKET = "process plugin packet send "
_BUTTONS = {"click-back": ("bs", "bs"), "click-run-back": ("bc", "bs")}
"""What CodeLLDB 1.12 sends for its buttons, before it has LLDB step an instruction."""
_NAMES = """zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7
s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc trace_pos"""
_WANTED = frozenset(_NAMES.split())


def _executed(debugger: lldb.SBDebugger, command: str) -> str:
    """Execute a command; returns the error."""
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, result)
    return "" if result.Succeeded() else " ".join(result.GetError().split())


def _thread(debugger: lldb.SBDebugger) -> lldb.SBThread:
    return debugger.GetSelectedTarget().GetProcess().GetSelectedThread()


def _run(debugger: lldb.SBDebugger, command: str) -> str:
    name, _, rest = command.partition(" ")
    if name == "goto":
        return _executed(debugger, f"rvtrace goto {rest}")
    if command == "run":
        return _executed(debugger, f"thread continue {_thread(debugger).GetIndexID()}")
    if command == "stepi":
        return _executed(debugger, f"thread step-inst {_thread(debugger).GetIndexID()}")
    if name == "thread":
        return _executed(debugger, f"thread select {rest}")
    if name == "break":
        return _executed(debugger, f"breakpoint set --address {rest}")
    if name == "delete":
        return _executed(debugger, "breakpoint delete --force")
    if command in _BUTTONS:
        thread = _thread(debugger).GetThreadID()
        errors = [_executed(debugger, _PACKET + it) for it in (f"Hc{thread:x}", *_BUTTONS[command])]
        return "".join([*errors, _executed(debugger, "thread step-inst")])
    return _executed(debugger, _WORDS.get(command, command))


def _known(frame: lldb.SBFrame) -> dict[str, int]:
    found = {}
    for register in (it for group in frame.GetRegisters() for it in group if it.GetName() in _WANTED):
        error = lldb.SBError()
        value = register.GetValueAsUnsigned(error, 0)
        if error.Success():
            found[register.GetName()] = value
    return found


def __lldb_init_module(debugger: lldb.SBDebugger, _internal: dict[str, object]) -> None:
    debugger.SetAsync(False)
    with open(os.environ["WALK_COMMANDS"], encoding="utf-8") as source, open(
        os.environ["WALK_RESULT"], "w", encoding="utf-8"
    ) as result:
        for command in source.read().splitlines():
            error = _run(debugger, command)
            frame = _thread(debugger).GetFrameAtIndex(0)
            known = _known(frame)
            result.write(f"{json.dumps([command, known.pop('trace_pos', 0), known, error])}\n")
