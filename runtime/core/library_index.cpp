//===- library_index.cpp - Look-ups that a library's tables allow ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/library_index.h"

#include "core/units.h"

#include <algorithm>
#include <numeric>

using namespace zero_rt;

static BucketOrder readOrder(const zero_rt_library &library,
                             const zero_rt_sequence_row &row) {
  BucketOrder order;
  order.position.resize(size_t(library.num_buckets), -1);
  order.before.resize(size_t(row.count), -1);
  order.behind.resize(size_t(row.count), -1);
  std::vector<int64_t> last(size_t(library.num_buffers), -1); // by memory
  for (int64_t i = 0; i < row.count; ++i) {
    int64_t bucket = library.sequence_entries[row.first + i].bucket;
    order.position[size_t(bucket)] = i;
    int64_t buffer = library.buckets[bucket].gradient_buffer;
    int64_t shares = library.buffers[buffer].shares;
    int64_t &before = last[size_t(shares >= 0 ? shares : buffer)];
    order.before[size_t(i)] = before;
    if (before >= 0)
      order.behind[size_t(before)] = i;
    before = i;
  }
  return order;
}

LibraryIndex::LibraryIndex(const zero_rt_library &library)
    : library(library),
      transitions(size_t(library.num_protocol_states * ZERO_RT_EVENT_COUNT)),
      members(size_t(library.num_buckets)) {
  for (int64_t i = 0; i < library.num_transitions; ++i) {
    const zero_rt_transition_row &row = library.transitions[i];
    transitions[size_t(row.state * ZERO_RT_EVENT_COUNT + row.event)] = &row;
  }
  names.reserve(size_t(library.num_parameters));
  for (int64_t p = 0; p < library.num_parameters; ++p) {
    const zero_rt_parameter_row &row = library.parameters[p];
    names.emplace(library.strings + row.name, int32_t(p));
    if (row.bucket >= 0)
      members[size_t(row.bucket)].push_back(int32_t(p));
  }
  for (int64_t f = 0; f < library.num_frozen; ++f)
    names.emplace(library.strings + library.frozen[f].name,
                  int32_t(library.num_parameters + f));
  memories.resize(size_t(library.num_units));
  auto addMemory = [&](int64_t unit, int64_t buffer) {
    if (unit < 0 || buffer < 0)
      return;
    int64_t owner = library.buffers[buffer].shares;
    memories[size_t(unit)].push_back(owner < 0 ? buffer : owner);
  };
  for (int64_t b = 0; b < library.num_buckets && library.num_units > 0; ++b)
    addMemory(library.bucket_units[b].unit,
              library.bucket_units[b].unsharded_buffer);
  for (int64_t f = 0; f < library.num_frozen; ++f)
    addMemory(library.frozen[f].unit, library.frozen[f].unsharded_buffer);
  for (std::vector<int64_t> &own : memories) {
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  orders.reserve(size_t(library.num_sequences));
  for (int64_t i = 0; i < library.num_sequences; ++i)
    orders.push_back(readOrder(library, library.sequences[i]));
}

const zero_rt_transition_row *LibraryIndex::transition(int64_t state,
                                                       int32_t event) const {
  return transitions[size_t(state * ZERO_RT_EVENT_COUNT + event)];
}

int32_t LibraryIndex::findParameter(std::string_view name) const {
  auto it = names.find(name);
  return it == names.end() ? -1 : it->second;
}

/// The Levenshtein distance: the number of characters to insert, delete or
/// replace.
static size_t editDistance(std::string_view a, std::string_view b,
                           std::vector<size_t> &row) {
  row.resize(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

const char *LibraryIndex::nearestParameter(std::string_view name) const {
  const char *nearest = nullptr;
  size_t best = SIZE_MAX;
  std::vector<size_t> row;
  for (int64_t p = 0; p < library.num_parameters + library.num_frozen; ++p) {
    const zero_rt_frozen_row *frozen = findFrozen(library, p);
    const char *candidate =
        library.strings + (frozen ? frozen->name : library.parameters[p].name);
    size_t distance = editDistance(name, candidate, row);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}
