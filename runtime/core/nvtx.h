//===- nvtx.h - Ranges for a profiler of NVIDIA -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_NVTX_H
#define ZERO_RT_CORE_NVTX_H

#include "core/trace.h"

namespace zero_rt {

/// Marks calls as ranges of NVTX, which Nsight Systems shows beside the work
/// that they queue. The library is loaded at run time.
class Nvtx {
public:
  /// Error: unsupported (the library is not installed).
  static zero_rt_status open(std::unique_ptr<Nvtx> &out);

  /// Begins a range of this thread, with the name of the call of |span|.
  void push(const Span &span) const;
  /// Ends it.
  void pop() const { rangePop(); }

private:
  int (*rangePush)(const char *name) = nullptr;
  int (*rangePop)() = nullptr;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_NVTX_H
