/* Notes of several harts stand in the order in which their places were taken. NOTES_OWNERSHIP: a hook of a switch also
 * writes the number of the task to scontext, which the encoder sends.
 */
#include "notes.h"

struct note notes[NOTES];
volatile note_word noted;

__attribute__((noinline)) void note(note_word what, const void *task, note_word number, const char *name)
{
    note_word when, hart;
    __asm__ volatile("csrr %0, minstret" : "=r"(when));
    __asm__ volatile("csrr %0, mhartid" : "=r"(hart));
    note_word place = __atomic_fetch_add(&noted, 1, __ATOMIC_RELAXED);
    if (place >= NOTES)
        return;
    struct note *it = &notes[place];
    it->what = what;
    it->when = when;
    it->hart = hart;
    it->task = (note_word)task;
    it->number = number;
    for (int i = 0; i < 15 && name[i]; i++)
        it->name[i] = name[i];
#ifdef NOTES_OWNERSHIP
    if (what == NOTE_SWITCHED_IN)
        __asm__ volatile("csrw scontext, %0" ::"r"(number));
#endif
}
