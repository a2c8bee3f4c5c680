//===- Transfers.h - Copies between the model and the step ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_TRANSFERS_H
#define ZERO_EXAMPLES_TRANSFORMER_TRANSFERS_H

#include "zero_rt/step.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace transformer {

/// What one rank's model, which is on the processor, and its step exchange. If
/// the step is on the processor, too, both use the same memory, and nothing is
/// copied. If the step is on a GPU, each tensor is copied on its way.
class Transfers {
public:
  Transfers(zero_rt_runtime *runtime, bool withGpu, int rank)
      : runtime(runtime), withGpu(withGpu), rank(rank) {}
  Transfers(const Transfers &) = delete;
  Transfers &operator=(const Transfers &) = delete;
  ~Transfers();

  /// The values at |host|, for the step to read. The tensor is valid until the
  /// next call of give or makeRoom.
  zero_rt_tensor give(zero_rt_dtype dtype, int64_t elements, const void *host);

  /// A tensor that the step writes and `fetch` then brings to |host|. It is
  /// valid as that of give.
  zero_rt_tensor makeRoom(zero_rt_dtype dtype, int64_t elements, void *host);
  void fetch(const zero_rt_tensor &tensor, void *host);

  /// Where the model reads the parameter with this view: the same address in
  /// each call, and the values of now.
  const float *read(size_t parameter, const zero_rt_tensor &view);

private:
  void copy(void *dst, const void *src, int64_t bytes);

  zero_rt_runtime *runtime;
  bool withGpu;
  int rank;
  void *room = nullptr; // memory of the GPU
  int64_t roomBytes = 0;
  std::map<size_t, std::vector<float>> parameters; // as they were last read
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_TRANSFERS_H
