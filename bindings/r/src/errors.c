/* errors.c: failures of libtenfold and of this package as R conditions of class tenfold_error. */
#include "bridge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

SEXP package_env = NULL;
SEXP callback_error = NULL;
int tracing = 0;

/* How many bytes the character at a place takes in UTF-8; 0 where none is written right. */
static size_t character_bytes(const unsigned char *at) {
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    if (at[0] == 0xe0 && at[1] < 0xa0) return 0; /* written longer than needed */
    if (at[0] == 0xed && at[1] > 0x9f) return 0; /* a half of a surrogate pair */
    if (at[0] == 0xf0 && at[1] < 0x90) return 0;
    if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
    return bytes;
}

/* A message may quote bytes of any kind, or have been cut inside a character: what is no UTF-8 becomes '?'. */
static SEXP readable(const char *text) {
    char *copy = R_alloc(strlen(text) + 1, 1);
    strcpy(copy, text);
    for (char *at = copy; *at != 0;) {
        size_t bytes = character_bytes((unsigned char *)at);
        if (bytes == 0) *at = '?';
        at += bytes == 0 ? 1 : bytes;
    }
    return Rf_mkCharCE(copy, CE_UTF8);
}

static void signal_condition(int code, const char *text) __attribute__((noreturn));
static void signal_condition(int code, const char *text) {
    SEXP message = PROTECT(Rf_ScalarString(readable(text)));
    SEXP name = PROTECT(Rf_mkString(tn_error_name(code)));
    SEXP call = PROTECT(Rf_lang4(Rf_install("signal_tenfold_error"), message, Rf_ScalarInteger(code), name));
    Rf_eval(call, package_env);
    Rf_error("%s", text); /* not reached: the function stops */
}

void raise_last(void) {
    int code = tn_error_code();
    const char *message = tn_error_message();
    char *text = R_alloc(strlen(message) + 1, 1);
    strcpy(text, message);
    tn_error_clear();
    SEXP condition = VECTOR_ELT(callback_error, 0);
    if (code == TN_ERROR_CALLBACK && condition != R_NilValue) {
        PROTECT(condition);
        SET_VECTOR_ELT(callback_error, 0, R_NilValue);
        Rf_eval(PROTECT(Rf_lang2(Rf_install("resignal"), condition)), package_env);
    }
    signal_condition(code == TN_OK ? TN_ERROR_INTERNAL : code, text);
}

void fail_with(int code, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    signal_condition(code, text);
}

const char *as_r_writes(double number) {
    SEXP text = PROTECT(Rf_asChar(PROTECT(Rf_ScalarReal(number))));
    char *copy = R_alloc(strlen(CHAR(text)) + 1, 1);
    strcpy(copy, CHAR(text));
    UNPROTECT(2);
    return copy;
}
