//===- state_calls.cpp - State, independent of buckets --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint sees intervals of parameters. Buckets and their slices stay
// hidden in this file.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/state_entries.h"
#include "core/structs.h"
#include "core/units.h"

#include <vector>

using namespace zero_rt;

std::vector<StateEntry> zero_rt::enumerateState(const Step &step) {
  const zero_rt_library &library = *step.library;
  std::vector<StateEntry> entries;
  for (int64_t s = 0; s < library.num_states; ++s) {
    const zero_rt_state_row &row = library.states[s];
    const char *role = step.text(row.role);
    if (row.bucket < 0) {
      entries.push_back({role, -1, int32_t(row.index), 0, 1});
      continue;
    }
    for (int32_t p : step.index.parametersOf(row.bucket)) {
      const zero_rt_parameter_row &parameter = library.parameters[p];
      Range whole = {parameter.offset, parameter.offset + parameter.elements};
      Range held = intersect(whole, step.held(row.index));
      if (!held.empty())
        entries.push_back({role, p, int32_t(row.index),
                           held.begin - whole.begin, held.end - whole.begin});
    }
  }
  return entries;
}

static int32_t dtypeOf(const Step &step, const StateEntry &entry) {
  return entry.parameter < 0
             ? ZERO_RT_F64
             : int32_t(step.library->buffers[entry.buffer].dtype);
}

static zero_rt_status checkEntry(const Step &step, int64_t entry) {
  if (entry >= 0 && entry < int64_t(step.entries.size()))
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "state entry %lld is out of range, this rank has %zu",
              (long long)entry, step.entries.size());
}

int64_t zero_rt::bytesOf(const Step &step, const StateEntry &entry) {
  return (entry.end - entry.begin) * elementSize(dtypeOf(step, entry));
}

zero_rt_status zero_rt::dataOf(Step &step, const StateEntry &entry,
                               void **out) {
  if (entry.parameter < 0) {
    double *slots = nullptr;
    ZERO_RT_TRY(step.getSlots(&slots));
    *out = slots + entry.buffer;
    return ZERO_RT_OK;
  }
  ZERO_RT_TRY(checkBuffer(step, "state", int32_t(entry.buffer)));
  *out = step.address(entry.buffer,
                      step.library->parameters[entry.parameter].offset +
                          entry.begin);
  return ZERO_RT_OK;
}

/// Finds the memory of an entry, which must be |bytes| long.
static zero_rt_status locate(Step &step, int64_t index, const void *data,
                             int64_t bytes, void **out) {
  ZERO_RT_TRY(checkEntry(step, index));
  const StateEntry &entry = step.entries[size_t(index)];
  int64_t expected = bytesOf(step, entry);
  if (bytes != expected)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "state entry %lld ('%s') has %lld bytes, got %lld",
                (long long)index, entry.role, (long long)expected,
                (long long)bytes);
  if (!data)
    return fail(ZERO_RT_INVALID_ARGUMENT, "data of state entry %lld is null",
                (long long)index);
  return dataOf(step, entry, out);
}

zero_rt_status zero_rt::writeElements(Step &step, int64_t buffer, Range range,
                                      int64_t dtype, const void *values) {
  int64_t own = step.library->buffers[buffer].dtype;
  void *place = step.address(buffer, range.begin);
  if (own == dtype)
    return step.device().copy(place, values, range.size() * elementSize(own));
  ZERO_RT_TRY(
      step.device().look(values, range.size() * elementSize(dtype), &values));
  std::vector<char> converted(size_t(range.size() * elementSize(own)));
  convert(own, converted.data(), dtype, values, range.size());
  ZERO_RT_TRY(
      step.device().copy(place, converted.data(), int64_t(converted.size())));
  return step.device().finish(); // |converted| is read until then
}

zero_rt_status zero_rt::derive(Step &step, int64_t source, int64_t target,
                               Range range) {
  range = intersect(intersect(range, step.held(source)), step.held(target));
  if (range.empty())
    return ZERO_RT_OK;
  return writeElements(step, target, range, step.library->buffers[source].dtype,
                       step.address(source, range.begin));
}

