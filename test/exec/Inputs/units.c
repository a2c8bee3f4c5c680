/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two ranks train a step with three units, a parameter of no unit, and a frozen
 * one of unit 1: units PATH SCENARIO. All elements of gradients of rank r are r
 * + 1, and the step takes their mean, so each step subtracts 1.5.
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kUnits = 3, kElements = 6 };

static const char *scenario;
/* In which a forward pass uses units; a backward pass does in reverse. */
static int order[kUnits] = {0, 1, 2};
static zero_rt_group *group;
static const zero_rt_library *library;

static int is(const char *name) { return strcmp(scenario, name) == 0; }

/* The error of a call, or that there is none. */
static void report(int rank, const char *call, zero_rt_status status) {
  printf("rank %d: %s: %s\n", rank, call, status ? zero_rt_message() : "ok");
}
#define REPORT(CALL)                                                           \
  if (rank == 0)                                                               \
    report(rank, #CALL, CALL);                                                 \
  else                                                                         \
    (void)CALL

static zero_rt_tensor tensorOf(float *values) {
  zero_rt_tensor tensor = {sizeof(tensor), ZERO_RT_F32, ZERO_RT_SPACE_DEVICE, 0,
                           kElements,      values};
  return tensor;
}

static zero_rt_status gradient(zero_rt_step *step, int rank, int parameter) {
  float values[kElements];
  for (int e = 0; e < kElements; ++e)
    values[e] = (float)(rank + 1);
  zero_rt_tensor tensor = tensorOf(values);
  return zero_rt_step_gradient(step, parameter, &tensor, NULL, NULL);
}

/* The address of a parameter, after a check of its values. */
static const void *look(zero_rt_step *step, int parameter, float subtracted) {
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  CHECK(zero_rt_step_parameter(step, parameter, &view));
  for (int e = 0; e < kElements; ++e)
    if (((float *)view.data)[e] != 10.0f * parameter + e - subtracted) {
      printf("parameter %d is %g at %d\n", parameter, ((float *)view.data)[e],
             e);
      exit(1);
    }
  return view.data;
}

static void train(zero_rt_step *step, int rank) {
  const void *places[kUnits];
  double rate = 1;
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i < kUnits; ++i) {
      int u = order[i];
      CHECK(zero_rt_step_unshard(step, u, NULL));
      if (i + 1 < kUnits)
        CHECK(zero_rt_step_prefetch(step, order[i + 1]));
      places[u] = look(step, u, 1.5f * s);
      CHECK(zero_rt_step_reshard(step, u, NULL));
    }
    CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    CHECK(gradient(step, rank, kUnits));
    for (int i = kUnits - 1; i >= 0; --i) {
      int u = order[i];
      CHECK(zero_rt_step_unshard(step, u, NULL));
      if (i > 0)
        CHECK(zero_rt_step_prefetch(step, order[i - 1]));
      /* What a forward pass has saved is a view of the same memory. */
      if (look(step, u, 1.5f * s) != places[u])
        exit(1);
      CHECK(gradient(step, rank, u));
      CHECK(zero_rt_step_reshard(step, u, NULL));
    }
    CHECK(zero_rt_step_apply(step, &rate, 1, NULL));
    zero_rt_results results = {.struct_size = sizeof(results)};
    CHECK(zero_rt_step_results(step, &results));
  }
  if (rank == 0)
    printf("3 steps\n");
}

/* What was gathered ahead is not there before unshard, gives way, and is never
 * older than the last change of the parameters. */
