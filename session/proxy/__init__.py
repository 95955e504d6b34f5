"""The proxy between gdb and its target, through which gdb finds a target with a past.

proxy             waits for gdb: the thread that serves one gdb after another
router            which of gdb's packets go to the target, and which to the past
live_target       the present: packets that pass, and what announces the past to gdb
replay_target     the past as gdb's target; `stepping`: packets that resume there, and where they lead
proxy_state       how packets are answered at the moment, and what is known of the target
backend           what the proxy asks of the past, and extensions that answer more packets: others implement these
program_files     the program's file, for debuggers that have none
calls             calls of other threads, between two packets of gdb
caretaker         a process that ends gdb's connection at a safe moment when this one is killed
write_watch       what gdb writes, and where it resumes, noticed in its packets (`monitor_commands`: in its commands for
                  the stub); `write_log` keeps it, halt by halt
connection        the connection of gdb to the stub
target_xml        the target description that gdb reads; `register_numbers`: the registers that gdb has numbers of
editor_steps      buttons of an editor that sends packets beside LLDB
lldb              LLDB: how it is recognised, and what it understands otherwise
packets, wire     what packets mean; bytes, sockets, escapes, checksums

`session.replay` has the past, and joins it with the proxy.
"""
