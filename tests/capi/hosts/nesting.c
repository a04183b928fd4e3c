/* Values in values: without end, and shared so that there are more paths than one could walk. */
#include "check.h"

int main(void) {
    char text[64];
    for (int kind = 0; kind < 3; kind++) {
        tn_value *inner = tn_value_int(1), *key = tn_value_string("next");
        int depth = 0;
        for (;; depth++) {
            tn_error_clear();
            const tn_value *items[] = {inner}, *keys[] = {key};
            tn_value *outer = kind == 0   ? tn_value_list(items, 1)
                              : kind == 1 ? tn_value_tuple(items, 1)
                                          : tn_value_dict(keys, items, 1);
            if (outer == NULL) break;
            CHECK(depth < 100000);
            tn_value_free(inner);
            inner = outer;
        }
        CHECK(tn_error_code() == TN_ERROR_ARGUMENT && depth >= 500);
        CHECK(tn_value_print(inner, text, sizeof text) > 0);
        tn_value_free(inner);
        tn_value_free(key);
    }
    tn_value *shared = tn_value_int(1);
    for (int i = 0; i < 200; i++) {
        const tn_value *items[] = {shared, shared};
        tn_value *pair = i % 2 ? tn_value_tuple(items, 2) : tn_value_list(items, 2);
        CHECK(pair != NULL);
        tn_value_free(shared);
        shared = pair;
    }
    tn_value_free(shared);
    return tn_live_objects() != 0;
}
