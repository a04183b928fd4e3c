/* Trace a C function into a TorchScript module: print its graph, call it, save it, load it, and
 * meet an error. */
#include <stdio.h>
#include <string.h>
#include <tenfold.h>

/* relu(x) * x, summed over the last dimension. */
static tn_status squares(const tn_tensor *const *inputs, int64_t inputs_count, tn_tensor **outputs,
                         int64_t outputs_count, void *user) {
    const int64_t last = -1;
    (void)user;
    if (inputs_count != 1 || outputs_count != 1) return tn_fail("one tensor in, one tensor out");
    tn_tensor *positive = tn_relu(inputs[0]);
    tn_tensor *product = positive == NULL ? NULL : tn_mul(positive, inputs[0]);
    outputs[0] = product == NULL ? NULL : tn_sum_dim_IntList(product, &last, 1, false);
    tn_free(positive);
    tn_free(product);
    return outputs[0] == NULL ? tn_error_code() : TN_OK;
}

/* Call a module on a 2 x 3 tensor and print what it gives. */
static int show(const tn_module *module) {
    const float numbers[] = {1, -2, 3, -4, 5, 6};
    const int64_t shape[] = {2, 3};
    char text[256];
    tn_tensor *x = tn_tensor_from_data(numbers, TN_FLOAT32, shape, 2, NULL, 0);
    const tn_tensor *const inputs[] = {x};
    tn_tensor *result = x == NULL ? NULL : tn_module_forward(module, inputs, 1);
    const int failed = result == NULL || tn_tensor_print(result, text, sizeof text) < 0;
    if (!failed) printf("%s\n", text);
    tn_free(x);
    tn_free(result);
    return failed;
}

static int run(const char *path) {
    const int64_t shape[] = {4, 3};
    char graph[4096];
    int failed = 1;
    tn_tensor *example = tn_ones(shape, 2);
    const tn_tensor *const inputs[] = {example};
    tn_module *traced = example == NULL ? NULL : tn_module_trace(squares, inputs, 1, 1, NULL);
    tn_module *loaded = NULL;
    if (traced != NULL && tn_module_graph(traced, "forward", graph, sizeof graph) > 0 && show(traced) == 0) {
        printf("the graph %s aten::relu\n", strstr(graph, "aten::relu") != NULL ? "has" : "lacks");
        if (tn_module_save(traced, path) == TN_OK) loaded = tn_module_load(path, NULL);
        if (loaded != NULL) failed = show(loaded);
    }
    tn_module_free(traced);
    tn_module_free(loaded);
    tn_free(example);
    return failed;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s traced.pt\n", arguments[0]);
        return 2;
    }
    int failed = run(arguments[1]);
    if (failed) fprintf(stderr, "%s\n", tn_error_message());
    tn_module *missing = tn_module_load("/nowhere/module.pt", NULL);
    if (missing == NULL) {
        printf("%s: %s\n", tn_error_name(tn_error_code()), tn_error_message());
        tn_error_clear();
    }
    tn_module_free(missing);
    printf("%d tensors left\n", (int)tn_live_tensors());
    return failed || tn_live_tensors() != 0 || tn_live_objects() != 0;
}
