"""Runs inside LLDB: a debugger as lldb-dap and CodeLLDB make one, which learns of stops by events alone.

$EDITOR_PORT: of the server. $EDITOR_PROGRAM: the program. $EDITOR_SCRIPT: what is imported. $EDITOR_RESULT gets a line
for each command: where the editor was told that the program stopped.
"""

from __future__ import annotations

import os

import lldb

_SECONDS = 30
_COMMANDS = ("reverse-next", "reverse-step", "rvtrace goto 300", "reverse-finish", "reverse-continue")


def _stops(listener: lldb.SBListener) -> bool:
    """Wait for the next stop; returns whether there was one."""
    event = lldb.SBEvent()
    while listener.WaitForEvent(_SECONDS, event):
        is_state = lldb.SBProcess.EventIsProcessEvent(event)
        if is_state and lldb.SBProcess.GetStateFromEvent(event) == lldb.eStateStopped:
            return True
    return False


def __lldb_init_module(_debugger: lldb.SBDebugger, _internal: dict[str, object]) -> None:
    editor = lldb.SBDebugger.Create(False)
    editor.SetAsync(True)
    listener = editor.GetListener()
    target = editor.CreateTarget(os.environ["EDITOR_PROGRAM"])
    process = target.ConnectRemote(
        listener, f"connect://localhost:{os.environ['EDITOR_PORT']}", "gdb-remote", lldb.SBError()
    )
    with open(os.environ["EDITOR_RESULT"], "w", encoding="utf-8") as result:
        _stops(listener)
        editor.HandleCommand(f"command script import {os.environ['EDITOR_SCRIPT']}")
        for command in _COMMANDS:
            editor.HandleCommand(command)
            told = _stops(listener)
            number = process.GetSelectedThread().GetFrameAtIndex(0).FindRegister("trace_pos").GetValueAsUnsigned()
            result.write(f"{command}: {number if told else 'not told'}\n")
    lldb.SBDebugger.Destroy(editor)
