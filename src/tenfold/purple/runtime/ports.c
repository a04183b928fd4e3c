/* What of ports is native: where output goes, files that are written, and the terminal's input. A port itself is a record
   of ports.purple, whose fields stand here in the same order. */
#include "purple_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIRECTION, BINARY, OPEN, SOURCE, REST };

static FILE **files; /* by handle; NULL where closed */
static int64_t file_count;

static bool is_named(Value v, const char *name) { return pu_is_symbol(v) && !strcmp(PU_AS(PuSymbol, v)->text, name); }

static Value file_failed(const char *name) { return pu_fail("file", "%s: %s", name, strerror(errno)); }

/* Whether a port is one that can be written to, and of this sort. */
static bool takes(const char *name, Value port, bool binary) {
    if (!pu_is_port(port)) return pu_wrong_type(name, "port", port), false;
    Value *fields = PU_AS(PuRecord, port)->fields;
    if (!is_named(fields[DIRECTION], "out")) return pu_fail("type", "%s: this port is for input", name), false;
    if (fields[BINARY] != pu_of_bool(binary))
        return pu_fail("type", "%s: this port is for %s", name, binary ? "text" : "bytes"), false;
    if (fields[OPEN] != PU_TRUE) return pu_fail("file", "%s: this port is closed", name), false;
    return true;
}

static Value written(const char *name, Value source, const void *bytes, size_t count) {
    if (is_named(source, "out") || is_named(source, "err")) {
        fwrite(bytes, 1, count, is_named(source, "out") ? stdout : stderr);
        return PU_UNSPECIFIED;
    }
    int64_t handle = pu_int(source);
    if (handle < 0 || handle >= file_count || !files[handle]) return pu_fail("file", "%s: this port is closed", name);
    return fwrite(bytes, 1, count, files[handle]) == count ? PU_UNSPECIFIED : file_failed(name);
}

/* What is kept in memory is a list, the last part first. It only grows: nobody who looks at it is disturbed. */
static Value put(const char *name, Value port, Value item, const void *bytes, size_t count) {
    Value *fields = PU_AS(PuRecord, port)->fields;
    if (fields[SOURCE] != PU_FALSE) {
        pu_drop(item);
        return written(name, fields[SOURCE], bytes, count);
    }
    fields[REST] = pu_cons(item, fields[REST]);
    return PU_UNSPECIFIED;
}

Value pu_send(const char *name, Value port, const char *text, size_t length) {
    return takes(name, port, false) ? put(name, port, pu_string(text, (int64_t)length), text, length) : PU_FAILURE;
}

Value pu_send_byte(Value byte, Value port) {
    int64_t number;
    if (!pu_take_int("write-u8", byte, &number)) return PU_FAILURE;
    if (number < 0 || number > 255)
        return pu_fail("index", "write-u8: %lld is no byte: it is from 0 to 255", (long long)number);
    uint8_t content = (uint8_t)number;
    return takes("write-u8", port, true) ? put("write-u8", port, byte, &content, 1) : PU_FAILURE;
}

Value pu_output_port(void) { return pu.output ? pu_dup(pu.output) : PU_FALSE; }

Value pu_set_output(Value port) {
    if (!takes("current-output-port", port, false)) return PU_FAILURE;
    Value old = pu.output;
    pu.output = is_named(PU_AS(PuRecord, port)->fields[SOURCE], "out") ? 0 : pu_dup(port);
    if (old) pu_drop(old);
    return PU_UNSPECIFIED;
}

Value pu_open_output(Value path, Value mode) {
    if (!pu_is_string(path)) return pu_wrong_type("open-output-file", "string", path);
    if (!pu_is_string(mode)) return pu_wrong_type("open-output-file", "string", mode);
    FILE *file = fopen(PU_AS(PuString, path)->text, PU_AS(PuString, mode)->text);
    if (!file) return pu_fail("file", "open-output-file: %s: %s", PU_AS(PuString, path)->text, strerror(errno));
    FILE **more = realloc(files, (size_t)(file_count + 1) * sizeof *files);
    if (!more) {
        fclose(file);
        return pu_fail("memory", "out of memory");
    }
    files = more;
    files[file_count] = file;
    return pu_of_fixnum(file_count++);
}

static FILE **file_of(Value handle) {
    bool known = pu_is_fixnum(handle) && pu_fixnum(handle) >= 0 && pu_fixnum(handle) < file_count;
    return known && files[pu_fixnum(handle)] ? &files[pu_fixnum(handle)] : NULL;
}

Value pu_close_output(Value handle) {
    FILE **file = file_of(handle);
    if (!file) return PU_UNSPECIFIED;
    bool closed = fclose(*file) == 0;
    *file = NULL;
    return closed ? PU_UNSPECIFIED : file_failed("close-port");
}

Value pu_flush_output(Value handle) {
    FILE **file = file_of(handle);
    return fflush(file ? *file : stdout) == 0 ? PU_UNSPECIFIED : file_failed("flush-output-port");
}

Value pu_read_bytes(Value path) {
    if (!pu_is_string(path)) return pu_wrong_type("open-binary-input-file", "string", path);
    const char *name = PU_AS(PuString, path)->text;
    FILE *file = fopen(name, "rb");
    if (!file) return pu_fail("file", "open-binary-input-file: %s: %s", name, strerror(errno));
    PuBuffer content = {0};
    pu_put(&content, "", 0);
    char part[4096];
    size_t got;
    while ((got = fread(part, 1, sizeof part, file)) > 0) pu_put(&content, part, got);
    bool failed = ferror(file);
    fclose(file);
    Value bytes = failed ? file_failed("open-binary-input-file") : pu_bytes(content.text, (int64_t)content.length);
    free(content.text);
    return bytes;
}

/* The next line of the terminal's input with its end; #f after the last. */
Value pu_console_line(void) {
    char *line = NULL;
    size_t room = 0;
    fflush(stdout);
    ssize_t length = getline(&line, &room, stdin);
    Value text = PU_FALSE;
    if (length >= 0) text = pu_is_utf8(line, length) ? pu_string(line, length) : pu_fail("file", "read-line: not valid UTF-8");
    free(line);
    return text;
}

void pu_end_ports(void) {
    for (int64_t i = 0; i < file_count; i++)
        if (files[i]) fclose(files[i]);
    free(files);
    files = NULL;
    file_count = 0;
    if (pu.output) pu_drop(pu.output);
    pu.output = 0;
}
