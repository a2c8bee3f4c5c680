//===- parameter_calls.cpp - Parameters: names, values, views -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/stages.h"
#include "core/state_entries.h"
#include "core/structs.h"
#include "core/units.h"

using namespace zero_rt;

zero_rt_status calls::find_parameter(Step *step, const char *name,
                                     int32_t *out_parameter) {
  if (!name || !out_parameter)
    return fail(ZERO_RT_INVALID_ARGUMENT, "find_parameter: %s is null",
                name ? "out_parameter" : "name");
  *out_parameter = step->index.findParameter(name);
  if (*out_parameter >= 0)
    return ZERO_RT_OK;
  const char *nearest = step->index.nearestParameter(name);
  if (!nearest)
    return fail(ZERO_RT_INVALID_ARGUMENT, "no parameter '%s': '%s' has none",
                name, step->library->name);
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "no parameter '%s' in '%s'; did you mean '%s'?", name,
              step->library->name, nearest);
}

namespace {
/// A parameter, frozen or not.
struct Place {
  const char *name;
  int64_t dtype;
  Range range;  // in both buffers
  int64_t kept; // the buffer of what this rank keeps
  int64_t read; // the buffer that the caller reads
  int64_t unit; // which has to be unsharded before; -1: none
};
} // namespace

static zero_rt_status checkFrozenIsHere(const Step &step, int32_t parameter) {
  const zero_rt_frozen_row &row = *findFrozen(*step.library, parameter);
  return isElsewhere(row)
             ? failElsewhere(step, std::string("'") + step.text(row.name) + "'",
                             firstHolder(*step.whole, parameter))
             : ZERO_RT_OK;
}

static zero_rt_status findPlace(const Step &step, int32_t parameter,
                                Place &out) {
  const zero_rt_library &library = *step.library;
  if (const zero_rt_frozen_row *row = findFrozen(library, parameter)) {
    ZERO_RT_TRY(checkFrozenIsHere(step, parameter));
    out = {step.text(row->name),
           row->dtype,
           {row->offset, row->offset + row->elements},
           row->parameter_buffer,
           row->unsharded_buffer,
           row->unit};
    return ZERO_RT_OK;
  }
  ZERO_RT_TRY(checkParameter(step, parameter));
  const zero_rt_parameter_row &row = library.parameters[parameter];
  out = {step.text(row.name),
         row.dtype,
         {row.offset, row.offset + row.elements},
         library.buckets[row.bucket].parameter_buffer,
         readBuffer(library, row.bucket),
         isSharded(library, row.bucket) ? unitOf(library, row.bucket) : -1};
  return ZERO_RT_OK;
}

/// Writes |tensor|, this rank's part of the parameter at |whole|, to the
/// elements that this rank holds in |buffer|. Waits until that is done.
static zero_rt_status writeHeld(Step &step, int64_t buffer, Range whole,
                                const zero_rt_tensor &tensor) {
  Range held = intersect(whole, step.held(buffer));
  if (held.empty())
    return ZERO_RT_OK;
  const zero_rt_buffer_row &row = step.library->buffers[buffer];
  const void *values = elementAt(static_cast<const void *>(tensor.data),
                                 tensor.dtype, held.begin - whole.begin);
  ZERO_RT_TRY(writeElements(step, buffer, held, tensor.dtype, values));
  if (row.space != tensor.space)
    step.runtime->counters.bytes_copied_between_spaces +=
        held.size() * elementSize(tensor.dtype);
  return step.device().finish();
}

zero_rt_status calls::bind_parameter(Step *step, int32_t parameter,
                                     const zero_rt_tensor *tensor) {
  Place place;
  ZERO_RT_TRY(findPlace(*step, parameter, place));
  zero_rt_tensor given;
  ZERO_RT_TRY(readTensor(tensor, "parameter", place.name, place.dtype,
                         place.range.size(), given));
  ZERO_RT_TRY(requireIdle(*step, "bind_parameter"));
  ZERO_RT_TRY(requireSharded(*step, "bind_parameter"));
  ZERO_RT_TRY(step->device().follow(/*stream=*/nullptr));
  // Waits for collectives, too. A copy from host memory may block in the
  // driver, where no failure of other ranks is detected.
  ZERO_RT_TRY(step->device().finish());
  ZERO_RT_TRY(writeHeld(*step, place.kept, place.range, given));
  const zero_rt_library &library = *step->library;
  if (findFrozen(library, parameter))
    return ZERO_RT_OK;
  const zero_rt_bucket_row &bucket =
      library.buckets[library.parameters[parameter].bucket];
  for (int64_t copy : {bucket.master_buffer, bucket.staging_buffer})
    if (copy >= 0)
      ZERO_RT_TRY(writeHeld(*step, copy, place.range, given));
  step->written.resize(size_t(library.num_parameters));
  step->written[size_t(parameter)] = {/*parameter=*/true};
  return ZERO_RT_OK;
}

zero_rt_status calls::parameter(Step *step, int32_t parameter,
                                zero_rt_tensor *out_view) {
  Place place;
  ZERO_RT_TRY(findPlace(*step, parameter, place));
  ZERO_RT_TRY(checkStruct(out_view, "out_view"));
  if (place.unit >= 0 &&
      step->units[size_t(place.unit)].phase != UnitState::Phase::Unsharded)
    return fail(ZERO_RT_PROTOCOL,
                "parameter '%s' is sharded; unshard its unit '%s' first",
                place.name, step->text(step->library->units[place.unit].name));
  writeStruct(makeTensor(place.dtype, step->library->buffers[place.read].space,
                         place.range.size(),
                         step->address(place.read, place.range.begin)),
              out_view);
  return ZERO_RT_OK;
}

zero_rt_status calls::parameter_wait(Step *step, int32_t parameter,
                                     zero_rt_stream *stream) {
  const zero_rt_library &library = *step->library;
  ZERO_RT_TRY(step->runtime->communicator->check());
  if (findFrozen(library, parameter)) // a stream waits for its unit
    return checkFrozenIsHere(*step, parameter);
  if (parameter != -1) {
    ZERO_RT_TRY(checkParameter(*step, parameter));
    return step->lendParameters(library.parameters[parameter].bucket, stream);
  }
  for (int64_t b = 0; b < library.num_buckets; ++b)
    if (library.buckets[b].num_readable >= 0)
      ZERO_RT_TRY(step->lendParameters(b, stream));
  return step->device().precede(stream);
}
