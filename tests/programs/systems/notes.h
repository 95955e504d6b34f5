/* What the trace hooks of a kernel note, in memory, for tests to compare with what the trace says. */
#ifndef NOTES_H
#define NOTES_H

typedef unsigned long note_word;
#ifndef NOTES
#define NOTES 400
#endif

enum { NOTE_CREATED = 1, NOTE_DELETED, NOTE_SWITCHED_IN, NOTE_OVERFLOWED };

struct note {
    note_word what;   /* one of those above */
    note_word when;   /* minstret: how many instructions of the hart retired before this one */
    note_word hart;
    note_word task;   /* the address of what the kernel knows it by */
    note_word number; /* the kernel's own */
    char name[16];
};

extern struct note notes[NOTES];
extern volatile note_word noted;

void note(note_word what, const void *task, note_word number, const char *name);

#endif
