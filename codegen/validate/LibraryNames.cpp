//===- LibraryNames.cpp - Rows of a library's tables by name --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/LibraryNames.h"

using namespace zero;

/// What |name| gives for |row|, which must be one of |count|.
template <typename Name>
static std::string nameRow(int64_t row, int64_t count, Name name) {
  if (row == -1)
    return "none";
  if (row < 0 || row >= count)
    return "row " + std::to_string(row) + " of " + std::to_string(count);
  return name();
}

std::string LibraryNames::buffer(int64_t row) const {
  return nameRow(row, library.num_buffers,
                 [&] { return text(library.buffers[row].name); });
}

std::string LibraryNames::bucket(int64_t row) const {
  return nameRow(row, library.num_buckets,
                 [&] { return text(library.buckets[row].name); });
}

std::string LibraryNames::parameter(int64_t row) const {
  return nameRow(row, library.num_parameters,
                 [&] { return text(library.parameters[row].name); });
}

std::string LibraryNames::inputs(int64_t set) const {
  return nameRow(set, library.num_input_sets, [&] {
    int64_t words = (library.num_inputs + 63) / 64;
    std::string numbers;
    for (int64_t i = 0; i < library.num_inputs; ++i)
      if (library.input_sets[set * words + i / 64] >> (i % 64) & 1)
        numbers += std::to_string(i) + " ";
    return numbers;
  });
}

std::string LibraryNames::axesOf(int64_t set, int64_t stages) const {
  std::vector<std::string> names;
  for (int64_t a = 0; a < library.num_axes; ++a)
    if (set >> a & 1)
      names.push_back(text(library.axes[a].name));
  return set ? axesText(names, stages) : "none";
}

std::string LibraryNames::axes(int64_t row) const {
  return nameRow(row, library.num_axis_sets, [&] {
    return axesOf(library.axis_sets[row], library.axis_set_stages[row]);
  });
}

std::string LibraryNames::event(int64_t row) const {
  return nameRow(row, library.num_stream_events, [&] {
    const zero_rt_stream_event_row &event = library.stream_events[row];
    return eventText(text(event.name), event.stream);
  });
}

std::string LibraryNames::events(int64_t first, int64_t count) const {
  std::string names;
  for (int64_t i = first; i < first + count; ++i)
    names += nameRow(i, library.num_event_lists,
                     [&] { return event(library.event_lists[i]); }) +
             " ";
  return names;
}

std::string LibraryNames::slot(int64_t row) const {
  return nameRow(row, library.num_slots, [&] {
    int64_t first = row;
    while (first > 0 &&
           library.slots[first - 1].name == library.slots[row].name)
      --first;
    return slotText(text(library.slots[row].name), row - first);
  });
}

Operands LibraryNames::segments(int64_t table) const {
  if (table < 0 || table >= library.num_tables)
    return {nameRow(table, library.num_tables, [] { return ""; })};
  Operands texts;
  const zero_rt_table_row &row = library.tables[table];
  for (int64_t i = row.first; i < row.first + row.count; ++i)
    texts.push_back(nameRow(i, library.num_segments, [&] {
      const zero_rt_segment_row &segment = library.segments[i];
      return segmentText(segment.begin, segment.end, slot(segment.scalars));
    }));
  return texts;
}

std::string LibraryNames::state(int64_t row) const {
  return nameRow(row, library.num_protocol_states,
                 [&] { return text(library.protocol_states[row]); });
}
