/* The part of a port that is C. The names are those of the FreeRTOS ports. */
#include "FreeRTOS.h"
#include "task.h"
#include "notes.h"

#define MSIP (*(volatile uint32_t *)0x2000000UL)
#define MTIMECMP ((volatile uint32_t *)0x2004000UL)
#define MTIME (*(volatile uint32_t *)0x200bff8UL) /* no run is longer than its lower half */
#define TICK 2500                                 /* instructions: mtime counts them */
#define FRAME_WORDS 34                            /* mepc, x1, x3 to x31 each at its number, mstatus at 32 */
#define MPP_MACHINE_MPIE 0x1880

StackType_t xISRStack[512] __attribute__((aligned(16)));
StackType_t *const xISRStackTop = xISRStack + 512;
UBaseType_t uxInterruptNesting;
volatile UBaseType_t uxNestedInterrupts;

extern void freertos_risc_v_trap_handler(void);
extern void xPortStartFirstTask(void);

static void prvTaskExitError(void)
{
    on_failed_assertion();
}

StackType_t *pxPortInitialiseStack(StackType_t *pxTopOfStack, TaskFunction_t pxCode, void *pvParameters)
{
    StackType_t *pxFrame = pxTopOfStack - FRAME_WORDS;
    pxFrame = (StackType_t *)((uintptr_t)pxFrame & ~(uintptr_t)15);
    for (int i = 0; i < FRAME_WORDS; i++)
        pxFrame[i] = 0;
    pxFrame[0] = (StackType_t)pxCode;
    pxFrame[1] = (StackType_t)prvTaskExitError;
    pxFrame[10] = (StackType_t)pvParameters;
    pxFrame[32] = MPP_MACHINE_MPIE;
    __asm__ volatile("mv %0, gp" : "=r"(pxFrame[3]));
    return pxFrame;
}

/* V9 has no trace hook for the task that the scheduler begins with; later kernels call traceTASK_SWITCHED_IN. */
static void prvNoteFirstTask(void)
{
    TaskStatus_t xStatus;
    vTaskGetInfo(NULL, &xStatus, pdFALSE, eRunning);
    note(NOTE_SWITCHED_IN, xStatus.xHandle, xStatus.xTaskNumber, xStatus.pcTaskName);
    SEND_OWNERSHIP(xStatus.xTaskNumber);
}

static void prvNextTick(void)
{
    MTIMECMP[0] = MTIME + TICK;
    MTIMECMP[1] = 0;
}

BaseType_t xPortStartScheduler(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(freertos_risc_v_trap_handler));
    prvNextTick();
    __asm__ volatile("csrs mie, %0" ::"r"(0x88));
    prvNoteFirstTask();
    xPortStartFirstTask();
    return pdFALSE;
}

void vPortEndScheduler(void)
{
}

__attribute__((noinline)) void vPortYield(void)
{
#ifdef YIELD_BY_SOFTWARE_INTERRUPT
    MSIP = 1;
    __asm__ volatile("fence iorw, iorw\nnop\nnop" ::: "memory");
#else
    __asm__ volatile("ecall" ::: "memory");
#endif
}

static void prvSoftwareInterrupt(void)
{
    MSIP = 0;
    if (uxInterruptNesting > 1)
        uxNestedInterrupts++;
    else
        vTaskSwitchContext();
}

static void prvTick(void)
{
    prvNextTick();
#ifdef NESTED
    MSIP = 1;
    __asm__ volatile("csrsi mstatus, 8\nnop\nj 1f\n1:nop\nj 2f\n2:csrci mstatus, 8" ::: "memory");
#endif
    if (xTaskIncrementTick() != pdFALSE)
        vTaskSwitchContext();
}

/* What the handler calls, on the stack of interrupts. Returns what is added to mepc. */
UBaseType_t uxPortTrap(UBaseType_t uxCause)
{
    if ((BaseType_t)uxCause >= 0) {
        if (uxCause != 11)
            on_failed_assertion();
        vTaskSwitchContext();
        return 4;
    }
    if ((uxCause & 0xff) == 3)
        prvSoftwareInterrupt();
    else
        prvTick();
    return 0;
}
