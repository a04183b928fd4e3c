// An LLTM against libtorch, for tensors that R made; and R's script functions called as libtorch's own.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/jit.h>

#include <tenfold.hpp>
// after it, since it decides how functions of tenfold.h are found
#include <tenfold/torch.h>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor d_sigmoid(const at::Tensor &z) {
    const at::Tensor s = at::sigmoid(z);
    return s * (1 - s);
}

at::Tensor d_elu(const at::Tensor &z) { return at::where(z > 0, at::ones_like(z), at::exp(z)); }

// The new hidden state and cell, with a backward pass that is written by hand.
struct Step : torch::autograd::Function<Step> {
    static variable_list forward(AutogradContext *context, const at::Tensor &input, const at::Tensor &weight,
                                 const at::Tensor &bias, const at::Tensor &hidden, const at::Tensor &cell) {
        const at::Tensor both = at::cat({hidden, input}, 1);
        const at::Tensor gates = at::addmm(bias, both, weight.transpose(0, 1));
        const auto parts = gates.chunk(3, 1);
        const at::Tensor in = at::sigmoid(parts[0]), out = at::sigmoid(parts[1]), candidate = at::elu(parts[2]);
        const at::Tensor new_cell = cell + candidate * in;
        const at::Tensor new_hidden = at::tanh(new_cell) * out;
        context->save_for_backward({new_cell, in, out, candidate, both, gates, weight});
        return {new_hidden, new_cell};
    }

    static variable_list backward(AutogradContext *context, variable_list gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor &new_cell = saved[0], &in = saved[1], &out = saved[2], &candidate = saved[3];
        const at::Tensor &both = saved[4], &gates = saved[5], &weight = saved[6];
        const at::Tensor squashed = at::tanh(new_cell);
        const at::Tensor d_cell = squashed.pow(2).neg().add(1) * out * gradients[0] + gradients[1];
        const auto parts = gates.chunk(3, 1);
        const at::Tensor d_in = d_cell * candidate * d_sigmoid(parts[0]);
        const at::Tensor d_out = squashed * gradients[0] * d_sigmoid(parts[1]);
        const at::Tensor d_candidate = d_cell * in * d_elu(parts[2]);
        const at::Tensor d_gates = at::cat({d_in, d_out, d_candidate}, 1);
        const at::Tensor d_both = d_gates.mm(weight);
        const int64_t size = new_cell.size(1);
        return {d_both.slice(1, size), d_gates.t().mm(both), d_gates.sum(0, true), d_both.slice(1, 0, size), d_cell};
    }
};

at::Tensor torch_tensor(SEXP x) {
    tenfold::Tensor handle = tenfold::tensor(x);
    return tenfold::to_torch(handle.get());
}

SEXP wrapped(const at::Tensor &tensor) { return tenfold::wrap(tenfold::Tensor(tenfold::from_torch(tensor))); }

SEXP lltm_step(SEXP input, SEXP weight, SEXP bias, SEXP hidden, SEXP cell) {
    return tenfold::entry([&] {
        const variable_list state = Step::apply(torch_tensor(input), torch_tensor(weight), torch_tensor(bias),
                                                torch_tensor(hidden), torch_tensor(cell));
        SEXP list = PROTECT(tenfold::safely([] { return Rf_allocVector(VECSXP, 2); }));
        for (int i = 0; i < 2; i++) SET_VECTOR_ELT(list, i, wrapped(state[i]));
        UNPROTECT(1);
        return list;
    });
}

SEXP run_graph_function(SEXP fn, SEXP inputs) {
    return tenfold::entry([&] {
        tenfold::Function kept = tenfold::function(fn);
        tenfold::Stack given = tenfold::stack(inputs);
        torch::jit::Function &function = tenfold::to_torch(kept.get());
        const c10::IValue result = function(tenfold::to_torch(given.get()));
        tenfold::Stack results(tenfold::from_torch(torch::jit::Stack{result}));
        return tenfold::wrap(results);
    });
}

// TorchScript's source of one function, compiled by libtorch here and called by R.
SEXP compiled_function(SEXP source) {
    return tenfold::entry([&] {
        if (TYPEOF(source) != STRSXP || Rf_xlength(source) != 1) throw tenfold::error(TN_ERROR_TYPE, "a source is one string");
        auto unit = torch::jit::compile(CHAR(STRING_ELT(source, 0)) + std::string("\n"));  // which the parser wants last
        const auto defined = unit->get_functions();
        if (defined.size() != 1) throw tenfold::error(TN_ERROR_ARGUMENT, "a source defines one function");
        return tenfold::wrap(tenfold::own(tenfold::from_torch(*defined[0], unit)));
    });
}

const R_CallMethodDef methods[] = {
    {"lltm_step", reinterpret_cast<DL_FUNC>(lltm_step), 5},
    {"run_graph_function", reinterpret_cast<DL_FUNC>(run_graph_function), 2},
    {"compiled_function", reinterpret_cast<DL_FUNC>(compiled_function), 1},
    {nullptr, nullptr, 0},
};

}  // namespace

extern "C" void R_init_tenfoldlltm(DllInfo *info) {
    R_registerRoutines(info, nullptr, methods, nullptr, nullptr);
    R_useDynamicSymbols(info, FALSE);
    // Another libtorch than tenfold's is refused here, at load, and not in the middle of a program.
    tenfold::entry([] {
        tenfold::check_libtorch();
        return R_NilValue;
    });
}
