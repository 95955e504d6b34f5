"""`rvtrace serve --connect` before the real QEMU: what it ran, its own commands, and what is left when it has ended."""

import re
from contextlib import ExitStack
from pathlib import Path

from rvtrace_gdb.console.bench.rig import QemuRig
from tests.console.commands.serve.served import serving
from tests.helpers.cross_compiler import demo
from tests.helpers.started_python import rvtrace

FINISH, CALL = 0x80000130, 0x80000186
"""Where `finish` is, and the instruction that calls it."""


def test_what_qemu_ran_is_recorded_and_outlives_it(tmp_path: Path) -> None:
    elf, file = demo(tmp_path), tmp_path / "qemu.rvt"
    with ExitStack() as ends:
        with QemuRig(elf, tmp_path / "rig") as rig:
            words = ("--connect", f":{rig.gdb_port}", "--elf", elf, "--target", rig.target_file, "-o", file)
            server = ends.enter_context(serving(*words))
            with server.client() as client:
                assert re.match(r"\d+\.\d+", client.monitor("info version")[0])
                assert client.monitor("nothing") == ["unknown command: 'nothing'"]
                assert "tracing" in client.monitor("trace start")[0]
                assert client.ask(f"Z0,{FINISH:x},2") == "OK"
                assert client.stop("c").startswith("T05")
                assert client.monitor("trace position") == ["In the present."]
                newest = client.monitor("trace history")[-1]
                assert f"{CALL:#018x}" in newest
        length = int(newest.split()[0])
        with server.client() as other:
            assert other.ask("?").startswith("T05") and other.place() == CALL
            assert other.monitor("trace position") == [f"In the past, at instruction {length} of {length}."]
            assert other.monitor("info version") == ["there is no target, only its trace"]
            assert "no present to return to" in other.monitor("trace live")[0]
            assert other.monitor("trace save")[0].startswith("Saved ")
    assert f"history:  {length} instructions, 0 gaps" in rvtrace("status", file).stdout
