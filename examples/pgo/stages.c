/* A function that calls through a pointer, which each of its callers sets to a function of its own. All in all each
   function is called as often as the others; in a call from one place it is always the same one.
   Built again with a profile with call contexts, each caller has its own copy with the function inlined. */
typedef unsigned long word;
typedef word (*stage)(word state, word sample);

static word offset(word state, word sample) { return state + sample + 7; }
static word smooth(word state, word sample) { return state + (sample >> 2) - (state >> 3); }
static word peak(word state, word sample) { return sample > state ? sample : state; }
static word mix(word state, word sample) { return (state ^ sample) * 31 & 0xFFFF; }

static stage stages[4];
static word samples[24];
volatile word result;

/* The same for all: it is too large for a compiler that does not know who calls it, and why. */
static word passed(stage next, word state) {
  for (word i = 0; i < sizeof samples / sizeof *samples; i++) {
    state = next(state, samples[i]);
    if (state > 0xFFFFFFFF) {
      /* Never in the training run. */
      for (word j = 0; j < i; j++)
        samples[j] = samples[j] * 3 + state % (j + 1);
      for (word j = i; j-- > 0;)
        samples[j] ^= samples[i - j] / (state % 5 + 1) + (samples[j] << 3);
      switch (state % 7) {
      case 0: state = samples[state % 11] * 3; break;
      case 1: state = samples[state % 13] / 5 + samples[3]; break;
      case 2: state = (samples[state % 17] ^ 0x55) - samples[7]; break;
      case 3: state = samples[state % 19] % 23 + i; break;
      case 4: state = state / 3 + samples[state % 23]; break;
      default: state = 0;
      }
      result = state;
    }
  }
  return state;
}

__attribute__((noinline)) static word with_offset(word state) { return passed(stages[0], state); }
__attribute__((noinline)) static word smoothed(word state) { return passed(stages[1], state); }
__attribute__((noinline)) static word highest(word state) { return passed(stages[2], state); }
__attribute__((noinline)) static word mixed(word state) { return passed(stages[3], state); }

int main(void) {
  volatile stage chosen[4] = {offset, smooth, peak, mix};
  for (word i = 0; i < 4; i++)
    stages[i] = chosen[i];
  for (word i = 0; i < sizeof samples / sizeof *samples; i++)
    samples[i] = i * 2654435761u % 251;
  word state = 1;
  for (word round = 0; round < 10; round++)
    state = mixed(highest(smoothed(with_offset(state))));
  result = state;
  return 0;
}
