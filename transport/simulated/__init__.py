"""The simulated target of `rvtrace sim`: harts, memory, trace components, and a Debug Module that OpenOCD talks to."""
