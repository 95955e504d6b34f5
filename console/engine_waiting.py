"""Waiting for a gdb: until a command is answered, until the program stops; and breaking that off with Ctrl-C."""

import threading
import time
from collections.abc import Callable

from console.engine_state import Running, Stop
from console.mi import GdbError, GdbGone, Mi, NoAnswer
from console.mi_records import Record
from support.errors import Cancelled, RvtraceError

HALT_SECONDS = 10.0
"""Within this time a program has to stop when it is told to."""
SILENCE = 300.0
"""Seconds without any sign of life after which a script gives gdb up: flash is written in less."""
PATIENCE = 3
"""How often gdb is interrupted before it is ended."""
_GLANCE = 0.5  # seconds between two words of progress
GENTLE = 1.0
"""Seconds in which one way to interrupt the program should have worked."""
# What gdb puts before an error of its own that comes out of a command in Python.
_IN_PYTHON, _RAISED = "Error occurred in Python: ", "Python Exception <class 'gdb.error'>: "

Said = Callable[[str, str], None]
"""Gets text as it comes: its kind (console, target, output: to be shown; log: gdb's warnings and errors), the text."""


class NotStopped(RvtraceError):
    """The program was told to stop and did not."""


class Waiting:
    """What is known of a gdb while it works. *said*: see `Said`."""

    mi: Mi

    def __init__(self, said: Said) -> None:
        self.lock = threading.RLock()
        """Held by who talks to gdb."""
        self.said = said
        self.state = Running()
        self.silence: float | None = SILENCE
        """Seconds without any sign of life after which gdb is given up; None: never."""
        self._wanted = False  # somebody wants to end what is under way
        self._log: list[str] = []

    def await_stop(self, before: int, seconds: float | None) -> Stop | None:
        """The stop after the one with number *before*, awaited; None: not in time. Raises Cancelled, GdbGone."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.state.stops == before:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            turn = _GLANCE if left is None else min(_GLANCE, left)
            self.mi.wait(lambda: self.state.stops > before or self._wanted, seconds=turn)
            self._check_wanted()
            if left is not None and seconds:
                self.mi.progress("waiting for the program (ms)", int(1000 * (seconds - left)), int(1000 * seconds) or 1)
        return self.state.last

    def halt(self) -> Stop:
        """Stop the program. Raises NotStopped, GdbError."""
        before = self.state.stops
        if not self.state.running:
            return self.state.last
        self.mi.forget(self.mi.send("-exec-interrupt"))
        if not self.mi.wait(lambda: self.state.stops > before, seconds=HALT_SECONDS):
            raise NotStopped(f"the program did not stop within {HALT_SECONDS:g} s after it was told to")
        return self.state.last

    def interrupt(self) -> None:
        """End what is under way, soon. May be called at any time, by a signal handler, too."""
        self._wanted = True

    def _tell_log(self, besides: str = "") -> None:
        """What gdb warned of; *besides*: an error it repeats there."""
        log, self._log = self._log, []
        for text in log:
            if text.strip() and text.strip() not in besides:
                self.said("log", text)

    def _awaited(self, token: int, command: str) -> Record:
        """The answer to a command; Ctrl-C meanwhile is gdb's."""
        waited, interrupted = time.monotonic(), 0
        found: list[Record] = []

        def there() -> bool:
            record = self.mi.answered(token)
            if record is not None:
                found.append(record)
            return bool(found) or self._wanted

        while not found:
            if not self.mi.wait(there, silence=self.silence):
                raise NoAnswer(f"gdb, {command}", time.monotonic() - waited)
            if self._wanted and not found:
                self._wanted, interrupted = False, interrupted + 1
                if interrupted == PATIENCE:
                    self.mi.process.kill()
                    raise GdbGone(f"gdb did not listen to {PATIENCE} interrupts, and was ended")
                self.mi.signal()
        if interrupted and found[0].name == "error":
            self._log = []
            raise Cancelled
        self._check(found[0])
        return found[0]

    def _check(self, record: Record) -> None:
        if record.name == "error":
            message = str(record.fields.get("msg", "")).strip().removeprefix(_IN_PYTHON)
            self._tell_log(f"{_IN_PYTHON}{message}\n{_RAISED}{message}")
            raise GdbError(message)

    def _while_running(self, there: Callable[[], bool]) -> None:
        """Wait without limit. Ctrl-C stops the program."""
        done = False

        def check() -> bool:
            nonlocal done
            done = done or there()
            return done or self._wanted

        while not done:
            self.mi.wait(check)
            if not done:
                self._wanted = False
                self._break_off()

    def _break_off(self) -> None:
        """Of a command line gdb listens to signals while the program runs; of some it reads its input."""
        before = self.state.stops
        self.mi.signal()
        if self.state.running and not self.mi.wait(lambda: self.state.stops > before, seconds=GENTLE):
            self.mi.forget(self.mi.send("-exec-interrupt"))

    def _check_wanted(self) -> None:
        if self._wanted:
            self._wanted = False
            raise Cancelled
