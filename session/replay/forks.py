"""The forks of harts. A fork is made at the hart's position, which stays there: going back leaves the fork, and so does
going anywhere else.
"""

from typing import TYPE_CHECKING

from rvtrace_gdb.session.proxy.backend import MovementStop

if TYPE_CHECKING:  # the simulated hart, which few need
    from rvtrace_gdb.session.replay.running_fork import RunningFork


class ReplayForks:
    """The forks by harts. Those of `begin_at` begin when the hart comes to their position."""

    def __init__(self) -> None:
        self._forks: dict[int | None, RunningFork] = {}
        self._next: dict[int | None, RunningFork] = {}

    def fork_of(self, hart: int | None) -> "RunningFork | None":
        """Return the fork of a hart, None without one."""
        return self._forks.get(hart)

    def begin_at(self, hart: int | None, fork: "RunningFork") -> None:
        """Let a fork begin when the hart goes to its position next."""
        self._next[hart] = fork

    def arrived(self, hart: int | None, position: int) -> None:
        """Note that a hart went to a position: it has left its fork, and perhaps begins another one."""
        self._forks.pop(hart, None)
        made = self._next.pop(hart, None)
        if made is not None and made.fork.position == position:
            self._forks[hart] = made

    def leave(self, hart: int | None) -> MovementStop:
        """Leave the fork of a hart, which is where that was made again."""
        left = self._forks.pop(hart)
        return MovementStop(lines=(f"The fork is left: this is number {left.number}, where it was made.",))

    def clear(self) -> None:
        """Leave all forks."""
        self._forks.clear()
        self._next.clear()
