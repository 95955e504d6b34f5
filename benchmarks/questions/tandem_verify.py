"""How fast a tandem trace is verified with each model. Run: python -m benchmarks.questions.tandem_verify [GROUPS]

The traces of real cores, repeated to the given number of groups (default 100,000). With Spike both ways: told ahead
what the steps do (`session.verify.model.PipelinedModel`), and asked for each step; what is found has to be the same.
Elapsed time, because the model is another process, of both ways within one run: the ratio says more than they do. The
CPU time for each group of this process and of Spike's does not depend on what else the machine does as much; whichever
is more is what a machine with two free cores needs. "alone" is Spike without any of this: as many steps of the program,
128 at a time, whose log is thrown away (nan: without its devices the program only traps).
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.tandem import DATA, TRACES
from rvtrace_gdb.console.models import ModelOptions, open_model
from rvtrace_gdb.console.models.spike import Spike
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.decode.tandem.trace import TraceGroups
from rvtrace_gdb.session.verify.masks import foreign_code, masks_of, pages
from rvtrace_gdb.session.verify.model import Model
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions

_OPERATIONS = ("read_register", "write_register", "read_memory", "write_memory", "step", "reset")


def asked(model: Model) -> Model:
    """A model that is asked for each step."""
    return cast(Model, SimpleNamespace(**{name: getattr(model, name) for name in _OPERATIONS}))


def itself(model: Model) -> Model:
    return model


def main() -> None:
    groups = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    print(f"verifying, {groups} groups each (groups a second; CPU time told ahead, microseconds a group)")
    print(f"{'trace':22}{'model':12}{'ahead':>9}{'asked':>9}{'ratio':>8}{'ours':>8}{'Spike':>8}{'alone':>8}")
    for name, parameters in TRACES.items():
        once = (DATA / "tandem" / f"{name}.tvt").read_bytes()
        elf = DATA / "riscv-tests" / name.partition("_")[2]
        repeated = once * max(1, groups // len(TraceGroups.from_bytes(once, parameters)))
        tandem = decode(repeated, Image.from_elf(elf), parameters)  # which puts what ran into the image
        image = Image.from_elf(elf)
        print(f"{name:22}{'spike':12}{measured('spike', tandem, image, parameters)}")
        if parameters.xlen == 32:  # the simulated hart has no S mode
            print(f"{name:22}{'simulated':12}{measured('simulated', tandem, image, parameters)}")


def measured(kind: str, tandem: DecodedTandem, image: Image, parameters: TandemParameters) -> str:
    """Each way has a model of its own: a reset leaves memory as it is."""
    code, groups = foreign_code(tandem, image), len(tandem.trace)
    rates, found, spent = [], [], ""
    for way in (itself, asked) if kind == "spike" else (itself,):
        model = open_model(kind, image, parameters, ModelOptions(memory=tuple(pages(code))))
        try:
            verifier = Verifier(tandem, way(model), VerifyOptions(masks_of([])), image, code)
            other = cpu_time(model.pid) if isinstance(model, Spike) else 0.0
            begin, own = time.perf_counter(), time.process_time()
            divergences = list(verifier.run())
            rates.append(groups / (time.perf_counter() - begin))
            if isinstance(model, Spike) and way is itself:
                own, other = time.process_time() - own, cpu_time(model.pid) - other
                each = own / groups * 1e6, other / groups * 1e6, alone(model, code)
                spent = "".join(f"{one:8.2f}" for one in each)
            found.append((divergences, asdict(verifier.counts)))
        finally:
            model.close()
    assert all(one == found[0] for one in found)
    ratio = f"{rates[1]:9.0f}{rates[0] / rates[1]:8.1f}" if len(rates) > 1 else ""
    return f"{rates[0]:9.0f}{ratio}{spent}"


def cpu_time(pid: int) -> float:
    """Seconds that a process has run, system calls included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_ALONE = """
import json, sys, time
from rvtrace_gdb.console.spike_worker.machine import SpikeMachine
machine = SpikeMachine(json.load(sys.stdin), memoryview(bytearray(8)).cast("Q"))
spent = []
for _ in range(5):
    machine.reset()
    machine._executed()
    steps, begin = 0, time.process_time()
    for _ in range(100):
        machine._core.step(128)  # fewer at a trap
        steps += machine._log.take().count(b"\\n")
    spent.append((time.process_time() - begin) / steps if steps > 6400 else float("nan"))
print(min(spent) * 1e6)
"""


def alone(model: Spike, code: Sequence[tuple[int, bytes]]) -> float:
    """Microseconds a step that Spike takes by itself, its log included. *code*: beside the program's."""
    settings = model.settings
    settings["program"] += [(at, data.hex()) for at, data in code]
    command, told = [sys.executable, "-c", _ALONE], json.dumps(settings)
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
