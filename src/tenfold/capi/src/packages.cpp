// Models that AOTInductor compiled: .pt2 packages.
#include <fstream>

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "values.h"

namespace tenfold {

using Package = torch::inductor::AOTIModelPackageLoader;

OPAQUE(tn_package, std::shared_ptr<Package>, package)

}  // namespace tenfold

using namespace tenfold;

tn_package *tn_package_load(const char *path, const char *model) {
    return guarded("tn_package_load", static_cast<tn_package *>(nullptr), [&] {
        if (!std::ifstream(text(path, "path"), std::ios::binary)) {
            fail(TN_ERROR_NOT_FOUND, "the file ", path, " cannot be opened");
        }
        return own_as<tn_package>(std::make_shared<Package>(path, model == nullptr ? "model" : model));
    });
}

void tn_package_free(tn_package *package) {
    freeing("tn_package_free", [&] { release(package); });
}

tn_status tn_package_run(const tn_package *package, const tn_tensor *const *inputs, int64_t inputs_count,
                         tn_tensor ***out, int64_t *out_count) {
    return guarded_status("tn_package_run", [&] {
        auto loaded = *borrow(package, "package");
        own_list(loaded->run(tensors(inputs, inputs_count, "inputs")), out, out_count);
    });
}

tn_value *tn_package_metadata(const tn_package *package) {
    return guarded("tn_package_metadata", static_cast<tn_value *>(nullptr), [&] {
        c10::Dict<std::string, std::string> found;
        for (const auto &[key, value] : (*borrow(package, "package"))->get_metadata())
            found.insert(key, value);
        return own_value(found);
    });
}
