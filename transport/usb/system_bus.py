"""Memory and devices through the debug module's system bus access, whether harts run or not. 32-bit accesses only.

A block is streamed: reading sbdata0 returns a word and starts the read of the next. Where each read has an effect (a
data port), sbcs is read between them, so that every word is known to be good, and no read is done that is not wanted.

Ref: RISC-V Debug Specification 1.0, section 3.10 "System Bus Access", sbcs, sbaddress and sbdata in 3.14; 0.13.2.
"""

import struct
import time
from collections.abc import Sequence

from rvtrace_gdb.transport.system_bus import (
    CLEAR,
    SBACCESS32,
    SBADDRESS0,
    SBADDRESS1,
    SBAUTOINCREMENT,
    SBBUSY,
    SBBUSYERROR,
    SBCS,
    SBDATA0,
    SBERROR,
    SBREADONADDR,
    SBREADONDATA,
    address_bits,
)
from rvtrace_gdb.transport.usb.errors import AccessRefused, DebugModuleProblem
from rvtrace_gdb.transport.usb.jtag import MAX_IDLE, DmiAccess, Dtm

PATIENCE = 2.0  # seconds for one bus access
ATTEMPTS = 6  # to stream a block, each time more slowly; in a row that bring no word
_WHY = {
    1: "the bus did not answer in time",
    2: "bad address: nothing answers there",
    3: "alignment",
    4: "size not supported",
    7: "bus error",
}


