# Control Transfer Records of one process: docs/ctr.md explains it.
#
#   (gdb) set $process = 7
#   (gdb) count-process-at WHERE    where the kernel switches, before it writes scontext and satp
#
# The records do not say which process ran. At WHERE the CSRs are still those of the process that stops running, so the
# records are its own: they are counted if it is the wanted one, and cleared if not.

define which-process
    set $running = $scontext
end
document which-process
Set $running to the number of the process. Define it anew for a kernel that does not write scontext:
the ASID is ((unsigned long) $satp >> 44) & 0xffff on RV64, ($satp >> 22) & 0x1ff on RV32.
end

define count-process-at
    break $arg0
    commands
        silent
        which-process
        if $running == $process
            trace ctr count
        else
            trace ctr clear
        end
        continue
    end
end
document count-process-at
Count the transfers of $process whenever the program comes to a place.
Usage: count-process-at WHERE
end
