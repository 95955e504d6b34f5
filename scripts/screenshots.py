"""The pictures in docs/images: sessions of the real gdb, in a real terminal, on the simulated target; and the page of
a report, in Chromium.

`python scripts/screenshots.py [NAME ...]` makes them all, or some. Needs what `make test` needs, and port 3333.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import demo
from screenshot_svg import picture

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.capture import file
from rvtrace_gdb.support.errors import RvtraceError
from tests.helpers.chromium import chromium
from tests.terminal import Terminal

IMAGES = demo.HOME / "docs" / "images"
CAPTURE = demo.BUILD / "damaged.rvt"
PAGE = "report"
HOLE = slice(480, 520)  # bytes of the trace that are destroyed in CAPTURE

QUIET = ["set confirm off", "set pagination off", "set tui active-border-mode normal"]
LOAD = ["source rvtrace.py"]
START = [*LOAD, "trace connect", "trace start", "break finish", "continue"]
OPEN = [*LOAD, f"trace open {CAPTURE.relative_to(demo.HOME)}", "trace replay"]


class Shot(NamedTuple):
    """A picture. *before* is typed, too, but then the screen is cleared.

    *keys*: pressed at the end, until *shows* is seen. *console*: in `rvtrace console`, else in gdb. *tandem*: the hart
    sends a tandem trace.
    """

    title: str
    columns: int
    rows: int
    before: list[str]
    typed: list[str]
    keys: str = ""
    shows: str = ""
    console: bool = False
    tandem: bool = False


SHOTS = {
    "history": Shot("rvtrace: what ran", 106, 48, [], [*START, "trace history", "trace history /s -"]),
    "reverse": Shot(
        "rvtrace: backward in gdb", 90, 44, START,
        [
            "reverse-finish", "trace goto event trap", "bt", "trace goto fib", "bt", "finish", "reverse-next",
            "trace live",
        ],
    ),
    "tui": Shot(
        "rvtrace: layout trace", 110, 40, [*START, "layout trace"],
        ["trace goto event trap", "reverse-stepi 2"],
    ),
    "tui-up": Shot(
        "rvtrace: layout trace, at a caller", 110, 40, [*START, "layout trace"],
        ["tbreak fib", "reverse-continue", "up"],
    ),
    "tui-loss": Shot(
        "rvtrace: layout trace, where trace was lost", 110, 40, [*OPEN, "layout trace"],
        ["trace gaps", "trace goto 1083"],
    ),
    "tandem": Shot(
        "rvtrace: backward with registers and memory", 106, 46, START,
        [
            "up", "info locals", "down", "watch ticks", "reverse-continue", "bt", "print/x $mcause",
            "trace who-wrote $mcause", "trace who-wrote ticks",
        ],
        tandem=True,
    ),
    "console": Shot(
        "rvtrace console", 106, 34, [],
        [
            "trace start -timestamps", "tbreak finish", "continue", "trace find on_trap", "trace goto fib", "bt",
            "trace live",
        ],
        keys="trace start -t\t", shows="-trigger-control", console=True,
    ),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*SHOTS, PAGE])}; all without")
    names = parser.parse_args().names or [*SHOTS, PAGE]
    os.chdir(demo.HOME)
    IMAGES.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            if name == PAGE:
                (IMAGES / f"{PAGE}.png").write_bytes(page_of_report())
                print(f"docs/images/{PAGE}.png")
                continue
            (IMAGES / f"{name}.svg").write_text(picture(screen_of(SHOTS[name]), SHOTS[name].title))
            print(f"docs/images/{name}.svg")
    except RvtraceError as error:
        print(f"screenshots: {error}", file=sys.stderr)
        return 1
    return 0


def screen_of(shot: Shot) -> str:
    """What is seen at the end of a session, with colours."""
    elf = demo.build()
    if shot.before[: len(OPEN)] == OPEN:
        damage(elf)
    with session(elf, shot) as terminal:
        for command in shot.before:
            enter(terminal, command)
        terminal.press("C-l")
        for command in shot.typed:
            enter(terminal, command)
        terminal.type(shot.keys)
        terminal.wait_for(shot.shows)
        return terminal.screen(colours=True)


class _Rig(Rig):
    """With OpenOCD's usual port, which is what people see."""

    def hold_ports(self, held: ExitStack) -> None:
        """Choose the port for Tcl alone."""
        super().hold_ports(held)
        self.gdb_port = 3333


