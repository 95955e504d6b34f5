"""What `trace ctr start` asks of a hart: the user's options."""

from collections.abc import Mapping
from typing import Any

from rvtrace_gdb.controlregs.ctr.layout import DEPTHS
from rvtrace_gdb.controlregs.ctr.request import CtrRequest
from rvtrace_gdb.controlregs.ctr.transfers import RECORDABLE, TransferType
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.session.errors import BadOption

_MODES = ("m", "s", "u", "vs", "vu")
_EXTERNAL = ("m", "s", "vs")
_FREEZE = ("breakpoint", "lcofi")
_SWITCHES = ("not_taken", "ras")


def ctr_request(options: Mapping[str, Any]) -> CtrRequest:
    """The request for *options*.

    modes (of m, s, u, vs, vu), inhibit (codes of ctrdata.TYPE), not_taken, depth (entries), ras, freeze (of breakpoint,
    lcofi), external (of m, s, vs), version ("1.0", "0.1.4"); "harts" is not for a request. Raises `BadOption`.
    """
    depth, version = options.get("depth"), options.get("version")
    if depth is not None and depth not in DEPTHS:
        raise BadOption(f"there is no CTR depth {depth}: it is {_listed(DEPTHS)}")
    if version is not None and version not in VERSIONS:
        raise BadOption(f"there is no CTR version {version}: it is {_listed(VERSIONS)}")
    freeze = _some(options, "freeze", _FREEZE)
    inhibit = frozenset(_kind(code) for code in options.get("inhibit") or ())
    return CtrRequest(
        modes=_some(options, "modes", _MODES) or None,
        inhibit=inhibit - {TransferType.NOT_TAKEN_BRANCH},
        depth=depth,
        freeze_breakpoint="breakpoint" in freeze,
        freeze_lcofi="lcofi" in freeze,
        external=_some(options, "external", _EXTERNAL),
        version=version,
        **{name: bool(options.get(name)) for name in _SWITCHES},
    )


def _some(options: Mapping[str, Any], name: str, known: tuple[str, ...]) -> frozenset[str]:
    wanted = options.get(name) or ()
    for word in wanted:
        if word not in known:
            raise BadOption(f"{name}: there is no {word!r}: it is {_listed(known)}")
    return frozenset(wanted)


def _kind(code: Any) -> TransferType:
    if code not in tuple(RECORDABLE):
        raise BadOption(f"there is no kind of transfer with the number {code}")
    return TransferType(code)


def _listed(known: Any) -> str:
    *others, last = map(str, known)
    return f"{', '.join(others)} or {last}"
