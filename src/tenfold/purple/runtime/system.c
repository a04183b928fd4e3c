/* Files, the world around the program, what crosses to foreign functions, and how a program begins and ends. */
#include "purple_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *path_of(const char *name, Value v) {
    if (!pu_is_string(v)) return pu_wrong_type(name, "string", v), NULL;
    const PuString *path = PU_AS(PuString, v);
    if ((int64_t)strlen(path->text) != path->bytes)
        return pu_fail("file", "%s: %s: the path holds a NUL character", name, path->text), NULL;
    return path->text;
}

static Value file_error(const char *name, const char *path) {
    return pu_fail("file", "%s: %s: %s", name, path, strerror(errno));
}

Value pu_complain(Value text) {
    if (!pu_is_string(text)) return pu_wrong_type("%complain", "string", text);
    fflush(stdout);
    fwrite(PU_AS(PuString, text)->text, 1, (size_t)PU_AS(PuString, text)->bytes, stderr);
    fputc('\n', stderr);
    return PU_UNSPECIFIED;
}

Value pu_read_file(Value path) {
    const char *name = path_of("read-file", path);
    if (!name) return PU_FAILURE;
    FILE *file = fopen(name, "rb");
    if (!file) return file_error("read-file", name);
    PuBuffer text = {0};
    pu_put(&text, "", 0);
    char part[4096];
    size_t got;
    while ((got = fread(part, 1, sizeof part, file)) > 0) pu_put(&text, part, got);
    bool failed = ferror(file);
    int reason = errno;
    fclose(file);
    Value result;
    errno = reason;
    if (failed) result = file_error("read-file", name);
    else if (!pu_is_utf8(text.text, (int64_t)text.length)) result = pu_fail("file", "read-file: %s: not valid UTF-8", name);
    else result = pu_string(text.text, (int64_t)text.length);
    free(text.text);
    return result;
}

static Value write_text(const char *primitive, Value path, Value text, const char *mode) {
    if (!pu_is_string(path)) return pu_wrong_type(primitive, "string", path);
    if (!pu_is_string(text)) return pu_wrong_type(primitive, "string", text);
    const char *name = path_of(primitive, path);
    if (!name) return PU_FAILURE;
    FILE *file = fopen(name, mode);
    if (!file) return file_error(primitive, name);
    size_t bytes = (size_t)PU_AS(PuString, text)->bytes;
    bool done = fwrite(PU_AS(PuString, text)->text, 1, bytes, file) == bytes;
    done = fclose(file) == 0 && done;
    return done ? PU_UNSPECIFIED : file_error(primitive, name);
}
Value pu_write_file(Value path, Value text) { return write_text("write-file", path, text, "wb"); }
Value pu_append_file(Value path, Value text) { return write_text("append-file", path, text, "ab"); }

Value pu_is_file_exists(Value path) {
    if (!pu_is_string(path)) return pu_wrong_type("file-exists?", "string", path);
    return pu_of_bool(access(PU_AS(PuString, path)->text, F_OK) == 0);
}
Value pu_delete_file(Value path) {
    const char *name = path_of("delete-file", path);
    if (!name) return PU_FAILURE;
    return unlink(name) == 0 ? PU_UNSPECIFIED : file_error("delete-file", name);
}

