/* Tensors: made from C arrays, computed with, read back and freed.
 *
 *   cc -std=c99 01_tensors.c $(tenfold capi flags) -o tensors && ./tensors
 */
#include <stdio.h>
#include <tenfold.h>

int main(void) {
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[2] = {2, 3};
    char text[200];
    tn_scalar largest;

    tn_tensor *a = tn_tensor_from_data(numbers, TN_FLOAT32, shape, 2, NULL, 0);
    tn_tensor *columns = tn_t(a);
    tn_tensor *products = tn_mm(a, columns); /* every result is ours to free */
    tn_tensor *maximum = tn_max(products);
    if (maximum == NULL || tn_tensor_item(maximum, &largest) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 1;
    }
    tn_tensor_print(products, text, sizeof text);
    printf("%s\nlargest: %g\n", text, largest.as.d);

    /* In place, with a keyword argument: a += 10 * a. NULL would be alpha's default. */
    const tn_scalar ten = tn_int(10);
    tn_add_with_(a, a, &ten);
    printf("a[1, 2] = %g\n", ((const float *)tn_tensor_data(a))[5]);

    /* Several results come back in an array. */
    tn_tensor *top[2];
    if (tn_topk(a, 2, -1, true, true, top) == TN_OK) {
        tn_tensor_print(top[1], text, sizeof text);
        printf("places of the two largest in each row:\n%s\n", text);
        tn_free(top[0]);
        tn_free(top[1]);
    }

    /* Operators by name: whatever libtorch has. */
    tn_stack *stack = tn_stack_new();
    tn_stack_push_tensor(stack, a);
    tn_stack_push_int(stack, 1);
    if (tn_call("aten::cumsum", stack) != TN_OK) printf("%s\n", tn_error_message());
    tn_tensor *sums = tn_stack_pop_tensor(stack);
    tn_tensor_print(sums, text, sizeof text);
    printf("running sums:\n%s\n", text);

    tn_stack_free(stack);
    tn_free(sums);
    tn_free(maximum);
    tn_free(products);
    tn_free(columns);
    tn_free(a);
    printf("live tensors: %d\n", (int)tn_live_tensors());
    return tn_live_tensors() != 0;
}
