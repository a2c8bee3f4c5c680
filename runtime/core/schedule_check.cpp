//===- schedule_check.cpp - Checks the schedule of a library --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/library_index.h"

#include "core/status.h"

using namespace zero_rt;

static zero_rt_status corrupt(const zero_rt_library &library, const char *table,
                              int64_t row, const char *what) {
  return fail(ZERO_RT_INTERNAL, "library '%s' is corrupt: %s %lld: %s",
              library.name, table, (long long)row, what);
}

/// Whether [first, first + count) is a range of the event lists.
static bool isList(const zero_rt_library &library, int64_t first,
                   int64_t count) {
  return first >= 0 && count >= 0 && count <= library.num_event_lists &&
         first <= library.num_event_lists - count;
}

zero_rt_status zero_rt::checkSchedule(const zero_rt_library &library) {
  if (library.num_stream_events < 0 || library.num_event_lists < 0 ||
      (library.num_stream_events > 0 && !library.stream_events) ||
      (library.num_event_lists > 0 && !library.event_lists))
    return corrupt(library, "library", 0, "bad number of stream events");
  for (int64_t e = 0; e < library.num_stream_events; ++e)
    if (library.stream_events[e].stream < 0 ||
        library.stream_events[e].stream >= ZERO_RT_STREAM_COUNT ||
        library.stream_events[e].name < 0)
      return corrupt(library, "stream event", e, "bad stream or name");
  for (int64_t i = 0; i < library.num_event_lists; ++i) {
    int64_t event = library.event_lists[i];
    if (event < 0 || event >= library.num_stream_events ||
        library.stream_events[event].stream == ZERO_RT_STREAM_CALLER)
      return corrupt(library, "event list", i, "bad event");
  }
  for (int64_t b = 0; b < library.num_buckets; ++b) {
    const zero_rt_bucket_row &row = library.buckets[b];
    if (!isList(library, row.first_writable, row.num_writable))
      return corrupt(library, "bucket", b, "bad list of writable events");
    if (row.num_readable != -1 &&
        !isList(library, row.first_readable, row.num_readable))
      return corrupt(library, "bucket", b, "bad list of readable events");
  }
  return ZERO_RT_OK;
}
