/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All ranks of a plan make a step of two backward passes at stage 3, on
 * gradients of zeros: peak PATH. Prints the most bytes of each role that a rank
 * had on its device, the largest over the ranks.
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static zero_rt_group *group;
static const zero_rt_library *library;
static zero_rt_library_info info = {.struct_size = sizeof(info)};
static void *zeros; /* of the largest gradient; ranks only read it */
static zero_rt_counters *counters; /* by rank */

static zero_rt_tensor gradientOf(int parameter) {
  zero_rt_parameter_info of = {.struct_size = sizeof(of)};
  CHECK(zero_rt_library_parameter(library, parameter, &of));
  zero_rt_tensor tensor = {.struct_size = sizeof(tensor)};
  tensor.dtype = of.gradient_dtype;
  tensor.elements = of.elements;
  tensor.data = zeros;
  return tensor;
}

/* Delivers the gradients of |unit|; -1: those of no unit. */
static void deliver(zero_rt_step *step, int32_t unit) {
  for (int p = 0; p < info.num_parameters; ++p) {
    int32_t of = -1;
    CHECK(zero_rt_step_unit_of(step, p, &of));
    zero_rt_tensor tensor = gradientOf(p);
    if (of == unit)
      CHECK(zero_rt_step_gradient(step, p, &tensor, NULL, NULL));
  }
}

static int32_t countUnits(zero_rt_step *step) {
  int32_t last = -1;
  for (int p = 0; p < info.num_parameters; ++p) {
    int32_t of = -1;
    CHECK(zero_rt_step_unit_of(step, p, &of));
    if (of > last)
      last = of;
  }
  return last + 1;
}

static void use(zero_rt_step *step, int32_t unit, int32_t next) {
  CHECK(zero_rt_step_unshard(step, unit, NULL));
  if (next >= 0)
    CHECK(zero_rt_step_prefetch(step, next));
}

static void pass(zero_rt_step *step, int32_t units) {
  for (int32_t u = 0; u < units; ++u) {
    use(step, u, u + 1 < units ? u + 1 : -1);
    CHECK(zero_rt_step_reshard(step, u, NULL));
  }
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  deliver(step, -1);
  for (int32_t u = units - 1; u >= 0; --u) {
    use(step, u, u - 1);
    deliver(step, u);
    CHECK(zero_rt_step_reshard(step, u, NULL));
  }
}

static void *run(void *argument) {
  int rank = (int)(intptr_t)argument;
  double inputs[] = {0.001};
  zero_rt_runtime *runtime;
  zero_rt_step *step;
  CHECK(zero_rt_create(group, rank, NULL, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));
  int32_t units = countUnits(step);
  pass(step, units);
  CHECK(zero_rt_step_accumulate(step));
  pass(step, units);
  CHECK(zero_rt_step_apply(step, inputs, info.num_inputs, NULL));
  zero_rt_results results = {.struct_size = sizeof(results)};
  CHECK(zero_rt_step_results(step, &results));
  counters[rank].struct_size = sizeof(*counters);
  CHECK(zero_rt_read_counters(runtime, &counters[rank]));
  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  return NULL;
}

static void print(const char *name, int role) {
  int64_t most = 0;
  for (int r = 0; r < info.ranks; ++r)
    if (counters[r].bytes_peak[ZERO_RT_SPACE_DEVICE][role] > most)
      most = counters[r].bytes_peak[ZERO_RT_SPACE_DEVICE][role];
  printf("%s %lld\n", name, (long long)most);
}

int main(int count, char **arguments) {
  if (count != 2)
    return 2;
  CHECK(zero_rt_open(arguments[1], &library));
  CHECK(zero_rt_library_describe(library, &info));
  CHECK(zero_rt_local_group_create(info.ranks, &group));
  int64_t largest = 0;
  for (int p = 0; p < info.num_parameters; ++p)
    if (gradientOf(p).elements > largest)
      largest = gradientOf(p).elements;
  zeros = calloc((size_t)largest, sizeof(double));
  counters = calloc((size_t)info.ranks, sizeof(*counters));
  pthread_t *threads = calloc((size_t)info.ranks, sizeof(*threads));
  if (!zeros || !counters || !threads)
    return 1;
  for (intptr_t r = 0; r < info.ranks; ++r)
    pthread_create(&threads[r], NULL, run, (void *)r);
  for (int r = 0; r < info.ranks; ++r)
    pthread_join(threads[r], NULL);
  print("parameter", ZERO_RT_ROLE_PARAMETER);
  print("gradient", ZERO_RT_ROLE_GRADIENT);
  print("accumulator", ZERO_RT_ROLE_ACCUMULATOR);
  print("state", ZERO_RT_ROLE_STATE);
  free(threads);
  free(counters);
  free(zeros);
  return zero_rt_group_destroy(group) != ZERO_RT_OK;
}
