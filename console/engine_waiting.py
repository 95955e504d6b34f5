"""Waiting for a gdb: until a command is answered, until the program stops; and breaking that off with Ctrl-C."""

import threading
import time
from collections.abc import Callable

from rvtrace_gdb.console.engine_state import Running, Stop
from rvtrace_gdb.console.mi import GdbError, GdbGone, Mi, NoAnswer
from rvtrace_gdb.console.mi_records import Record
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

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

_NOT_RUN = "The program is not being run."
_NOT_CONNECTED = (
    "The program is not being run: gdb has no connection to the target. `trace connect` makes one by OpenOCD; over "
    "USB, without one, `trace usb resume` lets it run (in a script: `gdb trace usb resume`)."
)

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
        self.remembers = False
        """Whether an interrupt that comes between two commands ends the next one; else it came too late."""
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
                self._bear(interrupted)
                self.mi.signal()
        if interrupted and found[0].name == "error":
            self._log = []
            raise Cancelled
        self._wanted = self._wanted or (self.remembers and interrupted > 0)
        self._check(found[0])
        return found[0]

    def _begin(self) -> None:
        """A command begins. Raises Cancelled."""
        if self.remembers:
            self._check_wanted()
        self._wanted = False

    def _bear(self, interrupted: int) -> None:
        """Ctrl-C came so often in vain. Raises GdbGone when that is enough."""
        if interrupted == PATIENCE:
            self.mi.process.kill()
            raise GdbGone(f"gdb did not listen to {PATIENCE} interrupts, and was ended")

    def _check(self, record: Record) -> None:
        if record.name == "error":
            message = str(record.fields.get("msg", "")).strip().removeprefix(_IN_PYTHON)
            self._tell_log(f"{_IN_PYTHON}{message}\n{_RAISED}{message}")
            raise GdbError(_NOT_CONNECTED if message == _NOT_RUN and not self.state.connected else message)

    def _while_running(self, there: Callable[[], bool]) -> None:
        """Wait without limit. Ctrl-C stops the program. Raises GdbGone if that does not help: a probe that is gone."""
        done, interrupted, stops = False, 0, self.state.stops

        def check() -> bool:
            nonlocal done
            done = done or there()
            return done or self._wanted

        while not done:
            self.mi.wait(check)
            if not done:
                interrupted = 1 if self.state.stops > stops else interrupted + 1
                self._wanted, stops = False, self.state.stops
                self._bear(interrupted)
                self._break_off()

    def _break_off(self) -> None:
        """Of a command line gdb listens to signals while the program runs; of some it reads its input."""
        before = self.state.stops

        def stopped() -> bool:
            return not self.state.running or self.state.stops > before

        self.mi.signal()
        if self.mi.wait(stopped, seconds=GENTLE):
            return
        self.mi.forget(self.mi.send("-exec-interrupt"))
        if not self.mi.wait(stopped, seconds=GENTLE):
            self._look()

    def _look(self) -> None:
        """gdb does not report a stop at which the signal met it between two steps of many: it is asked."""
        token = self.mi.send("-thread-info")
        found: list[Record] = []

        def there() -> bool:
            record = self.mi.answered(token)
            if record is not None:
                found.append(record)
            return bool(found)

        self.mi.wait(there, seconds=GENTLE)
        self.mi.forget(token)
        threads = found[0].fields.get("threads", []) if found else []
        if threads and all(thread.get("state") == "stopped" for thread in threads):
            current = str(found[0].fields.get("current-thread-id"))
            self.state.found_stopped(next((it for it in threads if str(it.get("id")) == current), threads[0]))

    def _check_wanted(self) -> None:
        if self._wanted:
            self._wanted = False
            raise Cancelled
