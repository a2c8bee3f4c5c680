//===- stages.cpp - Which program a rank runs -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/stages.h"

#include "core/status.h"
#include "core/units.h"

using namespace zero_rt;

/// The distance between ranks whose coordinates differ by 1 over |axis|. The
/// last axis has distance 1.
static int64_t strideOf(const zero_rt_library &library, int64_t axis) {
  int64_t stride = 1;
  for (int64_t a = axis + 1; a < library.num_axes; ++a)
    stride *= library.axes[a].size;
  return stride;
}

int64_t zero_rt::coordinateOf(const zero_rt_library &library, int32_t rank,
                              int64_t axis) {
  return rank / strideOf(library, axis) % library.axes[axis].size;
}

int32_t zero_rt::rankAt(const zero_rt_library &library, int32_t rank,
                        int64_t axis, int64_t coordinate) {
  return int32_t(rank + (coordinate - coordinateOf(library, rank, axis)) *
                            strideOf(library, axis));
}

int64_t zero_rt::stageIndexOf(const zero_rt_library &whole, int32_t rank) {
  int64_t index = 0;
  for (int64_t a = 0; a < whole.num_axes; ++a)
    if (whole.stage_axes >> a & 1)
      index = index * whole.axes[a].size + coordinateOf(whole, rank, a);
  return index;
}

const zero_rt_library &zero_rt::stageOf(const zero_rt_library &whole,
                                        int32_t rank) {
  return whole.num_stages == 0 ? whole
                               : *whole.stages[stageIndexOf(whole, rank)];
}

std::string zero_rt::describeStage(const zero_rt_library &whole, int32_t rank) {
  std::string text;
  for (int64_t a = 0; a < whole.num_axes; ++a)
    if (whole.stage_axes >> a & 1)
      text += std::string(text.empty() ? "" : ", ") +
              (whole.strings + whole.axes[a].name) + " = " +
              std::to_string(coordinateOf(whole, rank, a));
  return text;
}

int32_t zero_rt::firstRankWhere(
    const zero_rt_library &whole,
    const std::function<bool(const zero_rt_library &)> &holds) {
  int32_t rank = 0;
  while (rank < whole.ranks && !holds(stageOf(whole, rank)))
    ++rank;
  return rank;
}

int32_t zero_rt::firstHolder(const zero_rt_library &whole, int32_t parameter) {
  return firstRankWhere(whole, [&](const zero_rt_library &stage) {
    const zero_rt_frozen_row *frozen = findFrozen(stage, parameter);
    return frozen ? !isElsewhere(*frozen)
                  : stage.parameters[parameter].bucket >= 0;
  });
}

zero_rt_status zero_rt::checkStages(const zero_rt_library &whole) {
  auto expect = [&](bool holds, const char *what) {
    return holds ? ZERO_RT_OK
                 : fail(ZERO_RT_INTERNAL,
                        "library '%s' is corrupt: its stages %s", whole.name,
                        what);
  };
  if (whole.num_stages == 0)
    return ZERO_RT_OK;
  ZERO_RT_TRY(expect(whole.num_axes >= 0 && whole.num_axes <= 62 &&
                         whole.axes && whole.stages && whole.stage_axes > 0 &&
                         whole.stage_axes < int64_t(1) << whole.num_axes,
                     "are over no axes"));
  int64_t count = 1;
  for (int64_t a = 0; a < whole.num_axes; ++a) {
    int64_t size = whole.axes[a].size;
    ZERO_RT_TRY(expect(size >= 1 && size <= whole.ranks, "have bad axes"));
    if (whole.stage_axes >> a & 1)
      count *= size;
    ZERO_RT_TRY(expect(count <= whole.ranks, "are more than ranks"));
  }
  ZERO_RT_TRY(expect(count == whole.num_stages, "are not one per coordinate"));
  for (int64_t s = 0; s < count; ++s) {
    const zero_rt_library *stage = whole.stages[s];
    ZERO_RT_TRY(expect(stage && stage->struct_size == whole.struct_size &&
                           stage->plan_hash == whole.plan_hash &&
                           stage->ranks == whole.ranks && stage->name &&
                           (s == 0 ? stage == &whole : stage->num_stages == 0),
                       "are of different plans"));
    ZERO_RT_TRY(expect(stage->num_axes == whole.num_axes &&
                           stage->num_axis_sets == whole.num_axis_sets &&
                           stage->num_parameters == whole.num_parameters &&
                           stage->num_slots == whole.num_slots &&
                           stage->num_inputs == whole.num_inputs &&
                           stage->num_activations == whole.num_activations &&
                           stage->num_units == whole.num_units &&
                           stage->num_frozen == whole.num_frozen,
                       "have other numbers of axes, parameters, slots, "
                       "inputs, activations or units"));
  }
  return ZERO_RT_OK;
}
