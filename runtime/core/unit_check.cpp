//===- unit_check.cpp - Checks the units of a library ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/library_index.h"

#include "core/status.h"

using namespace zero_rt;

static bool inRange(int64_t value, int64_t end) {
  return value >= 0 && value < end;
}

/// What is wrong with the buffers of |bucket|, or null.
static const char *findFault(const zero_rt_library &library, int64_t bucket) {
  const zero_rt_bucket_unit_row &row = library.bucket_units[bucket];
  if (row.unit < -1 || row.unit >= library.num_units)
    return "bad unit";
  if (row.unsharded_buffer == -1)
    return nullptr;
  int64_t parameters = library.buckets[bucket].parameter_buffer;
  if (row.unit == -1 || !inRange(row.unsharded_buffer, library.num_buffers) ||
      !inRange(parameters, library.num_buffers))
    return "bad unsharded buffer";
  const zero_rt_buffer_row &whole = library.buffers[row.unsharded_buffer];
  const zero_rt_buffer_row &slice = library.buffers[parameters];
  if (!whole.on_demand || whole.owners != -1 ||
      whole.space != ZERO_RT_SPACE_DEVICE || whole.dtype != slice.dtype ||
      whole.elements != slice.elements)
    return "unsharded buffer does not hold the parameters";
  return slice.owners == -1 ? "parameters of a unit are not sharded" : nullptr;
}

zero_rt_status zero_rt::checkUnits(const zero_rt_library &library) {
  auto corrupt = [&](const char *table, int64_t row, const char *what) {
    return fail(ZERO_RT_INTERNAL, "library '%s' is corrupt: %s %lld: %s",
                library.name, table, (long long)row, what);
  };
  if (library.num_units == 0)
    return ZERO_RT_OK;
  if (!inRange(library.num_units, INT32_MAX) || !library.units ||
      !library.bucket_units)
    return corrupt("library", 0, "bad number of units");
  for (int64_t u = 0; u < library.num_units; ++u) {
    const zero_rt_unit_row &row = library.units[u];
    if (row.name < 0 || !inRange(row.unshard, library.num_handlers) ||
        !inRange(row.reshard, library.num_handlers))
      return corrupt("unit", u, "bad name or handler");
  }
  for (int64_t b = 0; b < library.num_buckets; ++b)
    if (const char *what = findFault(library, b))
      return corrupt("bucket", b, what);
  return ZERO_RT_OK;
}
