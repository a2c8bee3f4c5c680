//===- host_device.cpp - The CPU as a device ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/host/host_device.h"

#include "device/host/host_program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace zero_rt;

/// The size of a cache line, and of the widest vector that a kernel uses.
static constexpr int64_t alignment = 64;

void *HostDevice::allocate(int32_t, int64_t bytes) {
  // Refuses a size near the limit, so that rounding up cannot overflow.
  if (bytes > INT64_MAX - alignment)
    return nullptr;
  int64_t rounded = std::max<int64_t>(1, bytes);
  rounded = (rounded + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(size_t(alignment), size_t(rounded));
}

void HostDevice::release(int32_t, void *data) { std::free(data); }

zero_rt_status HostDevice::copy(void *dst, const void *src, int64_t bytes) {
  if (bytes)
    std::memcpy(dst, src, size_t(bytes));
  return ZERO_RT_OK;
}

void zero_rt::setOnHost(void *data, uint64_t bits, int64_t size,
                        int64_t count) {
  switch (size) {
  case 1:
    std::fill_n(static_cast<uint8_t *>(data), count, uint8_t(bits));
    break;
  case 2:
    std::fill_n(static_cast<uint16_t *>(data), count, uint16_t(bits));
    break;
  case 4:
    std::fill_n(static_cast<uint32_t *>(data), count, uint32_t(bits));
    break;
  default:
    std::fill_n(static_cast<uint64_t *>(data), count, bits);
  }
}

zero_rt_status HostDevice::set(void *data, uint64_t bits, int64_t size,
                               int64_t count) {
  setOnHost(data, bits, size, count);
  return ZERO_RT_OK;
}

zero_rt_status HostDevice::load(const zero_rt_library &library, double *slots,
                                std::unique_ptr<Program> *out) {
  *out = std::make_unique<HostProgram>(library, slots, pool);
  return ZERO_RT_OK;
}
