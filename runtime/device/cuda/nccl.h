//===- nccl.h - NCCL, if it is there ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL is loaded by dlopen when ranks that are processes have GPUs. If the
// process has an NCCL already, for example of a framework, that one is used.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_NCCL_H
#define ZERO_RT_DEVICE_CUDA_NCCL_H

#include "device/cuda/driver.h"
#include "device/interconnect.h"

namespace zero_rt {

// The declarations of nccl.h. The numbers are part of NCCL's ABI.
using NcclResult = int;
using NcclComm = struct ncclComm *;

constexpr NcclResult ncclSuccess = 0;
constexpr NcclResult ncclInProgress = 7;
constexpr int ncclInt8 = 0;
constexpr int ncclFloat32 = 7;
constexpr int ncclFloat64 = 8;
constexpr int ncclSum = 0;

/// ncclConfig_t of NCCL 2.14. Its version tells later versions which fields are
/// set.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

/// A communicator that the caller lends, and the function that gives it up. If
/// the function is null, ncclCommAbort gives it up.
struct LentNccl {
  NcclComm comm = nullptr;
  void (*giveUp)(void *comm) = nullptr;
};

struct Nccl {
  int version = 0;
#define FUNCTION(NAME, RESULT, ARGUMENTS) RESULT(*NAME) ARGUMENTS = nullptr;
#include "device/cuda/nccl.def"
};

/// The NCCL of this process, loaded once. Errors: unsupported (there is no
/// NCCL, or one older than 2.14).
zero_rt_status getNccl(const Nccl **out);

/// The version, such as "2.28.9".
std::string describeNcclVersion(int version);

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_NCCL_H
