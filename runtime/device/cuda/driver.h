//===- driver.h - The CUDA driver, if there is one --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver is loaded by dlopen. So one runtime serves machines with and
// without a GPU, and the build needs nothing of CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_DRIVER_H
#define ZERO_RT_DEVICE_CUDA_DRIVER_H

#include "zero_rt/status.h"

#include <cstddef>
#include <cstdint>

namespace zero_rt {

// The declarations of cuda.h. The numbers are part of the driver's ABI.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUhostFn = void (*)(void *);
using CUgraph = struct CUgraph_st *;
using CUgraphNode = struct CUgraphNode_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUmemoryPool = struct CUmemPoolHandle_st *;

constexpr CUresult cudaSuccess = 0;
constexpr CUresult cudaErrorOutOfMemory = 2;
constexpr CUresult cudaErrorNotReady = 600;
constexpr unsigned streamNonBlocking = 1;
constexpr int captureModeRelaxed = 2;
constexpr unsigned eventDisableTiming = 2;
constexpr unsigned hostAllocPortable = 1;
constexpr int attributeCapabilityMajor = 75;
constexpr int attributeCapabilityMinor = 76;
constexpr int attributeMemoryPools = 115;
constexpr int poolReleaseThreshold = 4;
constexpr int jitErrorLogBuffer = 5;
constexpr int jitErrorLogBufferBytes = 6;

constexpr int poolAllocationPinned = 1;
constexpr int poolLocationDevice = 1;
constexpr int poolReadWrite = 3;
constexpr int memoryTypeUnified = 4;

/// CUmemPoolProps. Later versions use the reserved bytes, in which 0 has the
/// old meaning.
struct PoolProperties {
  int allocationType;
  int handleTypes;
  int locationType;
  int location;
  void *securityAttributes;
  unsigned char reserved[64];
};

/// CUmemAccessDesc.
struct PoolAccess {
  int locationType;
  int location;
  int flags;
};

/// CUDA_KERNEL_NODE_PARAMS.
struct KernelNode {
  CUfunction function;
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  void **arguments;
  void **extra;
};

/// CUDA_MEMSET_NODE_PARAMS: |height| rows of |width| elements.
struct MemsetNode {
  CUdeviceptr dst;
  size_t pitch;
  unsigned value;
  unsigned elementSize;
  size_t width;
  size_t height;
};

/// CUDA_MEMCPY3D.
struct CopyNode {
  struct Side {
    size_t x, y, z, level;
    int memoryType;
    const void *host;
    CUdeviceptr device;
    void *array;
    void *reserved;
    size_t pitch;
    size_t height;
  };
  Side src, dst;
  size_t widthInBytes;
  size_t height;
  size_t depth;
};

struct Driver {
#define FUNCTION(NAME, SYMBOL, ARGUMENTS) CUresult(*NAME) ARGUMENTS = nullptr;
#include "device/cuda/driver.def"
};

/// The driver of this process, loaded and initialized once. Errors: unsupported
/// (there is no driver, or one older than CUDA 11.2).
zero_rt_status getDriver(const Driver **out);

/// The text for |result| of |call|.
zero_rt_status check(const Driver &driver, CUresult result, const char *call);

/// Leaves the enclosing function if a call of the driver |D| failed.
#define ZERO_RT_CUDA(D, NAME, ...)                                             \
  ZERO_RT_TRY(check(D, (D).NAME(__VA_ARGS__), "cu" #NAME))

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_DRIVER_H
