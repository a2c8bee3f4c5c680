//===- collective_calls.cpp - Collectives, checked and counted ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that is the same for all communicators. With one rank a collective
// moves nothing to others, but is checked and counted like any other.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/status.h"
#include "core/step.h"

using namespace zero_rt;

/// Bytes a ring sends per rank for |passes| passes over |bytes|.
static int64_t ringBytes(int64_t bytes, int64_t passes, int64_t ranks) {
  return passes * bytes * (ranks - 1) / ranks;
}

/// What this rank holds of |buffer|.
static int64_t bufferBytes(const Step &step, int32_t buffer) {
  return step.held(buffer).size() *
         elementSize(step.library->buffers[buffer].dtype);
}

/// Of a collective that reads |src| and writes |dst|.
static Tag makeTag(const Step &step, const char *operation, int32_t src,
                   int32_t dst) {
  const zero_rt_buffer_row *rows = step.library->buffers;
  return {operation,
          step.bufferName(src),
          step.held(src).size(),
          int32_t(rows[src].dtype),
          int32_t(rows[dst].dtype),
          step.id};
}

static zero_rt_status checkFull(const Step &step, const char *call,
                                int32_t buffer) {
  ZERO_RT_TRY(checkBuffer(step, call, buffer));
  if (step.library->buffers[buffer].owners >= 0)
    return fail(ZERO_RT_INTERNAL, "%s: buffer '%s' is sharded, expected full",
                call, step.bufferName(buffer));
  return ZERO_RT_OK;
}

/// This rank's end of the group of |axes|.
static Communicator &endOf(const Step &step, int32_t axes) {
  const RankGroup &group = step.groups[size_t(axes)];
  return group.end ? *group.end : *step.runtime->communicator;
}

zero_rt_status calls::all_reduce(Step *step, int32_t src, int32_t dst,
                                 int32_t axes, int32_t stream) {
  // They may be sharded over other axes.
  ZERO_RT_TRY(checkBuffer(*step, "all_reduce", src));
  ZERO_RT_TRY(checkBuffer(*step, "all_reduce", dst));
  ZERO_RT_TRY(checkAxes(*step, "all_reduce", axes));
  const zero_rt_buffer_row &from = step->library->buffers[src];
  const zero_rt_buffer_row &to = step->library->buffers[dst];
  const void *addends = step->buffers[size_t(src)].data;
  void *sums = step->buffers[size_t(dst)].data;
  if (to.owners != from.owners || to.elements != from.elements ||
      !holdsEveryNumber(to.dtype, from.dtype) ||
      (addends == sums && src != dst))
    return fail(ZERO_RT_INTERNAL, "all_reduce: '%s' cannot take sums of '%s'",
                step->bufferName(dst), step->bufferName(src));
  ZERO_RT_TRY(step->on(stream, "all_reduce", [&] {
    return endOf(*step, axes)
        .allReduce(makeTag(*step, "all_reduce", src, dst), *step->program,
                   addends, sums);
  }));
  zero_rt_counters &counters = step->runtime->counters;
  ++counters.all_reduces;
  counters.bytes_sent +=
      ringBytes(bufferBytes(*step, src) + bufferBytes(*step, dst), 1,
                step->groupSize(axes));
  return ZERO_RT_OK;
}

