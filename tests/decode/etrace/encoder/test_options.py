"""What no E-Trace encoder can be is refused, by the names of its options."""

from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.encoder.output import privilege
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Parameters, SupportLayout
from rvtrace_gdb.decode.program.csrs import ProgramContext

WRONG: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ({"itype_width": 5}, {}, {}, "itype_width is 3 to 4, not 5"),
    ({"sync_max": -1}, {}, {}, "sync_max is 0 to 31, not -1"),
    ({"hcontext_at": -4}, {}, {}, "hcontext_at is 0 to 63, not -4"),
    ({}, {"iaddress_width": 65}, {}, "iaddress_width is 8 to 64, not 65"),
    ({}, {"privilege_width": 0}, {}, "privilege_width is 1 to 3, not 0"),
    ({}, {"bpred_size": 99}, {}, "bpred_size is 0 to 16, not 99"),
    ({}, {"f0s_width": 7}, {}, "f0s_width is 0 to 3, not 7"),
    ({}, {}, {"implicit_return": True}, "implicit_return needs a return_stack_size or a call_counter_size"),
    ({}, {}, {"branch_prediction": True}, "branch_prediction needs a bpred_size"),
    ({}, {}, {"jump_target_cache": True}, "jump_target_cache needs a cache_size"),
    ({"itype_width": 3}, {"return_stack_size": 1}, {"implicit_return": True}, "implicit_return needs itype_width 4"),
    (
        {},
        {"bpred_size": 3, "cache_size": 3, "f0s_width": 0},
        {"branch_prediction": True, "jump_target_cache": True},
        "need an f0s_width of at least 1",
    ),
    ({"sync_mode": ResyncMode.CYCLES}, {}, {"resync_disabled": True}, "resync_disabled says that sync_mode is off"),
    (
        {"dialect": Dialect.PULP, "support": SupportLayout.PULP},
        {"cache_size": 3},
        {"jump_target_cache": True},
        "packets of dialect pulp have no room for jump_target_cache",
    ),
    ({"dialect": Dialect.PT10}, {}, {}, "dialect pt10 has full addresses only: full_address"),
    ({"support": SupportLayout.STANDARD}, {"time_width": 17}, {}, "time_width 17 does not fit"),
    ({"support": SupportLayout.STANDARD}, {"bpred_size": 9}, {}, "bpred_size 9 does not fit in 3 bits"),
]


@pytest.mark.parametrize(("own", "parameters", "modes", "why"), WRONG, ids=[why for *_, why in WRONG])
def test_what_is_refused(own: dict[str, Any], parameters: dict[str, Any], modes: dict[str, Any], why: str) -> None:
    built, on = replace(Parameters(), **parameters), replace(Modes(), **modes)
    with pytest.raises(ValueError, match=why):
        EncoderOptions(built, on, **own)


def test_the_period() -> None:
    """2**(trTeInstSyncMax + 4)."""
    assert [EncoderOptions(sync_max=n).period for n in (0, 1, 5)] == [16, 32, 512]


def test_privilege_levels() -> None:
    """ "Privilege level encoding": U, S, M, VU, VS. Two bits have no room for guests; one bit tells M from the rest."""
    modes = [
        ProgramContext(0),
        ProgramContext(1),
        ProgramContext(3),
        ProgramContext(0, True),
        ProgramContext(1, True),
        ProgramContext(),
    ]
    assert [privilege(mode, 3) for mode in modes] == [0, 1, 3, 5, 6, 3]
    assert [privilege(mode, 2) for mode in modes] == [0, 1, 3, 0, 1, 3]
    assert [privilege(mode, 1) for mode in (ProgramContext(0), ProgramContext(3))] == [0, 1]
