//===- CollectiveBits.h - Collectives against sums in order -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_COLLECTIVEBITS_H
#define ZERO_TEST_UNIT_RUNTIME_COLLECTIVEBITS_H

#include "comm/communicator.h"

namespace zero_rt::test {

/// Runs every collective of |communicator|, all ranks together, on numbers
/// whose sums depend on the order, and compares with sums in the order of the
/// ranks, bit by bit: types alone and mixed, slices that are empty, odd, and
/// longer than what is sent at once.
void checkCollectives(Communicator &communicator, int32_t rank, int32_t ranks);

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_COLLECTIVEBITS_H
