//===- library_index.h - Look-ups that a library's tables allow -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index is built once per step, so that no call searches a table of 46 000
// rows.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_LIBRARY_INDEX_H
#define ZERO_RT_CORE_LIBRARY_INDEX_H

#include "zero_rt/library.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace zero_rt {

/// Whether a table of |count| rows has a row |index|.
inline bool inRange(int64_t index, int64_t count) {
  return index >= 0 && index < count;
}

/// Checks that every index, dtype and interval in |library| is in range, so
/// that later code may trust the library. The struct has no length for strings
/// and transition_handlers, so these are checked in part only. In the library
/// of a pipeline stage (|isStage|) some parameters are in no bucket.
zero_rt_status checkLibrary(const zero_rt_library &library, bool isStage);

/// Checks its streams and events; a part of `checkLibrary`.
zero_rt_status checkSchedule(const zero_rt_library &library);

/// Checks its units of parameters; a part of `checkLibrary`.
zero_rt_status checkUnits(const zero_rt_library &library);

/// The order in which a sequence closes buckets.
struct BucketOrder {
  std::vector<int64_t> position; // by bucket
  /// By position: those of the nearest buckets before and behind it whose
  /// gradients use the same memory; -1 if there is none.
  std::vector<int64_t> before, behind;
};

class LibraryIndex {
public:
  explicit LibraryIndex(const zero_rt_library &library);

  /// The row for (|state|, |event|), or null.
  const zero_rt_transition_row *transition(int64_t state, int32_t event) const;
  /// The number of a parameter, frozen or not; -1 if there is none.
  int32_t findParameter(std::string_view name) const;
  /// The parameters of |bucket|, in index order.
  const std::vector<int32_t> &parametersOf(int64_t bucket) const {
    return members[size_t(bucket)];
  }
  /// The buffers in whose memory |unit| is unsharded, each once and in order.
  const std::vector<int64_t> &memoriesOf(int64_t unit) const {
    return memories[size_t(unit)];
  }
  const BucketOrder &orderOf(int64_t sequence) const {
    return orders[size_t(sequence)];
  }
  /// The parameter whose name is nearest to |name|, or null if there is none.
  const char *nearestParameter(std::string_view name) const;

private:
  const zero_rt_library &library;
  std::vector<const zero_rt_transition_row *> transitions;
  std::unordered_map<std::string_view, int32_t> names;
  std::vector<std::vector<int32_t>> members;
  std::vector<BucketOrder> orders;            // by sequence
  std::vector<std::vector<int64_t>> memories; // by unit
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_LIBRARY_INDEX_H
