/* A function that another file calls. */
extern volatile unsigned long sink;

static unsigned long halved(unsigned long value) { return value / 2 + sink % 2; }

unsigned long scaled(unsigned long value) {
  unsigned long result = 0;
  for (unsigned long i = 0; i < value % 4 + 1; i++)
    result += halved(value + i);
  return result;
}
