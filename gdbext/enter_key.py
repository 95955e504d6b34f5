"""Whether Enter repeated a command: gdb runs it again with the argument of the last time, and does not say so."""

from __future__ import annotations

from rvtrace_gdb.gdbext import neutral, screen


class EnterKey:
    """Tells, for one command, a repetition by Enter from the same command typed again.

    gdb adds to its list of commands what is typed, and not what Enter repeats. Where gdb keeps no such list (a pipe, a
    file of commands, an IDE), every command counts as typed.
    """

    def __init__(self) -> None:
        self._typed: tuple[str, str | None] = "", None

    def repeats(self, argument: str, from_tty: bool) -> bool:
        """Return whether Enter repeated the command. To be called once in each `invoke`."""
        before, self._typed = self._typed, (argument, _last_command() if from_tty else None)
        return self._typed[1] is not None and self._typed == before

    def forget(self) -> None:
        """Take the next invocation as typed: this one has failed."""
        self._typed = "", None


class RepeatedAnswer:
    """The part of a command whose answer is there as a whole, and whose next rows Enter shows. *_most*: rows at a time,
    0: all; *_shown*: so many were shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._enter = EnterKey()
        self._shown = self._most = 0

    def invoke(self, argument: str, from_tty: bool) -> None:
        if self._enter.repeats(argument, from_tty):
            self._show_more()
            return
        try:
            self._show_answer(argument)
        except BaseException:
            self._enter.forget()
            raise

    def _show_answer(self, argument: str) -> None:
        """Ask, and show the first rows. Raises gdb.GdbError."""
        raise NotImplementedError

    def _show_more(self) -> None:
        """Show the next rows."""
        raise NotImplementedError


def is_available(from_tty: bool) -> bool:
    """Return whether Enter repeats the command that runs. *from_tty*: as `invoke` has it."""
    return from_tty and (bool(screen.CONSOLE) or _last_command() is not None)


def _last_command() -> str | None:
    """Return the last command in gdb's list of commands, with its number; None if gdb keeps none."""
    lines = neutral.printed("show commands").splitlines()
    return lines[-1] if lines else None
