/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A client that knows a compiled step by its path only: open_library PATH
 * prints what the library says of itself and makes a step of two backward
 * passes on all ranks. open_library --check PATH... opens each file and prints
 * the errors. open_library --describe PATH makes no step.
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *paths[2]; /* of ranks 0 and 1 */
static zero_rt_group *group;
static pthread_barrier_t barrier;

static void describe(const zero_rt_library *library) {
  zero_rt_library_info info = {.struct_size = sizeof(info)};
  CHECK(zero_rt_library_describe(library, &info));
  printf("%s: %d ranks, %d parameters, hash %s\n", info.name, info.ranks,
         info.num_parameters, info.content_hash ? "known" : "unknown");
  for (int32_t i = 0; i < info.num_axes; ++i) {
    zero_rt_axis_info axis = {.struct_size = sizeof(axis)};
    CHECK(zero_rt_library_axis(library, i, &axis));
    printf("axis %s = %d\n", axis.name, axis.size);
  }
  for (int32_t i = 0; i < info.num_parameters; ++i) {
    zero_rt_parameter_info parameter = {.struct_size = sizeof(parameter)};
    CHECK(zero_rt_library_parameter(library, i, &parameter));
    printf("parameter %s: %lld elements of dtype %d, %lld uses\n",
           parameter.name, (long long)parameter.elements, parameter.dtype,
           (long long)parameter.uses);
  }
  for (int32_t i = 0; i < info.num_inputs; ++i) {
    zero_rt_input_info input = {.struct_size = sizeof(input)};
    CHECK(zero_rt_library_input(library, i, &input));
    printf("input '%s': hyper %d, tokens %d\n", input.name, input.is_hyper,
           input.is_tokens);
  }
  for (int32_t i = 0; i < info.num_results; ++i) {
    zero_rt_result_info result = {.struct_size = sizeof(result)};
    CHECK(zero_rt_library_result(library, i, &result));
    printf("result %s\n", result.name);
  }
  for (int32_t i = 0; i < info.num_activations; ++i) {
    zero_rt_activation_info activation = {.struct_size = sizeof(activation)};
    CHECK(zero_rt_library_activation(library, i, &activation));
    zero_rt_axis_info axis = {.struct_size = sizeof(axis)};
    CHECK(zero_rt_library_axis(library, activation.axis, &axis));
    printf("activation %s of dtype %d: %d dims, %lld x %lld, over %s from %d "
           "to %d\n",
           activation.name, activation.dtype, activation.num_dims,
           (long long)activation.dims[0], (long long)activation.dims[1],
           axis.name, activation.from, activation.to);
  }
  zero_rt_parameter_info parameter = {.struct_size = sizeof(parameter)};
  if (zero_rt_library_parameter(library, info.num_parameters, &parameter))
    printf("error: %s\n", zero_rt_message());
}

static void run_step(zero_rt_runtime *runtime, zero_rt_step *step,
                     const zero_rt_library *library, int rank) {
  zero_rt_library_info info = {.struct_size = sizeof(info)};
  CHECK(zero_rt_library_describe(library, &info));
  int32_t *numbers = calloc((size_t)info.num_parameters, sizeof(int32_t));
  zero_rt_tensor *tensors =
      calloc((size_t)info.num_parameters, sizeof(zero_rt_tensor));
  zero_rt_timepoint *releases =
      calloc((size_t)info.num_parameters, sizeof(zero_rt_timepoint));
  for (int32_t i = 0; i < info.num_parameters; ++i) {
    zero_rt_parameter_info parameter = {.struct_size = sizeof(parameter)};
    CHECK(zero_rt_library_parameter(library, i, &parameter));
    uint16_t *data = malloc((size_t)parameter.elements * sizeof(uint16_t));
    for (int64_t k = 0; k < parameter.elements; ++k)
      data[k] = rank == 0 ? 0x3f80 : 0x4000; /* 1 and 2 in bf16 */
    numbers[i] = info.num_parameters - 1 - i;
    zero_rt_tensor tensor = {sizeof(tensor),       ZERO_RT_BF16,
                             ZERO_RT_SPACE_DEVICE, 0,
                             parameter.elements,   data};
    tensors[info.num_parameters - 1 - i] = tensor;
  }
  for (int pass = 0; pass < 2; ++pass) {
    CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    if (pass == 0) {
      /* One wrong argument behind right ones: nothing is taken. */
      int32_t last = info.num_parameters - 1;
      int32_t number = numbers[last];
      zero_rt_tensor tensor = tensors[last];
      numbers[last] = numbers[0];
      tensors[last] = tensors[0];
      if (zero_rt_step_gradients(step, numbers, tensors, info.num_parameters,
                                 NULL, NULL) &&
          rank == 0)
        printf("error: %s\n", zero_rt_message());
      numbers[last] = number;
      tensors[last] = tensor;
    }
    CHECK(zero_rt_step_gradients(step, numbers, tensors, info.num_parameters,
                                 NULL, releases));
    if (pass == 0)
      CHECK(zero_rt_step_accumulate(step));
  }
  const double learning_rate = 0.5;
  CHECK(zero_rt_step_apply(step, &learning_rate, 1, NULL));
  zero_rt_results results = {.struct_size = sizeof(results)};
  CHECK(zero_rt_step_results(step, &results));
  if (rank == 0)
    printf("norm %.6f after %lld backward passes\n", results.values[0],
           (long long)results.backwards);
  for (int32_t i = 0; i < info.num_parameters; ++i)
    CHECK(zero_rt_wait(runtime, releases[i]));
  for (int32_t i = 0; i < info.num_parameters; ++i)
    free(tensors[i].data);
  free(numbers);
  free(tensors);
  free(releases);
}

static void *run_rank(void *argument) {
  int rank = (int)(intptr_t)argument;
  const zero_rt_library *library;
  CHECK(zero_rt_open(paths[rank], &library));
  zero_rt_runtime *runtime;
  CHECK(zero_rt_create(group, rank, NULL, &runtime));
  zero_rt_step *step;
  if (zero_rt_step_create(runtime, library, NULL, &step)) {
    if (rank == 0)
      printf("error: %s\n", zero_rt_message());
  } else {
    run_step(runtime, step, library, rank);
    CHECK(zero_rt_step_destroy(step));
    if (zero_rt_step_destroy(NULL) && rank == 0)
      printf("error: %s\n", zero_rt_message());
  }
  pthread_barrier_wait(&barrier);
  CHECK(zero_rt_destroy(runtime));
  return NULL;
}

int main(int argc, char **argv) {
  const zero_rt_library *library;
  if (argc > 2 && strcmp(argv[1], "--check") == 0) {
    for (int i = 2; i < argc; ++i)
      printf("%s\n",
             zero_rt_open(argv[i], &library) ? zero_rt_message() : "opened");
    return 0;
  }
  if (argc > 2 && strcmp(argv[1], "--describe") == 0) {
    CHECK(zero_rt_open(argv[2], &library));
    describe(library);
    return 0;
  }
  paths[0] = argv[1];
  paths[1] = argv[argc - 1];
  CHECK(zero_rt_open(paths[0], &library));
  describe(library);
  CHECK(zero_rt_local_group_create(2, &group));
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t threads[2];
  for (intptr_t r = 0; r < 2; ++r)
    if (pthread_create(&threads[r], NULL, run_rank, (void *)r))
      return 1;
  for (int r = 0; r < 2; ++r)
    pthread_join(threads[r], NULL);
  CHECK(zero_rt_group_destroy(group));
  return 0;
}
