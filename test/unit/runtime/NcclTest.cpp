//===- NcclTest.cpp - The NCCL of this machine, if it has one -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What needs no GPU: whether it is found, and has all that we call.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/nccl.h"
#include "Ranks.h"

#include <dlfcn.h>

using namespace zero_rt;
using namespace zero_rt::test;

static bool hasNccl() {
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr; // never closed, as in the runtime
}

TEST(Nccl, HasAllFunctionsOrIsMissed) {
  const Nccl *nccl = nullptr;
  if (!hasNccl()) {
    expectStatus(ZERO_RT_UNSUPPORTED, getNccl(&nccl),
                 "ranks that are processes need NCCL for their GPUs, and there "
                 "is none here: libnccl.so.2");
    EXPECT_EQ(nccl, nullptr);
    return;
  }
  expectOk(getNccl(&nccl));
  ASSERT_NE(nccl, nullptr);
  EXPECT_GE(nccl->version, 21400);
  EXPECT_STREQ(nccl->GetErrorString(ncclSuccess), "no error");
}

TEST(Nccl, DescribesVersions) {
  EXPECT_EQ(describeNcclVersion(22809), "2.28.9");
  EXPECT_EQ(describeNcclVersion(21400), "2.14.0");
  EXPECT_EQ(describeNcclVersion(2804), "2.8.4");
}
