//===- header.h - What ranks tell of their collectives ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_HEADER_H
#define ZERO_RT_COMM_PROCESS_HEADER_H

#include "comm/tag.h"

namespace zero_rt {

/// A tag as a message.
struct Header {
  enum Kind : int32_t { Collective, LeftStep, LeftRuntime };
  int32_t kind = Collective;
  int32_t incarnation = 0;
  int32_t dtype = 0;
  int32_t sumType = 0;
  int64_t elements = 0;
  uint64_t step = 0;
  uint64_t sequence = 0;
  uint64_t group = 0;
  uint64_t nameHash = 0; // of all of it
  /// Where the buffers are in the sender's segment; -1: elsewhere.
  int64_t source = -1;
  int64_t result = -1;
  char operation[32] = {};
  char name[160] = {};
};

/// A number for the group of |members| of |step|, the same on all of them.
uint64_t numberOf(const std::vector<int32_t> &members, uint64_t step);

/// |tag| of collective |sequence| of |group|.
Header makeHeader(const Tag &tag, uint64_t group, uint64_t sequence);

/// Whether another rank can have made |header|, which came over a transport.
bool isValid(const Header &header);

/// The tag that |header| was made of, as far as it fits. |header| must outlive
/// the tag.
Tag tagOf(const Header &header);

/// The difference between the collectives of two ranks, with both sides named;
/// empty if there is none.
std::string findDifference(int32_t rank, const Header &header, int32_t other,
                           const Header &others);

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_HEADER_H
