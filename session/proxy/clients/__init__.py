"""What debuggers do beside that, or need: LLDB, its buttons in editors, monitor commands, the program's file."""
