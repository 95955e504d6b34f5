/* Rows of a listing. The text of an instruction is made once, in Python; here it is copied behind the number of each
 * row. An entry of a history is known by its address: the caller keeps it alive, and hands over which texts it has.
 *
 * Texts are copied in steps of ROW_SLACK bytes, over their ends, because that is faster than a call of memcpy for the
 * exact length: each has so much room behind it, and the output, too. */
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define DIGITS 20 /* of the largest number */
#define FIRST_SLOTS 1024

int rows_add_text(Rows *rows, const uint8_t *text, size_t length)
{
    size_t at = rows->byte_amount.count;
    if (rows->text_amount.count >= NO_ENTRY || array_reserve(&rows->bytes, &rows->byte_amount, length + ROW_SLACK, 1) ||
        array_reserve(&rows->texts, &rows->text_amount, 1, sizeof *rows->texts))
        return -1;
    memcpy(rows->bytes + at, text, length);
    memset(rows->bytes + at + length, 0, ROW_SLACK);
    rows->byte_amount.count += length + ROW_SLACK;
    rows->texts[rows->text_amount.count++] = (RowText){at, length};
    return 0;
}

int rows_add_numbers(Rows *rows, const uint8_t *numbers, size_t count)
{
    if (array_reserve(&rows->numbers, &rows->number_amount, count, sizeof *rows->numbers))
        return -1;
    if (!count) /* there may be no memory yet */
        return 0;
    memcpy(rows->numbers + rows->number_amount.count, numbers, count * sizeof *rows->numbers);
    rows->number_amount.count += count;
    return 0;
}

/* The table of entries */

static size_t slot_of(const Rows *rows, const void *entry)
{
    size_t at = (size_t)(((uintptr_t)entry >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & rows->mask;
    while (rows->slots[at] != NO_ENTRY && rows->entries[rows->slots[at]].entry != entry)
        at = (at + 1) & rows->mask;
    return at;
}

static int grow_slots(Rows *rows)
{
    size_t count = rows->slots ? 2 * (rows->mask + 1) : FIRST_SLOTS;
    uint32_t *slots = malloc(count * sizeof *slots);
    if (!slots)
        return -1;
    memset(slots, 0xff, count * sizeof *slots);
    free(rows->slots);
    rows->slots = slots;
    rows->mask = count - 1;
    for (size_t i = 0; i < rows->entry_amount.count; i++)
        slots[slot_of(rows, rows->entries[i].entry)] = (uint32_t)i;
    return 0;
}

uint32_t rows_entry(const Rows *rows, const void *entry)
{
    return rows->slots ? rows->slots[slot_of(rows, entry)] : NO_ENTRY;
}

int rows_add_entry(Rows *rows, EntryRows entry)
{
    size_t count = rows->entry_amount.count;
    if (count >= NO_ENTRY || array_reserve(&rows->entries, &rows->entry_amount, 1, sizeof *rows->entries) ||
        ((!rows->slots || 2 * count > rows->mask) && grow_slots(rows)))
        return -1;
    rows->entries[count] = entry;
    rows->entry_amount.count++;
    rows->slots[slot_of(rows, entry.entry)] = (uint32_t)count;
    return 0;
}

void rows_forget_entries(Rows *rows)
{
    if (rows->slots)
        memset(rows->slots, 0xff, (rows->mask + 1) * sizeof *rows->slots);
    rows->entry_amount.count = rows->number_amount.count = 0;
}

void rows_free(Rows *rows)
{
    free(rows->bytes);
    free(rows->texts);
    free(rows->numbers);
    free(rows->entries);
    free(rows->slots);
    free(rows->out);
}

/* Numbers, which count up as text. Reading ROW_SLACK bytes from the first digit on is allowed. */

typedef struct {
    uint8_t digits[DIGITS + ROW_SLACK];
    unsigned first;
} Counter;

static Counter counter_from(uint64_t number)
{
    Counter counter = {{0}, DIGITS};
    do {
        counter.digits[--counter.first] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number);
    return counter;
}

static void count_up(Counter *counter)
{
    unsigned at = DIGITS - 1;
    while (at > counter->first && counter->digits[at] == '9')
        counter->digits[at--] = '0';
    if (counter->digits[at] != '9') {
        counter->digits[at]++;
    } else {
        counter->digits[at] = '0';
        if (counter->first) /* else it was the largest one */
            counter->digits[--counter->first] = '1';
    }
}

static uint8_t *copied(uint8_t *to, const uint8_t *from, size_t length)
{
    for (size_t at = 0; at < length; at += ROW_SLACK)
        memcpy(to + at, from + at, ROW_SLACK);
    return to + length;
}

/* Append the rows of `count` instructions of an entry, from instruction `first` on; the first row has this number. */
int rows_put(Rows *rows, const EntryRows *entry, uint64_t first, uint64_t count, uint64_t number,
             const RowFrame *frame)
{
    Counter counter = counter_from(number);
    const uint32_t *numbers = rows->numbers + entry->texts;
    size_t here = (size_t)(first % entry->length);
    size_t fixed = frame->before_length + DIGITS + frame->after_length + 4 * ROW_SLACK;
    for (; count; count--) {
        RowText text = rows->texts[numbers[here]];
        if (array_reserve(&rows->out, &rows->out_amount, fixed + text.length, 1))
            return -1;
        uint8_t *begin = rows->out + rows->out_amount.count, *to = begin;
        to = copied(to, frame->before, frame->before_length);
        to = copied(to, counter.digits + counter.first, DIGITS - counter.first);
        to = copied(to, frame->after, frame->after_length);
        to = copied(to, rows->bytes + text.at, text.length);
        rows->out_amount.count += (size_t)(to - begin);
        count_up(&counter);
        if (++here == entry->length)
            here = 0;
    }
    return 0;
}