@contextmanager
def session(elf: Path, shot: Shot) -> Iterator[Terminal]:
    """gdb or the console at its prompt, and a target behind port 3333."""
    if shot.console:
        with console_session(elf, shot) as terminal:
            yield terminal
        return
    options = ["--tandem", str(demo.BUILD / "demo.tvt")] if shot.tandem else []
    rig = _Rig(elf, demo.BUILD, *options)
    words = ["gdb-multiarch", "-q", "-nx", *(word for command in QUIET for word in ("-ex", command))]
    with rig, Terminal([*words, str(elf.relative_to(demo.HOME))], shot.columns, shot.rows, os.environ) as terminal:
        terminal.wait(at_prompt, "prompt")
        yield terminal


@contextmanager
def console_session(elf: Path, shot: Shot) -> Iterator[Terminal]:
    """Without the lines of earlier consoles."""
    words = [sys.executable, "-m", "rvtrace_gdb", "console", "--elf", str(elf.relative_to(demo.HOME)), "--sim", "--nx"]
    environ = {**os.environ, "XDG_STATE_HOME": str(demo.BUILD / "state")}
    with Terminal(words, shot.columns, shot.rows, environ) as terminal:
        terminal.wait(at_prompt, "prompt")
        yield terminal


def enter(terminal: Terminal, command: str) -> None:
    """Type a command and wait until it has done what it does."""
    terminal.enter(command)
    there = "┌─trace: " if command == "layout trace" else f") {command}\n"  # windows clear the screen
    terminal.wait(lambda screen: there in screen and at_prompt(screen), f"prompt after {command}")


def at_prompt(screen: str) -> bool:
    """gdb's, with nothing below; the console's has its status line in the last row."""
    lines = [line.rstrip() for line in screen.rstrip().split("\n")]
    if "(rvtrace)" in screen:
        lines = "\n".join(lines[:-1]).rstrip().split("\n")
    return lines[-1] in ("(gdb)", "(rvtrace)")


def page_of_report() -> bytes:
    """The page of a trace with timer interrupts and a hole, down to the table of calls."""
    demo.BUILD.mkdir(parents=True, exist_ok=True)
    script, whole, broken = (demo.BUILD / name for name in ("page.rvts", "whole.rvt", "latency.rvt"))
    shown, elf = broken.with_suffix(".html"), demo.HOME / "build" / "examples" / "latency.elf"
    subprocess.run(["make", "-s", str(elf.relative_to(demo.HOME))], check=True)
    script.write_text("\n".join(["connect", "load", "break finish", "start -timestamps", "run until finish", "save"]))
    rvtrace("run", "--sim", "--elf", elf, script, "-o", whole)
    dig(whole, slice(3916, 4416), broken)
    rvtrace("report", broken, "--html", shown)
    with chromium() as page:
        page.appearance(1280, 1400)
        page.show(shown)
        return page.picture()


def rvtrace(*words: str | Path) -> None:
    """A command that prints nothing."""
    subprocess.run([sys.executable, "-m", "rvtrace_gdb", *map(str, words), "--quiet"], check=True)


def damage(elf: Path) -> None:
    """A capture of the demo with a hole in it."""
    whole = demo.BUILD / "whole.rvt"
    shot = Shot("", 120, 60, [], [*START, f"trace save {whole}"])
    with session(elf, shot) as terminal:
        for command in shot.typed:
            enter(terminal, command)
    dig(whole, HOLE, CAPTURE)


def dig(whole: Path, hole: slice, broken: Path) -> None:
    """Destroy some bytes of a capture's trace."""
    trace = file.load(whole)
    sink = trace.sinks[0]
    data = bytearray(sink.data)
    data[hole] = bytes(hole.stop - hole.start)
    file.save(dataclasses.replace(trace, sinks=(dataclasses.replace(sink, data=bytes(data)),)), broken)


if __name__ == "__main__":
    sys.exit(main())
