//===- memory.cpp - The allocator and its counters ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/memory.h"

#include "comm/process/segment.h"
#include "core/status.h"

#include <algorithm>

using namespace zero_rt;

/// Whether collectives move buffers of |role|.
static bool canTravel(int32_t role) {
  return role == ZERO_RT_ROLE_PARAMETER || role == ZERO_RT_ROLE_GRADIENT ||
         role == ZERO_RT_ROLE_ACCUMULATOR;
}

void *Memory::askCaller(int32_t space, int32_t role, int64_t bytes,
                        const char *name) {
  // Copies from and to other memory of the host would block a GPU.
  bool canUse = space == ZERO_RT_SPACE_DEVICE || device.usesHostMemory();
  return callers.allocate && canUse
             ? callers.allocate(callers.context, space, role, bytes, name,
                                device.getQueue())
             : nullptr;
}

zero_rt_status Memory::allocate(int32_t space, int32_t role, int64_t bytes,
                                const char *name, Block &block) {
  constexpr uintptr_t alignment = 64;
  void *data = askCaller(space, role, bytes, name);
  bool isCallers = data != nullptr;
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    callers.release(callers.context, data, device.getQueue());
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->allocator gave '%s' memory at %p, which is not "
                "aligned to %d bytes",
                name, data, int(alignment));
  }
  // Smaller blocks would waste most of their page.
  if (!data && segment && canTravel(role) && bytes >= Segment::pageBytes)
    data = segment->allocate(bytes);
  if (!data)
    data = device.allocate(space, bytes);
  if (!data)
    return fail(ZERO_RT_OUT_OF_MEMORY,
                "no memory for '%s': %lld bytes in space '%s'", name,
                (long long)bytes, spaceName(space));
  block.data = data;
  block.bytes = bytes;
  block.space = space;
  block.role = role;
  block.isCallers = isCallers;
  ++counters.allocations[space][role];
  count(block);
  return ZERO_RT_OK;
}

void Memory::release(Block &block) {
  if (!block.data)
    return;
  counters.bytes_now[block.space][block.role] -= block.bytes;
  if (block.isCallers)
    callers.release(callers.context, block.data, device.getQueue());
  else if (!segment || !segment->release(block.data))
    device.release(block.space, block.data);
  block = Block();
}

void Memory::setRole(Block &block, int32_t role) {
  counters.bytes_now[block.space][block.role] -= block.bytes;
  block.role = role;
  count(block);
}

void Memory::count(const Block &block) {
  int64_t &now = counters.bytes_now[block.space][block.role];
  int64_t &peak = counters.bytes_peak[block.space][block.role];
  now += block.bytes;
  peak = std::max(peak, now);
}

const char *zero_rt::spaceName(int64_t space) {
  if (space == ZERO_RT_SPACE_DEVICE)
    return "device";
  return space == ZERO_RT_SPACE_HOST ? "host" : "unknown";
}
