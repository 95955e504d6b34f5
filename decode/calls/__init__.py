"""The calls between functions, from the instructions that ran: numbered like gdb's record function-call-history."""
