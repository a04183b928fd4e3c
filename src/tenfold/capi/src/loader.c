/* libtenfold.so by hand: finding and loading the half that links libtorch, and the errors of threads. The
 * entries themselves are generated (stubs.c): each jumps through a slot, which at first loads that half and
 * then holds its function. Pure C11, so that a program that links this starts as fast as if it did not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

/* ---- errors ---- */

/* A fixed size, because running out of memory has to be reported too. */
static _Thread_local struct {
    int32_t code;
    char message[4096];
} error;

static void set_error(int32_t code, const char *message) {
    size_t length = strlen(message);
    error.code = code;
    if (length < sizeof error.message) {
        memmove(error.message, message, length + 1);
        return;
    }
    length = sizeof error.message - 4;
    while (length && ((unsigned char)message[length] & 0xC0) == 0x80)
        length--; /* not inside a UTF-8 character */
    memmove(error.message, message, length);
    strcpy(error.message + length, "...");
}

tn_status tn_error_code(void) { return error.code; }
const char *tn_error_message(void) { return error.message; }

void tn_error_clear(void) {
    error.code = TN_OK;
    error.message[0] = 0;
}

const char *tn_error_name(tn_status code) {
    static const char *const names[] = {
        "TN_OK",           "TN_ERROR_ARGUMENT",  "TN_ERROR_INDEX",   "TN_ERROR_TYPE",
        "TN_ERROR_HANDLE", "TN_ERROR_NOT_FOUND", "TN_ERROR_MEMORY",  "TN_ERROR_NOT_AVAILABLE",
        "TN_ERROR_TORCH",  "TN_ERROR_CALLBACK",  "TN_ERROR_INTERNAL"};
    return code >= 0 && code < (tn_status)(sizeof names / sizeof *names) ? names[code] : "unknown";
}

/* ---- loading ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const tn_link_table *linked; /* NULL when loading failed */
static char failure[2048] = "libtenfold_torch.so was not loaded";

static const tn_link_host host = {set_error, tn_error_message};

static bool load_file(const char *path) {
    char reason[1024];
    /* Libtorch may be in use in this process already; then it is not for us to bind. */
    bool there = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD) != NULL;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(failure, sizeof failure, "libtorch could not be loaded: %.1900s", dlerror());
        return false;
    }
    if (!there && !tn_bind_own_symbols()) {
        snprintf(failure, sizeof failure,
                 "libtorch's own functions could not be kept apart from the host's: mprotect was refused");
        return false;
    }
    tn_link_fn link_with;
    *(void **)&link_with = dlsym(library, TN_LINK_SYMBOL);
    if (link_with == NULL) {
        snprintf(failure, sizeof failure, "%.1900s is not libtenfold_torch.so", path);
        return false;
    }
    const tn_link_table *table = link_with(&host, reason, sizeof reason);
    if (table == NULL) {
        snprintf(failure, sizeof failure, "%.900s: %.1000s", path, reason);
        return false;
    }
    if (table->abi != tn_abi || table->count != tn_slot_count) {
        snprintf(failure, sizeof failure,
                 "%.1800s belongs to another build of libtenfold.so: run `tenfold capi build` and use both "
                 "of its files",
                 path);
        return false;
    }
    for (int64_t i = 0; i < tn_slot_count; i++)
        atomic_store_explicit(&tn_slots[i], table->entries[i], memory_order_release);
    linked = table;
    return true;
}

static bool exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    fclose(file);
    return true;
}

/* By environment variable, beside this library, or where the package built it. The first that is there
 * counts: a broken one is an error to tell, not a reason to try another. */
static void load(void) {
    char beside[4096] = "";
    Dl_info self;
    const char *named = getenv("TENFOLD_TORCH_LIBRARY");
    if (named != NULL && *named) {
        load_file(named);
        return;
    }
    if (dladdr((void *)&host, &self) && self.dli_fname != NULL) {
        const char *slash = strrchr(self.dli_fname, '/');
        int folder = slash ? (int)(slash - self.dli_fname + 1) : 0;
        snprintf(beside, sizeof beside, "%s%.*slibtenfold_torch.so", slash ? "" : "./", folder,
                 self.dli_fname);
        if (exists(beside)) {
            load_file(beside);
            return;
        }
    }
    if (exists(TENFOLD_RECORDED_LIBRARY)) {
        load_file(TENFOLD_RECORDED_LIBRARY);
        return;
    }
    snprintf(failure, sizeof failure,
             "libtenfold_torch.so was not found beside libtenfold.so (%.1000s) nor at %.500s: run `tenfold "
             "capi build`, or "
             "set TENFOLD_TORCH_LIBRARY to its path",
             beside, TENFOLD_RECORDED_LIBRARY);
}

bool tn_loader_ready(const char *entry) {
    char message[2200];
    pthread_once(&once, load);
    if (linked != NULL) return true;
    snprintf(message, sizeof message, "%s: %s", entry, failure);
    set_error(TN_ERROR_NOT_AVAILABLE, message);
    return false;
}

int tn_available(void) { return tn_loader_ready("tn_available"); }
const char *tn_version(void) { return TENFOLD_VERSION; }
const char *tn_torch_version(void) {
    return tn_loader_ready("tn_torch_version") ? linked->torch_version : NULL;
}
