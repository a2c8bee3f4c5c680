//===- runtime.h - One rank -------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_RUNTIME_H
#define ZERO_RT_CORE_RUNTIME_H

#include "comm/communicator.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "zero_rt/library.h"

#include <set>

struct zero_rt_runtime {
  zero_rt_runtime(zero_rt_group &group, int32_t rank, int32_t threads,
                  bool poison);

  const zero_rt_calls *calls; // first, see library.h
  int32_t rank;
  int32_t ranks;
  bool poison;
  int64_t steps = 0;       // that live
  uint64_t timepoints = 0; // given out, 0 aside
  /// Release points of gradients that still lie with the caller.
  std::set<zero_rt_timepoint> unreleased;
  zero_rt_counters counters = {};
  zero_rt::Memory memory{counters};
  zero_rt::ThreadPool pool;
  // After the pool, which it uses.
  std::unique_ptr<zero_rt::Communicator> communicator;
};

#endif // ZERO_RT_CORE_RUNTIME_H
