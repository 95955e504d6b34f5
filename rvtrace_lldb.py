"""What LLDB imports, `command script import rvtrace_lldb.py`: rvtrace's commands, and steps backward by source lines.

LLDB is connected to `rvtrace serve`, which does the work: what these commands say comes from there. LLDB goes backward
by `process continue --reverse` alone; the steps are places of the past to which the server lets its next step lead.
LLDB has a command `trace` of its own, which cannot be replaced: hence `rvtrace`.

Outside LLDB the Python API is `import rvtrace_gdb`.
"""

from __future__ import annotations

import re
import sys

if "lldb" not in sys.modules:
    raise ImportError("rvtrace_lldb.py is what LLDB imports; the Python API of rvtrace is `import rvtrace_gdb`")

import lldb

_MONITOR = "process plugin packet monitor trace "
_LEADS = "The next step goes there"
_ECHO = ("  packet: ", "response: ")
_STEPS = {
    "reverse-step": "Go back to the beginning of the source line before, also of a function that was called.",
    "reverse-next": "Go back to the beginning of the source line before, over functions that were called.",
    "reverse-finish": "Go back to the call of this function.",
    "reverse-stepi": "Go back one instruction.",
}
_RUN_BACK = "process continue --reverse"
_THREAD_ID = "--thread-id"
_OF_THREAD = "process plugin packet send Hc0"
_ABOUT = "Show the trace that `rvtrace serve` serves, and go to places in it: `rvtrace help` lists the commands."
_SETTINGS = (
    # LLDB then reads bytes, and no lines of 512 bytes of which one may be unknown.
    "settings set target.process.disable-memory-cache true",
)
_PLANS, _PLANS_END = "Active plan stack:", "plan stack:"
_LEFT_PLAN = re.compile(r"Element (\d+): Stepping one instruction")


def _executed(debugger: lldb.SBDebugger, command: str) -> tuple[bool, str]:
    """Execute a command; returns whether that succeeded, and what it printed."""
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, result)
    return result.Succeeded(), (result.GetOutput() or "") + (result.GetError() or "")


def _executed_for(thread: lldb.SBThread, command: str) -> str:
    """Execute a command about a thread, whichever is selected; returns what it printed."""
    result = lldb.SBCommandReturnObject()
    interpreter = thread.GetProcess().GetTarget().GetDebugger().GetCommandInterpreter()
    interpreter.HandleCommand(command, lldb.SBExecutionContext(thread), result, False)
    return result.GetOutput() or ""


def _thread(debugger: lldb.SBDebugger) -> lldb.SBThread:
    """Return the thread that the user has selected."""
    return debugger.GetSelectedTarget().GetProcess().GetSelectedThread()


def _let_run(thread: lldb.SBThread) -> None:
    """Let a thread run that `thread continue` of another one holds: LLDB passes over its stops and goes on."""
    if thread.IsSuspended():
        thread.Resume()


def _selected(debugger: lldb.SBDebugger, name: str, arguments: str, result: lldb.SBCommandReturnObject) -> bool:
    """Select the thread that the arguments of a command name, if they do; returns whether they are right."""
    words = arguments.split()
    if not words:
        return True
    if len(words) != 2 or words[0] != _THREAD_ID or not words[1].isdecimal():
        result.SetError(f"{name} takes no arguments but {_THREAD_ID} and a number, as `thread select` does")
        return False
    if not debugger.GetSelectedTarget().GetProcess().SetSelectedThreadByID(int(words[1])):
        result.SetError(f"there is no thread with the id {words[1]}: `thread list` shows them as tid")
        return False
    return True


def _asked(debugger: lldb.SBDebugger, command: str) -> tuple[bool, list[str]]:
    """Return whether the server lets the next step lead somewhere, and the lines that it printed for a command."""
    thread = _thread(debugger)
    selected = f"--thread {thread.GetThreadID():x} " if thread.IsValid() else ""
    lines = _executed(debugger, _MONITOR + selected + command)[1].splitlines()
    said = [line.replace("monitor trace", "rvtrace") for line in lines if not line.startswith(_ECHO)]
    return any(_LEADS in line for line in said), [line for line in said if _LEADS not in line]


def _go_there(debugger: lldb.SBDebugger, result: lldb.SBCommandReturnObject) -> None:
    """Let LLDB step where the server leads it, and show where that is."""
    thread = _thread(debugger)
    _let_run(thread)
    _show_output(result, *_executed(debugger, f"thread step-inst {thread.GetIndexID()}"))


def _show_output(result: lldb.SBCommandReturnObject, succeeded: bool, printed: str) -> None:
    if not succeeded:
        result.SetError(printed.strip())
    elif printed.strip():
        result.AppendMessage(printed.rstrip())


