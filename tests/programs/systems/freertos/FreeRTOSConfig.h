/* FreeRTOS for the simulated target. Its trace hooks (https://www.freertos.org/rtos-trace-macros.html) write notes.
 *
 * Options: YIELD_BY_SOFTWARE_INTERRUPT: a yield is msip, else an ecall. NESTED: the tick lets a software interrupt in.
 * OWNERSHIP: the hook of a switch writes the number of the task to scontext, which the encoder sends.
 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include "notes.h"

#define configUSE_PREEMPTION 1
#define configUSE_TIME_SLICING 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configTICK_RATE_HZ ((TickType_t)1000)
#define configMINIMAL_STACK_SIZE ((unsigned short)160)
#define configTOTAL_HEAP_SIZE ((size_t)24576)
#define configMAX_PRIORITIES (5UL)
#define configMAX_TASK_NAME_LEN 12
#define configUSE_TRACE_FACILITY 1
#define configUSE_16_BIT_TICKS 0
#define configIDLE_SHOULD_YIELD 1
#define configUSE_MUTEXES 1
#define configUSE_CO_ROUTINES 0
#define configCHECK_FOR_STACK_OVERFLOW 2
#define configUSE_MALLOC_FAILED_HOOK 0
#define configSUPPORT_STATIC_ALLOCATION 0
#define configSUPPORT_DYNAMIC_ALLOCATION 1

#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskPrioritySet 1
#define INCLUDE_uxTaskPriorityGet 1
#define INCLUDE_eTaskGetState 1

void on_failed_assertion(void);
#define configASSERT(condition) \
    do { \
        if (!(condition)) \
            on_failed_assertion(); \
    } while (0)

#ifdef OWNERSHIP
#define SEND_OWNERSHIP(number) __asm__ volatile("csrw scontext, %0" ::"r"(number))
#else
#define SEND_OWNERSHIP(number)
#endif

#define traceTASK_CREATE(pxNewTCB) note(NOTE_CREATED, pxNewTCB, (pxNewTCB)->uxTCBNumber, (pxNewTCB)->pcTaskName)
#define traceTASK_DELETE(pxTCB) note(NOTE_DELETED, pxTCB, (pxTCB)->uxTCBNumber, (pxTCB)->pcTaskName)
#define traceTASK_SWITCHED_IN() \
    do { \
        note(NOTE_SWITCHED_IN, pxCurrentTCB, pxCurrentTCB->uxTCBNumber, pxCurrentTCB->pcTaskName); \
        SEND_OWNERSHIP(pxCurrentTCB->uxTCBNumber); \
    } while (0)

#endif
