# Lists what ran before main returned, with gdb's own record commands:
#     gdb-multiarch -batch -x examples/native.gdb app.elf
# with OpenOCD at port 3333, and app.elf halted at its start.
set confirm off
source rvtrace.py
trace connect localhost:3333
trace start
tbreak finish
continue
trace native 1000
set record instruction-history-size 5
record instruction-history
set record function-call-history-size 5
record function-call-history /i
reverse-stepi
python print(f"the last instruction ran at {gdb.selected_frame().pc():#x}")
python print(f"gdb has {len(gdb.current_recording().instruction_history)} instructions")
trace native off
