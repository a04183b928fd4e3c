/* How much tensor memory a run needed at most, and how much it would have needed at least: had each tensor gone right after
   the last operator that used it. For programs built with -DPURPLE_LIVENESS, which `purple memory --run` makes.

   Time goes by operators. What libtorch holds for itself, such as what a gradient will need, counts as needed. */
#include "purple_tensors.h"

#ifdef PURPLE_LIVENESS
#include <stdio.h>
#include <stdlib.h>

/* A tensor's memory, which views share: from the operator that made it to the one that used it last, and to its release. */
typedef struct { const char *start; int64_t bytes, made, used, released, handles; } Memory;
static Memory *memories;
static int64_t memory_count, memory_room;
static int64_t *peaks, now, room; /* by operator: the most that was live while it ran */
static struct { const char *start; int64_t memory; } *index_; /* of the memories that are in use */
static int64_t index_room, index_used;

static void *grown(void *old, int64_t used, int64_t *size, size_t item) {
    if (used < *size) return old;
    *size = *size ? 2 * *size : 1024;
    void *larger = pu_get_memory((size_t)*size * item);
    if (used) memcpy(larger, old, (size_t)used * item);
    free(old);
    return larger;
}

/* Where the memory that starts there is noted, or a free slot. Slots are not emptied but overwritten. */
static int64_t slot(const char *start) {
    if (2 * (index_used + 1) > index_room) {
        free(index_);
        index_room = index_room ? 2 * index_room : 1024;
        index_ = pu_get_memory((size_t)index_room * sizeof *index_);
        memset(index_, 0, (size_t)index_room * sizeof *index_);
        index_used = 0;
        for (int64_t i = 0; i < memory_count; i++) {
            if (!memories[i].handles) continue;
            int64_t at = slot(memories[i].start);
            index_[at].start = memories[i].start;
            index_[at].memory = i;
            index_used++;
        }
    }
    int64_t at = (int64_t)(((uintptr_t)start >> 4) * 0x9E3779B97F4A7C15ull >> 20) & (index_room - 1);
    while (index_[at].start && index_[at].start != start) at = (at + 1) & (index_room - 1);
    return at;
}

static Memory *memory_of(const tn_tensor *tensor, bool make) {
    const char *data = tn_tensor_data(tensor);
    if (!data) {
        tn_error_clear();
        return NULL;
    }
    const char *start = data - tn_tensor_storage_offset(tensor) * tn_dtype_bytes(tn_tensor_dtype(tensor));
    int64_t at = slot(start);
    Memory *found = index_[at].start ? &memories[index_[at].memory] : NULL;
    if (found && found->handles) return found;
    if (!make) return NULL;
    memories = grown(memories, memory_count, &memory_room, sizeof *memories);
    if (!index_[at].start) index_used++;
    index_[at].start = start;
    index_[at].memory = memory_count;
    memories[memory_count] = (Memory){start, 0, now, now, -1, 0};
    return &memories[memory_count++];
}

void pu_note_made(const tn_tensor *tensor) {
    Memory *memory = memory_of(tensor, true);
    if (memory) {
        memory->handles++;
        if (tn_tensor_bytes(tensor) > memory->bytes) memory->bytes = tn_tensor_bytes(tensor);
        memory->used = now;
    }
    pu_note_done();
}

void pu_note_used(const tn_tensor *tensor) {
    Memory *memory = memory_of(tensor, false);
    if (memory) memory->used = now;
}

void pu_note_releasing(const tn_tensor *tensor) {
    Memory *memory = memory_of(tensor, false);
    if (memory && !--memory->handles) memory->released = now;
}

/* Between operators: what is gone now is no part of what the next one needs. */
void pu_note_released(void) { tn_reset_peak_bytes(); }

void pu_note_done(void) {
    peaks = grown(peaks, now, &room, sizeof *peaks);
    peaks[now++] = tn_peak_bytes();
    tn_reset_peak_bytes();
}

/* The two figures, to the file that the environment names. */
void pu_end_liveness(void) {
    pu_note_done();
    int64_t *idle = pu_get_memory((size_t)(now + 1) * sizeof *idle), peak = 0, least = 0, sum = 0;
    memset(idle, 0, (size_t)(now + 1) * sizeof *idle);
    for (int64_t i = 0; i < memory_count; i++) { /* idle: held while no operator will use it again */
        int64_t from = memories[i].used + 1, to = memories[i].released < 0 ? now : memories[i].released;
        if (from < to) idle[from] += memories[i].bytes, idle[to] -= memories[i].bytes;
    }
    for (int64_t i = 0; i < now; i++) {
        sum += idle[i];
        if (peaks[i] > peak) peak = peaks[i];
        if (peaks[i] - sum > least) least = peaks[i] - sum;
    }
    const char *path = getenv("PURPLE_LIVENESS");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%lld %lld\n", (long long)peak, (long long)least);
        fclose(file);
    }
    free(idle);
    free(peaks);
    free(memories);
    free(index_);
}
#else
typedef int PuNoLiveness; /* C has no empty files */
#endif
