"""Access to a target, its memory and the CSRs of its harts: through OpenOCD, a USB adapter, or gdb."""
