// What is asked of a TorchScript archive before libtorch reads it.
#pragma once

#include <memory>

namespace caffe2::serialize {
class ReadAdapterInterface;
}

namespace tenfold {

// Fails where an archive would lead libtorch beyond its own bytes, its stack or all memory.
void check_archive(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> file);

}  // namespace tenfold