Value pu_command_line(void) {
    Value list = PU_NIL;
    for (int i = pu.argument_count; i-- > 1;)
        list = pu_cons(pu_string(pu.arguments[i], (int64_t)strlen(pu.arguments[i])), list);
    return list;
}
Value pu_getenv(Value name) {
    if (!pu_is_string(name)) return pu_wrong_type("getenv", "string", name);
    const char *found = getenv(PU_AS(PuString, name)->text);
    return found ? pu_string(found, (int64_t)strlen(found)) : PU_FALSE;
}
Value pu_environment(void) {
    extern char **environ;
    Value list = PU_NIL;
    for (char **each = environ; *each; each++) {
        const char *sign = strchr(*each, '=');
        if (!sign || !pu_is_utf8(*each, (int64_t)strlen(*each))) continue;
        Value name = pu_string(*each, sign - *each), content = pu_string(sign + 1, (int64_t)strlen(sign + 1));
        list = pu_cons(pu_cons(name, content), list);
    }
    return list;
}
Value pu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return pu_of_float((double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
}
Value pu_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return pu_of_float((double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
}
Value pu_exit_program(Value status) {
    int64_t code = 0;
    if (status != PU_ABSENT && !pu_take_int("exit", status, &code)) return PU_FAILURE;
    fflush(stdout);
    exit((int)(code & 255));
}

/* Foreign functions: a value checked and converted, or an error of kind `foreign`. */

bool pu_foreign_int(const char *name, Value v, bool owned, int64_t *out) {
    (void)owned;
    return pu_take_int(name, v, out);
}
bool pu_foreign_int32(const char *name, Value v, bool owned, int32_t *out) {
    int64_t wide;
    if (!pu_foreign_int(name, v, owned, &wide)) return false;
    if (wide < INT32_MIN || wide > INT32_MAX)
        return pu_fail("foreign", "%s: %lld does not fit in 32 bits", name, (long long)wide), false;
    *out = (int32_t)wide;
    return true;
}
bool pu_foreign_float(const char *name, Value v, bool owned, double *out) {
    (void)owned;
    if (!pu_is_number(v)) return pu_wrong_type(name, "number", v), false;
    *out = pu_double(v);
    return true;
}
bool pu_foreign_float32(const char *name, Value v, bool owned, float *out) {
    double wide;
    if (!pu_foreign_float(name, v, owned, &wide)) return false;
    *out = (float)wide;
    return true;
}
bool pu_foreign_bool(const char *name, Value v, bool owned, bool *out) {
    (void)name, (void)owned;
    *out = pu_truthy(v);
    return true;
}
bool pu_foreign_string(const char *name, Value v, bool owned, const char **out) {
    if (!pu_is_string(v)) return pu_wrong_type(name, "string", v), false;
    const PuString *given = PU_AS(PuString, v);
    if ((int64_t)strlen(given->text) != given->bytes)
        return pu_fail("foreign", "%s: a string for C cannot hold a NUL character", name), false;
    *out = owned ? strdup(given->text) : given->text;
    return true;
}
bool pu_foreign_pointer(const char *name, Value v, bool owned, void **out) {
    (void)owned;
    if (v == PU_NIL) return *out = NULL, true;
    if (!pu_is(v, PU_POINTER)) return pu_wrong_type(name, "pointer", v), false;
    *out = PU_AS(PuPointer, v)->address;
    return true;
}
Value pu_from_string(const char *name, const char *text, bool owned) {
    if (!text) return PU_NIL;
    int64_t bytes = (int64_t)strlen(text);
    Value v = pu_is_utf8(text, bytes) ? pu_string(text, bytes) : pu_fail("foreign", "%s: the text is not valid UTF-8", name);
    if (owned) free((void *)(uintptr_t)text);
    return v;
}
Value pu_from_pointer(const char *name, void *address, bool owned) {
    (void)name, (void)owned;
    if (!address) return PU_NIL;
    PuPointer *pointer = pu_allocate(PU_POINTER, sizeof(PuPointer));
    pointer->address = address;
    return pu_of_object(pointer);
}

/* The program runs in a thread of its own, whose stack is large enough for deep recursion. */

enum { STACK_MEGABYTES = 1024, STACK_SPARE = 256 << 10 };
static void (*setup_program)(void);
static bool (*run_program)(void);
static void (*leave_program)(void);
static int status;
const PuTensorHooks *pu_tensor_hooks;

/* Runs the program whole, with an error at one of the calls that can fail: at none if `inject_at` is 0, and if it is -1
   they are only counted. Gives its status, and leaves the state as it was before. */
static int run_whole(int64_t inject_at) {
    int status = 0;
    int64_t tensors_before = pu_tensor_hooks ? pu_tensor_hooks->end() : 0;
    setup_program();
    pu.injected = 0;
    pu.inject_at = inject_at;
    if (!run_program()) {
        pu_report();
        status = 1;
    }
    if (inject_at < 0) fprintf(stderr, "purple: %lld calls may fail\n", (long long)pu.injected);
    pu.inject_at = 0;
    fflush(stdout);
    leave_program();
    pu_end_ports();
    free(pu.bounce.arguments);
    pu.bounce.arguments = NULL;
    pu.bounce.room = 0;
    pu_end_symbols();
    int64_t left = pu_end_memory();
    int64_t tensors = pu_tensor_hooks ? pu_tensor_hooks->end() - tensors_before : 0;
    if (tensors > 0) {
        fprintf(stderr, "purple: %lld tensors were not released\n", (long long)tensors);
        status = 70;
    }
    if (left) {
        fprintf(stderr, "purple: %lld objects were not released\n", (long long)left);
        status = 70;
    }
    pu.live_objects = 0;
    return status;
}

#ifdef PURPLE_INJECT
/* PURPLE_FAIL_AT: at which call the program fails; FIRST-LAST runs it again for each of these calls, so that libtorch is
   loaded once, and `all` for each that there is. */
static int run_as_asked(void) {
    const char *asked = getenv("PURPLE_FAIL_AT");
    long long first = 1, last;
    if (!asked) return run_whole(0);
    if (!strcmp(asked, "all")) {
        run_whole(-1);
        last = (long long)pu.injected;
        pu_manual_seed(pu_of_fixnum(0));
    } else if (sscanf(asked, "%lld-%lld", &first, &last) != 2) {
        return run_whole(strtoll(asked, NULL, 10));
    }
    for (long long at = first; at <= last; at++) {
        int ended = run_whole(at);
        fprintf(stderr, "purple: an error at call %lld ended with status %d\n", at, ended);
        pu_manual_seed(pu_of_fixnum(0));
    }
    return 0;
}
#else
static int run_as_asked(void) { return run_whole(0); }
#endif

static void *thread(void *unused) {
    (void)unused;
    pthread_attr_t attributes;
    void *start;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &start, &size);
    pthread_attr_destroy(&attributes);
    pu.stack_limit = (char *)start + STACK_SPARE;
    status = run_as_asked();
    return NULL;
}

int pu_main(int count, char **arguments, void (*setup)(void), bool (*run)(void), void (*leave)(void)) {
    pu.argument_count = count;
    pu.arguments = arguments;
    setup_program = setup;
    run_program = run;
    leave_program = leave;
    pthread_t worker;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    for (size_t megabytes = STACK_MEGABYTES;; megabytes /= 2) {
        pthread_attr_setstacksize(&attributes, megabytes << 20);
        if (pthread_create(&worker, &attributes, thread, NULL) == 0) break;
        if (megabytes <= 1) {
            fputs("purple: there is no memory for the program's stack\n", stderr);
            return 1;
        }
    }
    pthread_join(worker, NULL);
    pthread_attr_destroy(&attributes);
    return status;
}