class SystemBus:
    """The system bus. All methods raise AccessRefused, with the words before it as `partial`, and UsbError leaves."""

    def __init__(self, dtm: Dtm, sbcs: int) -> None:
        self._dtm, self.name = dtm, dtm.name
        self.address_bits = address_bits(sbcs)
        self._streams = True

    def read32(self, address: int) -> int:
        """Read a word by exactly one access."""
        at = self._address_accesses(address)
        *_, before, value, after = self._dtm.run_checked(
            [(SBCS, SBREADONADDR | SBACCESS32 | CLEAR), *at, (SBCS, None), (SBDATA0, None), (SBCS, None)]
        )
        if before & SBBUSY or after & SBBUSYERROR:
            self._finished(address)
            value = self._dtm.read(SBDATA0)
        elif after & SBERROR:
            raise self._refused(address, after)
        return value

    def write32(self, address: int, value: int) -> None:
        """Write a word by exactly one access."""
        at = self._address_accesses(address)
        *_, after = self._dtm.run_checked([(SBCS, SBACCESS32 | CLEAR), *at, (SBDATA0, value), (SBCS, None)])
        if after & SBBUSY:
            self._finished(address)
        elif after & SBERROR:
            raise self._refused(address, after)

    def read_words(self, address: int, count: int) -> bytes:
        """Return *count* words of memory, which may be read repeatedly."""
        idle = self._dtm.idle
        for _ in range(ATTEMPTS if self._streams else 0):
            words, last = self._stream(address, count)
            if not last & (SBBUSYERROR | SBERROR):
                return _packed(words)
            self._finished(address, refuse=False)
            if not last & SBBUSYERROR:
                return self._one_by_one(address, count)
            self._dtm.idle = min(2 * self._dtm.idle + 1, MAX_IDLE)
        self._streams, self._dtm.idle = False, idle  # it is not a matter of time
        return self._read_checked(address, count, SBAUTOINCREMENT)

    def read_port(self, address: int, count: int) -> bytes:
        """Return the same word *count* times, by exactly as many accesses."""
        return self._read_checked(address, count, 0)

    def _read_checked(self, address: int, count: int, increment: int) -> bytes:
        """Read words and check sbcs after each of them, so that none is read twice, or lost."""
        mode = SBREADONADDR | SBACCESS32 | SBREADONDATA | increment
        accesses: list[DmiAccess] = [(SBCS, mode | CLEAR), *self._address_accesses(address), (SBCS, None)]
        answers = self._dtm.run_checked([*accesses, *[(SBDATA0, None), (SBCS, None)] * (count - 1)])
        words, status = self._good(answers[len(accesses) - 1 :])
        at_once = 2 * len(words) + 1
        in_vain = 0
        while in_vain < ATTEMPTS:
            at = address + 4 * len(words) if increment else address
            if status & (SBBUSY | SBBUSYERROR):
                self._finished(at, partial=words)
            elif status & SBERROR:
                raise self._refused(at, status, words)
            if len(words) == count - 1:
                return _packed([*words, self._last_word()])
            rest = [(SBDATA0, None), (SBCS, None)] * min(count - 1 - len(words), at_once)
            more, status = self._good([0, *self._dtm.run_checked(rest)])
            words += more
            at_once = 2 * len(more) + 1
            in_vain = 0 if more else in_vain + 1
        error = DebugModuleProblem(self.name, "the system bus is never free: reset the target")
        error.partial = _packed(words)
        raise error

    def _stream(self, address: int, count: int) -> tuple[list[int], int]:
        """Return the words, and sbcs: they are good if it shows no error."""
        mode = SBREADONADDR | SBACCESS32 | SBAUTOINCREMENT | SBREADONDATA
        begin: list[DmiAccess] = [(SBCS, mode | CLEAR), *self._address_accesses(address)]
        answers = self._dtm.run_checked([*begin, *[(SBDATA0, None)] * (count - 1), (SBCS, None)])
        words, status = answers[len(begin) : -1], answers[-1]
        if status & SBBUSY and not status & SBBUSYERROR:
            status = self._waited()
        if not status & CLEAR:
            words.append(self._last_word())
        return words, status

    def _last_word(self) -> int:
        """Return the word that was read already, without reading another. The bus is not busy."""
        return self._dtm.run_checked([(SBCS, SBACCESS32), (SBDATA0, None)])[1]

    def _good(self, answers: Sequence[int]) -> tuple[list[int], int]:
        """Return the words that are sure to be good, and the sbcs after them, given sbcs, word, sbcs, word, ... sbcs.

        A word that had arrived before it was read is good, and so is a late one that caused no error.
        """
        words: list[int] = []
        status = answers[0]
        for word, after in zip(answers[1::2], answers[2::2], strict=True):
            if status & CLEAR or after & SBBUSYERROR or (status & SBBUSY and after & SBERROR):
                return words, status & ~SBBUSY | after & (SBBUSY | CLEAR)
            words.append(word)
            status = after
        return words, status

    def _one_by_one(self, address: int, count: int) -> bytes:
        """Read word by word, to find the one that is refused."""
        words: list[int] = []
        for n in range(count):
            try:
                words.append(self.read32(address + 4 * n))
            except AccessRefused as error:
                error.partial = _packed(words)
                raise
        return _packed(words)

    def _address_accesses(self, address: int) -> list[DmiAccess]:
        """Return accesses that set the address registers; the lowest word comes last, which may start a read."""
        high: list[DmiAccess] = [(SBADDRESS1, address >> 32)] if self.address_bits > 32 else []
        if not high and address >> 32:
            raise AccessRefused(self.name, address, f"the system bus has {self.address_bits} address bits")
        return [*high, (SBADDRESS0, address & 0xFFFFFFFF)]

    def _waited(self) -> int:
        """Wait until the bus is no longer busy, and return sbcs."""
        deadline = time.monotonic() + PATIENCE
        while (status := self._dtm.read(SBCS)) & SBBUSY:
            if time.monotonic() > deadline:
                raise DebugModuleProblem(
                    self.name, f"the system bus is busy for more than {PATIENCE:g} s: reset the target"
                )
        return status

    def _finished(self, address: int, *, refuse: bool = True, partial: Sequence[int] = ()) -> None:
        """Wait for the access in progress, and clear the error for having disturbed it: its result stays."""
        status = self._waited()
        if status & SBBUSYERROR:
            self._dtm.write(SBCS, status & (SBACCESS32 | SBREADONDATA | SBAUTOINCREMENT | SBREADONADDR) | SBBUSYERROR)
        if refuse and status & SBERROR:
            raise self._refused(address, status, partial)

    def _refused(self, address: int, sbcs: int, words: Sequence[int] = ()) -> AccessRefused:
        self._dtm.write(SBCS, SBACCESS32 | CLEAR)
        code = (sbcs & SBERROR) >> 12
        error = AccessRefused(self.name, address, _WHY.get(code, f"sberror {code}"))
        error.partial = _packed(words)
        return error


def system_bus(dtm: Dtm) -> SystemBus | None:
    """Return the system bus access of the debug module; None if it cannot be used."""
    sbcs = dtm.read(SBCS)
    return SystemBus(dtm, sbcs) if address_bits(sbcs) else None


def _packed(words: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)
