//===- runtime.h - One rank -------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_RUNTIME_H
#define ZERO_RT_CORE_RUNTIME_H

#include "comm/communicator.h"
#include "core/handle.h"
#include "core/memory.h"
#include "core/nvtx.h"
#include "zero_rt/library.h"

#include <memory>
#include <set>

namespace zero_rt {

struct Runtime {
  Runtime(Group &group, int32_t rank, std::unique_ptr<Device> device,
          const zero_rt_options &options);
  ~Runtime();

  zero_rt_runtime *handle = nullptr; // null until the caller has it
  int32_t rank;
  int32_t ranks;
  bool poison;
  bool checkPreconditions;
  bool findNonfinite;
  int64_t timeoutMs = 0;   // of waits for other ranks
  int64_t steps = 0;       // that exist
  uint64_t timepoints = 0; // given out, 0 aside
  /// Release points of gradients that wait in the caller's memory.
  std::set<zero_rt_timepoint> unreleased;
  zero_rt_counters counters = {};
  std::unique_ptr<Device> device;
  std::set<void *> lent; // from zero_rt_allocate, and not yet released
  // Declared after the device, which these members use.
  Memory memory{*device, counters};
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Messenger> messenger;
  std::unique_ptr<Trace> trace; // null without one
  std::unique_ptr<Nvtx> nvtx;   // null without ranges

  bool isTraced() const { return trace || nvtx; }
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_RUNTIME_H
