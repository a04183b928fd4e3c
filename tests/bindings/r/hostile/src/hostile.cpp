// Native code that throws, jumps and hands over nothing where it should not.
#include <tenfold.hpp>

#include <new>

using tenfold::Tensor;
using tenfold::own;

namespace {

SEXP throw_kind(SEXP kind, SEXP x) {
    return tenfold::entry([&]() -> SEXP {
        Tensor held = tenfold::tensor(x);
        switch (Rf_asInteger(kind)) {
        case 0: throw std::bad_alloc();
        case 1: throw 42;
        case 2: throw std::runtime_error(std::string(2046, '%') + "\xc3\xa9");  // cut inside its last character
        default: throw std::runtime_error("caf\xc3\xa9 \xff %s%n");
        }
    });
}

SEXP throw_within_r(SEXP x) {
    return tenfold::entry([&] {
        Tensor held = tenfold::tensor(x);
        return tenfold::safely([]() -> SEXP { throw std::runtime_error("within R"); });
    });
}

SEXP call_after(SEXP fn, SEXP first, SEXP inputs) {
    return tenfold::entry([&] {
        tenfold::Function function = tenfold::function(fn);
        tenfold::safely([&] { return Rf_eval(Rf_lang1(first), R_GlobalEnv); });
        tenfold::Stack stack = tenfold::stack(inputs);
        function(stack);
        return tenfold::wrap(stack);
    });
}

SEXP go_on_after_errors(SEXP x) {
    return tenfold::entry([&] {
        Tensor held = tenfold::tensor(x);
        int caught = 0;
        for (int i = 0; i < 500; i++) {
            try {
                Tensor product = own(TENFOLD(tn_mm)(held.get(), held.get()));
            } catch (const tenfold::error &) {
                caught++;
            }
        }
        return tenfold::safely([&] { return Rf_ScalarInteger(caught); });
    });
}

SEXP nothing(SEXP kind) {
    return tenfold::entry([&] {
        switch (Rf_asInteger(kind)) {
        case 0: return tenfold::wrap(Tensor());
        case 1: return tenfold::wrap(tenfold::Value());
        case 2: return tenfold::wrap(tenfold::Module());
        case 3: return tenfold::wrap(tenfold::Function());
        default: return tenfold::wrap(tenfold::Stack());
        }
    });
}

SEXP again(SEXP x, SEXP f, SEXP n) {
    return tenfold::entry([&] {
        Tensor held = tenfold::tensor(x), kept = own(TENFOLD(tn_clone)(held.get()));
        SEXP found = PROTECT(tenfold::safely([&] { return Rf_eval(Rf_lang3(f, x, n), R_GlobalEnv); }));
        Tensor result = tenfold::tensor(found);
        UNPROTECT(1);
        return tenfold::wrap(own(TENFOLD(tn_add)(kept.get(), result.get())));
    });
}

const R_CallMethodDef methods[] = {
    {"throw", reinterpret_cast<DL_FUNC>(throw_kind), 2},
    {"throw_within_r", reinterpret_cast<DL_FUNC>(throw_within_r), 1},
    {"call_after", reinterpret_cast<DL_FUNC>(call_after), 3},
    {"go_on_after_errors", reinterpret_cast<DL_FUNC>(go_on_after_errors), 1},
    {"nothing", reinterpret_cast<DL_FUNC>(nothing), 1},
    {"again", reinterpret_cast<DL_FUNC>(again), 3},
    {nullptr, nullptr, 0},
};

}  // namespace

extern "C" void R_init_hostile(DllInfo *info) {
    R_registerRoutines(info, nullptr, methods, nullptr, nullptr);
    R_useDynamicSymbols(info, FALSE);
}
