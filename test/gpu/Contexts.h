//===- Contexts.h - Contexts that last as long as a process -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_GPU_CONTEXTS_H
#define ZERO_TEST_GPU_CONTEXTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace zero::check {

/// Retains the primary contexts of |gpus| until the process ends, as PyTorch
/// does. A runtime retains and releases them, too, and the last release
/// destroys a context, which takes the driver a good part of a second to make
/// again. |arch| becomes that of the first one, such as "sm_90". Says nothing
/// where the driver cannot be used, which a runtime says better.
void holdContexts(const std::vector<int32_t> &gpus, std::string &arch);

} // namespace zero::check

#endif // ZERO_TEST_GPU_CONTEXTS_H
