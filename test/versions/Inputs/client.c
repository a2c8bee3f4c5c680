// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// client LIBRARY: describes a compiled step of one rank, trains with it, and
// saves and restores its state. Compiled with the headers of one version, and
// linked with the runtime of another one.

#include "zero_rt/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(CALL)                                                            \
  do {                                                                         \
    if (CALL) {                                                                \
      printf("error: %s\n", zero_rt_message());                                \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { MOST = 8 };

/// A float as an element of |dtype|: f32 or bf16. Exact for the values here.
static int64_t put(int32_t dtype, void *data, int64_t i, float value) {
  int64_t size = dtype == ZERO_RT_F32 ? 4 : 2;
  memcpy((char *)data + i * size, (char *)&value + 4 - size, (size_t)size);
  return size;
}

static float get(int32_t dtype, const void *data) {
  float value = 0;
  int64_t size = dtype == ZERO_RT_F32 ? 4 : 2;
  memcpy((char *)&value + 4 - size, data, (size_t)size);
  return value;
}

/// A tensor of |elements| times |value|.
static zero_rt_tensor fill(int32_t dtype, int64_t elements, float value) {
  zero_rt_tensor tensor = {.struct_size = sizeof(tensor), .dtype = dtype};
  tensor.elements = elements;
  tensor.data = malloc((size_t)elements * 4);
  for (int64_t i = 0; i < elements; ++i)
    put(dtype, tensor.data, i, value);
  return tensor;
}

static void train(zero_rt_step *step, const zero_rt_library *library,
                  zero_rt_library_info info) {
  int32_t numbers[MOST];
  zero_rt_tensor gradients[MOST];
  double inputs[MOST];
  for (int32_t p = 0; p < info.num_parameters; ++p) {
    zero_rt_parameter_info row = {.struct_size = sizeof(row)};
    CHECK(zero_rt_library_parameter(library, p, &row));
    zero_rt_tensor values = fill(row.dtype, row.elements, 1);
    CHECK(zero_rt_step_bind_parameter(step, p, &values));
    free(values.data);
    numbers[p] = p;
    gradients[p] = fill(row.gradient_dtype, row.elements, 2);
  }
  for (int32_t i = 0; i < info.num_inputs; ++i)
    inputs[i] = 0.25;
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_LAST));
  CHECK(zero_rt_step_gradients(step, numbers, gradients, info.num_parameters,
                               NULL, NULL));
  CHECK(zero_rt_step_apply(step, inputs, info.num_inputs, NULL));
  zero_rt_results results = {.struct_size = sizeof(results)};
  CHECK(zero_rt_step_results(step, &results));
  printf("outcome %d after %lld backward passes, %d values\n", results.verdict,
         (long long)results.backwards, results.num_values);
  for (int32_t p = 0; p < info.num_parameters; ++p) {
    zero_rt_tensor view = {.struct_size = sizeof(view)};
    CHECK(zero_rt_step_parameter(step, p, &view));
    printf("parameter %d: %g\n", p, get(view.dtype, view.data));
    free(gradients[p].data);
  }
}

static void save(zero_rt_step *step) {
  int64_t count = 0;
  CHECK(zero_rt_step_state_count(step, &count));
  for (int64_t e = 0; e < count; ++e) {
    zero_rt_state_entry entry = {.struct_size = sizeof(entry)};
    CHECK(zero_rt_step_state_describe(step, e, &entry));
    int64_t bytes = (entry.end - entry.begin) * 8;
    void *data = malloc((size_t)bytes);
    int32_t sizes[] = {2, 2, 4, 8};
    bytes = (entry.end - entry.begin) * sizes[entry.dtype];
    CHECK(zero_rt_step_state_read(step, e, data, bytes));
    CHECK(zero_rt_step_state_write(step, e, data, bytes));
    printf("state %d.%s [%lld, %lld)\n", entry.parameter, entry.role,
           (long long)entry.begin, (long long)entry.end);
    free(data);
  }
}

int main(int argc, char **argv) {
  const zero_rt_library *library = NULL;
  CHECK(zero_rt_open(argc > 1 ? argv[1] : "", &library));
  zero_rt_library_info info = {.struct_size = sizeof(info)};
  CHECK(zero_rt_library_describe(library, &info));
  printf("%s: %d parameters, %d inputs\n", info.name, info.num_parameters,
         info.num_inputs);
  if (info.num_parameters > MOST || info.num_inputs > MOST)
    return 1;
  zero_rt_group *group = NULL;
  zero_rt_runtime *runtime = NULL;
  zero_rt_step *step = NULL;
  zero_rt_options options = {.struct_size = sizeof(options), .threads = 2};
  CHECK(zero_rt_local_group_create(1, &group));
  CHECK(zero_rt_create(group, 0, &options, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));
  train(step, library, info);
  save(step);
  zero_rt_counters counters = {.struct_size = sizeof(counters)};
  CHECK(zero_rt_read_counters(runtime, &counters));
  printf("launches %lld\n", (long long)counters.launches);
  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  CHECK(zero_rt_group_destroy(group));
  return 0;
}
