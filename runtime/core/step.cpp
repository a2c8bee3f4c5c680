//===- step.cpp - One compiled step on one rank ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/step.h"

#include "checkpoint/pending_save.h"
#include "core/calls.h"
#include "core/numeric.h"
#include "core/stages.h"
#include "core/structs.h"

#include <algorithm>
#include <utility>

using namespace zero_rt;

Step::Step(Runtime &runtime, std::unique_ptr<const KnownLibrary> known)
    : runtime(&runtime), known(std::move(known)), whole(&this->known->get()),
      library(&stageOf(*whole, runtime.rank)), index(*library),
      buffers(size_t(library->num_buffers)),
      events(size_t(library->num_stream_events)), window(*library),
      units(size_t(library->num_units)), unitOrder(*library) {
  ++runtime.steps;
  if (runtime.checkPreconditions)
    gradientDigests.assign(size_t(library->num_parameters), 0);
  for (int64_t s = 0; s < library->num_axis_sets; ++s) {
    RankGroup &group = groups.emplace_back();
    group.members = groupOf(*library, library->axis_sets[s], runtime.rank);
    if (int64_t stages = library->axis_set_stages[s]) {
      auto isOut = [&](int32_t rank) {
        return !(stages >> stageIndexOf(*whole, rank) & 1);
      };
      group.members.erase(
          std::remove_if(group.members.begin(), group.members.end(), isOut),
          group.members.end());
      if (isOut(runtime.rank))
        group.members.clear();
    }
    auto mine =
        std::find(group.members.begin(), group.members.end(), runtime.rank);
    group.rank = int32_t(mine - group.members.begin());
  }
}

Step::~Step() {
  if (handle)
    handle->object = nullptr;
  lanes.disconnect();       // queued work may wait for them
  (void)device().finish();  // other ranks may read memory of queued work
  sequence.writers.clear(); // streams of the caller may not exist any more
  dropWaiting(*this);
  dropBackwards(*this);
  releaseCopies(*this);
  lanes.release();
  program.reset();
  for (StreamEvent &event : events)
    if (!event.isMarked)
      device().dropSignal(event.signal);
  device().dropSignal(slotsWritten);
  if (last.slots)
    device().release(ZERO_RT_SPACE_HOST, last.slots);
  for (size_t b = 0; b < buffers.size(); ++b)
    if (library->buffers[b].shares < 0)
      runtime->memory.release(buffers[b]);
  runtime->memory.release(slotBlock);
  --runtime->steps;
}

void *Step::address(int64_t buffer, int64_t element) const {
  // Computed with integers: the base of a slice lies before its first element,
  // and a pointer must not point there.
  int64_t offset = element - held(buffer).begin;
  uintptr_t base = reinterpret_cast<uintptr_t>(buffers[size_t(buffer)].data);
  return reinterpret_cast<void *>(
      base + uintptr_t(offset * elementSize(library->buffers[buffer].dtype)));
}

zero_rt_status Step::allocate(int64_t buffer) {
  const zero_rt_buffer_row &row = library->buffers[buffer];
  Block &block = buffers[size_t(buffer)];
  int64_t elements = held(buffer).size();
  ZERO_RT_TRY(runtime->memory.allocate(int32_t(row.space), int32_t(row.role),
                                       elements * elementSize(row.dtype),
                                       bufferName(buffer), block));
  if (!row.on_demand)
    return device().set(block.data,
                        bitsOf(row.dtype, bitCast<double>(row.fill)),
                        elementSize(row.dtype), elements);
  if (runtime->poison)
    return poison(row.dtype, block.data, elements);
  return ZERO_RT_OK;
}

zero_rt_status Step::poison(int64_t dtype, void *data, int64_t elements) {
  return device().set(data, poisonOf(dtype), elementSize(dtype), elements);
}

zero_rt_status Step::getSlots(double **out) {
  *out = static_cast<double *>(slotBlock.data);
  return program->writeSlots();
}

