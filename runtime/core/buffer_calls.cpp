//===- buffer_calls.cpp - Buffers that handlers manage --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/status.h"
#include "core/step.h"

#include <utility>

using namespace zero_rt;

/// Checks that |buffer| is one that handlers allocate and give back.
static zero_rt_status checkOnDemand(const Step &step, const char *call,
                                    int32_t buffer) {
  if (buffer < 0 || buffer >= step.library->num_buffers)
    return fail(ZERO_RT_INTERNAL, "%s: buffer %d is out of range", call,
                buffer);
  if (!step.library->buffers[buffer].on_demand)
    return fail(ZERO_RT_INTERNAL, "%s: buffer '%s' lives with the step", call,
                step.bufferName(buffer));
  return ZERO_RT_OK;
}

zero_rt_status calls::allocate(Step *step, int32_t buffer) {
  ZERO_RT_TRY(checkOnDemand(*step, "allocate", buffer));
  if (step->buffers[size_t(buffer)].data)
    return fail(ZERO_RT_INTERNAL, "allocate: buffer '%s' is allocated already",
                step->bufferName(buffer));
  int64_t owner = step->library->buffers[buffer].shares;
  if (owner < 0)
    return step->allocate(buffer);
  const Block &memory = step->buffers[size_t(owner)];
  // Its bytes count as those of the owner.
  step->buffers[size_t(buffer)] = {memory.data, 0, memory.space, memory.role};
  return ZERO_RT_OK;
}

zero_rt_status calls::release(Step *step, int32_t buffer) {
  ZERO_RT_TRY(checkOnDemand(*step, "release", buffer));
  ZERO_RT_TRY(checkBuffer(*step, "release", buffer));
  Block &block = step->buffers[size_t(buffer)];
  const zero_rt_buffer_row &row = step->library->buffers[buffer];
  if (row.shares < 0) {
    step->runtime->memory.release(block);
    return ZERO_RT_OK;
  }
  void *data = std::exchange(block, {}).data;
  // The pattern shows a read that still happens. On a GPU it would be written
  // on another stream than that of the release.
  return step->runtime->poison && step->device().isImmediate()
             ? step->poison(row.dtype, data, step->held(buffer).size())
             : zero_rt_status(ZERO_RT_OK);
}

zero_rt_status calls::set_role(Step *step, int32_t buffer, int32_t role) {
  ZERO_RT_TRY(checkBuffer(*step, "set_role", buffer));
  if (role < 0 || role >= ZERO_RT_ROLE_COUNT)
    return fail(ZERO_RT_INTERNAL, "set_role: role %d of '%s' is out of range",
                role, step->bufferName(buffer));
  step->runtime->memory.setRole(step->buffers[size_t(buffer)], role);
  return ZERO_RT_OK;
}

zero_rt_status calls::copy(Step *step, int32_t src, int32_t dst,
                           int32_t stream) {
  ZERO_RT_TRY(checkBuffer(*step, "copy", src));
  ZERO_RT_TRY(checkBuffer(*step, "copy", dst));
  const zero_rt_buffer_row &from = step->library->buffers[src];
  const zero_rt_buffer_row &to = step->library->buffers[dst];
  if (from.dtype != to.dtype || from.elements != to.elements)
    return fail(ZERO_RT_INTERNAL, "copy: '%s' and '%s' differ in type or size",
                step->bufferName(src), step->bufferName(dst));
  Range both = intersect(step->held(src), step->held(dst));
  if (src == dst || both.empty())
    return ZERO_RT_OK;
  int64_t bytes = both.size() * elementSize(from.dtype);
  ZERO_RT_TRY(step->on(stream, "copy", [&] {
    return step->device().copy(step->address(dst, both.begin),
                               step->address(src, both.begin), bytes);
  }));
  if (from.space != to.space)
    step->runtime->counters.bytes_copied_between_spaces += bytes;
  return ZERO_RT_OK;
}

zero_rt_status calls::keep_on_root(Step *step, int32_t buffer, int32_t axes) {
  ZERO_RT_TRY(checkBuffer(*step, "keep_on_root", buffer));
  ZERO_RT_TRY(checkAxes(*step, "keep_on_root", axes));
  Range held = step->held(buffer);
  if (step->groups[size_t(axes)].rank == 0 || held.empty())
    return ZERO_RT_OK;
  return step->device().set(step->buffers[size_t(buffer)].data, /*bits=*/0,
                            elementSize(step->library->buffers[buffer].dtype),
                            held.size());
}
