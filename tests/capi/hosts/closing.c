/* A host that loads the library by itself, closes it, loads it again, and ends with a tensor in
 * an exit handler. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*full)(const int64_t *, int64_t);
static void (*release)(void *);
static int64_t (*live)(void), (*bytes)(void);
static void *kept;

static void open_library(const char *path, void **library) {
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL) exit(2);
    *(void **)&full = dlsym(*library, "tn_ones");
    *(void **)&release = dlsym(*library, "tn_free");
    *(void **)&live = dlsym(*library, "tn_live_tensors");
    *(void **)&bytes = dlsym(*library, "tn_live_bytes");
}

static void at_exit(void) {
    release(kept);
    if (live() != 0 || bytes() != 0) _Exit(3);
}

int main(int argc, char **argv) {
    const int64_t shape[1] = {1000};
    void *library;
    if (argc != 2) return 4;
    atexit(at_exit);
    for (int i = 0; i < 3; i++) {
        open_library(argv[1], &library);
        void *made = full(shape, 1);
        if (made == NULL || live() != 1 || bytes() != 4000) return 5 + i;
        release(made);
        dlclose(library);
    }
    open_library(argv[1], &library);
    kept = full(shape, 1);
    return dlclose(library);
}
