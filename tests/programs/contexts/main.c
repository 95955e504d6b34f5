/* Functions that do something else for each caller, called in every way: recursion, jumps instead of calls, pointers,
   interrupts, a table of a switch. */
typedef unsigned long word;

#define MTIMECMP (*(volatile word *)0x02004000UL)
#define MTIME (*(volatile word *)0x0200bff8UL)
#define NOINLINE __attribute__((noinline))

word scaled(word value); /* in another file */

volatile word sink, ticks;

NOINLINE static word counted(word value) { sink += value; return value + 1; }

void __attribute__((interrupt, aligned(4))) on_timer(void) {
  ticks = counted(ticks);
  MTIMECMP = MTIME + 613;
}

/* Inlined into its callers, with a call that stays. */
static inline word twice(word value) { return counted(value) + counted(value * 3); }

NOINLINE static word kind_of(word value) {
  switch (value % 7) {
  case 0: return 3;
  case 1: return counted(value);
  case 2: return value * 5;
  case 3: return value ^ 0x55;
  case 4: return scaled(value);
  case 5: return value << 3;
  default: return 1;
  }
}

NOINLINE static word fib(word n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

NOINLINE static word is_odd(word n);
NOINLINE static word is_even(word n) { return n ? is_odd(n - 1) + sink * 0 : 1; }
NOINLINE static word is_odd(word n) { return n ? is_even(n - 1) + sink * 0 : 0; }

NOINLINE static word last(word value) { sink = value; return value * 2; }
NOINLINE static word jumps(word value) { return last(value + 1); }
NOINLINE static word jumps_twice(word value) {
  if (value & 1)
    return last(value);
  sink = value;
  return last(value + 7);
}

NOINLINE static word through(word (*next)(word), word value) { return next(value) + next(value + 1); }

NOINLINE static word some(word rounds) {
  word result = 0;
  for (word i = 0; i < rounds; i++)
    result += kind_of(i * 7) + twice(i);
  return result;
}

NOINLINE static word others(word rounds) {
  word result = 0;
  for (word i = 0; i < rounds; i++)
    result += kind_of(i);
  return result;
}

int main(void) {
  __asm__ volatile("csrw mtvec, %0" ::"r"(on_timer));
  MTIMECMP = MTIME + 40;
  __asm__ volatile("csrs mie, %0; csrsi mstatus, 8" ::"r"(1ul << 7));
  word result = some(20) + others(40) + fib(8) + is_even(9);
  for (word i = 0; i < 6; i++)
    result += jumps(i) + jumps_twice(i) + through(kind_of, i) + through(scaled, i);
  __asm__ volatile("csrci mstatus, 8");
  sink = result;
  return 0;
}
