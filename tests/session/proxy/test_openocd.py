"""Real gdb and real OpenOCD with the simulated target: through the proxy gdb prints what it prints without."""

import re
import threading
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.gdbext.gdb_process import run_gdb
from tests.helpers.cross_compiler import demo
from tests.session.proxy.listed_past import ListedPast

LIVE = [
    "info threads", "info registers", "load", "compare-sections", "break fib", "continue", "info registers ", "bt",
    "x/16xw $sp", "finish", "print fib(3)", "print operations", "set var ticks = 7", "print ticks", "print $a0 = 5",
    "print $a0", "stepi", "next", "step", "delete", "hbreak finish", "info registers mstatus", "monitor echo hello",
    "monitor targets", "maint packet qC", "monitor no_such_command", "detach",
]  # fmt: skip


def plain(text: str) -> str:
    """Without what is another one each time: our register, the clock."""
    return re.sub(r"^trace_pos .*\n|Transfer rate: .*|\[\d+\]|0x[0-9a-f]{8,}\b(?=.*tck)", "", text, flags=re.M)


def test_in_the_present_gdb_prints_what_it_prints_without(tmp_path: Path) -> None:
    elf, outputs = demo(tmp_path), []
    for name in ("direct", "through"):
        with Rig(elf, tmp_path / name) as rig:
            if name == "direct":
                outputs.append(run_gdb(elf, [f"target extended-remote :{rig.gdb_port}", *LIVE]))
                continue
            address = StubAddress("127.0.0.1", rig.gdb_port)
            proxy = Proxy(ProxySetup(ListedPast(lambda hart: [0]), threading.RLock(), address))
            proxy.start()
            outputs.append(run_gdb(elf, [f"target extended-remote :{proxy.port}", *LIVE]))
            assert proxy.take_lines() == []
            proxy.close()
    direct, through = outputs
    for command in LIVE:
        assert plain(through[command]) == plain(direct[command]), command
    assert "Breakpoint 1, fib" in direct["continue"] and "matched" in direct["compare-sections"]
    assert "hello" in direct["monitor echo hello"]