static void guess(zero_rt_step *step, int rank) {
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  float values[kElements];
  zero_rt_tensor tensor = tensorOf(values);
  double rate = 1;
  REPORT(zero_rt_step_prefetch(step, 7));
  REPORT(zero_rt_step_prefetch(step, 0));
  REPORT(zero_rt_step_prefetch(step, 0));
  REPORT(zero_rt_step_parameter(step, 0, &view));
  REPORT(zero_rt_step_reshard(step, 0, NULL));
  /* Unit 2 has the memory of unit 0. */
  CHECK(zero_rt_step_unshard(step, 2, NULL));
  REPORT(zero_rt_step_prefetch(step, 0));
  look(step, 2, 0);
  CHECK(zero_rt_step_reshard(step, 2, NULL));
  CHECK(zero_rt_step_prefetch(step, 0));
  CHECK(zero_rt_step_unshard(step, 0, NULL));
  look(step, 0, 0);
  CHECK(zero_rt_step_reshard(step, 0, NULL));

  CHECK(zero_rt_step_prefetch(step, 1));
  for (int e = 0; e < kElements; ++e)
    values[e] = 10.0f * 1 + e + 1.5f;
  CHECK(zero_rt_step_bind_parameter(step, 1, &tensor));
  CHECK(zero_rt_step_unshard(step, 1, NULL));
  look(step, 1, -1.5f);
  CHECK(zero_rt_step_reshard(step, 1, NULL));

  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  for (int p = 0; p <= kUnits; ++p)
    CHECK(gradient(step, rank, p));
  CHECK(zero_rt_step_prefetch(step, 1));
  CHECK(zero_rt_step_measure(step, &rate, 1, NULL));
  REPORT(zero_rt_step_prefetch(step, 0));
  CHECK(zero_rt_step_apply(step, &rate, 1, NULL));
  CHECK(zero_rt_step_unshard(step, 1, NULL));
  look(step, 1, 0);
  CHECK(zero_rt_step_reshard(step, 1, NULL));
  if (rank == 0)
    printf("never stale\n");
}

static void misuse(zero_rt_step *step, int rank) {
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  float values[kElements] = {0};
  zero_rt_tensor tensor = tensorOf(values);
  double rate = 1;
  int32_t unit = 0;
  REPORT(zero_rt_step_find_unit(step, "layer7", &unit));
  REPORT(zero_rt_step_unshard(step, 7, NULL));
  REPORT(zero_rt_step_parameter(step, 0, &view));
  REPORT(zero_rt_step_reshard(step, 0, NULL));
  REPORT(zero_rt_step_unshard(step, 0, NULL));
  REPORT(zero_rt_step_unshard(step, 0, NULL));
  REPORT(zero_rt_step_unshard(step, 2, NULL));
  REPORT(zero_rt_step_bind_parameter(step, 0, &tensor));
  REPORT(zero_rt_step_state_write(step, 0, values, sizeof(values)));
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  REPORT(zero_rt_step_apply(step, &rate, 1, NULL));
  REPORT(zero_rt_step_measure(step, &rate, 1, NULL));
  REPORT(zero_rt_step_discard(step));
  REPORT(zero_rt_step_reshard(step, 0, NULL));
  REPORT(gradient(step, rank, 0));
  REPORT(gradient(step, rank, 1));
  CHECK(zero_rt_step_measure(step, &rate, 1, NULL));
  REPORT(zero_rt_step_unshard(step, 0, NULL));
  CHECK(zero_rt_step_discard(step));
  /* Nothing has changed, and nothing is missing. */
  train(step, rank);
}

/* What is read behind reshard shows, and a gradient view that is not ready is
 * missing. */
static void readLate(zero_rt_step *step, int rank) {
  double rate = 1, beta = 0;
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  CHECK(zero_rt_step_unshard(step, 1, NULL));
  const float *values = look(step, 1, 0);
  CHECK(zero_rt_step_reshard(step, 1, NULL));
  if (rank == 0)
    printf("read late: %g\n", values[0]);
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  CHECK(zero_rt_step_unshard(step, 2, NULL));
  CHECK(zero_rt_step_gradient_slot(step, 2, NULL, &view, &beta));
  CHECK(zero_rt_step_reshard(step, 2, NULL));
  REPORT(zero_rt_step_gradient_ready(step, 2, NULL));
  for (int p = 0; p < kUnits - 1; ++p)
    CHECK(gradient(step, rank, p));
  CHECK(gradient(step, rank, kUnits));
  CHECK(zero_rt_step_apply(step, &rate, 1, NULL));
  zero_rt_results results = {.struct_size = sizeof(results)};
  REPORT(zero_rt_step_results(step, &results));
  train(step, rank);
}

