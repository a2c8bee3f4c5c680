//===- FakeNccl.h - NCCL without GPUs ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libnccl.so.2 for tests, over the fake driver, for ranks that are threads.
// What it is asked for is queued late, since it does not block; it is done when
// all ranks have come to it, and never if they came for different things. Sums
// are taken in an order that changes from one to the next.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_FAKENCCL_H
#define ZERO_TEST_UNIT_CUDA_FAKENCCL_H

#include <cstdint>
#include <string>
#include <vector>

namespace zero::test::fake {

/// Forgets failures, and takes the version that tests expect.
void resetNccl();
void setNcclVersion(int version);
/// The |count|-th call of |function| from now on fails with |error|.
void failNccl(const std::string &function, int error, int count = 1);
/// What communicators of |rank| find out asynchronously from now on.
void setAsyncError(int rank, int error);
/// Whether work of NCCL's does nothing from now on: ranks come, and their GPUs
/// do not reach each other.
void stallNccl(bool isStalled);
/// Whether a communicator's first collective is queued only when all ranks have
/// come to it, since they connect there.
void connectLate(bool isLate);
/// Whether giving up waits until all ranks give up, as it may on one machine.
void abortTogether(bool isTogether);
/// Communicators that nobody gave back.
int countComms();
/// Collectives and exchanges that all their ranks have made, since resetNccl.
int64_t countCollectives();

} // namespace zero::test::fake

#endif // ZERO_TEST_UNIT_CUDA_FAKENCCL_H
