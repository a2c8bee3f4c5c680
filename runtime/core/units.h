//===- units.h - Units of parameters that ranks shard -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_UNITS_H
#define ZERO_RT_CORE_UNITS_H

#include "zero_rt/library.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero_rt {

struct Step;

struct UnitState {
  enum class Phase : uint8_t {
    Sharded,
    Gathered, // ahead of its use
    Unsharded // the caller may read it
  };
  Phase phase = Phase::Sharded;
  /// Events of the gather, for which the caller's stream waits.
  std::vector<int64_t> waits;
};

/// Whether the unit in |row| is on other pipeline stages than this library.
inline bool isElsewhere(const zero_rt_unit_row &row) {
  return row.unshard == -1 && row.reshard == -1;
}

/// Whether the frozen parameter in |row| is.
inline bool isElsewhere(const zero_rt_frozen_row &row) {
  return row.parameter_buffer == -1;
}

/// The unit of |bucket|, or -1.
inline int64_t unitOf(const zero_rt_library &library, int64_t bucket) {
  return library.num_units > 0 ? library.bucket_units[bucket].unit : -1;
}

/// The buffer in which the caller reads parameters of |bucket|.
inline int64_t readBuffer(const zero_rt_library &library, int64_t bucket) {
  int64_t unsharded = library.num_units > 0
                          ? library.bucket_units[bucket].unsharded_buffer
                          : -1;
  return unsharded >= 0 ? unsharded : library.buckets[bucket].parameter_buffer;
}

/// Whether each rank keeps a slice of the parameters of |bucket|.
inline bool isSharded(const zero_rt_library &library, int64_t bucket) {
  return readBuffer(library, bucket) !=
         library.buckets[bucket].parameter_buffer;
}

/// The row of the frozen parameter |parameter|, or null.
inline const zero_rt_frozen_row *findFrozen(const zero_rt_library &library,
                                            int64_t parameter) {
  int64_t row = parameter - library.num_parameters;
  return row >= 0 && row < library.num_frozen ? &library.frozen[row] : nullptr;
}

/// Checks that no unit is unsharded, and gives up those that were gathered
/// ahead.
zero_rt_status requireSharded(Step &step, const char *call);

/// Checks that the unit of |parameter| was not resharded in the open backward
/// pass.
zero_rt_status checkNotResharded(const Step &step, int32_t parameter);

} // namespace zero_rt

#endif // ZERO_RT_CORE_UNITS_H
