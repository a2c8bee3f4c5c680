//===- host_device.cpp - The CPU as a device ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/host/host_device.h"

#include "device/host/copy.h"
#include "device/host/host_program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace zero_rt;

/// The size of a cache line, and of the widest vector that a kernel uses.
static constexpr size_t lineBytes = 64;
/// The size of a large page.
static constexpr size_t hugeBytes = size_t(1) << 21;

void *HostDevice::allocate(int32_t, int64_t bytes) {
  size_t size = std::max<size_t>(1, size_t(bytes));
  bool isHuge = size >= hugeBytes;
  void *data = nullptr;
  if (::posix_memalign(&data, isHuge ? hugeBytes : lineBytes, size))
    return nullptr;
  // Without large pages everything works, too.
  if (isHuge)
    (void)::madvise(data, size / hugeBytes * hugeBytes, MADV_HUGEPAGE);
  return data;
}

void HostDevice::release(int32_t, void *data) { std::free(data); }

zero_rt_status HostDevice::copy(void *dst, const void *src, int64_t bytes) {
  copyOnHost(dst, src, bytes);
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
