//===- buffer_calls.cpp - Buffers that handlers manage --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/status.h"
#include "core/step.h"

using namespace zero_rt;

/// Checks that |buffer| is one that handlers allocate and give back.
static zero_rt_status checkOnDemand(const zero_rt_step &step, const char *call,
                                    int32_t buffer) {
  if (buffer < 0 || buffer >= step.library->num_buffers)
    return fail(ZERO_RT_INTERNAL, "%s: buffer %d is out of range", call,
                buffer);
  if (!step.library->buffers[buffer].on_demand)
    return fail(ZERO_RT_INTERNAL, "%s: buffer '%s' lives with the step", call,
                step.bufferName(buffer));
  return ZERO_RT_OK;
}

zero_rt_status calls::allocate(zero_rt_step *step, int32_t buffer) {
  ZERO_RT_TRY(checkOnDemand(*step, "allocate", buffer));
  if (step->buffers[size_t(buffer)].data)
    return fail(ZERO_RT_INTERNAL, "allocate: buffer '%s' is allocated already",
                step->bufferName(buffer));
  return step->allocate(buffer);
}

zero_rt_status calls::release(zero_rt_step *step, int32_t buffer) {
  ZERO_RT_TRY(checkOnDemand(*step, "release", buffer));
  ZERO_RT_TRY(checkBuffer(*step, "release", buffer));
  ZERO_RT_TRY(step->use(buffer));
  step->runtime->memory.release(step->buffers[size_t(buffer)]);
  return ZERO_RT_OK;
}

zero_rt_status calls::retag(zero_rt_step *step, int32_t buffer, int32_t role) {
  ZERO_RT_TRY(checkBuffer(*step, "retag", buffer));
  if (role < 0 || role >= ZERO_RT_ROLE_COUNT)
    return fail(ZERO_RT_INTERNAL, "retag: role %d of '%s' is out of range",
                role, step->bufferName(buffer));
  step->runtime->memory.retag(step->buffers[size_t(buffer)], role);
  return ZERO_RT_OK;
}

/// Copies what is in |part| of |src| to |dst|.
static zero_rt_status copyPart(zero_rt_step &step, int32_t src, int32_t dst,
                               Range part) {
  const zero_rt_buffer_row &from = step.library->buffers[src];
  const zero_rt_buffer_row &to = step.library->buffers[dst];
  if (src == dst || part.empty())
    return ZERO_RT_OK;
  ZERO_RT_TRY(step.use(src));
  ZERO_RT_TRY(step.use(dst));
  int64_t bytes = part.size() * elementSize(from.dtype);
  ZERO_RT_TRY(step.device().copy(step.address(dst, part.begin),
                                 step.address(src, part.begin), bytes));
  if (from.space != to.space)
    step.runtime->counters.bytes_copied_between_spaces += bytes;
  return ZERO_RT_OK;
}

zero_rt_status calls::copy(zero_rt_step *step, int32_t, int32_t src,
                           int32_t dst) {
  ZERO_RT_TRY(checkBuffer(*step, "copy", src));
  ZERO_RT_TRY(checkBuffer(*step, "copy", dst));
  const zero_rt_buffer_row &from = step->library->buffers[src];
  const zero_rt_buffer_row &to = step->library->buffers[dst];
  if (from.dtype != to.dtype || from.elements != to.elements)
    return fail(ZERO_RT_INTERNAL, "copy: '%s' and '%s' differ in type or size",
                step->bufferName(src), step->bufferName(dst));
  return copyPart(*step, src, dst, intersect(step->held(src), step->held(dst)));
}

zero_rt_status calls::unreduce(zero_rt_step *step, int32_t, int32_t src,
                               int32_t dst, int32_t axes) {
  ZERO_RT_TRY(checkBuffer(*step, "unreduce", src));
  ZERO_RT_TRY(checkBuffer(*step, "unreduce", dst));
  if (axes != -1)
    ZERO_RT_TRY(checkAxes(*step, "unreduce", axes));
  const zero_rt_buffer_row &from = step->library->buffers[src];
  const zero_rt_buffer_row &to = step->library->buffers[dst];
  if (from.dtype != to.dtype || from.elements != to.elements || to.owners >= 0)
    return fail(ZERO_RT_INTERNAL,
                "unreduce: '%s' cannot take addends of '%s', of the same type "
                "and size",
                step->bufferName(dst), step->bufferName(src));
  bool isFirst = axes == -1 || step->groups[size_t(axes)].rank == 0;
  Range kept = isFirst ? step->held(src) : Range();
  ZERO_RT_TRY(copyPart(*step, src, dst, kept));
  ZERO_RT_TRY(step->use(dst));
  for (Range others : {Range{0, kept.begin}, Range{kept.end, to.elements}})
    if (!others.empty())
      ZERO_RT_TRY(step->device().set(step->address(dst, others.begin), 0,
                                     elementSize(to.dtype), others.size()));
  return ZERO_RT_OK;
}
