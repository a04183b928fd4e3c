/* callables.c: what other packages' native code may call, by R_GetCCallable; tenfold/tenfold.hpp is written over it.
 * All of these raise R conditions, so C++ calls them within R_UnwindProtect. */
#define _GNU_SOURCE
#include "bridge.h"

#include <R_ext/Rdynload.h>
#include <dlfcn.h>
#include <link.h>

static int interface_version(void) { return 2; }

/* A function of libtenfold by its name, NULL where there is none. */
static void *symbol(const char *name) {
    static void *library = NULL;
    Dl_info about;
    if (library == NULL && dladdr((void *)&tn_version, &about) != 0) library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *found = library == NULL ? NULL : dlsym(library, name);
    return found != NULL ? found : dlsym(RTLD_DEFAULT, name);
}

/* The file of a library that is loaded, libtorch's included; NULL where there is none. */
SEXP tf_library_path(SEXP name) {
    if (tn_available() != 1) raise_last();
    void *library = dlopen(CHAR(STRING_ELT(name, 0)), RTLD_LAZY | RTLD_NOLOAD);
    struct link_map *found = NULL;
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &found) != 0 || found == NULL) return R_NilValue;
    SEXP path = Rf_mkString(found->l_name);
    dlclose(library);
    return path;
}

static tn_tensor *borrowed_tensor(SEXP x) { return tensor_of(x); }

/* The handle of what jit_trace, jit_load or jit_compile gave. */
static tn_module *borrowed_module(SEXP x) {
    SEXP handle = Rf_getAttrib(x, Rf_install("handle"));
    return handle_of(handle == R_NilValue ? x : handle, MODULE);
}

/* A module, which is R's own from now on, as what jit_load or jit_trace gives. */
static SEXP give_module(tn_module *module, int is_function) {
    SEXP handle = PROTECT(give_handle(module, MODULE));
    SEXP kind = PROTECT(Rf_mkString(is_function ? "script_function" : "script_module"));
    SEXP made = Rf_eval(PROTECT(Rf_lang3(Rf_install("script_module"), handle, kind)), package_env);
    UNPROTECT(3);
    return made;
}

static void raise(int code, const char *message) { fail_with(code, "%s", message); }

static void raise_error(void) { raise_last(); }

void register_callables(void) {
    static const struct {
        const char *name;
        DL_FUNC function;
    } all[] = {
        {"tenfold_interface", (DL_FUNC)interface_version}, {"tenfold_symbol", (DL_FUNC)symbol},
        {"tenfold_tensor", (DL_FUNC)borrowed_tensor},      {"tenfold_give", (DL_FUNC)give_or_null},
        {"tenfold_value", (DL_FUNC)value_of},              {"tenfold_give_value", (DL_FUNC)value_to_r},
        {"tenfold_module", (DL_FUNC)borrowed_module},      {"tenfold_give_module", (DL_FUNC)give_module},
        {"tenfold_raise", (DL_FUNC)raise},                 {"tenfold_raise_last", (DL_FUNC)raise_error},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) R_RegisterCCallable("tenfold", all[i].name, all[i].function);
}
