/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All ranks of a plan with bf16 gradients make steps of 1, 3 and 1 backward
 * passes: in_place PATH place|copy. The gradients are written into views, or
 * delivered as copies. Prints a hash of the parameters of rank 0, and with
 * "place" the bytes of its accumulators after each step.
 */
#include "check.h"

#include <pthread.h>
#include <string.h>

static zero_rt_group *group;
static const zero_rt_library *library;
static zero_rt_library_info info = {.struct_size = sizeof(info)};
static int isPlaced;

/* 1 + k / 128 as bf16, for a k that each element of each backward pass of a
 * rank has of its own. */
static uint16_t valueOf(int rank, int pass, int parameter, int64_t element) {
  uint64_t mixed = (uint64_t)element * 2654435761u + (uint64_t)rank * 40503u +
                   (uint64_t)pass * 9973u + (uint64_t)parameter * 7919u;
  return (uint16_t)(0x3f80 + (mixed >> 7) % 128);
}

static void fill(uint16_t *values, int64_t elements, int rank, int pass,
                 int parameter) {
  for (int64_t e = 0; e < elements; ++e)
    values[e] = valueOf(rank, pass, parameter, e);
}

static void place(zero_rt_step *step, int rank, int pass, int parameter) {
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  double beta = -1;
  CHECK(zero_rt_step_gradient_slot(step, parameter, NULL, &view, &beta));
  if (view.dtype != ZERO_RT_BF16 || beta != 0) {
    fprintf(stderr, "backward pass %d adds to a view, or not in bf16\n", pass);
    exit(1);
  }
  fill(view.data, view.elements, rank, pass, parameter);
  CHECK(zero_rt_step_gradient_ready(step, parameter, NULL));
}

static void copy(zero_rt_step *step, int rank, int pass, int parameter) {
  zero_rt_parameter_info of = {.struct_size = sizeof(of)};
  CHECK(zero_rt_library_parameter(library, parameter, &of));
  zero_rt_tensor tensor = {.struct_size = sizeof(tensor)};
  uint16_t *values = malloc((size_t)(of.elements + 1) * sizeof(*values));
  if (!values)
    exit(1);
  tensor.dtype = ZERO_RT_BF16;
  tensor.elements = of.elements;
  tensor.data = values;
  fill(values, of.elements, rank, pass, parameter);
  CHECK(zero_rt_step_gradient(step, parameter, &tensor, NULL, NULL));
  free(values);
}

static void train(zero_rt_runtime *runtime, zero_rt_step *step, int rank) {
  static const int passes[] = {1, 3, 1};
  double inputs[] = {0.001};
  int pass = 0;
  for (int s = 0; s < 3; ++s) {
    for (int n = 0; n < passes[s]; ++n, ++pass) {
      if (n > 0)
        CHECK(zero_rt_step_accumulate(step));
      CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
      for (int p = 0; p < info.num_parameters; ++p)
        (isPlaced ? place : copy)(step, rank, pass, p);
    }
    CHECK(zero_rt_step_apply(step, inputs, info.num_inputs, NULL));
    zero_rt_results results = {.struct_size = sizeof(results)};
    CHECK(zero_rt_step_results(step, &results));
    zero_rt_counters counters = {.struct_size = sizeof(counters)};
    CHECK(zero_rt_read_counters(runtime, &counters));
    const int role = ZERO_RT_ROLE_ACCUMULATOR;
    if (rank == 0 && isPlaced)
      printf("step of %d: accumulators of %lld bytes at most, %lld now\n",
             passes[s],
             (long long)counters.bytes_peak[ZERO_RT_SPACE_DEVICE][role],
             (long long)counters.bytes_now[ZERO_RT_SPACE_DEVICE][role]);
  }
}

static void printHash(zero_rt_step *step) {
  uint64_t hash = 14695981039346656037u;
  for (int p = 0; p < info.num_parameters; ++p) {
    zero_rt_tensor view = {.struct_size = sizeof(view)};
    CHECK(zero_rt_step_parameter(step, p, &view));
    const unsigned char *bytes = view.data;
    for (int64_t b = 0; b < 2 * view.elements; ++b)
      hash = (hash ^ bytes[b]) * 1099511628211u;
  }
  printf("parameters %016llx\n", (unsigned long long)hash);
}

static void *run(void *argument) {
  int rank = (int)(intptr_t)argument;
  zero_rt_runtime *runtime;
  zero_rt_step *step;
  CHECK(zero_rt_create(group, rank, NULL, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));
  train(runtime, step, rank);
  if (rank == 0)
    printHash(step);
  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 3)
    return 2;
  isPlaced = strcmp(arguments[2], "place") == 0;
  CHECK(zero_rt_open(arguments[1], &library));
  CHECK(zero_rt_library_describe(library, &info));
  CHECK(zero_rt_local_group_create(info.ranks, &group));
  pthread_t *threads = calloc((size_t)info.ranks, sizeof(*threads));
  if (!threads)
    return 1;
  for (intptr_t r = 0; r < info.ranks; ++r)
    pthread_create(&threads[r], NULL, run, (void *)r);
  for (int r = 0; r < info.ranks; ++r)
    pthread_join(threads[r], NULL);
  free(threads);
  return zero_rt_group_destroy(group) != ZERO_RT_OK;
}
