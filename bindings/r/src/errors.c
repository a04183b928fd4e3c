/* errors.c: failures of libtenfold and of this package as R conditions of class tenfold_error. */
#include "bridge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

SEXP package_env = NULL;
SEXP callback_error = NULL;
int tracing = 0;

static void signal_condition(int code, const char *text) __attribute__((noreturn));
static void signal_condition(int code, const char *text) {
    SEXP message = PROTECT(Rf_ScalarString(Rf_mkCharCE(text, CE_UTF8)));
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
