"""The proxy between gdb and its target, through which gdb finds a target with a past.

proxy             waits for gdb: the thread that serves one gdb after another
router            which of gdb's packets go to the target, and which to the past
live_target       the present: packets that pass, and what announces the past to gdb
replay_target     the past as gdb's target; `stepping`: packets that resume there, and where they lead
proxy_state       how packets are answered at the moment, and what is known of the target
backend           what the proxy asks of the past, and extensions that answer more packets: others implement these
calls             calls of other threads, between two packets of gdb
caretaker         a process that ends gdb's connection at a safe moment when this one is killed
connection        the connection of gdb to the stub
protocol          what packets mean, and bytes, sockets, escapes, checksums (`packets`, `wire`); the target
                  description that gdb reads (`target_xml`; `register_numbers`: registers by number); conditions
clients           debuggers: LLDB, an editor that sends packets beside it, commands of gdb for the stub, and the
                  program's file for those that have none
writes            what gdb writes, and where it resumes, noticed in its packets (`write_watch`) and kept, halt by halt

`session.replay` has the past, and joins it with the proxy.
"""