def _answer(debugger: lldb.SBDebugger, command: str, result: lldb.SBCommandReturnObject) -> None:
    """Answer a command with what the server prints; it may lead somewhere."""
    leads, lines = _asked(debugger, command)
    for line in lines:
        result.AppendMessage(line)
    if leads:
        _go_there(debugger, result)


def _step(debugger: lldb.SBDebugger, command: str, result: lldb.SBCommandReturnObject) -> None:
    """Make a step backward. LLDB shows where it led; where it cannot be made, that is an error."""
    leads, lines = _asked(debugger, command)
    if leads:
        _go_there(debugger, result)
    else:
        result.SetError("\n".join(lines))


class StopHook:
    """Ends steps of one instruction that LLDB has left.

    Where a step led to the address where it began, as in a loop, LLDB takes it for interrupted, and makes it later, in
    front of the next command. CodeLLDB's buttons that go backward are such steps, too.
    """

    def __init__(self, target: lldb.SBTarget, _extra: lldb.SBStructuredData, _internal: dict[str, object]) -> None:
        pass

    def handle_stop(self, context: lldb.SBExecutionContext, _stream: lldb.SBStream) -> bool:
        for thread in context.GetProcess():
            if thread.GetStopReason() != lldb.eStopReasonNone:
                plans = _executed_for(thread, "thread plan list").partition(_PLANS)[2].partition(_PLANS_END)[0]
                left = _LEFT_PLAN.search(plans)
                if left is not None:  # with those above it
                    _executed_for(thread, f"thread plan discard {left[1]}")
        return True


class ShownTrace:
    """The command `rvtrace`."""

    def __init__(self, debugger: lldb.SBDebugger, _internal: dict[str, object]) -> None:
        self._debugger = debugger

    def __call__(
        self,
        debugger: lldb.SBDebugger,
        command: str,
        context: lldb.SBExecutionContext,
        result: lldb.SBCommandReturnObject,
    ) -> None:
        _answer(debugger, command, result)

    def get_short_help(self) -> str:
        return _ABOUT

    def get_long_help(self) -> str:
        return "\n".join(_asked(self._debugger, "help")[1])


class StepBack:
    """A step backward. *name*: its command."""

    name = ""

    def __init__(self, debugger: lldb.SBDebugger, _internal: dict[str, object]) -> None:
        pass

    def __call__(
        self,
        debugger: lldb.SBDebugger,
        command: str,
        context: lldb.SBExecutionContext,
        result: lldb.SBCommandReturnObject,
    ) -> None:
        if _selected(debugger, self.name, command, result):
            self._go_back(debugger, result)

    def _go_back(self, debugger: lldb.SBDebugger, result: lldb.SBCommandReturnObject) -> None:
        _step(debugger, self.name, result)

    def get_short_help(self) -> str:
        return _STEPS[self.name]

    def get_long_help(self) -> str:
        return f"{_STEPS[self.name]} It ends at a breakpoint on the way, but not at a watchpoint."


class LineBack(StepBack):
    name = "reverse-step"


class LineBackOver(StepBack):
    name = "reverse-next"


class CallBack(StepBack):
    name = "reverse-finish"


class InstructionBack(StepBack):
    name = "reverse-stepi"


class RunBack(StepBack):
    """The command `reverse-continue`: `process continue --reverse` does not say which thread the user has selected."""

    name = "reverse-continue"

    def _go_back(self, debugger: lldb.SBDebugger, result: lldb.SBCommandReturnObject) -> None:
        thread = _thread(debugger)
        if thread.IsValid():
            _let_run(thread)
            _executed(debugger, f"{_OF_THREAD}{thread.GetThreadID():x}")
        _show_output(result, *_executed(debugger, _RUN_BACK))

    def get_short_help(self) -> str:
        return "Go back to a breakpoint or a watchpoint, on the hart of the selected thread."

    def get_long_help(self) -> str:
        return f"{self.get_short_help()} `{_RUN_BACK}` goes back on the one that stopped last."


def __lldb_init_module(debugger: lldb.SBDebugger, _internal: dict[str, object]) -> None:
    """Add the commands, as LLDB asks for when it has imported this file."""
    commands = {"rvtrace": ShownTrace.__name__}
    commands.update({it.name: it.__name__ for it in (LineBack, LineBackOver, CallBack, InstructionBack, RunBack)})
    for name, command in commands.items():
        # With the synchronicity of the one who asks: editors learn of a stop only where commands do not wait for it.
        options = f"--overwrite --synchronicity current --class {__name__}.{command}"
        debugger.HandleCommand(f"command script add {options} {name}")
    for line in _SETTINGS:
        debugger.HandleCommand(line)
    _executed(debugger, f"target stop-hook add -P {__name__}.{StopHook.__name__}")
