"""Running the real gdb-multiarch in tests."""

import os
import subprocess
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent.parent
SOURCE = f"source {HOME / 'rvtrace.py'}"


def gdb_environ(**more: str) -> dict[str, str]:
    """The environment for gdb: none of the variables that would point it to another rvtrace or target."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("RVTRACE_") and k != "VIRTUAL_ENV"}
    return {**keep, "TERM": "dumb", "LC_ALL": "C.UTF-8", **more}


def run_gdb(elf: Path | None, commands: list[str], **environ: str) -> dict[str, str]:
    """What each command printed (both streams), in a gdb that goes on after errors: {command: output}.

    A command given twice has its last output under its own text; use distinct spellings to tell them apart.
    """
    words = ["gdb-multiarch", "-q", "-nx", "-batch"] + ([str(elf)] if elf else [])
    for command in ["set height 0", "set width 0", "set confirm off", *commands]:
        words += ["-ex", f"echo \\n\x01{command}\x02\\n", "-ex", command]
    words += ["-ex", "echo \\n\x01end\x02\\n"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
        env=gdb_environ(**environ), check=False,
    )  # fmt: skip
    text = done.stdout.decode(errors="replace")
    assert "\x01end\x02" in text, f"gdb ended early ({done.returncode}): {text[-2000:]}"
    outputs: dict[str, str] = {}
    for part in text.split("\n\x01")[1:]:
        command, _, output = part.partition("\x02\n")
        outputs[command] = output
    return outputs
