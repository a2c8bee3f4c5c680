//===- unit_check.cpp - Checks the units of a library ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/library_index.h"

#include "core/status.h"
#include "core/units.h"

#include <vector>

using namespace zero_rt;

/// Whether |unsharded| holds the whole parameters of which ranks keep slices in
/// |parameters|.
static bool isGathered(const zero_rt_library &library, int64_t unsharded,
                       int64_t parameters) {
  if (!inRange(unsharded, library.num_buffers) ||
      !inRange(parameters, library.num_buffers))
    return false;
  const zero_rt_buffer_row &whole = library.buffers[unsharded];
  const zero_rt_buffer_row &slice = library.buffers[parameters];
  return whole.on_demand && whole.owners == -1 &&
         whole.space == ZERO_RT_SPACE_DEVICE && whole.dtype == slice.dtype &&
         whole.elements == slice.elements && slice.owners != -1 &&
         !slice.on_demand;
}

/// What is wrong with the buffers of |bucket|, or null.
static const char *findFault(const zero_rt_library &library, int64_t bucket) {
  const zero_rt_bucket_unit_row &row = library.bucket_units[bucket];
  if (row.unit < -1 || row.unit >= library.num_units)
    return "bad unit";
  if (row.unit >= 0 && isElsewhere(library.units[row.unit]))
    return "its unit is on another pipeline stage";
  if (row.unsharded_buffer == -1)
    return nullptr;
  int64_t parameters = library.buckets[bucket].parameter_buffer;
  if (row.unit == -1)
    return "has an unsharded buffer and no unit";
  return isGathered(library, row.unsharded_buffer, parameters)
             ? nullptr
             : "unsharded buffer does not hold the parameters";
}

/// What is wrong with the frozen parameter in |row|, or null.
static const char *findFault(const zero_rt_library &library,
                             const zero_rt_frozen_row &row) {
  if (row.name < 0 || row.elements < 0 || !inRange(row.unit, library.num_units))
    return "bad name, unit or number of elements";
  if (isElsewhere(row))
    return isElsewhere(library.units[row.unit]) && row.unsharded_buffer == -1 &&
                   row.offset == 0
               ? nullptr
               : "is on another pipeline stage, and its unit is not";
  if (isElsewhere(library.units[row.unit]))
    return "is not on another pipeline stage, and its unit is";
  if (!isGathered(library, row.unsharded_buffer, row.parameter_buffer))
    return "bad buffers";
  const zero_rt_buffer_row &whole = library.buffers[row.unsharded_buffer];
  if (whole.dtype != row.dtype)
    return "dtype differs from its buffer's";
  if (!inRange(row.elements, whole.elements + 1) ||
      !inRange(row.offset, whole.elements - row.elements + 1))
    return "does not fit its buffer";
  return nullptr;
}

/// What is wrong with the order |number|, or null.
static const char *findFaultInOrder(const zero_rt_library &library,
                                    int64_t number) {
  const int64_t *order = library.unit_orders + number * library.num_units;
  std::vector<bool> listed(size_t(library.num_units), false);
  for (int64_t i = 0; i < library.num_units; ++i) {
    if (!inRange(order[i], library.num_units) || listed[size_t(order[i])])
      return "does not list each unit once";
    listed[size_t(order[i])] = true;
  }
  if (library.unit_prefetches[number] < 0)
    return "bad number of units ahead";
  for (int64_t other = 0; other < number; ++other)
    if (library.unit_orders[other * library.num_units] == order[0])
      return "begins as another one";
  return nullptr;
}

zero_rt_status zero_rt::checkUnits(const zero_rt_library &library) {
  auto corrupt = [&](const char *table, int64_t row, const char *what) {
    return fail(ZERO_RT_INTERNAL, "library '%s' is corrupt: %s %lld: %s",
                library.name, table, (long long)row, what);
  };
  if (library.num_units == 0)
    return library.num_frozen == 0 && library.num_unit_orders == 0
               ? ZERO_RT_OK
               : corrupt("library", 0,
                         "has frozen parameters or orders, and no units");
  if (!inRange(library.num_units, INT32_MAX) || !library.units ||
      (library.num_buckets > 0 && !library.bucket_units))
    return corrupt("library", 0, "bad number of units");
  for (int64_t u = 0; u < library.num_units; ++u) {
    const zero_rt_unit_row &row = library.units[u];
    if (row.name < 0 ||
        (!isElsewhere(row) && (!inRange(row.unshard, library.num_handlers) ||
                               !inRange(row.reshard, library.num_handlers))))
      return corrupt("unit", u, "bad name or handler");
  }
  for (int64_t b = 0; b < library.num_buckets; ++b)
    if (const char *what = findFault(library, b))
      return corrupt("bucket", b, what);
  if (!inRange(library.num_frozen, INT32_MAX - library.num_parameters) ||
      (library.num_frozen > 0 && !library.frozen))
    return corrupt("library", 0, "bad number of frozen parameters");
  for (int64_t f = 0; f < library.num_frozen; ++f)
    if (const char *what = findFault(library, library.frozen[f]))
      return corrupt("frozen parameter", f, what);
  // No two begin alike, so there are at most as many as units.
  if (!inRange(library.num_unit_orders, library.num_units + 1) ||
      (library.num_unit_orders > 0 &&
       (!library.unit_orders || !library.unit_prefetches)))
    return corrupt("library", 0, "bad number of orders");
  for (int64_t o = 0; o < library.num_unit_orders; ++o)
    if (const char *what = findFaultInOrder(library, o))
      return corrupt("order", o, what);
  return ZERO_RT_OK;
}
