"""The debugger's side of the simulated target: JTAG, the Debug Module, and run control of the harts."""
