# What type checkers read of `import rvtrace`: a module without a folder cannot say that it is typed (PEP 561).
from console.api import Bench as Bench
from console.api_types import CheckFailed as CheckFailed
from console.api_types import Instruction as Instruction
from console.api_types import Latencies as Latencies
from console.api_types import NotReached as NotReached
from console.api_types import Saved as Saved
from console.api_types import TraceEvent as TraceEvent
from console.engine_state import Stop as Stop
from console.engine_trace import TraceState as TraceState
from console.measuring import Latency as Latency
from console.rig import Rig as Rig
from console.rig_qemu import QemuRig as QemuRig
from decode.history import GAP as GAP
from decode.history import Event as Event
from decode.history import EventKind as EventKind
from decode.history import History as History
from decode.image import Image as Image
from session.capture import load as load_capture
from session.capture import save as save_capture
from session.captured import Capture as Capture
from session.context import Context as Context
from session.session import Session as Session
from support.errors import RvtraceError as RvtraceError

__all__ = [
    "GAP",
    "Bench",
    "Capture",
    "CheckFailed",
    "Context",
    "Event",
    "EventKind",
    "History",
    "Image",
    "Instruction",
    "Latencies",
    "Latency",
    "NotReached",
    "QemuRig",
    "Rig",
    "RvtraceError",
    "Saved",
    "Session",
    "Stop",
    "TraceEvent",
    "TraceState",
    "load_capture",
    "save_capture",
]
