/* Gradients, and what holds inside `with-device`, `with-grad` and `no-grad`. */
#include "purple_tensors.h"

Value pu_backward(Value v, Value gradient) {
    if (!pu_tensor_wanted("backward", v)) return PU_FAILURE;
    if (gradient != PU_ABSENT && !pu_tensor_wanted("backward", gradient)) return PU_FAILURE;
    int64_t count = tn_tensor_numel(pu_handle(v));
    if (gradient == PU_ABSENT && count != 1) {
        pu_fail("tensor", "backward: a tensor of %lld elements has no gradient of its own", (long long)count);
        return pu_help("take its (tensor-sum x) or (tensor-mean x), or give a gradient of its shape"), PU_FAILURE;
    }
    if (tn_requires_grad(pu_handle(v)) != 1) {
        pu_fail("tensor", "backward: nothing that this tensor was computed from asks for gradients");
        return pu_help("(requires-grad! x) asks for them"), PU_FAILURE;
    }
    tn_status status = gradient == PU_ABSENT ? tn_backward(pu_handle(v)) : tn_backward_with(pu_handle(v), pu_handle(gradient), false, false);
    pu_note_done();
    return status == TN_OK ? PU_UNSPECIFIED : pu_tensor_error("backward");
}
Value pu_tensor_grad(Value v) {
    if (!pu_tensor_wanted("tensor-grad", v)) return PU_FAILURE;
    int has = tn_has_grad(pu_handle(v));
    if (has < 0) return pu_tensor_error("tensor-grad");
    return has ? pu_of_tensor(tn_grad(pu_handle(v)), "grad") : PU_NIL;
}
Value pu_requires_grad(Value v, Value wanted) {
    if (!pu_tensor_wanted("requires-grad!", v)) return PU_FAILURE;
    bool on = wanted == PU_ABSENT || pu_truthy(wanted);
    return tn_set_requires_grad(pu_handle(v), on) == TN_OK ? v : pu_tensor_error("requires-grad!");
}
Value pu_is_requires_grad(Value v) {
    return pu_tensor_wanted("requires-grad?", v) ? pu_of_bool(tn_requires_grad(pu_handle(v)) == 1) : PU_FAILURE;
}
Value pu_detach(Value v) {
    return pu_tensor_wanted("detach", v) ? pu_of_tensor(tn_detach(pu_handle(v)), "detach") : PU_FAILURE;
}
Value pu_clear_grad(Value v) {
    if (!pu_tensor_wanted("clear-grad!", v)) return PU_FAILURE;
    return tn_set_grad(pu_handle(v), NULL) == TN_OK ? PU_UNSPECIFIED : pu_tensor_error("clear-grad!");
}
Value pu_evaluate(Value v) {
    if (pu_is(v, PU_TENSOR)) return v;
    if (!pu_is_list(v)) return pu_wrong_type("evaluate!", "list", v);
    for (Value rest = v; rest != PU_NIL; rest = PU_AS(PuPair, rest)->cdr)
        if (!pu_tensor_wanted("evaluate!", PU_AS(PuPair, rest)->car)) return PU_FAILURE;
    return v;
}

/* Scopes */

Value pu_check_device(Value name) {
    tn_device device;
    if (!pu_take_device("with-device", name, &device)) return PU_FAILURE;
    if (device.type == TN_CUDA && tn_device_count(TN_CUDA) <= (device.index < 0 ? 0 : device.index))
        return pu_fail("tensor", "with-device: there is no device \"%s\" here",
                       pu_is_keyword(name) ? PU_AS(PuSymbol, name)->text : PU_AS(PuString, name)->text);
    return PU_UNSPECIFIED;
}
PuScope pu_enter_device(Value name) {
    PuScope scope = {0, pu_default_device, true};
    tn_device device = pu_default_device;
    pu_take_device("with-device", name, &device);
    pu_default_device = device;
    return scope;
}
PuScope pu_enter_grad(void) { return (PuScope){tn_enable_grad_begin(), pu_default_device, false}; }
PuScope pu_enter_no_grad(void) { return (PuScope){tn_no_grad_begin(), pu_default_device, false}; }
void pu_leave(PuScope scope) {
    if (scope.is_device) pu_default_device = scope.device;
    else tn_scope_end(scope.grad);
}
