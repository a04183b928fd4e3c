/* What the two halves of the library tell each other: libtenfold.so, which programs link, and
 * libtenfold_torch.so, which it loads. Neither reaches the other by any symbol but `tenfold_link`. */
#ifndef TENFOLD_LINK_H
#define TENFOLD_LINK_H

#include <stdint.h>

typedef void (*tn_entry)(void);

/* What the loaded half uses of the loading one: the errors of threads are kept there. */
typedef struct tn_link_host {
    void (*set_error)(int32_t code, const char *message);
    const char *(*error_message)(void);
} tn_link_host;

/* The entries of the loaded half, in the order of the header that `abi` is a hash of. */
typedef struct tn_link_table {
    uint64_t abi;
    const char *torch_version;
    int64_t count;
    const tn_entry *entries;
} tn_link_table;

typedef const tn_link_table *(*tn_link_fn)(const tn_link_host *host, char *reason, int64_t size);
#define TN_LINK_SYMBOL "tenfold_link"

#endif
