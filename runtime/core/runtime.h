//===- runtime.h - One rank -------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_RUNTIME_H
#define ZERO_RT_CORE_RUNTIME_H

#include "comm/communicator.h"
#include "core/memory.h"
#include "zero_rt/library.h"

#include <memory>
#include <set>

namespace zero_rt {

/// The second word of what a caller holds, so that a runtime passed as a step,
/// or the other way round, is found out. Cleared when the object goes: what was
/// destroyed is found out as long as its memory has no other use.
enum class Handle : uint64_t {
  None = 0,
  Runtime = 0x7a65726f2d727431,
  Step = 0x7a65726f2d737431
};

} // namespace zero_rt

struct zero_rt_runtime {
  zero_rt_runtime(zero_rt_group &group, int32_t rank,
                  std::unique_ptr<zero_rt::Device> device,
                  const zero_rt_options &options);
  ~zero_rt_runtime() { handle = zero_rt::Handle::None; }

  const zero_rt_calls *calls; // first, see library.h
  volatile zero_rt::Handle handle = zero_rt::Handle::Runtime;
  int32_t rank;
  int32_t ranks;
  bool poison;
  bool checkPromises;
  bool findNonfinite;
  int64_t steps = 0;       // that live
  uint64_t timepoints = 0; // given out, 0 aside
  /// Release points of gradients that still lie with the caller.
  std::set<zero_rt_timepoint> unreleased;
  zero_rt_counters counters = {};
  std::unique_ptr<zero_rt::Device> device;
  // After the device, which they use.
  zero_rt::Memory memory{*device, counters};
  std::unique_ptr<zero_rt::Communicator> communicator;
  std::unique_ptr<zero_rt::Mail> mail;
};

#endif // ZERO_RT_CORE_RUNTIME_H