/// Gives a parameter the values of its master weights, or the other way round,
/// after |entry| was written. Elements that the caller wrote since the last
/// backward pass keep their values, so a checkpoint may be loaded in any order.
static zero_rt_status deriveFrom(Step &step, const StateEntry &entry) {
  if (entry.parameter < 0)
    return ZERO_RT_OK;
  const zero_rt_library &library = *step.library;
  const zero_rt_parameter_row &parameter = library.parameters[entry.parameter];
  const zero_rt_bucket_row &bucket = library.buckets[parameter.bucket];
  int64_t master = bucket.master_buffer;
  bool isParameter = entry.buffer == bucket.parameter_buffer;
  if (!isParameter && entry.buffer != master)
    return ZERO_RT_OK; // other state of the optimizer
  step.written.resize(size_t(library.num_parameters));
  WrittenState &written = step.written[size_t(entry.parameter)];
  (isParameter ? written.parameter : written.master) = true;
  Range range = {parameter.offset + entry.begin, parameter.offset + entry.end};
  if (isParameter) {
    written.isStale = false;
    if (master >= 0 && !written.master)
      ZERO_RT_TRY(derive(step, bucket.parameter_buffer, master, range));
  } else if (!written.parameter) {
    ZERO_RT_TRY(derive(step, master, bucket.parameter_buffer, range));
    int64_t owners = library.buffers[master].owners;
    written.isStale = owners >= 0 && step.groupSize(owners) > 1 &&
                      !isSharded(library, parameter.bucket);
  }
  if (bucket.staging_buffer < 0)
    return ZERO_RT_OK;
  return derive(step, bucket.parameter_buffer, bucket.staging_buffer, range);
}

zero_rt_status zero_rt::requireWhole(const Step &step, const char *call) {
  for (size_t p = 0; p < step.written.size(); ++p)
    if (step.written[p].isStale)
      return fail(ZERO_RT_PROTOCOL,
                  "%s: 'master' of '%s' was written, and rank %d has a slice "
                  "of it only; write its 'parameter', too, on every rank",
                  call, step.parameterName(int64_t(p)), step.runtime->rank);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::closeWrites(Step &step, const char *call) {
  ZERO_RT_TRY(requireWhole(step, call));
  ZERO_RT_TRY(checkUnwritten(step, call));
  step.written.clear();
  return ZERO_RT_OK;
}

zero_rt_status calls::state_count(Step *step, int64_t *out_count) {
  if (!out_count)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_count is null");
  *out_count = int64_t(step->entries.size());
  return ZERO_RT_OK;
}

zero_rt_status calls::state_describe(Step *step, int64_t entry,
                                     zero_rt_state_entry *out_entry) {
  ZERO_RT_TRY(checkEntry(*step, entry));
  ZERO_RT_TRY(checkStruct(out_entry, "out_entry"));
  const StateEntry &found = step->entries[size_t(entry)];
  zero_rt_state_entry described = {};
  described.parameter = found.parameter;
  described.role = found.role;
  described.dtype = dtypeOf(*step, found);
  described.begin = found.begin;
  described.end = found.end;
  writeStruct(described, out_entry);
  return ZERO_RT_OK;
}

zero_rt_status calls::state_read(Step *step, int64_t entry, void *out_data,
                                 int64_t bytes) {
  // Counters have their next values already.
  ZERO_RT_TRY(requireNotMeasured(*step, "state_read"));
  void *memory = nullptr;
  ZERO_RT_TRY(locate(*step, entry, out_data, bytes, &memory));
  // A copy to memory of the caller may block in the driver, where no failure of
  // other ranks is detected.
  ZERO_RT_TRY(step->device().finish());
  ZERO_RT_TRY(step->device().copy(out_data, memory, bytes));
  return step->device().finish();
}

zero_rt_status calls::state_write(Step *step, int64_t entry, const void *data,
                                  int64_t bytes) {
  void *memory = nullptr;
  ZERO_RT_TRY(locate(*step, entry, data, bytes, &memory));
  ZERO_RT_TRY(requireIdle(*step, "state_write"));
  ZERO_RT_TRY(requireSharded(*step, "state_write"));
  ZERO_RT_TRY(step->device().follow(/*stream=*/nullptr));
  // Waits for collectives, too.
  ZERO_RT_TRY(step->device().finish());
  ZERO_RT_TRY(step->device().copy(memory, data, bytes));
  ZERO_RT_TRY(deriveFrom(*step, step->entries[size_t(entry)]));
  return step->device().finish(); // then |data| is the caller's again
}
