//===- launch.cpp - Checks launches and hands them to the device ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/status.h"
#include "core/step.h"
#include "core/thread_pool.h"

#include <algorithm>

using namespace zero_rt;

/// Fills step.operands: for each buffer the address of the first element of
/// |domain|, whichever part of the bucket the buffer holds.
static zero_rt_status setOperands(Step &step, const int32_t *buffers,
                                  int32_t numBuffers, int64_t elements,
                                  Range domain, bool &isOnHost) {
  step.operands.clear();
  isOnHost = numBuffers > 0;
  for (int32_t i = 0; i < numBuffers; ++i) {
    int32_t buffer = buffers[i];
    ZERO_RT_TRY(checkBuffer(step, "launch", buffer));
    const zero_rt_buffer_row &row = step.library->buffers[buffer];
    if (row.elements != elements)
      return fail(ZERO_RT_INTERNAL,
                  "launch: operand '%s' has %lld elements, expected %lld",
                  step.bufferName(buffer), (long long)row.elements,
                  (long long)elements);
    Range held = step.held(buffer);
    if (held.begin > domain.begin || held.end < domain.end)
      return fail(ZERO_RT_INTERNAL,
                  "launch: operand '%s' is sharded and the launch is not",
                  step.bufferName(buffer));
    step.operands.push_back(step.address(buffer, domain.begin));
    isOnHost &= row.space == ZERO_RT_SPACE_HOST;
  }
  return ZERO_RT_OK;
}

/// What a reducing kernel runs must be one range of whole blocks.
static zero_rt_status checkReducing(const Step &step, int32_t table,
                                    Range domain) {
  const zero_rt_table_row &row = step.library->tables[table];
  if (row.count != 1)
    return fail(ZERO_RT_INTERNAL,
                "launch: a reducing kernel needs 1 segment, its table has %lld",
                (long long)row.count);
  const zero_rt_segment_row &segment = step.library->segments[row.first];
  Range local = localize({segment.begin, segment.end}, domain);
  if (local.begin % blockElements != 0)
    return fail(ZERO_RT_INTERNAL,
                "launch: a reducing kernel begins at element %lld, which is no "
                "multiple of %lld",
                (long long)local.begin, (long long)blockElements);
  return ZERO_RT_OK;
}

zero_rt_status calls::launch(Step *step, int32_t kernel, const int32_t *buffers,
                             int32_t num_buffers, int32_t table,
                             int64_t elements, int32_t own, int32_t sum_slot,
                             int32_t stream) {
  const zero_rt_library &library = *step->library;
  if (kernel < 0 || kernel >= library.num_kernels)
    return fail(ZERO_RT_INTERNAL, "launch: kernel %d is out of range", kernel);
  if (table < 0 || table >= library.num_tables)
    return fail(ZERO_RT_INTERNAL, "launch: table %d is out of range", table);
  if (num_buffers < 0 || (num_buffers > 0 && !buffers))
    return fail(ZERO_RT_INTERNAL, "launch: bad list of operands");
  if (own != -1)
    ZERO_RT_TRY(checkAxes(*step, "launch", own));
  int32_t owners = own < 0 ? 1 : step->groupSize(own);
  if (elements < 0 || elements % owners != 0)
    return fail(ZERO_RT_INTERNAL,
                "launch: %lld elements are not a multiple of %d ranks",
                (long long)elements, owners);
  if (sum_slot != -1)
    ZERO_RT_TRY(checkSlots(*step, "launch", sum_slot, 1));

  Range domain = {0, elements};
  if (own >= 0)
    domain = step->owned(elements, own);
  bool isOnHost = false;
  ZERO_RT_TRY(
      setOperands(*step, buffers, num_buffers, elements, domain, isOnHost));
  if (sum_slot >= 0)
    ZERO_RT_TRY(checkReducing(*step, table, domain));
  Launch launch = {
      kernel,  step->operands.data(), num_buffers, table, domain, sum_slot,
      isOnHost};
  return step->on(stream, "launch", [&] { return step->launch(launch); });
}

/// Whether |launch| has an element to run.
static bool hasElements(const zero_rt_library &library, const Launch &launch) {
  if (launch.table < 0)
    return !launch.domain.empty();
  const zero_rt_table_row &row = library.tables[launch.table];
  auto *first = library.segments + row.first;
  return std::any_of(
      first, first + row.count, [&](const zero_rt_segment_row &segment) {
        return !intersect({segment.begin, segment.end}, launch.domain).empty();
      });
}

zero_rt_status Step::launch(const Launch &launch) {
  ZERO_RT_TRY(program->launch(launch));
  runtime->counters.launches += hasElements(*library, launch);
  return ZERO_RT_OK;
}

zero_rt_status calls::run_scalars(Step *step, int32_t program) {
  if (program < 0 || program >= step->library->num_scalar_programs)
    return fail(ZERO_RT_INTERNAL, "run_scalars: program %d is out of range",
                program);
  return step->program->runScalars(program);
}
