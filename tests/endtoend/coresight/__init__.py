"""Traces through CoreSight, with real gdb and real OpenOCD."""
