"""Raw N-Trace bytes: both message modes, all dialects, with and without SRC, timestamps and what saves messages."""

from __future__ import annotations

import random
from typing import Any

from rvtrace_gdb.decode.ntrace.options import DIALECTS, ImplicitReturn, InstSyncMode
from rvtrace_gdb.decode.program.context_images import ContextImages
from tests.decode.ntrace.encodings import Case, legal
from tests.fuzz.kinds.trace_checks import Trace, Traces

_CASES = 24
_STEPS = 50  # instructions of each
FIELDS: dict[str, tuple[Any, ...]] = {
    "dialect": ("1.0", *DIALECTS),
    "btm": (False, False, True),
    "sync_mode": (InstSyncMode.MESSAGES,),
    "sync_max": (0, 0, 1, 3),
    "implicit_return": tuple(ImplicitReturn),
    "sequential_jump": (False, True),
    "repeated_history": (False, True),
    "repeat_branch": (False, True),
    "all_jumps": (False, False, True),
    "extend_addr_msb": (False, True),
    "timestamps": (False, True),
    "timestamp_bits": (0, 40),
    "context": (False, True),
    "icnt_limit": (8, 64, 1 << 16),
    "hist_limit": (4, 32),
    "idle_bytes": (0, 0, 1),
    "empty_fields": (False, False, True),
}


class NTrace(Traces):
    """Programs and options by number."""

    def __init__(self) -> None:
        super().__init__({str(number): ntrace_of(number) for number in range(_CASES)})


def ntrace_of(number: int) -> Trace:
    """The trace of a program, both by number."""
    case = _case(number)
    return Trace(case.trace, ContextImages(case.program.image()), case.options, wrapped=number % 4 == 0)


def _case(number: int) -> Case:
    rng = random.Random(number)
    fields: dict[str, Any] = {name: rng.choice(values) for name, values in FIELDS.items()}
    source = (4, rng.randrange(16)) if number % 3 == 0 else (0, 0)
    fields |= {"hist_chunks": (), "icnt_full_sync": False, "linear_sync": None}
    return Case(number, legal(fields), source, steps=_STEPS, trap_rate=0.03, breaks=0.1 if number % 5 == 0 else 0)
