"""A target reached over USB: registers and memory on its system bus, its harts, and their registers.

It has what a session needs of a transport (`session.target.link.Link`), so it can replace OpenOCD.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Protocol

from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from rvtrace_gdb.transport.usb.debug_module import DebugModule
from rvtrace_gdb.transport.usb.errors import DebugModuleProblem, NoTcl, UsbError, UsbHartNotHalted, UsbLost
from rvtrace_gdb.transport.usb.hart import AbstractAnswer, AbstractRegister, HartMemory, HartRegisters
from rvtrace_gdb.transport.usb.jtag import Chain, Dtm
from rvtrace_gdb.transport.usb.system_bus import SystemBus, system_bus

CHUNK_WORDS = 1024  # of a long read: some hundredths of a second, so that it can be watched and cancelled
PORT_WORDS = 64  # of a data port, which gives each word once: as many are lost if the adapter goes away


class UsbMemory(Protocol):
    """Memory by physical address: `SystemBus` or `HartMemory`."""

    def read32(self, address: int) -> int: ...

    def write32(self, address: int, value: int) -> None: ...

    def read_words(self, address: int, count: int) -> bytes: ...

    def read_port(self, address: int, count: int) -> bytes: ...


class UsbConnection:
    """The debug module behind an adapter, which several `UsbTarget` may share, also from several threads.

    It is opened by *open_chain* when first used, and again after any failure on the way to it; it is closed when the
    last holder has released it. Connections that may lead to the same adapter need the same *lock*. All methods raise
    UsbError leaves.
    """

    def __init__(self, open_chain: Callable[[], Chain], lock: AbstractContextManager[object] | None = None) -> None:
        self._open_chain = open_chain
        self._lock = RLock() if lock is None else lock
        self._holders: set[int] = set()
        self._harts = 0
        self._module: DebugModule | None = None
        self._bus: SystemBus | None = None
        self._registers: dict[int, HartRegisters] = {}
        self._memories: dict[int, HartMemory] = {}

    @property
    def harts(self) -> int:
        """The number of harts at the last connection; 0 if it was never connected."""
        return self._harts

    @contextmanager
    def use(self, holder: object) -> Iterator[DebugModule]:
        """Give the debug module to one thread at a time. *holder* holds it until `release`."""
        with self._lock:
            kept = False
            self._holders.add(id(holder))
            try:
                yield self._connected()
                kept = True
            except UsbError as error:
                kept = not isinstance(error, UsbLost)
                raise
            finally:
                if not kept:
                    self._disconnect()

    def release(self, holder: object) -> None:
        """Let others use the adapter, if there is no other holder. Harts stay as they are."""
        with self._lock:
            self._holders.discard(id(holder))
            if not self._holders:
                self._disconnect()

    @property
    def bus_address_bits(self) -> int:
        """The address width of the system bus; 0 if there is no usable system bus access. Only inside `use`."""
        return self._bus.address_bits if self._bus is not None else 0

    def yield_device(self, device: str) -> bool:
        """Let another connection with the same lock have the adapter, if it is at *device*; the next use takes it back.
        Return whether it was at *device*.
        """
        with self._lock:
            module = self._module
            if module is None or not module.name.endswith(device):
                return False
            self._disconnect()
            return True

    def memory(self, hart: int) -> UsbMemory:
        """Return the memory through the system bus, or through *hart*. Only inside `use`."""
        if self._bus is not None:
            return self._bus
        if hart not in self._memories:
            self._memories[hart] = HartMemory(self._connected(), hart, self.registers(hart))
        return self._memories[hart]

    def registers(self, hart: int) -> HartRegisters:
        """Return the registers of a hart. Only inside `use`."""
        if hart not in self._registers:
            self._registers[hart] = HartRegisters(self._connected(), hart)
        return self._registers[hart]

    def _connected(self) -> DebugModule:
        if self._module is None:
            chain = self._open_chain()
            try:
                module = DebugModule(Dtm(chain))
                self._bus = system_bus(module.dtm)
            except BaseException:
                chain.close()
                raise
            self._module, self._harts = module, module.harts
        return self._module

    def _disconnect(self) -> None:
        module, self._module = self._module, None
        self._bus = None
        self._registers.clear()
        self._memories.clear()
        if module is not None:
            module.close()


class UsbTarget(Closeable):
    """The harts behind an adapter. It is connected when first used.

    *target*: the name of the hart to use, "hart0" and so on; None: hart 0. All methods raise UsbError leaves.
    """

    def __init__(self, connection: UsbConnection) -> None:
        self._connection = connection
        self.target: str | None = None

    def close(self) -> None:
        """Let others use the adapter. Harts stay as they are."""
        self._connection.release(self)

    # What a Target of controlregs has.

    def read32(self, address: int) -> int:
        """Return the word at the physical *address*. AccessRefused carries the address."""
        with self._used():
            return self._hart_memory().read32(address)

    def write32(self, address: int, value: int) -> None:
        """Store *value* at the physical *address*."""
        with self._used():
            self._hart_memory().write32(address, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """Return *nbytes* of physical memory (whole words).

        An error carries the bytes read before it as `partial`. After Cancelled the connection can still be used.
        """
        if (address | nbytes) % 4:
            raise ValueError(f"not whole words: {nbytes} bytes at {address:#x}")
        return self._in_chunks(
            lambda done, words: self._hart_memory().read_words(address + done, words),
            nbytes // 4,
            progress,
            "reading memory",
            CHUNK_WORDS,
        )

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        """Return *words* single reads of the same *address*. Raises the errors of `read_block`."""
        return self._in_chunks(
            lambda _done, part: self._hart_memory().read_port(address, part),
            words,
            progress,
            "reading data port",
            PORT_WORDS,
        )

    # What else can be asked.

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the names of the harts, once they are known."""
        return tuple(f"hart{n}" for n in range(self._connection.harts))

    def state(self, hart: int | None = None) -> str:
        """Return "running", "halted", "unavailable", "nonexistent" or "unknown"."""
        with self._used() as module:
            return module.state(self._target_hart(hart))

    def description(self) -> str:
        """Return a description of the adapter and the debug module."""
        with self._used() as module:
            words = [f"debug module {module.version}", f"{module.harts} hart{'s' if module.harts > 1 else ''}"]
            bits = self._connection.bus_address_bits
            words += [f"system bus access with {bits} address bits" if bits else "no system bus access"]
            words += [f"{module.progbufsize} words of program buffer"]
            return f"{module.name}: {', '.join(words)}"

    def idcode(self) -> int:
        """Return the IDCODE of the TAP, 0 if it has none."""
        with self._used() as module:
            return module.dtm.idcode()

    def halted(self) -> bool:
        return self.state() == "halted"

    def xlen(self) -> int | None:
        """Return the register width of the hart in bits; None while it runs."""
        with self._used():
            try:
                return self._registers_of(self._target_hart()).xlen if self.state() == "halted" else None
            except UsbHartNotHalted:
                return None

    def command(self, tcl: str) -> str:
        """Raise NoTcl, since there is no OpenOCD."""
        raise NoTcl(tcl)

    @contextmanager
    def unpolled(self) -> Iterator[None]:
        """Do nothing: nothing polls the harts here."""
        yield

    # Harts.

    def halt(self, hart: int | None = None) -> None:
        """Halt the hart; do nothing if it is halted."""
        with self._used() as module:
            module.halt(self._target_hart(hart))

    def resume(self, hart: int | None = None) -> None:
        """Resume the hart; do nothing if it runs."""
        with self._used() as module:
            module.resume(self._target_hart(hart))

    def step(self, hart: int | None = None) -> None:
        """Execute one instruction. Raises UsbHartNotHalted."""
        with self._used():
            self._registers_of(self._target_hart(hart)).step()

    def read_gpr(self, number: int, hart: int | None = None) -> int:
        """Return x0 to x31. Raises UsbHartNotHalted."""
        with self._used():
            return self._registers_of(self._target_hart(hart)).read_gpr(number)

    def write_gpr(self, number: int, value: int, hart: int | None = None) -> None:
        with self._used():
            self._registers_of(self._target_hart(hart)).write_gpr(number, value)

    def csrs(self, hart: int | None = None) -> "UsbCsrs":
        """Return the CSRs of a hart, without accessing it yet."""
        return UsbCsrs(self, self._target_hart(hart))

    @contextmanager
    def registers(self, hart: int) -> Iterator[HartRegisters]:
        """Return the registers of a hart inside the context, in which no other user has the adapter."""
        with self._used() as module:
            if hart >= module.harts:
                raise DebugModuleProblem(module.name, f"there is no hart {hart}, there are {module.harts}")
            yield self._registers_of(hart)

    def _used(self) -> AbstractContextManager[DebugModule]:
        return self._connection.use(self)

    def _hart_memory(self) -> UsbMemory:
        return self._connection.memory(self._target_hart())

    def _registers_of(self, hart: int) -> HartRegisters:
        return self._connection.registers(hart)

    def _target_hart(self, hart: int | None = None) -> int:
        if hart is not None:
            return hart
        return int(self.target.removeprefix("hart")) if self.target else 0

    def _in_chunks(
        self, read: Callable[[int, int], bytes], words: int, progress: Progress, label: str, at_once: int
    ) -> bytes:
        data = bytearray()
        try:
            while len(data) < 4 * words:
                progress(label, len(data), 4 * words)
                with self._used():
                    data += read(len(data), min(at_once, words - len(data) // 4))
        except Cancelled as error:
            error.partial = bytes(data)
            raise
        except UsbError as error:
            error.partial, error.requested = bytes(data) + error.partial, 4 * words
            raise
        progress(label, len(data), 4 * words)
        return bytes(data)


class UsbCsrs:
    """The CSRs of one hart, with the methods of `controlregs.target.CsrAccess`, but raising UsbHartNotHalted."""

    def __init__(self, target: UsbTarget, hart: int) -> None:
        self._target, self._hart = target, hart
        self.name = f"hart {hart}"

    @property
    def xlen(self) -> int:
        with self._target.registers(self._hart) as registers:
            return registers.xlen

    def run(
        self, accesses: Sequence[tuple[AbstractRegister, int | None]], progress: Progress = silent
    ) -> list[AbstractAnswer]:
        progress("reading CSRs", 0)
        with self._target.registers(self._hart) as registers:
            return registers.run(accesses)
