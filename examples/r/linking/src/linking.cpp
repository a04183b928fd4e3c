// R functions, lists and tensors in C++ that links nothing of Tenfold's. Errors of libtorch, of C++ and of R all come back to
// R as conditions, with every handle freed.
#include <tenfold.hpp>

using tenfold::Tensor;
using tenfold::own;

namespace {

SEXP run_script_function(SEXP fn, SEXP inputs) {
    return tenfold::entry([&] {
        tenfold::Function function = tenfold::function(fn);
        tenfold::Stack stack = tenfold::stack(inputs);
        function(stack);
        return tenfold::wrap(stack);
    });
}

// A method of a script module as a script function of its own.
SEXP script_method(SEXP module, SEXP name) {
    return tenfold::entry([&] {
        if (TYPEOF(name) != STRSXP || Rf_xlength(name) != 1) throw tenfold::error(TN_ERROR_TYPE, "a method has one name");
        return tenfold::wrap(tenfold::function(module, CHAR(STRING_ELT(name, 0))));
    });
}

Tensor gate(const Tensor &gates, int64_t part, int64_t size) {
    const int64_t start = part * size;
    return own(TENFOLD(tn_narrow)(gates.get(), 1, start, size));
}

SEXP lltm_cell(SEXP input, SEXP weight, SEXP bias, SEXP hidden, SEXP cell) {
    return tenfold::entry([&] {
        Tensor x = tenfold::tensor(input), w = tenfold::tensor(weight), b = tenfold::tensor(bias);
        Tensor old_hidden = tenfold::tensor(hidden), old_cell = tenfold::tensor(cell);
        const tn_tensor *parts[] = {old_hidden.get(), x.get()};
        Tensor both = own(TENFOLD(tn_cat)(parts, 2, 1));
        Tensor gates = own(TENFOLD(tn_linear)(both.get(), w.get(), b.get()));
        const int64_t size = TENFOLD(tn_tensor_size)(old_cell.get(), 1);
        Tensor in = own(TENFOLD(tn_sigmoid)(gate(gates, 0, size).get()));
        Tensor out = own(TENFOLD(tn_sigmoid)(gate(gates, 1, size).get()));
        Tensor candidate = own(TENFOLD(tn_tanh)(gate(gates, 2, size).get()));
        Tensor change = own(TENFOLD(tn_mul)(candidate.get(), in.get()));
        Tensor new_cell = own(TENFOLD(tn_add)(old_cell.get(), change.get()));
        Tensor squashed = own(TENFOLD(tn_tanh)(new_cell.get()));
        Tensor new_hidden = own(TENFOLD(tn_mul)(squashed.get(), out.get()));
        SEXP list = PROTECT(tenfold::safely([] { return Rf_allocVector(VECSXP, 2); }));
        SET_VECTOR_ELT(list, 0, tenfold::wrap(std::move(new_hidden)));
        SET_VECTOR_ELT(list, 1, tenfold::wrap(std::move(new_cell)));
        UNPROTECT(1);
        return list;
    });
}

SEXP there_and_back(SEXP x) {
    return tenfold::entry([&] {
        if (Rf_inherits(x, "script_function")) return tenfold::wrap(tenfold::function(x));
        if (Rf_inherits(x, "script_module")) return tenfold::wrap(tenfold::module(x));
        return tenfold::wrap(tenfold::value(x));
    });
}

SEXP map_tensor(SEXP x, SEXP fn) {
    return tenfold::entry([&] {
        Tensor given = tenfold::tensor(x);
        Tensor kept = own(TENFOLD(tn_clone)(given.get()));  // freed whatever the function does
        SEXP found = PROTECT(tenfold::safely([&] { return Rf_eval(Rf_lang2(fn, x), R_GlobalEnv); }));
        Tensor result = tenfold::tensor(found);
        UNPROTECT(1);
        return tenfold::wrap(own(TENFOLD(tn_add)(kept.get(), result.get())));
    });
}

const R_CallMethodDef methods[] = {
    {"run_script_function", reinterpret_cast<DL_FUNC>(run_script_function), 2},
    {"script_method", reinterpret_cast<DL_FUNC>(script_method), 2},
    {"lltm_cell", reinterpret_cast<DL_FUNC>(lltm_cell), 5},
    {"there_and_back", reinterpret_cast<DL_FUNC>(there_and_back), 1},
    {"map_tensor", reinterpret_cast<DL_FUNC>(map_tensor), 2},
    {nullptr, nullptr, 0},
};

}  // namespace

extern "C" void R_init_tenfoldlinking(DllInfo *info) {
    R_registerRoutines(info, nullptr, methods, nullptr, nullptr);
    R_useDynamicSymbols(info, FALSE);
}
