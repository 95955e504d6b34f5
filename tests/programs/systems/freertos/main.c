/* Tasks of every kind under the real FreeRTOS.
 *
 * maker and taker share a queue; two tasks have one name and take turns by the tick; boss makes tasks that end by
 * themselves, and others that it ends, whose memory the next ones get. With OVERFLOW one task's stack is too small;
 * TAKER is another name for taker.
 */
#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#ifndef ROUNDS
#define ROUNDS 5
#endif
#ifndef TAKER
#define TAKER "taker"
#endif
#define APART __attribute__((noinline))

typedef unsigned long word;

static QueueHandle_t numbers;
volatile word sum, taken, ended, turns[2];

void on_failed_assertion(void)
{
    for (;;)
        ;
}

APART void stopped_by_overflow(void)
{
    for (;;)
        ;
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    note(NOTE_OVERFLOWED, task, 0, name);
    stopped_by_overflow();
}

/* The end: nothing more is noted. */
static APART void finished(void)
{
    __asm__ volatile("csrci mstatus, 8");
    for (;;)
        ;
}

static APART word mixed(word value)
{
    for (int i = 0; i < 16; i++)
        value = value * 1103515245 + 12345;
    return value;
}

static APART word nested(word depth, word value)
{
    return depth ? nested(depth - 1, mixed(value)) + 1 : mixed(value);
}

static APART void make(word n)
{
    word value = nested(2, n);
    xQueueSend(numbers, &value, portMAX_DELAY);
}

static void maker(void *unused)
{
    for (word n = 1;; n++) {
        make(n);
        if (n % 3 == 0)
            vTaskDelay(5);
    }
}

static APART word take(void)
{
    word value = 0;
    xQueueReceive(numbers, &value, portMAX_DELAY);
    return value;
}

static void taker(void *unused)
{
    for (;;) {
        sum += take();
        taken++;
    }
}

static APART void work(word which)
{
    for (int i = 0; i < 3; i++)
        sum += nested(3, which + i);
    turns[which]++;
}

static void worker(void *which)
{
    for (word n = 1;; n++) {
        work((word)which);
        if (n % 2 == 0)
            vTaskDelay(7);
    }
}

static void child(void *value)
{
    sum += nested(4, (word)value);
    ended++;
    vTaskDelete(NULL);
}

static void victim(void *value)
{
    for (;;) {
        sum += nested(1, (word)value);
        taskYIELD();
        vTaskDelay(1);
    }
}

static APART word deeper(word depth, word value)
{
    volatile word kept[8];
    kept[value & 7] = value;
    return depth ? deeper(depth - 1, mixed(value)) + kept[value & 7] : mixed(value);
}

static void greedy(void *unused)
{
    for (word depth = 1;; depth++) {
        sum += deeper(depth, 1);
        vTaskDelay(1);
    }
}

static TaskHandle_t begun(TaskFunction_t code, const char *name, word value, UBaseType_t priority)
{
    TaskHandle_t task = NULL;
    configASSERT(xTaskCreate(code, name, configMINIMAL_STACK_SIZE, (void *)value, priority, &task) == pdPASS);
    return task;
}

static void boss(void *unused)
{
    for (word n = 0; n < ROUNDS; n++) {
        begun(child, "child", n, 1);
        vTaskDelay(4);
        TaskHandle_t other = begun(victim, n & 1 ? "victim" : "prey", n, 1);
        vTaskDelay(2);
        vTaskDelete(other);
    }
    finished();
}

int main(void)
{
    numbers = xQueueCreate(2, sizeof(word));
    begun(maker, "maker", 0, 2);
    begun(taker, TAKER, 0, 3);
    begun(worker, "worker", 0, 1);
    begun(worker, "worker", 1, 1);
#ifdef OVERFLOW
    begun(greedy, "greedy", 0, 2);
#endif
    begun(boss, "boss", 0, 4);
    vTaskStartScheduler();
    return 1;
}
