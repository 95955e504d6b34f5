"""A target behind OpenOCD: registers and memory, accessible also while harts run and gdb waits.

A request is Tcl text and a byte 0x1a, and so is the answer. There is no status, so every command is wrapped in `catch`.
Memory is read with `read_memory ... phys`, which works through the system bus without halting a hart and without
address translation (`mdw` and its relatives print to the log, and translate). The errors are lines the user can act on.

Ref: OpenOCD User's Guide 0.12.0, sections "Tcl RPC server", "Memory access" (read_memory, write_memory), "RISC-V".
"""

import re
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from rvtrace_gdb.support.system import is_refusal
from rvtrace_gdb.support.text import open_problem
from rvtrace_gdb.transport.openocd.errors import (
    NoSuchTarget,
    NotOpenOcd,
    OpenOcdAbsent,
    OpenOcdError,
    OpenOcdLost,
    OpenOcdRefused,
    OpenOcdTimeout,
    OpenOcdTooOld,
)

if TYPE_CHECKING:
    from rvtrace_gdb.transport.openocd.memory_ways import RefusedAccess  # loaded where an access is refused


DEFAULT_HOST = "127.0.0.1"  # not "localhost": where that means ::1 first, OpenOCD does not listen
DEFAULT_PORT = 6666
END = b"\x1a"
GREETING = b"rvtrace\n"
# OpenOCD logs the result of a request, which would fill its terminal with trace data. Up to 0.12 it does not with this
# result code; later ones take it as the wish to end the connection.
RETURN_UNLOGGED, RETURN = "return -level 0 -code exit", "return"
CHUNK_SECONDS = 0.1  # how long one round trip of a long read should take, so that it can be watched and cancelled
CHUNK_WORDS = range(16, 1 << 16)  # OpenOCD 0.12 refuses to read more at once
_COMPONENT = 0x1000  # bytes of a trace component's registers, and what their address is a multiple of
UNPOLLED_MS = 10_000
"""After so many milliseconds without a request OpenOCD polls again."""


