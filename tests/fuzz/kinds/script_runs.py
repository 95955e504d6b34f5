"""`rvtrace run`: whole scripts, with a program in gdb's place that has an answer to everything, and no hardware."""

from __future__ import annotations

import contextlib
import os
import sys

from rvtrace_gdb.console.gdb_driver import engine
from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.scripts import language
from tests.fuzz.exercise import Input
from tests.fuzz.kinds.commands import quiet
from tests.fuzz.kinds.text_files import SCRIPTS, Script

_GDB = r"""
import sys
STOP = '*stopped,reason="breakpoint-hit",frame={addr="0x80000000",func="main",file="m.c",line="3"},thread-id="1"\n'
GOES = '*running,thread-id="all"\n'
ANSWERS = {
    "info-gdb-mi-command": 'done,command={exists="true"}', "data-evaluate-expression": 'done,value="%d"',
    "rvtrace-status": 'done,messages=["history:  12 instructions, 0 gaps"]', "exec-continue": "running",
    "rvtrace-history": 'done,length="12",history=[]', "rvtrace-events": 'done,length="0",events=[]',
    "rvtrace-find": 'done,length="2",executions=[{number="1",position="3",addr="0x80000000"}]',
    "rvtrace-gaps": 'done,length="0",gaps=[]', "rvtrace-functions": 'done,length="0",functions=[]',
    "rvtrace-save": 'done,messages=["saved"]', "rvtrace-open": 'done,messages=[]',
    "break-insert": 'done,bkpt={number="%d",type="breakpoint",addr="0x80000000"}', "target-download":
    'done,address="0x80000000",load-size="64",transfer-rate="8192"', "data-list-register-names":
    'done,register-names=["zero","ra","pc"]', "stack-info-frame": 'done,frame={addr="0x80000000",func="main"}',
    "target-select": "connected", "rvtrace-no": 'error,msg="no"',
}
print("(gdb)", flush=True)
for number, line in enumerate(sys.stdin):
    rest = line.lstrip("0123456789")
    token, name = line[:len(line) - len(rest)], rest[1:].split()[0] if rest[1:].split() else ""
    if name == "gdb-exit":
        break
    answer = ANSWERS.get(name, "done" if number % 5 or number < 40 else 'error,msg="it cannot"')
    if name == "rvtrace-save":
        try:
            open(rest.split(" ", 1)[1].strip().strip('"'), "wb").close()
        except (OSError, ValueError):
            answer = 'error,msg="cannot be written"'
    said = '~"some text\\n"\n' if name.startswith("interpreter") else ""
    print(said + token + "^" + answer.replace("%d", str(number % 7)), flush=True)
    if answer == "running":
        print(GOES + STOP, end="")
    print("(gdb)", flush=True)
"""


class ScriptRun(Script):
    """Times are a thousand times shorter than they say."""

    def __init__(self) -> None:
        super().__init__()
        gdb = self.written(f"#!{sys.executable} -SIE\n{_GDB}".encode(), "gdb")
        gdb.chmod(0o755)
        self._words = ["--gdb", str(gdb), "--timeout", "100ms", "-o", "out.rvt"]
        self.seeds = [Input(words, script) for script in SCRIPTS for words in ("", "--json", "--quiet --set n=3")]

    def isolate(self) -> None:
        os.chdir(self.folder)
        language._SECONDS = dict.fromkeys(language._SECONDS, 0.001)
        engine.HALT_SECONDS = 0.1
        engine.INTERRUPT_SECONDS = 0.05

    def run(self, variant: str, data: bytes) -> None:
        script = self.written(data, "it.rvts")
        with quiet(self.folder), contextlib.suppress(SystemExit):
            main(["run", str(script), *self._words, *variant.split()])
