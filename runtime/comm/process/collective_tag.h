//===- collective_tag.h - Tags of collectives as messages -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_COLLECTIVE_TAG_H
#define ZERO_RT_COMM_PROCESS_COLLECTIVE_TAG_H

#include "comm/tag.h"

namespace zero_rt {

/// A tag of fixed size, without names. It has no padding.
struct CollectiveTag {
  uint64_t step = 0;
  uint64_t sequence = 0;
  uint64_t group = 0;
  uint64_t names = 0; // a hash of the operation and of the buffer's name
  int64_t elements = 0;
  /// Where the buffers are in the sender's segment; -1: elsewhere.
  int64_t source = -1;
  int64_t result = -1;
  int32_t incarnation = 0; // of the sender's runtime
  uint8_t dtype = 0;
  uint8_t sumType = 0;
  uint16_t bytes = 0; // of the payload in the message of the tag
};

/// What precedes the payload of a collective. Short payload is in it.
struct TagMessage {
  CollectiveTag tag;
  char payload[64] = {};
};
static_assert(sizeof(TagMessage) == 128, "padding would be sent");

/// A tag with its names, as far as they fit. Ranks need them for messages only,
/// and tell each other when their tags differ.
struct NamedTag {
  CollectiveTag tag;
  char operation[32] = {};
  char name[160] = {};
};

/// A number for the group of |members| of |step|, the same on all of them.
uint64_t numberOf(const std::vector<int32_t> &members, uint64_t step);

/// |tag| of collective |sequence| of |group|.
CollectiveTag makeTag(const Tag &tag, uint64_t group, uint64_t sequence);
NamedTag nameTag(const CollectiveTag &made, const Tag &tag);

/// Whether a rank can have made these bytes, which came over a transport.
bool isValid(const TagMessage &message);
bool isValid(const NamedTag &named);

/// The tag that |named| was made of. |named| must outlive it.
Tag tagOf(const NamedTag &named);

/// Whether two ranks are in the same collective.
bool areEqual(const CollectiveTag &one, const CollectiveTag &other);

/// The difference between the collectives of two ranks, with both sides named;
/// empty if there is none.
std::string findDifference(int32_t rank, const NamedTag &mine, int32_t other,
                           const NamedTag &theirs);

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_COLLECTIVE_TAG_H
