"""GTKWave, which runs a Tcl script of ours: its primary marker is the cursor.

GTKWave has commands for the marker, and no callback when the user moves it: the script looks at it ten times a second.
Lines go over a connection to the session, which the script opens: `marker TIME` in both directions, and first
`rvtrace TOKEN FILE` from GTKWave.

The script waits for events of Tcl, which GTKWave 3.3 handles when it is started with `--tcl_init` or `--wish`, and not
otherwise; the timer that it has besides, `gtkwave::cbTimerPeriod`, ends when its first callbacks are not there in time.
"""

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory

from rvtrace_gdb.session.exports.timelines.waveforms import SIGNALS
from rvtrace_gdb.session.waves.viewer import ViewerGone, ViewerMessage, ViewerProtocol
from rvtrace_gdb.session.waves.wcp import WaitingLink

PERIOD = 100
"""Milliseconds between two looks at the marker."""

_SCRIPT = """\
# GTKWave follows gdb in the past, and leads it: written by rvtrace, for one session.
namespace eval rvtrace {{
    variable link [socket 127.0.0.1 {port}]
    variable last [gtkwave::getMarker]
    fconfigure $link -blocking 0 -buffering line -encoding utf-8 -translation lf

    proc show {{time}} {{
        variable last
        gtkwave::setMarker $time
        set last [gtkwave::getMarker]
        set start [gtkwave::getWindowStartTime]
        set end [gtkwave::getWindowEndTime]
        if {{$last < $start || $last > $end}} {{
            gtkwave::setWindowStartTime [expr {{max($last - ($end - $start) / 2, [gtkwave::getMinTime])}}]
        }}
    }}
    proc receive {{}} {{
        variable link
        while {{[gets $link line] >= 0}} {{
            if {{[scan $line "marker %lld" time] == 1}} {{ show $time }}
        }}
        if {{[eof $link]}} {{ error "the debugger has ended the connection" }}
    }}
    proc look {{}} {{
        variable link
        variable last
        set marker [gtkwave::getMarker]
        if {{$marker != $last}} {{
            set last $marker
            puts $link "marker $marker"
        }}
        after {period} {{rvtrace::until_the_end rvtrace::look}}
    }}
    proc until_the_end {{work}} {{
        variable link
        if {{[catch $work]}} {{ catch {{ close $link }} }}
    }}
    puts $link "rvtrace {token} [file normalize [gtkwave::getDumpFileName]]"
    fileevent $link readable {{rvtrace::until_the_end rvtrace::receive}}
    look
}}
"""
_WHOLE = "gtkwave::/Time/Zoom/Zoom_Full\n"
_SIGNALS = """\
namespace eval rvtrace {{}}
foreach rvtrace::name {{{names}}} {{
    set rvtrace::found {{}}
    for {{set rvtrace::i 0}} {{$rvtrace::i < [gtkwave::getNumFacs]}} {{incr rvtrace::i}} {{
        set rvtrace::fac [gtkwave::getFacName $rvtrace::i]
        if {{[regexp "^rvtrace\\.hart\\[0-9]+\\.$rvtrace::name\\\\M" $rvtrace::fac]}} {{
            lappend rvtrace::found $rvtrace::fac
        }}
    }}
    gtkwave::addSignalsFromList $rvtrace::found
}}
"""
"""Shows the signals of an export, those of all harts together."""


class Gtkwave(ViewerProtocol):
    """The lines of the script. *token*: what it says first, so that nothing else is taken for it."""

    end = b"\n"

    def __init__(self, token: str) -> None:
        self._token: str | None = token

    def shown(self, time: int) -> bytes:
        return f"marker {time}\n".encode()

    def read(self, data: bytes) -> ViewerMessage:
        word, _, rest = data.decode(errors="surrogateescape").partition(" ")
        if self._token is not None:
            token, _, file = rest.partition(" ")
            if word != "rvtrace" or not secrets.compare_digest(token.encode(errors="replace"), self._token.encode()):
                raise ViewerGone("something else than GTKWave has connected")
            self._token = None
            return ViewerMessage(ready=True, file=file)
        return ViewerMessage(cursor=int(rest)) if word == "marker" and rest.isdecimal() else ViewerMessage()


class GtkwaveLink(WaitingLink):
    """A GTKWave that runs our script: one that is started with a *file*, or one that the user starts with `script`."""

    def __init__(self, file: str | None = None, *, is_export: bool = False) -> None:
        """*is_export*: the file is one of rvtrace, and its signals are shown. Raises ViewerError."""
        super().__init__()
        self.token = secrets.token_hex(16)
        self._folder = TemporaryDirectory(prefix="rvtrace-", ignore_cleanup_errors=True)
        self.script = Path(self._folder.name, "rvtrace.tcl")
        script = _SIGNALS.format(names=" ".join(it.name for it in SIGNALS)) if is_export else ""
        script += "" if file is None else _WHOLE
        script += _SCRIPT.format(port=self.port, period=PERIOD, token=self.token)
        self.script.write_text(script, encoding="utf-8")
        if file is not None:
            self.start(["gtkwave", f"--tcl_init={self.script}", file])

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
