//===- tag.h - What ranks compare when they meet ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TAG_H
#define ZERO_RT_COMM_TAG_H

#include "zero_rt/abi.h"

#include <string>
#include <vector>

namespace zero_rt {

/// The parts of a collective on which all ranks must agree. |step|
/// distinguishes steps with buffers of the same name; 0 is no step. Elements
/// travel as |dtype|. Sums are computed and delivered in |sumType|.
struct Tag {
  const char *operation;
  const char *name; // of a buffer, or null
  int64_t elements;
  int32_t dtype;
  int32_t sumType;
  uint64_t step;
};

/// The tag of one rank, with the number of the collective in its process group.
struct Arrival {
  int32_t rank; // for messages
  Tag tag;
  uint64_t sequence;
};

/// The first |size| characters of |text|, which came from another process, up
/// to a 0, without control characters: it goes to terminals.
std::string makePrintable(const char *text, size_t size);

/// "all_gather of 'b0'", with elements and types on request.
std::string describe(const Tag &tag, bool withSize = false);

/// The difference between two ranks, with both sides named; empty if there is
/// none.
std::string findDifference(const Arrival &one, const Arrival &other);

/// The message that collective |tag| did not finish since |ranks| did not come.
std::string describeMissing(const Tag &tag, int64_t timeoutMs,
                            const std::vector<int32_t> &ranks);

/// The message that |rank| has destroyed its |owner|, "runtime" or "step", for
/// which |waiting| waits.
std::string describeLeft(const Tag &tag, int32_t rank, const char *owner,
                         int32_t waiting);

} // namespace zero_rt

#endif // ZERO_RT_COMM_TAG_H