static zero_rt_status reduceScatter(Step &step, const char *call, int32_t src,
                                    int32_t dst, int32_t axes, bool accumulate,
                                    int32_t stream) {
  ZERO_RT_TRY(checkFull(step, call, src));
  ZERO_RT_TRY(checkAxes(step, call, axes));
  ZERO_RT_TRY(checkBuffer(step, call, dst));
  const zero_rt_buffer_row &from = step.library->buffers[src];
  const zero_rt_buffer_row &to = step.library->buffers[dst];
  if (to.owners != axes || !holdsEveryNumber(to.dtype, from.dtype) ||
      to.elements != from.elements)
    return fail(ZERO_RT_INTERNAL, "%s: '%s' is no sharded twin of '%s'", call,
                step.bufferName(dst), step.bufferName(src));
  ZERO_RT_TRY(step.on(stream, call, [&] {
    return endOf(step, axes)
        .reduceScatter(makeTag(step, call, src, dst), *step.program,
                       step.buffers[size_t(src)].data,
                       step.buffers[size_t(dst)].data, accumulate);
  }));
  zero_rt_counters &counters = step.runtime->counters;
  ++counters.reduce_scatters;
  counters.bytes_sent +=
      ringBytes(bufferBytes(step, src), 1, step.groupSize(axes));
  return ZERO_RT_OK;
}

zero_rt_status calls::reduce_scatter(Step *step, int32_t src, int32_t dst,
                                     int32_t axes, int32_t stream) {
  return reduceScatter(*step, "reduce_scatter", src, dst, axes, false, stream);
}

zero_rt_status calls::reduce_scatter_add(Step *step, int32_t src, int32_t dst,
                                         int32_t axes, int32_t stream) {
  return reduceScatter(*step, "reduce_scatter_add", src, dst, axes, true,
                       stream);
}

zero_rt_status calls::all_gather(Step *step, int32_t buffer, int32_t axes,
                                 int32_t stream) {
  ZERO_RT_TRY(checkFull(*step, "all_gather", buffer));
  ZERO_RT_TRY(checkAxes(*step, "all_gather", axes));
  ZERO_RT_TRY(step->on(stream, "all_gather", [&] {
    return endOf(*step, axes)
        .allGather(makeTag(*step, "all_gather", buffer, buffer),
                   step->buffers[size_t(buffer)].data);
  }));
  zero_rt_counters &counters = step->runtime->counters;
  ++counters.all_gathers;
  counters.bytes_sent +=
      ringBytes(bufferBytes(*step, buffer), 1, step->groupSize(axes));
  return ZERO_RT_OK;
}

zero_rt_status calls::count_replicated_once(Step *step, int32_t slot,
                                            int32_t axes) {
  ZERO_RT_TRY(checkSlots(*step, "count_replicated_once", slot, 1));
  ZERO_RT_TRY(checkAxes(*step, "count_replicated_once", axes));
  if (step->groups[size_t(axes)].rank == 0)
    return ZERO_RT_OK;
  // Queued, since the next call may read it on another stream.
  double *slots = nullptr;
  ZERO_RT_TRY(step->getSlots(&slots));
  return step->device().set(slots + slot, /*bits=*/0, sizeof(double), 1);
}

zero_rt_status calls::all_reduce_scalars(Step *step, int32_t first,
                                         int32_t count, int32_t axes,
                                         int32_t stream) {
  ZERO_RT_TRY(checkSlots(*step, "all_reduce_scalars", first, count));
  ZERO_RT_TRY(checkAxes(*step, "all_reduce_scalars", axes));
  // Named by the first slot; a count of 0 may stand behind the last one.
  const char *name =
      count > 0 ? step->text(step->library->slots[first].name) : nullptr;
  Tag tag = {"all_reduce_scalars", name,        count,
             ZERO_RT_F64,          ZERO_RT_F64, step->id};
  ZERO_RT_TRY(step->checkStream(stream, "all_reduce_scalars"));
  ZERO_RT_TRY(step->writeSlotsBefore(Stream(stream)));
  auto *slots = static_cast<double *>(step->slotBlock.data) + first;
  ZERO_RT_TRY(step->on(stream, "all_reduce_scalars", [&] {
    return endOf(*step, axes).allReduce(tag, *step->program, slots, slots);
  }));
  zero_rt_counters &counters = step->runtime->counters;
  ++counters.scalar_all_reduces;
  counters.bytes_sent += ringBytes(int64_t(count) * int64_t(sizeof(double)), 2,
                                   step->groupSize(axes));
  return ZERO_RT_OK;
}
