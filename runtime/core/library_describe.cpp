//===- library_describe.cpp - Names and types of a library ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/library_versions.h"
#include "core/open_library.h"
#include "core/structs.h"
#include "core/units.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// Reads |library| for a call that describes row |number| of |count|.
template <typename Info>
static zero_rt_status readRow(const zero_rt_library *library, const char *what,
                              int32_t number, int64_t zero_rt_library::*count,
                              Info *outInfo, zero_rt_library &out) {
  ZERO_RT_TRY(readStruct(library, "library", out));
  ZERO_RT_TRY(checkStruct(outInfo, "out_info"));
  int64_t rows = out.*count;
  if (number >= 0 && number < rows)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT, "%s %d is out of range, '%s' has %lld",
              what, number, out.name, (long long)rows);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_library_describe(
    const zero_rt_library *library, zero_rt_library_info *out_info) {
  zero_rt_library known;
  ZERO_RT_TRY(readStruct(library, "library", known));
  ZERO_RT_TRY(checkStruct(out_info, "out_info"));
  zero_rt_library_info info = {};
  info.ranks = int32_t(known.ranks);
  info.name = known.name;
  info.plan_hash = known.plan_hash;
  info.content_hash = contentHashOf(library);
  info.num_parameters = int32_t(known.num_parameters);
  info.num_inputs = int32_t(known.num_inputs);
  info.num_results = int32_t(known.num_results);
  info.num_activations = int32_t(known.num_activations);
  info.num_axes = int32_t(known.num_axes);
  info.has_loss_scale = known.loss_scale >= 0;
  info.num_executables = int32_t(known.num_executables);
  info.num_frozen = int32_t(known.num_frozen);
  writeStruct(info, out_info);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_parameter(const zero_rt_library *library, int32_t number,
                          zero_rt_parameter_info *out_info) {
  zero_rt_library known;
  ZERO_RT_TRY(readStruct(library, "library", known));
  if (const zero_rt_frozen_row *frozen = findFrozen(known, number)) {
    ZERO_RT_TRY(checkStruct(out_info, "out_info"));
    zero_rt_parameter_info info = {};
    info.dtype = int32_t(frozen->dtype);
    info.gradient_dtype = -1;
    info.name = known.strings + frozen->name;
    info.elements = frozen->elements;
    writeStruct(info, out_info);
    return ZERO_RT_OK;
  }
  ZERO_RT_TRY(readRow(library, "parameter", number,
                      &zero_rt_library::num_parameters, out_info, known));
  const zero_rt_parameter_row &row = known.parameters[number];
  zero_rt_parameter_info info = {};
  info.dtype = int32_t(row.dtype);
  info.gradient_dtype = int32_t(row.gradient_dtype);
  info.optional = int32_t(row.optional);
  info.name = known.strings + row.name;
  info.elements = row.elements;
  info.uses = row.uses;
  writeStruct(info, out_info);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_input(const zero_rt_library *library, int32_t number,
                      zero_rt_input_info *out_info) {
  zero_rt_library known;
  ZERO_RT_TRY(readRow(library, "input", number, &zero_rt_library::num_inputs,
                      out_info, known));
  const zero_rt_input_row &row = known.inputs[number];
  zero_rt_input_info info = {};
  info.is_tokens = int32_t(row.tokens);
  info.is_addend = row.over >= 0;
  info.is_hyper = row.check != ZERO_RT_INPUT_FREE;
  info.is_positive = row.check == ZERO_RT_INPUT_POSITIVE;
  info.name = known.strings + row.name;
  info.argument =
      known.input_names ? known.strings + known.input_names[number] : "";
  writeStruct(info, out_info);
  return ZERO_RT_OK;
}

/// Whether the update of |parameter| depends on |input|, on the pipeline stages
/// of |library|.
static bool dependsOn(const zero_rt_library &library, int32_t parameter,
                      int64_t input) {
  int64_t words = (library.num_inputs + 63) / 64;
  int64_t set = library.parameter_inputs[parameter];
  return library.input_sets[set * words + input / 64] >> (input % 64) & 1;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_hyper(const zero_rt_library *library, int32_t number,
                      const char *hyper, int32_t *out_input) {
  if (!library || !hyper || !out_input)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "library, hyper and out_input must not be null");
  KnownLibrary known;
  ZERO_RT_TRY(known.read(*library));
  const zero_rt_library &whole = known.get();
  if (number < 0 || number >= whole.num_parameters + whole.num_frozen)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "parameter %d is out of range, '%s' has %lld", number,
                whole.name,
                (long long)(whole.num_parameters + whole.num_frozen));
  *out_input = -1;
  if (number >= whole.num_parameters || whole.num_inputs == 0)
    return ZERO_RT_OK;
  if (whole.num_input_sets == 0)
    return fail(ZERO_RT_UNSUPPORTED,
                "library '%s' does not say on which inputs an update depends; "
                "compile the step again",
                whole.name);
  auto depends = [&](int64_t input) {
    bool isHere = dependsOn(whole, number, input);
    for (int64_t s = 0; s < whole.num_stages; ++s)
      isHere |= dependsOn(*whole.stages[s], number, input);
    return isHere;
  };
  for (int64_t i = 0; i < whole.num_inputs && *out_input < 0; ++i)
    if (strcmp(whole.strings + whole.inputs[i].name, hyper) == 0 && depends(i))
      *out_input = int32_t(i);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_result(const zero_rt_library *library, int32_t number,
                       zero_rt_result_info *out_info) {
  zero_rt_library known;
  ZERO_RT_TRY(readRow(library, "result", number, &zero_rt_library::num_results,
                      out_info, known));
  zero_rt_result_info info = {};
  info.name = known.strings + known.results[number].name;
  writeStruct(info, out_info);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_activation(const zero_rt_library *library, int32_t number,
                           zero_rt_activation_info *out_info) {
  zero_rt_library known;
  ZERO_RT_TRY(readRow(library, "activation", number,
                      &zero_rt_library::num_activations, out_info, known));
  const zero_rt_activation_row &row = known.activations[number];
  zero_rt_activation_info info = {};
  info.dtype = int32_t(row.dtype);
  info.name = known.strings + row.name;
  info.axis = int32_t(row.axis);
  info.from = int32_t(row.from);
  info.to = int32_t(row.to);
  info.num_dims = int32_t(row.num_dims);
  std::copy_n(row.dims, 8, info.dims);
  writeStruct(info, out_info);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_axis(const zero_rt_library *library, int32_t number,
                     zero_rt_axis_info *out_info) {
  zero_rt_library known;
  ZERO_RT_TRY(readRow(library, "axis", number, &zero_rt_library::num_axes,
                      out_info, known));
  zero_rt_axis_info info = {};
  info.size = int32_t(known.axes[number].size);
  info.name = known.strings + known.axes[number].name;
  writeStruct(info, out_info);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_library_executable(const zero_rt_library *library, int32_t number,
                           zero_rt_executable *out_executable) {
  zero_rt_library known;
  ZERO_RT_TRY(readRow(library, "executable", number,
                      &zero_rt_library::num_executables, out_executable,
                      known));
  zero_rt_executable executable;
  ZERO_RT_TRY(
      readElement(known.executables, number, "executables", executable));
  writeStruct(executable, out_executable);
  return ZERO_RT_OK;
}
