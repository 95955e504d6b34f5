/* What FreeRTOS V9 asks of a port, for RISC-V with machine mode alone. */
#ifndef PORTMACRO_H
#define PORTMACRO_H

#include <stddef.h>
#include <stdint.h>

#define portCHAR char
#define portLONG long
#define portSHORT short
#define portSTACK_TYPE unsigned long
#define portBASE_TYPE long
typedef portSTACK_TYPE StackType_t;
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
#define portMAX_DELAY ((TickType_t)0xffffffffUL)
#define portTICK_TYPE_IS_ATOMIC 1
#define portPOINTER_SIZE_TYPE uintptr_t

#define portSTACK_GROWTH (-1)
#define portTICK_PERIOD_MS ((TickType_t)1000 / configTICK_RATE_HZ)
#define portBYTE_ALIGNMENT 16

void vPortYield(void);
#define portYIELD() vPortYield()
#define portYIELD_FROM_ISR(needed) \
    do { \
        if (needed) \
            vTaskSwitchContext(); \
    } while (0)
#define portEND_SWITCHING_ISR(needed) portYIELD_FROM_ISR(needed)

/* The depth of critical sections is kept in each task: a task may yield inside of one. */
#define portCRITICAL_NESTING_IN_TCB 1
extern void vTaskEnterCritical(void);
extern void vTaskExitCritical(void);
#define portENTER_CRITICAL() vTaskEnterCritical()
#define portEXIT_CRITICAL() vTaskExitCritical()
#define portDISABLE_INTERRUPTS() __asm__ volatile("csrci mstatus, 8" ::: "memory")
#define portENABLE_INTERRUPTS() __asm__ volatile("csrsi mstatus, 8" ::: "memory")

#define portTASK_FUNCTION_PROTO(vFunction, pvParameters) void vFunction(void *pvParameters)
#define portTASK_FUNCTION(vFunction, pvParameters) void vFunction(void *pvParameters)

#endif
