"""A target behind OpenOCD, which is reached through its Tcl server."""
