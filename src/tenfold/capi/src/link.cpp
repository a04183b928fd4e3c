// Where libtenfold.so finds this half: one symbol, which starts the library and gives the table
// of its entries.
#include <cstdio>

#include "internal.h"
#include "link.h"
#include "memory.h"

namespace tenfold {
extern const tn_link_host *host;
extern const tn_link_table table;  // generated
}  // namespace tenfold

extern "C" __attribute__((visibility("default"))) const tn_link_table *tenfold_link(
    const tn_link_host *host, char *reason, int64_t size) {
    if (tenfold::host != nullptr) {  // whose thread errors would go to the other's
        std::snprintf(reason, static_cast<size_t>(size),
                      "another copy of libtenfold.so uses it in this process");
        return nullptr;
    }
    try {
        tenfold::host = host;
        tenfold::start_handles();
        tenfold::start_memory();
        return &tenfold::table;
    } catch (const std::exception &error) {
        std::snprintf(reason, static_cast<size_t>(size), "%s", error.what());
    } catch (...) {
        std::snprintf(reason, static_cast<size_t>(size), "it could not be started");
    }
    return nullptr;
}
