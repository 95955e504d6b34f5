/* Rows of a listing: a number, which rises from row to row, between texts that repeat. See rows.c. */
#ifndef RVTRACE_ROWS_H
#define RVTRACE_ROWS_H

#include "loop.h"

/* The bytes of a text, by their place among all of them. */
typedef struct {
    size_t at, length;
} RowText;

/* The rows of an entry of a history: the texts of `length` instructions, again and again, `count` instructions in all.
 */
typedef struct {
    const void *entry;
    size_t texts, length;
    uint64_t count;
} EntryRows;

#define NO_ENTRY UINT32_MAX

typedef struct {
    uint8_t *bytes;
    Amount byte_amount;
    RowText *texts;
    Amount text_amount;
    uint32_t *numbers; /* of texts, for the instructions of entries */
    Amount number_amount;
    EntryRows *entries;
    Amount entry_amount;
    uint32_t *slots; /* a hash table of indices into `entries` */
    size_t mask;
    uint8_t *out;
    Amount out_amount;
} Rows;

/* What stands before and after the number of each row, both with ROW_SLACK bytes more that may be read. */
typedef struct {
    const uint8_t *before, *after;
    size_t before_length, after_length;
} RowFrame;

#define ROW_SLACK 32

/* Those that return an int return -1 if there is no memory. */
int rows_add_text(Rows *rows, const uint8_t *text, size_t length);
int rows_add_entry(Rows *rows, EntryRows entry);
int rows_add_numbers(Rows *rows, const uint8_t *numbers, size_t count);
uint32_t rows_entry(const Rows *rows, const void *entry);
int rows_put(Rows *rows, const EntryRows *entry, uint64_t first, uint64_t count, uint64_t number,
             const RowFrame *frame);
void rows_forget_entries(Rows *rows);
void rows_free(Rows *rows);

#endif