class OpenOcd(Closeable):
    """OpenOCD's Tcl server at *host*:*port*. It is connected at the first use, and again after any error.

    *target*: the OpenOCD name of the hart to use ("riscv.cpu0"); None: OpenOCD's current target. *timeout*: seconds to
    wait for one answer.
    """

    def __init__(
        self,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        target: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.host, self.port, self.target, self.timeout = host, port, target, timeout
        self.version = ""  # of the connected OpenOCD, as it calls itself
        self.targets: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()  # of the targets, () if OpenOCD does not say them
        self.notes: list[str] = []
        """What was changed in OpenOCD to reach memory."""
        self._widened: set[str | None] = set()  # targets for which all ways to memory were tried
        self._socket: socket.socket | None = None
        self._return = RETURN_UNLOGGED
        self._unpolled = False
        self._kept = 0.0  # the time of the last command not to poll, by time.monotonic

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # What a Target of controlregs has.

    def read32(self, address: int) -> int:
        """Return the word at the physical *address*. Raises OpenOcdError leaves; OpenOcdRefused carries the address."""
        return self._read_words(address, 1)[0]

    def write32(self, address: int, value: int) -> None:
        """Store *value* at the physical *address*. Raises the errors of `read32`."""
        self._on_target(f"write_memory {address:#x} 32 {{{value:#x}}} phys", address)

    def write64(self, address: int, value: int) -> None:
        """Store 64 bits at the physical *address* at once. Raises the errors of `read32`."""
        self._on_target(f"write_memory {address:#x} 64 {{{value:#x}}} phys", address)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """Return *nbytes* of physical memory (whole words), read in pieces that take about a tenth of a second.

        An error carries the bytes read before it as `partial`. After Cancelled the connection can still be used.
        """
        if (address | nbytes) % 4:
            raise ValueError(f"not whole words: {nbytes} bytes at {address:#x}")
        return self._read_in_chunks(
            lambda done, words: self._read_words(address + done, words), nbytes // 4, progress, "reading memory"
        )

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        """Return *words* single reads of the same *address*, by a loop inside OpenOCD. Raises as `read_block`."""
        return self._read_in_chunks(
            lambda _done, part: self._read_repeatedly(address, part), words, progress, "reading data port"
        )

    def read_port_burst(self, address: int, words: int, progress: Progress = silent) -> bytes | None:
        """Return the same as `read_data_port`, in half the time; None if the system bus cannot, or an access failed."""
        from rvtrace_gdb.transport.openocd import data_port  # only for a sink with a memory of its own

        def read(_done: int, part: int) -> list[int]:
            words = data_port.burst_words(self.command(data_port.burst(prefix, address, part, bits)), part)
            if words is None:
                raise OpenOcdRefused("riscv dmi_read", "the system bus was busy, or an access failed", address)
            return words

        prefix = self._prefix()
        try:
            bits = data_port.bus_address_bits(self.command(data_port.bus_width(prefix)))
            return self._read_in_chunks(read, words, progress, "reading data port") if address >> bits == 0 else None
        except OpenOcdRefused:
            return None

    # What else can be asked.

    def state(self) -> str:
        """Return the hart's state as OpenOCD last polled it: "running", "halted", "reset", "unknown"."""
        return self.command(f"{self.target or '[target current]'} curstate")

    def halted(self) -> bool:
        return self.state() == "halted"

    def xlen(self) -> int | None:
        """Return the register width of the hart in bits, as OpenOCD found it; None when this OpenOCD does not report
        it.
        """
        try:
            found = re.search(r"hart\.xlen\s+(\d+)", self._on_target("riscv info"))
        except OpenOcdRefused:
            return None
        return int(found[1]) if found else None

    def command(self, tcl: str) -> str:
        """Return the result of a Tcl command in OpenOCD. Raises OpenOcdError leaves; OpenOcdRefused for a Tcl error."""
        return self._evaluate(tcl, None)

    @contextmanager
    def unpolled(self) -> Iterator[None]:
        """Keep OpenOCD from polling harts inside the context.

        OpenOCD (0.12) polls all harts before each command, and in an SMP group each of them as often as there are
        harts: with eight, a read takes 25 times as long as with one. Here it polls once, and then not until the end.

        If this process is killed in the context, OpenOCD polls again by itself after UNPOLLED_MS, which gdb relies on.
        The context itself raises nothing: the commands inside it report what is wrong.
        """
        if self._unpolled or not self._leave_unpolled():
            yield
            return
        self._unpolled = True
        try:
            yield
        finally:
            self._unpolled = False
            with suppress(OpenOcdError):  # it ended, and polls when it is started again
                self.command("catch {after cancel $_rvtrace_after}; poll on")

    def _leave_unpolled(self) -> bool:
        """Switch polling off, if there are several harts that OpenOCD polls. Return whether it was switched off;
        polling that is off already stays off.
        """
        self._kept = time.monotonic()
        try:
            self._connected()
            if len(self.targets) < 2:
                return False
            return self.command(f'if {{[string match "*polling: on*" [poll]]}} {{{_keep()}; poll off; set _ 1}}') == "1"
        except OpenOcdError:
            return False

    def _keep_unpolled(self) -> None:
        """Postpone the time at which OpenOCD polls again. Raises the errors of `command`."""
        if self._unpolled and time.monotonic() - self._kept > UNPOLLED_MS / 4000:
            self._kept = time.monotonic()
            self.command(_keep())

    # Memory access by chunks.

    def _on_target(self, memory_command: str, address: int | None = None) -> str:
        command = f"{self._prefix()}{memory_command}"
        try:
            return self._evaluate(command, address)
        except OpenOcdRefused as refused:
            if address is None:
                raise
            return self._otherwise(command, refused, address)

    def _prefix(self) -> str:
        return f"{self.target} " if self.target else ""

    def _otherwise(self, command: str, refused: OpenOcdRefused, address: int) -> str:
        """Return the answer by another way to memory, if there is one that OpenOCD was not allowed to use.

        Raises OpenOcdTooOld, and OpenOcdRefused with what was found out.
        """
        seen = self._seen(address)
        if seen.disabled and self.target not in self._widened:
            self._widened.add(self.target)
            with suppress(OpenOcdRefused):
                answer = self._by_all_ways(command, seen)
                self.notes.append(
                    f"OpenOCD could not reach {address:#x} by {' or '.join(seen.allowed) or 'any way it was allowed'}:"
                    f" from now on it may also use {', '.join(seen.disabled)} (`{self._prefix()}riscv set_mem_access`)"
                )
                return answer
        raise OpenOcdRefused(command, refused.answer, address, seen) from refused

    def _seen(self, address: int) -> "RefusedAccess":
        """Find out why memory cannot be accessed. Raises OpenOcdTooOld, and errors of the connection."""
        from rvtrace_gdb.transport.openocd.memory_ways import HAS_READ_MEMORY, RefusedAccess, outcomes

        read = f"catch {{{self._prefix()}read_memory {address:#x} 32 1 phys}} _rvtrace_said"
        ways: dict[str, str] = {}
        with suppress(OpenOcdRefused):
            if not self.command(HAS_READ_MEMORY):
                raise OpenOcdTooOld(self.version)
            ways = outcomes(self.command(f"capture {{{read}}}"))
        return RefusedAccess(self.state(), ways)

    def _seen_beside(self, port: int) -> "RefusedAccess | None":
        """Find out why a data port cannot be read, from the first register of its component: reading the port again
        would take a word from it.
        """
        with suppress(OpenOcdError):
            return self._seen(port & -_COMPONENT)
        return None

    def _by_all_ways(self, command: str, seen: "RefusedAccess") -> str:
        """Do *command* with all ways to memory allowed; if that fails, as many as before. Raises OpenOcdRefused."""
        from rvtrace_gdb.transport.openocd.memory_ways import WAYS

        allow = f"{self._prefix()}riscv set_mem_access"
        self.command(f"{allow} {' '.join([*seen.allowed, *(way for way in WAYS if way not in seen.allowed)])}")
        try:
            return self._evaluate(command, None)
        except OpenOcdRefused:
            if seen.allowed:
                self.command(f"{allow} {' '.join(seen.allowed)}")
            raise

    def _read_words(self, address: int, count: int) -> list[int]:
        answer = self._on_target(f"read_memory {address:#x} 32 {count} phys", address)
        return _parsed_words(answer, count, address)

    def _read_repeatedly(self, address: int, count: int) -> list[int]:
        """Read the same word repeatedly. Each read advances the port, so words read before an error are kept in it."""
        from rvtrace_gdb.transport.openocd import data_port  # only for a sink with a memory of its own

        read = f"{self._prefix()}read_memory {address:#x} 32 1 phys"
        answer = self.command(data_port.single_reads(read, count))
        read_words, _, error = answer.partition("\n")
        if error:
            refused = OpenOcdRefused(read, error, address, self._seen_beside(address))
            refused.partial = _pack(_parsed_words(read_words, len(read_words.split()), address))
            raise refused
        return _parsed_words(read_words, count, address)

    def _read_in_chunks(
        self, read: Callable[[int, int], list[int]], words: int, progress: Progress, label: str
    ) -> bytes:
        data = bytearray()
        chunk = CHUNK_WORDS.start
        try:
            while len(data) < 4 * words:
                progress(label, len(data), 4 * words)
                began = time.monotonic()
                data += _pack(read(len(data), min(chunk, words - len(data) // 4)))
                chunk = _next_chunk(chunk, time.monotonic() - began)
        except Cancelled as error:
            error.partial = bytes(data)
            raise
        except OpenOcdError as error:
            error.partial, error.requested = bytes(data) + error.partial, 4 * words
            raise
        progress(label, len(data), 4 * words)
        return bytes(data)

    # The protocol.

    def _evaluate(self, tcl: str, address: int | None) -> str:
        self._keep_unpolled()
        connection = self._connected()  # first: it finds out how a result is best returned
        wrapped = f'set _rvtrace_code [catch {{{tcl}}} _rvtrace]; {self._return} "$_rvtrace_code $_rvtrace"'
        answer = self._exchange_request(connection, wrapped)
        code, _, result = answer.partition(" ")
        if code == "0":
            return result
        from rvtrace_gdb.transport.openocd.memory_ways import is_missing

        if is_missing(result):
            raise OpenOcdTooOld(self.version)
        # No code in front: the wrapping itself was not good Tcl, because of unbalanced braces in the command.
        raise OpenOcdRefused(tcl, result if re.fullmatch(r"-?\d+", code) else answer, address)

    def _exchange_request(self, connection: socket.socket, request: str) -> str:
        answered = False
        try:
            connection.sendall(request.encode() + END)
            answer = self._receive(connection)
            answered = True
        except TimeoutError as error:
            raise OpenOcdTimeout(self.host, self.port, self.timeout) from error
        except OSError as error:
            raise OpenOcdLost(self.host, self.port) from error
        finally:
            if not answered:  # a late answer must not be taken for the next one
                self.close()
        return answer

    def _receive(self, connection: socket.socket, expected: bytes = b"") -> str:
        """Return everything up to the end mark. *expected*: how an answer must begin, else NotOpenOcd is raised. Raises
        OSError.
        """
        deadline = time.monotonic() + self.timeout
        answer = bytearray()
        while not answer.endswith(END):
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            data = connection.recv(1 << 16)
            answer += data
            seen = min(len(answer), len(expected))
            if answer[:seen] != expected[:seen] or (expected and not data):
                raise NotOpenOcd(self.host, self.port, bytes(answer))
            if not data:
                raise ConnectionResetError
        return answer[:-1].decode(errors="replace")

    def _connected(self) -> socket.socket:
        if self._socket is not None and self._is_stale(self._socket):
            self.close()
        if self._socket is None:
            self._socket = self._connect()
        return self._socket

    @staticmethod
    def _is_stale(connection: socket.socket) -> bool:
        """Return whether OpenOCD has closed the connection: nothing else makes it readable while no request is pending.
        """
        return bool(select.select([connection], [], [], 0)[0])

    def _connect(self) -> socket.socket:
        try:
            return self._connect_and_greet()
        except NotOpenOcd as error:
            if error.answer != END or self._return == RETURN:
                raise
        self._return = RETURN
        return self._connect_and_greet()

    def _connect_and_greet(self) -> socket.socket:
        try:
            connection = socket.create_connection((self.host, self.port), self.timeout)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and is_refusal(error):
                raise  # it is not OpenOCD that is missing
            raise OpenOcdAbsent(self.host, self.port, open_problem(error)) from error
        types = "foreach _rvtrace_of $_rvtrace {lappend _rvtrace_types [$_rvtrace_of cget -type]}"
        hello = (
            f"catch {{target names}} _rvtrace; set _rvtrace_types {{}}; catch {{{types}}}; "
            f'{self._return} "rvtrace\n[version]\n$_rvtrace\n$_rvtrace_types"'
        )
        greeted = False
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(hello.encode() + END)
            self._greet(self._receive(connection, GREETING))
            greeted = True
        except TimeoutError as error:
            raise OpenOcdTimeout(self.host, self.port, self.timeout) from error
        except OSError as error:
            raise NotOpenOcd(self.host, self.port, b"") from error
        finally:
            if not greeted:
                connection.close()
        return connection

    def _greet(self, answer: str) -> None:
        _, self.version, targets, *types = answer.split("\n", 3)
        self.targets = tuple(targets.split())
        self.types = tuple(" ".join(types).split())
        if self.target is not None and self.target not in self.targets:
            raise NoSuchTarget(self.target, self.targets)


def _keep() -> str:
    """Return Tcl that makes OpenOCD poll again after UNPOLLED_MS. An OpenOCD without `after` ignores it."""
    again = f"set _rvtrace_after [after {UNPOLLED_MS} {{poll on}}]"
    return f"catch {{after cancel $_rvtrace_after}}; catch {{{again}}}"


def _next_chunk(words: int, seconds: float) -> int:
    wanted = int(words * CHUNK_SECONDS / max(seconds, 0.001))
    return max(CHUNK_WORDS.start, min(wanted, 4 * words, CHUNK_WORDS.stop))


def _parsed_words(answer: str, count: int, address: int) -> list[int]:
    words = []
    with suppress(ValueError):
        words = [int(word, 16) for word in answer.split()]
    if len(words) != count:
        raise OpenOcdRefused("read_memory", f"{answer[:60]!r} instead of {count} words", address)
    return words


def _pack(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)
