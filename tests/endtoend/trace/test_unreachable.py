"""Real gdb, OpenOCD and simulated target, whose memory cannot be reached while its hart runs.

Reported of chips whose debugger has no access of its own to the system bus, and of such that have it switched off while
the hart waits. `Busy` is between rvtrace and OpenOCD, and answers as OpenOCD does then.
"""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.trace.test_failures import ALL, ENCODER, Debugger, one_line, pcs
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo

END = b"\x1a"  # of a request and of an answer
STATE = b"[target current] curstate" + END
REFUSED = b"1 read_memory: failed to read memory" + END


class Busy:
    """A Tcl server, on *port*, that passes requests on to OpenOCD's, but for those to memory while the hart runs."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with suppress(ConnectionError), client, socket.create_connection(("127.0.0.1", self._upstream)) as openocd:
            waiting = b""
            while got := client.recv(1 << 16):
                *requests, waiting = (waiting + got).split(END)
                for request in requests:
                    client.sendall(self._answer(openocd, request))

    def _answer(self, openocd: socket.socket, request: bytes) -> bytes:
        if re.search(rb"(read|write)_memory 0x", request) and b"running" in _asked(openocd, STATE):
            return REFUSED
        return _asked(openocd, request + END)


def _asked(openocd: socket.socket, request: bytes) -> bytes:
    openocd.sendall(request)
    answer = b""
    while not answer.endswith(END):
        data = openocd.recv(1 << 16)
        if not data:
            raise ConnectionError("OpenOCD closed the connection")
        answer += data
    return answer


@pytest.fixture
def session(tmp_path: Path) -> Iterator[tuple[Rig, Path]]:
    log = tmp_path / "retired"
    with ExitStack() as stack:
        rig = stack.enter_context(Rig(demo(tmp_path), tmp_path / "rig", "--log-retired", str(log)))
        busy = Busy(rig.tcl_port)
        stack.callback(busy.close)
        text = rig.target_file.read_text()
        rig.target_file.write_text(text.replace(f"tcl_port = {rig.tcl_port}", f"tcl_port = {busy.port}"))
        yield rig, log


@thorough("endtoend/trace/test_failures.py::test_openocd_is_started_anew")
def test_a_trace_that_cannot_be_stopped_goes_on(session: tuple[Rig, Path]) -> None:
    """It was "Tracing stopped.", the encoder went on, and the second `trace stop` said that it had ended already."""
    rig, log = session
    with Debugger(rig) as gdb:
        gdb.say("trace start")
        gdb.say("continue&")
        status, refused = gdb.say("trace status"), one_line(gdb.say("trace history"))
        said = one_line(gdb.say("trace stop"))
        before = len(gdb.records)
        gdb.say("interrupt")
        gdb.stopped(before)
        halted = gdb.say("trace status")
        stopped = gdb.say("trace stop")
        listed, then = pcs(gdb.say(ALL)), gdb.say("trace status")
        with OpenOcd(port=rig.tcl_port) as openocd:
            control = openocd.read32(ENCODER)
    rig.stop()
    assert "tracing when last read" in status
    assert refused.startswith("ram0 at 0x20001000: trRamControl (0x20001000) cannot be read: ")
    assert said.startswith("not stopped, tracing goes on: encoder0 at 0x20000000: trTeControl (0x20000000) cannot be ")
    assert "the hart is running" in said and "halt it (`interrupt`) and repeat the command" in said
    assert re.search(r"^encoder: +encoder0 at 0x20000000: tracing, ", halted, re.M)
    assert stopped.startswith("Tracing stopped.\n")
    assert "cannot be" not in stopped + then, "all was read in the end"
    assert control & 2 == 0, "trTeEnable"
    retired = retired_pcs(log)
    assert len(listed) > 2000 and listed == retired[: len(listed)]
