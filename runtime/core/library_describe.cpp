//===- library_describe.cpp - Names and types of a library ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/open_library.h"
#include "core/status.h"
#include "zero_rt/step.h"

#include <algorithm>

using namespace zero_rt;

/// Checks the arguments of a call that describes row |number| of |count|.
template <typename Info>
static zero_rt_status checkRow(const zero_rt_library *library, const char *what,
                               int32_t number, int64_t zero_rt_library::*count,
                               Info *outInfo) {
  if (!library)
    return fail(ZERO_RT_INVALID_ARGUMENT, "library is null");
  ZERO_RT_TRY(checkStruct(outInfo, "out_info"));
  int64_t rows = library->*count;
  if (number >= 0 && number < rows)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT, "%s %d is out of range, '%s' has %lld",
              what, number, library->name, (long long)rows);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_library_describe(
    const zero_rt_library *library, zero_rt_library_info *out_info) {
  if (!library)
    return fail(ZERO_RT_INVALID_ARGUMENT, "library is null");
  ZERO_RT_TRY(checkStruct(out_info, "out_info"));
  out_info->ranks = int32_t(library->ranks);
  out_info->name = library->name;
  out_info->plan_hash = library->plan_hash;
  out_info->content_hash = contentHashOf(library);
  out_info->num_parameters = int32_t(library->num_parameters);
  out_info->num_inputs = int32_t(library->num_inputs);
  out_info->num_results = int32_t(library->num_results);
  out_info->num_activations = int32_t(library->num_activations);
  out_info->num_axes = int32_t(library->num_axes);
  out_info->has_loss_scale = library->loss_scale >= 0;
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_parameter(const zero_rt_library *library, int32_t number,
                          zero_rt_parameter_info *out_info) {
  ZERO_RT_TRY(checkRow(library, "parameter", number,
                       &zero_rt_library::num_parameters, out_info));
  const zero_rt_parameter_row &row = library->parameters[number];
  out_info->dtype = int32_t(row.dtype);
  out_info->gradient_dtype = int32_t(row.gradient_dtype);
  out_info->optional = int32_t(row.optional);
  out_info->name = library->strings + row.name;
  out_info->elements = row.elements;
  out_info->uses = row.uses;
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_input(const zero_rt_library *library, int32_t number,
                      zero_rt_input_info *out_info) {
  ZERO_RT_TRY(checkRow(library, "input", number, &zero_rt_library::num_inputs,
                       out_info));
  const zero_rt_input_row &row = library->inputs[number];
  out_info->is_tokens = int32_t(row.tokens);
  out_info->is_addend = row.over >= 0;
  out_info->is_hyper = int32_t(row.hyper);
  out_info->name = library->strings + row.name;
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_result(const zero_rt_library *library, int32_t number,
                       zero_rt_result_info *out_info) {
  ZERO_RT_TRY(checkRow(library, "result", number, &zero_rt_library::num_results,
                       out_info));
  out_info->name = library->strings + library->results[number].name;
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_activation(const zero_rt_library *library, int32_t number,
                           zero_rt_activation_info *out_info) {
  ZERO_RT_TRY(checkRow(library, "activation", number,
                       &zero_rt_library::num_activations, out_info));
  const zero_rt_activation_row &row = library->activations[number];
  out_info->dtype = int32_t(row.dtype);
  out_info->name = library->strings + row.name;
  out_info->axis = int32_t(row.axis);
  out_info->from = int32_t(row.from);
  out_info->to = int32_t(row.to);
  out_info->num_dims = int32_t(row.num_dims);
  std::copy_n(row.dims, 8, out_info->dims);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_axis(const zero_rt_library *library, int32_t number,
                     zero_rt_axis_info *out_info) {
  ZERO_RT_TRY(
      checkRow(library, "axis", number, &zero_rt_library::num_axes, out_info));
  out_info->size = int32_t(library->axes[number].size);
  out_info->name = library->strings + library->axes[number].name;
  return ZERO_RT_OK;
}
