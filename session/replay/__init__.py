"""The past as gdb sees it: the proxy between gdb and its target, and where each hart is in its history."""
