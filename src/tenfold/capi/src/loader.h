/* What loader.c and the generated stubs.c share. */
#ifndef TENFOLD_LOADER_H
#define TENFOLD_LOADER_H

#include <stdatomic.h>

#define TN_API __attribute__((visibility("default")))
#include "link.h"
#include "tenfold.h"

/* One slot an entry, in the header's order; stubs.c defines them. */
__attribute__((visibility("hidden"))) extern _Atomic(tn_entry) tn_slots[];
__attribute__((visibility("hidden"))) extern const int64_t tn_slot_count;
__attribute__((visibility("hidden"))) extern const uint64_t tn_abi;

/* Have libtorch's libraries call the C functions they define, whatever the host calls the same; false
 * when it cannot be. */
__attribute__((visibility("hidden"))) bool tn_bind_own_symbols(void);

/* Whether the slots hold the entries now; sets this thread's error when they cannot. */
__attribute__((visibility("hidden"))) bool tn_loader_ready(const char *entry);

#endif
