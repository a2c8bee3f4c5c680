//===- step_interface.cpp - The calls of a step as functions --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function forwards to the table of the handle, which may be one that
// records calls.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/step.h"

#include "core/status.h"
#include "zero_rt/library.h"

#include <cstddef>
#include <type_traits>

using namespace zero_rt;

/// A program may have replaced the table of a handle by one that it was
/// compiled with.
static zero_rt_status failWithoutCall(const char *call,
                                      const zero_rt_calls &table) {
  return fail(ZERO_RT_UNSUPPORTED,
              "%s: the table of calls of this handle has abi version %u, which "
              "lacks this call",
              call, table.abi_version);
}

/// Defines zero_rt_step_SUFFIX with |PARAMETERS|, whose first one is |HANDLE|.
#define FORWARD_AS(SUFFIX, CALL, HANDLE, PARAMETERS, ...)                      \
  ZERO_RT_EXPORT zero_rt_status zero_rt_step_##SUFFIX PARAMETERS {             \
    static_assert(std::is_same_v<decltype(&zero_rt_step_##SUFFIX),             \
                                 decltype(zero_rt_calls::CALL)>);              \
    if (!(HANDLE))                                                             \
      return fail(ZERO_RT_INVALID_ARGUMENT, #CALL ": " #HANDLE " is null");    \
    const auto *table =                                                        \
        *reinterpret_cast<const zero_rt_calls *const *>(HANDLE);               \
    if (table->struct_size <= offsetof(zero_rt_calls, CALL))                   \
      return failWithoutCall(#CALL, *table);                                   \
    return table->CALL(__VA_ARGS__);                                           \
  }
#define FORWARD(CALL, PARAMETERS, ...)                                         \
  FORWARD_AS(CALL, CALL, step, PARAMETERS, __VA_ARGS__)

FORWARD_AS(create, step_create, runtime,
           (zero_rt_runtime * runtime, const zero_rt_library *library,
            const void *options, zero_rt_step **out_step),
           runtime, library, options, out_step)
FORWARD_AS(destroy, step_destroy, step, (zero_rt_step * step), step)
FORWARD(find_parameter,
        (zero_rt_step * step, const char *name, int32_t *out_parameter), step,
        name, out_parameter)
FORWARD(bind_parameter,
        (zero_rt_step * step, int32_t parameter, const zero_rt_tensor *tensor),
        step, parameter, tensor)
FORWARD(parameters_changed,
        (zero_rt_step * step, const int32_t *parameters, int64_t count,
         zero_rt_stream *stream, int64_t *out_elements),
        step, parameters, count, stream, out_elements)
FORWARD(parameter,
        (zero_rt_step * step, int32_t parameter, zero_rt_tensor *out_view),
        step, parameter, out_view)
FORWARD(parameter_wait,
        (zero_rt_step * step, int32_t parameter, zero_rt_stream *stream), step,
        parameter, stream)
FORWARD(find_unit, (zero_rt_step * step, const char *name, int32_t *out_unit),
        step, name, out_unit)
FORWARD(unit_of, (zero_rt_step * step, int32_t parameter, int32_t *out_unit),
        step, parameter, out_unit)
FORWARD(prefetch, (zero_rt_step * step, int32_t unit), step, unit)
FORWARD(unshard, (zero_rt_step * step, int32_t unit, zero_rt_stream *stream),
        step, unit, stream)
FORWARD(reshard, (zero_rt_step * step, int32_t unit, zero_rt_stream *stream),
        step, unit, stream)
FORWARD(begin_backward, (zero_rt_step * step, int32_t hint), step, hint)
FORWARD(gradient,
        (zero_rt_step * step, int32_t parameter, const zero_rt_tensor *tensor,
         zero_rt_stream *stream, zero_rt_timepoint *out_release),
        step, parameter, tensor, stream, out_release)
FORWARD(gradients,
        (zero_rt_step * step, const int32_t *parameters,
         const zero_rt_tensor *tensors, int64_t count, zero_rt_stream *stream,
         zero_rt_timepoint *out_releases),
        step, parameters, tensors, count, stream, out_releases)
FORWARD(gradient_slot,
        (zero_rt_step * step, int32_t parameter, zero_rt_stream *stream,
         zero_rt_tensor *out_slot, double *out_beta),
        step, parameter, stream, out_slot, out_beta)
FORWARD(gradient_ready,
        (zero_rt_step * step, int32_t parameter, zero_rt_stream *stream), step,
        parameter, stream)
FORWARD(gradient_of,
        (zero_rt_step * step, int64_t backward, int32_t parameter,
         const zero_rt_tensor *tensor, zero_rt_stream *stream,
         zero_rt_timepoint *out_release),
        step, backward, parameter, tensor, stream, out_release)
FORWARD(backward_passes, (zero_rt_step * step, int64_t *out_count), step,
        out_count)
FORWARD(meet, (zero_rt_step * step, const char *work), step, work)
FORWARD(end_backward, (zero_rt_step * step, int64_t backward), step, backward)
FORWARD(accumulate, (zero_rt_step * step), step)
FORWARD(discard, (zero_rt_step * step), step)
FORWARD(measure,
        (zero_rt_step * step, const double *inputs, int32_t num_inputs,
         zero_rt_stream *stream),
        step, inputs, num_inputs, stream)
FORWARD(apply,
        (zero_rt_step * step, const double *inputs, int32_t num_inputs,
         zero_rt_stream *stream),
        step, inputs, num_inputs, stream)
FORWARD(results, (zero_rt_step * step, zero_rt_results *out_results), step,
        out_results)
FORWARD(loss_scale, (zero_rt_step * step, double *out_scale), step, out_scale)
FORWARD(state_count, (zero_rt_step * step, int64_t *out_count), step, out_count)
FORWARD(state_describe,
        (zero_rt_step * step, int64_t entry, zero_rt_state_entry *out_entry),
        step, entry, out_entry)
FORWARD(state_read,
        (zero_rt_step * step, int64_t entry, void *out_data, int64_t bytes),
        step, entry, out_data, bytes)
FORWARD(state_write,
        (zero_rt_step * step, int64_t entry, const void *data, int64_t bytes),
        step, entry, data, bytes)
FORWARD(save, (zero_rt_step * step, const char *folder, int64_t number), step,
        folder, number)
FORWARD(save_begin, (zero_rt_step * step, const char *folder, int64_t number),
        step, folder, number)
FORWARD(save_end, (zero_rt_step * step), step)
FORWARD(load, (zero_rt_step * step, const char *folder, int64_t *out_number),
        step, folder, out_number)
FORWARD(load_begin,
        (zero_rt_step * step, const char *folder, int64_t *out_number), step,
        folder, out_number)
FORWARD(find_activation,
        (zero_rt_step * step, const char *name, int32_t *out_activation), step,
        name, out_activation)
FORWARD(send,
        (zero_rt_step * step, int32_t activation, int64_t micro_batch,
         const zero_rt_tensor *tensor, const int64_t *shape,
         zero_rt_stream *stream),
        step, activation, micro_batch, tensor, shape, stream)
FORWARD(receive_shape,
        (zero_rt_step * step, int32_t activation, int64_t micro_batch,
         int64_t *out_shape),
        step, activation, micro_batch, out_shape)
FORWARD(receive,
        (zero_rt_step * step, int32_t activation, int64_t micro_batch,
         const zero_rt_tensor *tensor, zero_rt_stream *stream),
        step, activation, micro_batch, tensor, stream)
