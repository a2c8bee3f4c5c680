// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiled step of one parameter and one rank: w = w - lr * gradient. The
// constants and functions are those that zero-compile would write, for the ABI
// version of the headers that this file is compiled with.

#include "zero_rt/library.h"

#ifndef STEP_VERSION
#define STEP_VERSION ZERO_RT_ABI_VERSION
#endif

enum { ELEMENTS = 4 };
enum { PARAMETERS, GRADIENTS };                           // buffers
enum { RATE, BACKWARDS, MISSING, OUTCOME, APPLIED_RATE }; // slots
enum { STORE, ADD, UPDATE };                              // kernels

// Names, and their offsets.
static const char strings[] = "rank\0w\0b0\0grads\0lr\0open\0closed\0parameter";
enum {
  RANK = 0,
  W = 5,
  B0 = 7,
  GRADS = 10,
  LR = 16,
  OPEN = 19,
  CLOSED = 24,
  PARAMETER = 31
};

static void store(void *const *operands, const double *scalars, int64_t begin,
                  int64_t end, double *partials) {
  for (int64_t i = begin; i < end; ++i)
    ((float *)operands[1])[i] = ((const float *)operands[0])[i];
}

static void add(void *const *operands, const double *scalars, int64_t begin,
                int64_t end, double *partials) {
  for (int64_t i = begin; i < end; ++i)
    ((float *)operands[1])[i] += ((const float *)operands[0])[i];
}

static void update(void *const *operands, const double *scalars, int64_t begin,
                   int64_t end, double *partials) {
  for (int64_t i = begin; i < end; ++i)
    ((float *)operands[1])[i] -=
        (float)scalars[0] * ((const float *)operands[0])[i];
}

static void find_outcome(double *slots) {
  int missing = slots[MISSING] > 0;
  slots[OUTCOME] = missing ? ZERO_RT_REFUSED_MISSING_GRADIENT : ZERO_RT_APPLIED;
  slots[APPLIED_RATE] = missing ? 0 : slots[RATE];
}

static const zero_rt_calls *calls_of(const zero_rt_step *step) {
  return *(const zero_rt_calls *const *)step;
}

static zero_rt_status on_arrive(zero_rt_step *step,
                                const zero_rt_event *event) {
  return calls_of(step)->pack(step, event, 0);
}

static zero_rt_status on_apply(zero_rt_step *step, const zero_rt_event *event) {
  static const zero_rt_kernel_buffer operands[] = {GRADIENTS, PARAMETERS};
  const zero_rt_calls *calls = calls_of(step);
  zero_rt_status status = calls->fill_missing(step, 0);
  if (!status)
    status = calls->count_arrivals(step, BACKWARDS, MISSING);
  if (!status)
    status = calls->run_scalars(step, 0);
  if (!status)
    status = calls->launch(step, UPDATE, operands, 2, 0, ELEMENTS, -1, -1,
                           ZERO_RT_STREAM_COMPUTE);
  return status ? status : calls->commit(step, OUTCOME);
}

static const zero_rt_axis_row axes[] = {{.name = RANK, .size = 1}};
static const zero_rt_parameter_row parameters[] = {
    {.name = W,
     .dtype = ZERO_RT_F32,
     .gradient_dtype = ZERO_RT_F32,
     .elements = ELEMENTS,
     .extent = ELEMENTS,
     .uses = 1}};
static const zero_rt_bucket_row buckets[] = {{.name = B0,
                                              .elements = ELEMENTS,
                                              .gradient_buffer = GRADIENTS,
                                              .parameter_buffer = PARAMETERS,
                                              .master_buffer = -1,
                                              .store_kernel = STORE,
                                              .add_kernel = ADD,
                                              .staging_buffer = -1,
                                              .rows = -1,
                                              .replicated = -1,
                                              .num_readable = -1}};
static const zero_rt_buffer_row buffers[] = {
    [PARAMETERS] = {.name = PARAMETER,
                    .role = ZERO_RT_ROLE_PARAMETER,
                    .dtype = ZERO_RT_F32,
                    .elements = ELEMENTS,
                    .owners = -1,
                    .shares = -1},
    [GRADIENTS] = {.name = GRADS,
                   .role = ZERO_RT_ROLE_GRADIENT,
                   .dtype = ZERO_RT_F32,
                   .elements = ELEMENTS,
                   .owners = -1,
                   .shares = -1}};
static const zero_rt_segment_row segments[] = {
    {.begin = 0, .end = ELEMENTS, .scalars = APPLIED_RATE}};
static const zero_rt_table_row tables[] = {{.first = 0, .count = 1}};
static const zero_rt_state_row states[] = {
    {.role = PARAMETER, .bucket = 0, .index = PARAMETERS}};
static const zero_rt_slot_row slots[] = {
    {.name = LR}, {.name = LR}, {.name = LR}, {.name = LR}, {.name = LR}};
static const zero_rt_input_row inputs[] = {
    {RATE, /*over=*/-1, /*tokens=*/0, /*finite=*/1, LR}}; // a name has changed
static const zero_rt_result_row results[] = {{.name = LR, .slot = RATE}};
static const zero_rt_kernel_fn kernels[] = {store, add, update};
static const zero_rt_scalar_fn scalar_programs[] = {find_outcome};
static const zero_rt_handler_fn handlers[] = {on_arrive, on_apply};
static const int64_t protocol_states[] = {CLOSED, OPEN};
static const zero_rt_transition_row transitions[] = {
    {.state = 0, .event = ZERO_RT_EVENT_BEGIN, .next = 1, .sequence = -1},
    {.state = 1,
     .event = ZERO_RT_EVENT_ARRIVE,
     .next = 1,
     .count = 1,
     .sequence = -1},
    {.state = 1,
     .event = ZERO_RT_EVENT_APPLY,
     .next = 0,
     .first = 1,
     .count = 1,
     .sequence = -1}};
static const int64_t transition_handlers[] = {0, 1};

static const zero_rt_library library = {
    sizeof(zero_rt_library),
    STEP_VERSION,
    .plan_hash = 0x15,
    .ranks = 1,
    .cpu_features = "",
    .name = "small",
    .strings = strings,
    .loss_scale = -1,
#define TABLE(COUNT, NAME)                                                     \
  .COUNT = sizeof(NAME) / sizeof((NAME)[0]), .NAME = NAME
    TABLE(num_axes, axes),
    TABLE(num_parameters, parameters),
    TABLE(num_buckets, buckets),
    TABLE(num_buffers, buffers),
    TABLE(num_segments, segments),
    TABLE(num_tables, tables),
    TABLE(num_states, states),
    TABLE(num_slots, slots),
    TABLE(num_inputs, inputs),
    TABLE(num_results, results),
    TABLE(num_kernels, kernels),
    TABLE(num_scalar_programs, scalar_programs),
    TABLE(num_handlers, handlers),
    TABLE(num_protocol_states, protocol_states),
    TABLE(num_transitions, transitions),
    .transition_handlers = transition_handlers,
};

const zero_rt_library *const zero_rt_compiled_step = &library;
