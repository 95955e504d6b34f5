/* Steps of packets that have outcomes of branches and nothing else: as outcomes_module.c, for packets.c. */
#include "kernel.h"

/* What the branches of a walk do to the entries of the predictor: how many entries they train. */
static uint32_t training_of_walk(const Trainer *trainer, const Walk *walk, Training *training)
{
    uint32_t count = 0;
    for (size_t i = 0; i < walk->branch_count; i++) {
        uint32_t entry = (uint32_t)(walk->branches[i] >> trainer->shift) & trainer->mask, at = 0;
        const uint8_t *successors = trainer->successors[walk->outcomes_met >> i & 1];
        while (at < count && training[at].entry != entry)
            at++;
        if (at == count)
            training[count++] = (Training){entry, {0, 1, 2, 3}};
        for (int state = 0; state < 4; state++)
            training[at].successors[state] = successors[training[at].successors[state] & 3];
    }
    return count;
}

/* Remember the step of a walk. -1: an exception is set. */
static int learn_packet_walk(Kernel *kernel, const uint8_t *payload, uint32_t length, const Walk *walk, size_t first)
{
    Loop *loop = &kernel->loop;
    StackTop tops[MOST_TAKEN];
    Training training[MOST_BRANCHES];
    int32_t group = kernel->outcomes.states[loop->state].group;
    int64_t following = outcomes_state(&kernel->outcomes, group, walk->pc, walk->last_branch, 1);
    if (following < 0) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < walk->taken_count; i++)
        tops[i] = (StackTop){walk->taken[i], 0};
    Lesson lesson = {
        .state = loop->state,
        .payload = payload,
        .length = length,
        .entry = -1,
        .taken = tops,
        .taken_count = walk->taken_count,
        .left = walk->left,
        .step = {.state = (uint32_t)following, .left_count = (uint32_t)walk->left_count},
        .landing = NO_PATH,
        .peak = (uint32_t)(walk->peak - first),
        .effect = {.initial = -1, .training_count = training_of_walk(&kernel->outcomes.trainer, walk, training)},
        .training = training,
    };
    lesson.has_effect = lesson.effect.training_count > 0;
    if (walk->taken_count || walk->left_count || lesson.peak)
        lesson.step.flags = CALLS;
    PyObject *path = walk_path(walk);
    int failed = !path || add_path(&kernel->paths, &kernel->path_amount, path, walk->count);
    Py_XDECREF(path);
    if (failed)
        return -1;
    lesson.step.path = (int32_t)(kernel->path_amount.count - 1);
    if (!packets_learn(loop, &kernel->packets, &lesson))
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* Make the step of a packet that the loop does not know, and remember it. WALK_UNUSUAL: Python has to. */
enum WalkEnd kernel_make_packet_step(Kernel *kernel, const uint8_t *payload, uint32_t length, Walk *walk)
{
    walk_init(walk, 0, 0, 0, 0);
    enum WalkEnd end = outcomes_walk_payload(&kernel->outcomes, &kernel->loop, payload, length, walk);
    if (end == WALK_DONE && (walk->last_branch == NO_ADDRESS || !walk->part_count ||
                             !outcomes_count(&kernel->outcomes, step_size(length, walk))))
        end = WALK_UNUSUAL;
    if (end == WALK_DONE && learn_packet_walk(kernel, payload, length, walk, kernel->loop.depth))
        end = WALK_FAILED;
    walk_clear(walk);
    return end;
}
