"""The ways to a target: OpenOCD, a USB adapter, or gdb; to its memory and to the CSRs of its harts."""
