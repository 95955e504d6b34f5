"""Which fields of its registers a simulated trace encoder has, before its protocol and its filters say more."""

from collections.abc import Collection, Mapping

from rvtrace_gdb.transport.simulated import timestamp_unit

MAX_SRC_BITS = 12

OPTIONAL: Mapping[str, int] = {
    "trTeContext": 1,
    "trTeInstTrigEnable": 1,
    "trTeInstNoAddrDiff": 1,
    "trTeInstNoTrapAddr": 1,
    "trTeInstEnSequentialJump": 1,
    "trTeInstEnImplicitReturn": 1,
    "trTeInstEnBranchPrediction": 1,
    "trTeInstEnJumpTargetCache": 1,
    "trTeInstImplicitReturnMode": 3,
    "trTeInstEnRepeatedHistory": 1,
    "trTeInstEnAllJumps": 1,
    "trTeInstExtendAddrMSB": 1,
    "trTeDataTracing": 1,
    "trTeDataNoValue": 1,
    "trTeDataNoAddr": 1,
    "trTeDataAddrCompress": 3,
    **timestamp_unit.IMPLEMENTED,
}
"""Fields an encoder may be built without, and their bits."""
_REQUIRED = {
    "trTeInstMode": 7,
    "trTeInstStallOrOverflow": 1,
    "trTeInhibitSrc": 1,
    "trTeInstSyncMode": 3,
    "trTeInstSyncMax": 15,
    "trTeSrcID": (1 << MAX_SRC_BITS) - 1,
    "trTeSrcBits": 15,
}


def implemented(absent: Collection[str], *, several_formats: bool) -> dict[str, int]:
    """The bits that can be written, by field."""
    optional = {name: bits for name, bits in OPTIONAL.items() if name not in absent}
    return {"trTeFormat": 7 if several_formats else 0} | _REQUIRED | optional
