//===- NcclFailureTest.cpp - What may go wrong between GPUs ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"

#include "FakeNccl.h"

using namespace zero;
using namespace zero::test;
