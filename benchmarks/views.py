"""How long reports of long traces take, and how much memory.

Run: python benchmarks/views.py [MILLION_INSTRUCTIONS]     (Linux)

The programs of benchmarks/programs run on the simulated hart (default: 100 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/long_runs.py: N-Trace without and with a
timestamp in each message, and E-Trace. `rvtrace report` reads each trace in a process of its own: seconds of CPU time
from its start to its end, how many million instructions that are in a second, and the most memory that it has. Then the
parts, in milliseconds of CPU time: decoding, the calls, the profile, and its rows; and how many times as long as
decoding the calls, the profile and the rows take.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

if len(sys.argv) < 2:
    sys.argv.append("100")

from long_runs import SETTINGS, cpu_seconds, encoded
from memory import status

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import ContextImages, Image
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.session.queries.reports import ReportChoice, reports

WANTED = {
    "HTM": ["--ntrace"],
    "HTM, times": ["--ntrace", "--timestamps"],
    "E-Trace": ["--etrace", "--iaddress-width", "64", "--ecause-width", "5"],
}
"""The settings, and the options with which their bytes are read."""
WITHIN, MILLIONS = 20, 100
"""A report of so many million instructions takes at most so many seconds."""


def main() -> int:
    missed = False
    heads = f"{'Minstr':>8}{'MB':>8}{'s':>8}{'Minstr/s':>10}{'most MB':>9}"
    print(f"{'':22}{heads}{'decode':>9}{'calls':>9}{'profile':>9}{'rows':>7}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            for setting, items, elf in encoded(Path(folder), program):
                if setting.name not in WANTED:
                    continue
                trace = Path(folder) / "trace.bin"
                trace.write_bytes(b"".join(setting.encode(items)))
                missed |= measure(f"{program}, {setting.name}", setting.name, trace, elf)
    return int(missed)


def measure(shown: str, name: str, trace: Path, elf: Path) -> bool:
    """One line; return whether it took too long."""
    command = [sys.executable, __file__, "--child", "report", str(trace), "--elf", str(elf), "--json", "--quiet"]
    with subprocess.Popen([*command, *WANTED[name]], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        report, memory = map(json.loads, process.stdout.read().splitlines())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, millions = used.ru_utime + used.ru_stime, report["instructions"] / 1e6
    figures = f"{millions:8.1f}{trace.stat().st_size / 1e6:8.1f}{seconds:8.2f}{millions / seconds:10.1f}"
    print(f"{shown:22}{figures}{memory:9.0f}{parts(name, trace, elf)}", flush=True)
    return bool(seconds > WITHIN * max(millions, 1) / MILLIONS)


def parts(name: str, trace: Path, elf: Path) -> str:
    """Return milliseconds of the parts of the work, and a ratio."""
    image, histories, calls, profiles = Image.from_elf(elf), list[History](), list[CallHistory](), list[Profile]()
    setting = next(setting for setting in SETTINGS if setting.name == name)

    def decode() -> None:
        decoder = setting.decoder(image, None)
        decoder.feed(trace.read_bytes())
        histories.append(decoder.finish_one())

    spent = [
        cpu_seconds(decode),
        cpu_seconds(lambda: calls.append(CallHistory(histories[0], ContextImages(image)))),
        cpu_seconds(lambda: profiles.append(hart_profile(calls[0]))),
        cpu_seconds(lambda: reports(profiles, ReportChoice())),
    ]
    milliseconds = [f"{1e3 * part:9.0f}" for part in spent[:3]]
    return f"{''.join(milliseconds)}{1e3 * spent[3]:7.0f}{sum(spent[1:]) / spent[0]:7.2f}"


def child() -> None:
    """Run a command, and say how much memory this process has had: the system counts that of its parent in, too."""
    from rvtrace_gdb.console.main import main as rvtrace

    assert rvtrace(sys.argv[2:]) == 0
    print(status("VmHWM"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child()
    else:
        sys.exit(main())
