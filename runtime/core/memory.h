//===- memory.h - The allocator and its counters ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the host device both spaces are the same memory, and are counted
// separately, so that offload is visible without a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_MEMORY_H
#define ZERO_RT_CORE_MEMORY_H

#include "device/device.h"

namespace zero_rt {

class Segment;

/// One allocation. |data| is null if there is none.
struct Block {
  void *data = nullptr;
  int64_t bytes = 0;
  int32_t space = 0;
  int32_t role = 0;       // what it counts as now
  bool isCallers = false; // memory of the caller
};

class Memory {
public:
  Memory(Device &device, zero_rt_counters &counters)
      : device(device), counters(counters) {}

  /// Allocates |bytes| (0 is allowed), aligned to 64 bytes. The contents are
  /// unspecified. Errors: out_of_memory; invalid_argument (the caller's memory
  /// is not aligned).
  zero_rt_status allocate(int32_t space, int32_t role, int64_t bytes,
                          const char *name, Block &block);
  void release(Block &block);
  /// Later buffers of roles that travel are in |segment|, which other ranks
  /// read. It outlives them.
  void use(Segment *segment) { this->segment = segment; }
  /// Later buffers are memory of the caller where |allocator| gives some.
  void use(const zero_rt_allocator &allocator) { callers = allocator; }
  /// Counts |block| under another role. Does not change its contents.
  void setRole(Block &block, int32_t role);

private:
  /// Memory of the caller, or null.
  void *askCaller(int32_t space, int32_t role, int64_t bytes, const char *name);
  void count(const Block &block);
  Device &device;
  zero_rt_counters &counters;
  Segment *segment = nullptr;
  zero_rt_allocator callers = {}; // without functions if there is none
};

/// "device" or "host"; "unknown" for another number.
const char *spaceName(int64_t space);

} // namespace zero_rt

#endif // ZERO_RT_CORE_MEMORY_H
