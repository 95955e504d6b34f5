"""The messages only SiFive's encoders send, in words.

What their fields mean is not published: this is what their captures show, and the names their users know.
"""

from rvtrace_gdb.decode.ntrace.items import CONTROL, COUNTERS, INFERABLE_CALL, has_address
from rvtrace_gdb.decode.ntrace.message import Message
from rvtrace_gdb.decode.ntrace.options import Options

_EVENTS = {
    CONTROL: "control",
    8: "external trigger",
    INFERABLE_CALL: "call or return",
    10: "exception",
    11: "interrupt",
    COUNTERS: "performance counters",
    13: "context",
    14: "watchpoint",
    15: "PC sample",
}
"""By CKSRC."""

_CONTROLS = {
    2: "trace on",
    3: "trace off",
    4: "exit from debug mode",
    5: "entry into debug mode",
    6: "exit from reset",
    8: "entry into reset",
}
_DATA_BYTES = {0: 4, 2: 2, 3: 1}  # by the low bits of IDTAG or ADDR: how much the program wrote
_DECIMAL_BITS = 64
_COUNTERS, _COUNTER_BITS = 8, 16


def number(value: int) -> str:
    """In decimal, unless it is absurdly long."""
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


def in_circuit(message: Message, options: Options) -> str:
    """The event; and its number (a trigger's, a cause, a context), which is CKDATA1, or CKDATA0 without an address."""
    fields = message.fields
    if fields["cksrc"] == COUNTERS:
        return f"{_EVENTS[COUNTERS]}: {counters(fields['ckdata0'])}"
    event = _EVENTS.get(fields["cksrc"], f"event {fields['cksrc']}")
    detail = fields.get("ckdata1", None if has_address(message) else fields["ckdata0"])
    if detail is None or fields["cksrc"] == INFERABLE_CALL:
        return event
    if fields["cksrc"] == CONTROL:
        return f"{event}: {_CONTROLS.get(detail) or number(detail)}"
    return f"{event} {number(detail)}"


def counters(value: int) -> str:
    """The counters in CKDATA0, lowest first; those above the last one that is shown are 0, and not sent."""
    count = max(-(-value.bit_length() // _COUNTER_BITS), 1)
    shown = [f"{value >> _COUNTER_BITS * i & (1 << _COUNTER_BITS) - 1:#06x}" for i in range(min(count, _COUNTERS))]
    return " ".join(shown) + (" .." if count > _COUNTERS else "")


def data(message: Message, options: Options) -> str:
    """What the program wrote to which stimulus port and, if it can be one, as text."""
    place, value = message.fields.values()
    port, size = number(place >> 2), _DATA_BYTES.get(place & 3)
    if size is None or value >> 8 * size:
        return f"written to port {port}"
    written = value.to_bytes(size, "little")
    shown = f": {written.decode('ascii')!a}" if written.isascii() and any(written) else ""
    return f"{size} byte{'s' * (size > 1)} written to port {port}{shown}"
