/* Errors: made where something fails, given a place by the form that failed, and a line of the stack by each call that
   they leave. */
#include "purple_all.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { STACK_SHOWN = 12 };
typedef struct { const char *function; PuPlace place; } PuFrame;
struct PuTrace { int64_t count; PuFrame frames[STACK_SHOWN]; };

Value pu_fail_with(const char *kind, Value message, Value irritants, Value payload) {
    PuError *error = pu_allocate(PU_ERROR, sizeof(PuError));
    error->message = message;
    error->irritants = irritants;
    error->payload = payload;
    error->kind = kind;
    error->place = error->definition = (PuPlace){NULL, 0, 0, 0};
    error->defined = error->signature = NULL;
    error->blamed = 0;
    error->help = 0;
    error->of_engine = false;
    error->trace = NULL;
    pu.pending = error;
    return PU_FAILURE;
}

Value pu_fail(const char *kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = pu_get_memory((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    Value message = pu_string(text, length);
    free(text);
    return pu_fail_with(kind, message, PU_NIL, 0);
}

void pu_help(const char *help) { pu.pending->help = pu_string(help, (int64_t)strlen(help)); }

void pu_at(const char *file, int line, int column, int width) {
    if (!pu.pending->place.file) pu.pending->place = (PuPlace){file, line, column, width};
}

void pu_defined_at(const char *name, const char *signature, PuPlace place) {
    pu.pending->defined = name;
    pu.pending->signature = signature;
    pu.pending->definition = place;
}

void pu_own(const char *primitive) {
    PuError *error = pu.pending;
    if (error->place.file || error->blamed || error->payload || !strcmp(error->kind, "tensor")) return;
    const char *text = PU_AS(PuString, error->message)->text;
    size_t length = strcspn(text, ": ");
    bool named = *primitive == '%' || (length == strlen(primitive) && !strncmp(text, primitive, length));
    if (named && !strncmp(text + length, ": ", 2)) error->blamed = length;
}

void pu_blame(const char *procedure) {
    PuError *error = pu.pending;
    if (!error->blamed) return;
    PuBuffer text = {0};
    pu_put_text(&text, procedure);
    pu_put_text(&text, PU_AS(PuString, error->message)->text + error->blamed);
    pu_drop(error->message);
    error->message = pu_string(text.text, (int64_t)text.length);
    free(text.text);
    error->defined = error->signature = NULL;
    error->definition = (PuPlace){NULL, 0, 0, 0};
    error->blamed = 0;
}

void pu_blame_given(Value function) {
    if (pu_is(function, PU_CLOSURE) && PU_AS(PuClosure, function)->function->of_library)
        pu_blame(PU_AS(PuClosure, function)->function->name);
}

void pu_in(const char *function, const char *file, int line, int column, int width) {
    PuError *error = pu.pending;
    if (!error->place.file) { /* the call itself is what failed */
        error->place = (PuPlace){file, line, column, width};
        return;
    }
    if (!error->trace) {
        error->trace = pu_get_memory(sizeof *error->trace);
        error->trace->count = 0;
    }
    if (error->trace->count < STACK_SHOWN)
        error->trace->frames[error->trace->count] = (PuFrame){function, {file, line, column, width}};
    error->trace->count++;
}

Value pu_caught(void) {
    PuError *error = pu.pending;
    pu.pending = NULL;
    if (!error->payload) return pu_of_object(error);
    Value payload = pu_dup(error->payload);
    pu_drop(pu_of_object(error));
    return payload;
}

bool pu_is_injected(void) {
    if (!pu.inject_at || ++pu.injected != pu.inject_at) return false;
    pu_fail("error", "injected");
    return true;
}

bool pu_too_deep(void) {
    char here;
    if ((char *)&here >= pu.stack_limit) return false;
    /* A little room, so that what handles the error can call something. */
    pu_fail("memory", "recursion is too deep");
    return true;
}

void pu_in_library(const char *function, const char *file, int line, int column, int width) {
    pu_blame(function);
    struct PuTrace *trace = pu.pending->trace;
    if (trace && trace->count && trace->count <= STACK_SHOWN) {
        PuFrame *last = &trace->frames[trace->count - 1];
        bool same = last->place.file == file && last->place.line == line && last->place.column == column;
        if (same && !strcmp(last->function, function)) return; /* a copy of its text has said so */
    }
    pu_in(function, file, line, column, width);
}

/* What people read */

static void show_place(const PuPlace *place) {
    if (place->file) fprintf(stderr, "%s:%d:%d: ", place->file, place->line, place->column);
}

void pu_report(void) {
    PuError *error = pu.pending;
    PuBuffer text = {0};
    if (error->payload) {
        pu_put_text(&text, "uncaught value: ");
        pu_put_brief(&text, error->payload);
    } else {
        pu_put_value(&text, error->message, false);
    }
    fflush(stdout);
    show_place(&error->place);
    fprintf(stderr, "error: %.*s\n", (int)text.length, text.text);
    free(text.text);
    if (error->place.file) pu_show_line(&error->place);
    if (error->definition.file) {
        show_place(&error->definition);
        fprintf(stderr, "note: %s is defined here\n", error->defined);
        pu_show_line(&error->definition);
    }
    if (error->trace) {
        int64_t count = error->trace->count;
        for (int64_t i = 0; i < count && i < STACK_SHOWN; i++) {
            PuFrame *frame = &error->trace->frames[i];
            fprintf(stderr, "  in (%s …) at %s:%d:%d\n", frame->function, frame->place.file, frame->place.line,
                    frame->place.column);
        }
        if (count > STACK_SHOWN) fprintf(stderr, "  … and %lld more calls\n", (long long)(count - STACK_SHOWN));
    }
    if (error->signature && !error->definition.file) fprintf(stderr, "  help: it is written %s\n", error->signature);
    else if (error->help) fprintf(stderr, "  help: %s\n", PU_AS(PuString, error->help)->text);
    pu.pending = NULL;
    pu_drop(pu_of_object(error));
}

/* Primitives */

Value pu_error(const Value *arguments, int count) {
    if (!pu_is_string(arguments[0])) return pu_wrong_type("error", "string", arguments[0]);
    PuBuffer text = {0};
    pu_put_value(&text, arguments[0], false);
    for (int i = 1; i < count; i++) {
        pu_put_text(&text, " ");
        pu_put_value(&text, arguments[i], true);
    }
    Value message = pu_string(text.text, (int64_t)text.length), irritants = PU_NIL;
    free(text.text);
    for (int i = count; i-- > 1;) irritants = pu_cons(pu_dup(arguments[i]), irritants);
    return pu_fail_with("error", message, irritants, 0);
}

Value pu_raise(Value v) {
    if (pu_is_error(v)) {
        pu.pending = PU_AS(PuError, pu_dup(v));
        return PU_FAILURE;
    }
    return pu_fail_with("error", PU_NIL, PU_NIL, pu_dup(v));
}

bool pu_is_error(Value v) { return pu_is(v, PU_ERROR); }

Value pu_error_message(Value v) {
    return pu_is_error(v) ? pu_dup(PU_AS(PuError, v)->message) : pu_wrong_type("error-message", "error", v);
}

Value pu_error_place(Value v) {
    if (!pu_is_error(v)) return pu_wrong_type("error-place", "error", v);
    const PuPlace *place = &PU_AS(PuError, v)->place;
    if (!place->file) return pu_string("", 0);
    char text[1024];
    int length = snprintf(text, sizeof text, "%s:%d:%d", place->file, place->line, place->column);
    return pu_string(text, length < (int)sizeof text ? length : (int)sizeof text - 1);
}

Value pu_error_kind(Value v) {
    return pu_is_error(v) ? pu_intern(PU_SYMBOL, PU_AS(PuError, v)->kind) : pu_wrong_type("error-kind", "error", v);
}

Value pu_error_irritants(Value v) {
    return pu_is_error(v) ? pu_dup(PU_AS(PuError, v)->irritants) : pu_wrong_type("error-irritants", "error", v);
}

/* The symbol's text is there until the program ends. */
Value pu_fail_as(Value kind, Value message) {
    if (!pu_is_symbol(kind)) return pu_wrong_type("%fail-as", "symbol", kind);
    if (!pu_is_string(message)) return pu_wrong_type("%fail-as", "string", message);
    return pu_fail_with(PU_AS(PuSymbol, kind)->text, pu_dup(message), PU_NIL, 0);
}

Value pu_match_failed(Value v) {
    PuBuffer text = {0};
    pu_put_text(&text, "no clause of match fits ");
    pu_put_brief(&text, v);
    return pu_fail_text("match", &text);
}

/* A value as a message shows it: its first 60 characters. */
void pu_put_brief(PuBuffer *buffer, Value v) {
    enum { SHOWN = 60 };
    PuBuffer text = {0};
    pu_put_value_start(&text, v, true, 4 * SHOWN + 1); /* no character takes more than four bytes */
    size_t at = 0;
    for (int shown = 0; at < text.length && shown < SHOWN; shown++) {
        uint32_t code;
        at += (size_t)pu_decode(text.text + at, &code);
    }
    pu_put(buffer, text.text, at);
    if (at < text.length) pu_put_text(buffer, "…");
    free(text.text);
}

void pu_put_kind(PuBuffer *buffer, const char *kind) {
#define KIND(kind, called) {kind, called},
    static const char *const KINDS[][2] = {
#include "kinds.h"
    };
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(KINDS[i][0], kind)) {
            pu_put_text(buffer, KINDS[i][1]);
            return;
        }
    const char *plain = strstr(kind, "::"); /* a record type: its name, without the module's */
    if (plain) kind = plain + 2;
    pu_put_text(buffer, *kind && strchr("AEIOUaeiou", *kind) ? "an " : "a ");
    pu_put_text(buffer, kind);
}

Value pu_fail_text(const char *kind, PuBuffer *text) {
    Value message = pu_string(text->text, (int64_t)text->length);
    free(text->text);
    return pu_fail_with(kind, message, PU_NIL, 0);
}

Value pu_wrong_type(const char *primitive, const char *wanted, Value got) {
    PuBuffer text = {0};
    pu_put_text(&text, primitive);
    pu_put_text(&text, ": expected ");
    pu_put_kind(&text, wanted);
    pu_put_text(&text, ", got ");
    pu_put_brief(&text, got);
    return pu_fail_text("type", &text);
}

Value pu_out_of_range(const char *primitive, int64_t index, int64_t length) {
    return pu_fail("index", "%s: index %lld is out of range for length %lld", primitive, (long long)index,
                   (long long)length);
}
