//===- nccl.h - NCCL, if it is there ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Found with dlopen when ranks that are processes have GPUs: the NCCL that the
// process has already, which may be a framework's, or the machine's.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_NCCL_H
#define ZERO_RT_DEVICE_CUDA_NCCL_H

#include "device/cuda/driver.h"
#include "device/interconnect.h"

namespace zero_rt {

// As nccl.h of NCCL has them; numbers are part of its ABI.
using NcclResult = int;
using NcclComm = struct ncclComm *;

constexpr NcclResult ncclSuccess = 0;
constexpr NcclResult ncclInProgress = 7;
constexpr int ncclInt8 = 0;
constexpr int ncclFloat32 = 7;
constexpr int ncclFloat64 = 8;
constexpr int ncclSum = 0;

/// ncclConfig_t as NCCL 2.14 had it; to later versions it says so, and they
/// take what was added for unset.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

/// A communicator of the caller's, and what gives it up; null: there is none,
/// ncclCommAbort does.
struct LentNccl {
  NcclComm comm = nullptr;
  void (*giveUp)(void *comm) = nullptr;
};

struct Nccl {
  int version = 0;
#define FUNCTION(NAME, RESULT, ARGUMENTS) RESULT(*NAME) ARGUMENTS = nullptr;
#include "device/cuda/nccl.def"
};

/// The NCCL of this process, loaded once. Errors: unsupported (there is none,
/// or one older than 2.14).
zero_rt_status getNccl(const Nccl **out);

/// "2.28.9".
std::string describeNcclVersion(int version);

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_NCCL_H
