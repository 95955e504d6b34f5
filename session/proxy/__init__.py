"""The proxy between gdb and the stub, which gives gdb the past of the target."""

from session.proxy.errors import ListenFailed, StubAbsent, StubGone
from session.proxy.extension import Asking, Extension
from session.proxy.proxy import Proxy

__all__ = ["Asking", "Extension", "ListenFailed", "Proxy", "StubAbsent", "StubGone"]