/* A frozen parameter has a number behind those of the others and a view while
 * its unit is unsharded, and no gradient. */
static void frozen(zero_rt_step *step, int rank) {
  enum { kBase = 5 };
  int32_t base = -1, unit = -1, other = -1;
  int64_t changed = 0;
  double rate = 1;
  float values[kBase];
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  zero_rt_tensor tensor = tensorOf(values);
  for (int e = 0; e < kBase; ++e)
    values[e] = 0.25f * e;
  zero_rt_library_info info = {.struct_size = sizeof(info)};
  zero_rt_parameter_info parameter = {.struct_size = sizeof(parameter)};
  CHECK(zero_rt_library_describe(library, &info));
  CHECK(zero_rt_library_parameter(library, info.num_parameters, &parameter));
  CHECK(zero_rt_step_find_parameter(step, "base", &base));
  CHECK(zero_rt_step_unit_of(step, base, &unit));
  if (rank == 0)
    printf("%d frozen: %d of %lld elements is '%s' of unit %d, gradients %d\n",
           info.num_frozen, base, (long long)parameter.elements, parameter.name,
           unit, parameter.gradient_dtype);
  REPORT(zero_rt_library_parameter(library, base + 1, &parameter));
  REPORT(zero_rt_step_find_parameter(step, "bass", &other));
  REPORT(zero_rt_step_parameter(step, base, &view));
  REPORT(zero_rt_step_bind_parameter(step, base, &tensor));
  tensor.elements = kBase;
  CHECK(zero_rt_step_bind_parameter(step, base, &tensor));
  REPORT(zero_rt_step_parameters_changed(step, &base, 1, NULL, &changed));
  REPORT(zero_rt_step_parameter_wait(step, base, NULL));
  const void *place = NULL;
  for (int s = 0; s < 3; ++s) {
    CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    if (s == 0) {
      REPORT(gradient(step, rank, base));
    }
    for (int u = 0; u < kUnits; ++u) {
      CHECK(zero_rt_step_unshard(step, u, NULL));
      if (u == unit) {
        CHECK(zero_rt_step_parameter(step, base, &view));
        if (memcmp(view.data, values, sizeof(values)) ||
            view.elements != kBase || (place && place != view.data))
          exit(1);
        place = view.data;
      }
      CHECK(gradient(step, rank, u));
      CHECK(zero_rt_step_reshard(step, u, NULL));
    }
    CHECK(gradient(step, rank, kUnits));
    CHECK(zero_rt_step_apply(step, &rate, 1, NULL));
  }
  if (rank == 0)
    printf("the same after 3 steps\n");
}

static long long gathersOf(zero_rt_runtime *runtime) {
  zero_rt_counters counters = {.struct_size = sizeof(counters)};
  CHECK(zero_rt_read_counters(runtime, &counters));
  return (long long)counters.all_gathers;
}

static void use(zero_rt_step *step, int unit) {
  CHECK(zero_rt_step_unshard(step, unit, NULL));
  CHECK(zero_rt_step_reshard(step, unit, NULL));
}

/* The step declares that units are used forward, and backward in reverse. The
 * next one is gathered ahead, and another one is an error that changes nothing.
 */
static void depart(zero_rt_runtime *runtime, zero_rt_step *step, int rank) {
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  REPORT(zero_rt_step_unshard(step, 1, NULL));
  CHECK(zero_rt_step_unshard(step, 0, NULL));
  if (rank == 0)
    printf("gathered: %lld\n", gathersOf(runtime));
  REPORT(zero_rt_step_parameter(step, 1, &view));
  CHECK(zero_rt_step_reshard(step, 0, NULL));
  REPORT(zero_rt_step_unshard(step, 2, NULL));
  /* A pass that is given up begins anew. */
  for (int u = 0; u < kUnits; ++u)
    use(step, u);
  REPORT(zero_rt_step_unshard(step, 1, NULL));
  for (int u = 0; u < kUnits; ++u)
    use(step, u);
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  CHECK(zero_rt_step_unshard(step, 2, NULL));
  CHECK(gradient(step, rank, 2));
  CHECK(zero_rt_step_reshard(step, 2, NULL));
  CHECK(gradient(step, rank, 0));
  CHECK(gradient(step, rank, 1));
  CHECK(gradient(step, rank, kUnits));
  /* The backward pass ends here, whether the library knows it or not, and with
   * it its order. Discard ends one, too. */
  use(step, 0);
  CHECK(zero_rt_step_accumulate(step));
  use(step, 0);
  CHECK(zero_rt_step_discard(step));
  use(step, 2);
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  CHECK(zero_rt_step_discard(step));
  long long before = gathersOf(runtime);
  train(step, rank);
  if (rank == 0)
    printf("gathered in 3 steps: %lld\n", gathersOf(runtime) - before);
}

