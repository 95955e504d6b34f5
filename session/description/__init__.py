"""The target description: the trace components, their addresses, and the link to the target."""
