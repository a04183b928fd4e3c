/* Files of tensors, and modules that TorchScript wrote. */
#include "purple_tensors.h"

#include <stdlib.h>

static Value file_failure(const char *name, const char *path) {
    const char *why = tn_error_message(), *named = strstr(why, path); /* it may say which file already */
    Value failed = named ? pu_fail("file", "%s: %s", name, named) : pu_fail("file", "%s: %s: %s", name, path, why);
    tn_error_clear();
    return failed;
}

static const char *tensor_path(const char *name, Value path) {
    if (!pu_is_string(path)) return pu_wrong_type(name, "string", path), NULL;
    const char *text = PU_AS(PuString, path)->text;
    size_t length = strlen(text);
    if (length < 12 || strcmp(text + length - 12, ".safetensors"))
        return pu_fail("file", "%s: %s does not end in .safetensors", name, text), NULL;
    return text;
}

Value pu_tensor_load(Value path) {
    const char *text = tensor_path("tensor-load", path);
    if (!text) return PU_FAILURE;
    tn_value *dict = tn_load_safetensors(text);
    if (!dict) return file_failure("tensor-load", text);
    Value table = pu_make_hash_table();
    int64_t count = tn_value_count(dict);
    for (int64_t i = 0; i < count; i++) {
        tn_value *key = tn_value_key_at(dict, i), *item = tn_value_at(dict, i);
        int64_t length = tn_value_to_string(key, NULL, 0);
        char *name = pu_get_memory((size_t)length + 1);
        tn_value_to_string(key, name, length + 1);
        Value key_value = pu_string(name, length), tensor = pu_of_tensor(tn_value_to_tensor(item), "load");
        free(name);
        tn_value_free(key);
        tn_value_free(item);
        if (!tensor) {
            pu_drop(key_value);
            break;
        }
        pu_hash_table_set(table, key_value, tensor);
    }
    tn_value_free(dict);
    if (!pu.pending) return table;
    pu_drop(table);
    return PU_FAILURE;
}

Value pu_tensor_save(Value path, Value tensors) {
    const char *text = tensor_path("tensor-save", path);
    if (!text) return PU_FAILURE;
    tn_status status;
    if (pu_is(tensors, PU_TENSOR)) {
        const char *name = "tensor";
        const tn_tensor *one = pu_handle(tensors);
        status = tn_save_safetensors(text, &name, &one, 1);
    } else {
        if (!pu_is_hash_table(tensors)) return pu_wrong_type("tensor-save", "table", tensors);
        PuTable *table = PU_AS(PuTable, tensors);
        const char **names = pu_get_memory(((size_t)table->count + 1) * sizeof *names);
        const tn_tensor **handles = pu_get_memory(((size_t)table->count + 1) * sizeof *handles);
        int64_t count = 0;
        for (int64_t i = 0; i < table->used && !pu.pending; i++) {
            PuEntry *entry = &table->entries[i];
            if (!entry->key) continue;
            if (!pu_is_string(entry->key)) pu_wrong_type("tensor-save", "string", entry->key);
            else if (pu_tensor_wanted("tensor-save", entry->value)) {
                names[count] = PU_AS(PuString, entry->key)->text;
                handles[count++] = pu_handle(entry->value);
            }
        }
        status = pu.pending ? TN_OK : tn_save_safetensors(text, names, handles, count);
        free(names);
        free(handles);
        if (pu.pending) return PU_FAILURE;
    }
    return status == TN_OK ? PU_UNSPECIFIED : file_failure("tensor-save", text);
}

Value pu_jit_load(Value path) {
    if (!pu_is_string(path)) return pu_wrong_type("jit-load", "string", path);
    tn_module *module = tn_module_load(PU_AS(PuString, path)->text, NULL);
    if (!module) return file_failure("jit-load", PU_AS(PuString, path)->text);
    PuTensor *object = pu_allocate(PU_MODULE, sizeof(PuTensor));
    object->handle = module;
    object->maker = "module";
    return pu_of_object(object);
}

Value pu_call_module(Value module, Value *arguments, int count) {
    const tn_tensor *inputs[PU_MOST_ARGUMENTS];
    if (count > PU_MOST_ARGUMENTS) return pu_fail("arity", "a module takes at most %d arguments", PU_MOST_ARGUMENTS);
    for (int i = 0; i < count; i++) {
        if (!pu_tensor_wanted("module", arguments[i])) return PU_FAILURE;
        inputs[i] = pu_handle(arguments[i]);
    }
    return pu_of_tensor(tn_module_forward(PU_AS(PuTensor, module)->handle, inputs, count), "module");
}