zero_rt_status zero_rt::checkParameter(const Step &step, int32_t parameter) {
  if (const zero_rt_frozen_row *frozen = findFrozen(*step.library, parameter))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' is frozen: it has no gradient, and no step changes it",
                step.text(frozen->name));
  if (parameter < 0 || parameter >= step.library->num_parameters)
    return fail(
        ZERO_RT_INVALID_ARGUMENT,
        "parameter %d is out of range, step '%s' has %lld", parameter,
        step.library->name,
        (long long)(step.library->num_parameters + step.library->num_frozen));
  if (step.library->parameters[parameter].bucket >= 0)
    return ZERO_RT_OK;
  return failElsewhere(step,
                       std::string("'") + step.parameterName(parameter) + "'",
                       firstHolder(*step.whole, parameter));
}

zero_rt_status zero_rt::failElsewhere(const Step &step,
                                      const std::string &subject,
                                      int32_t first) {
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "%s is on another pipeline stage than rank %d, which is at %s; "
              "its first rank is %d",
              subject.c_str(), step.runtime->rank,
              describeStage(*step.whole, step.runtime->rank).c_str(), first);
}

zero_rt_tensor zero_rt::makeTensor(int64_t dtype, int64_t space,
                                   int64_t elements, void *data) {
  return {sizeof(zero_rt_tensor), int32_t(dtype), int32_t(space),
          /*reserved=*/0,         elements,       data};
}

zero_rt_status zero_rt::checkTensor(const zero_rt_tensor &tensor,
                                    const char *what, const char *name,
                                    int64_t dtype, int64_t elements) {
  if (tensor.dtype != dtype)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s '%s' has dtype %s, expected %s",
                what, name, dtypeName(tensor.dtype), dtypeName(dtype));
  if (tensor.elements != elements)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s '%s' has %lld element%s, expected %lld", what, name,
                (long long)tensor.elements, plural(tensor.elements),
                (long long)elements);
  if (tensor.space != ZERO_RT_SPACE_DEVICE &&
      tensor.space != ZERO_RT_SPACE_HOST)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s '%s' is in unknown space %d",
                what, name, tensor.space);
  if (!tensor.data && elements != 0)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s '%s' has null data", what, name);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::readTensor(const zero_rt_tensor *tensor,
                                   const char *what, const char *name,
                                   int64_t dtype, int64_t elements,
                                   zero_rt_tensor &out) {
  ZERO_RT_TRY(readStruct(tensor, "tensor", out));
  return checkTensor(out, what, name, dtype, elements);
}

zero_rt_status zero_rt::checkBuffer(const Step &step, const char *call,
                                    int32_t buffer) {
  if (buffer < 0 || buffer >= step.library->num_buffers)
    return fail(ZERO_RT_INTERNAL, "%s: buffer %d is out of range", call,
                buffer);
  if (!step.buffers[size_t(buffer)].data)
    return fail(ZERO_RT_INTERNAL, "%s: buffer '%s' is not allocated", call,
                step.bufferName(buffer));
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::checkAxes(const Step &step, const char *call,
                                  int32_t axes) {
  if (axes < 0 || axes >= step.library->num_axis_sets)
    return fail(ZERO_RT_INTERNAL, "%s: axis set %d is out of range", call,
                axes);
  if (step.groups[size_t(axes)].members.empty())
    return fail(ZERO_RT_INTERNAL,
                "%s: axis set %d is of other stages than this rank's", call,
                axes);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::checkSlots(const Step &step, const char *call,
                                   int64_t first, int64_t count) {
  int64_t slots = step.library->num_slots;
  if (first >= 0 && count >= 0 && count <= slots && first <= slots - count)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INTERNAL, "%s: scalar slots [%lld, %lld) of %lld", call,
              (long long)first, (long long)(first + count), (long long)slots);
}