/* The step declares an order. The next units are gathered with the first one,
 * and those behind them with the second one. */
static void countAhead(zero_rt_runtime *runtime, zero_rt_step *step, int rank) {
  CHECK(zero_rt_step_unshard(step, order[0], NULL));
  if (rank == 0)
    printf("gathered: %lld\n", gathersOf(runtime));
  CHECK(zero_rt_step_reshard(step, order[0], NULL));
  CHECK(zero_rt_step_unshard(step, order[1], NULL));
  if (rank == 0)
    printf("gathered: %lld\n", gathersOf(runtime));
  CHECK(zero_rt_step_reshard(step, order[1], NULL));
  train(step, rank);
}

static void disagree(zero_rt_step *step, int rank) {
  if (is("order")) {
    report(rank, "unshard", zero_rt_step_unshard(step, rank, NULL));
  } else if (is("skips") && rank == 1) {
    CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    report(rank, "accumulate", zero_rt_step_accumulate(step));
  } else if (is("prefetches") && rank == 1) {
    report(rank, "prefetch", zero_rt_step_prefetch(step, 1));
  } else if (rank == 0 || is("late")) {
    if (rank == 1)
      sleep(3);
    report(rank, "unshard", zero_rt_step_unshard(step, 0, NULL));
  }
}

static void *runRank(void *argument) {
  int rank = (int)(intptr_t)argument;
  zero_rt_options options = {.struct_size = sizeof(options)};
  options.timeout_ms = 1000;
  options.poison = is("poison");
  zero_rt_runtime *runtime = NULL;
  zero_rt_step *step = NULL;
  CHECK(zero_rt_create(group, rank, &options, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));
  for (int p = 0; p <= kUnits; ++p) {
    float values[kElements];
    for (int e = 0; e < kElements; ++e)
      values[e] = 10.0f * p + e;
    zero_rt_tensor tensor = tensorOf(values);
    CHECK(zero_rt_step_bind_parameter(step, p, &tensor));
  }
  if (is("train"))
    train(step, rank);
  else if (is("guess"))
    guess(step, rank);
  else if (is("misuse"))
    misuse(step, rank);
  else if (is("frozen"))
    frozen(step, rank);
  else if (is("poison"))
    readLate(step, rank);
  else if (is("departs"))
    depart(runtime, step, rank);
  else if (is("ahead") || is("swapped"))
    countAhead(runtime, step, rank);
  else
    disagree(step, rank);
  (void)zero_rt_step_destroy(step);
  (void)zero_rt_destroy(runtime);
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 3)
    return 2;
  scenario = arguments[2];
  if (is("swapped")) {
    order[1] = 2;
    order[2] = 1;
  }
  CHECK(zero_rt_open(arguments[1], &library));
  CHECK(zero_rt_local_group_create(2, &group));
  setvbuf(stdout, NULL, _IOLBF, 0);
  pthread_t threads[2];
  time_t begin = time(NULL);
  for (intptr_t r = 0; r < 2; ++r)
    pthread_create(&threads[r], NULL, runRank, (void *)r);
  for (int r = 0; r < 2; ++r)
    pthread_join(threads[r], NULL);
  CHECK(zero_rt_group_destroy(group));
  printf("%s\n", time(NULL) - begin < 10 ? "in time" : "late");
  return 0;
}
