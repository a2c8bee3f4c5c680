//===- Races.h - Which items no queue and no wait orders --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_RACES_H
#define ZERO_DIALECT_INTERPRET_RACES_H

#include "dialect/interpret/StreamQueues.h"

namespace zero {

/// Two items that touch the same memory, one of them to write, and that a legal
/// order runs at the same time.
struct Race {
  size_t first = 0;
  size_t second = 0;
  zrt::MemoryUse use; // of the second
  bool firstWrites = false;
  /// The items that must be done before both can start.
  llvm::BitVector before;
};

/// Whether |a| and |b| touch one gradient each, and not the same one. Gradients
/// of a bucket share a buffer, and arrive one by one.
bool touchOtherGradients(const StreamQueues::Item &a,
                         const StreamQueues::Item &b);

/// Looks at every pair of items from |begin| on, where those before |begin| are
/// done. Two items run at the same time in some order if neither must come
/// before the other. Nothing is reported if queues wait for each other.
std::optional<Race> findRace(const StreamQueues &queues, size_t begin);

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_RACES_H
