/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Units on three pipeline stages of two ranks each: unit_stages PATH. One rank
 * of each stage reports what its calls say.
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 6, COPIES = 2, UNITS = 5 };

static zero_rt_group *group;
static const zero_rt_library *library;
static pthread_barrier_t barrier;

static long long gathered(zero_rt_runtime *runtime) {
  zero_rt_counters counters = {.struct_size = sizeof(counters)};
  CHECK(zero_rt_read_counters(runtime, &counters));
  return (long long)counters.all_gathers;
}

static void say(int rank, const char *call, const char *name,
                zero_rt_status status) {
  if (rank % COPIES == 0)
    printf("rank %d: %s %s: %s\n", rank, call, name,
           status ? zero_rt_message() : "ok");
}

/* All ranks of a stage make the same calls. */
static void visit(zero_rt_step *step, zero_rt_runtime *runtime, int rank) {
  static const char *const units[UNITS] = {"embed", "weight", "norm", "rest",
                                           "project"};
  int32_t unit = -1, id = -1;
  for (int u = 0; u < UNITS; ++u) {
    /* Numbers are the same on all stages. */
    CHECK(zero_rt_step_find_unit(step, units[u], &unit));
    if (unit != u)
      exit(1);
    zero_rt_status status = zero_rt_step_unshard(step, unit, NULL);
    say(rank, "unshard", units[u], status);
    if (!status)
      CHECK(zero_rt_step_reshard(step, unit, NULL));
  }
  say(rank, "prefetch", "embed", zero_rt_step_prefetch(step, 0));
  CHECK(zero_rt_step_find_parameter(step, "frozen", &id));
  CHECK(zero_rt_step_unit_of(step, id, &unit));
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  say(rank, "parameter", "frozen", zero_rt_step_parameter(step, id, &view));
  say(rank, "parameter_wait", "frozen",
      zero_rt_step_parameter_wait(step, id, NULL));
  if (rank % COPIES == 0)
    printf("rank %d: unit_of frozen: %d; gathered %lld times\n", rank, unit,
           gathered(runtime));
  /* Out of order where the order is declared. */
  zero_rt_status status = zero_rt_step_unshard(step, 2, NULL);
  say(rank, "unshard", "norm", status);
  if (!status)
    CHECK(zero_rt_step_reshard(step, 2, NULL));
}

static void *run(void *argument) {
  int rank = (int)(intptr_t)argument;
  zero_rt_runtime *runtime;
  zero_rt_step *step;
  CHECK(zero_rt_create(group, rank, NULL, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));
  for (int stage = 0; stage < RANKS / COPIES; ++stage) {
    if (rank / COPIES == stage)
      visit(step, runtime, rank);
    pthread_barrier_wait(&barrier);
  }
  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  CHECK(zero_rt_open(argv[1], &library));
  CHECK(zero_rt_local_group_create(RANKS, &group));
  pthread_barrier_init(&barrier, NULL, RANKS);
  pthread_t threads[RANKS];
  for (intptr_t r = 0; r < RANKS; ++r)
    if (pthread_create(&threads[r], NULL, run, (void *)r))
      return 1;
  for (int r = 0; r < RANKS; ++r)
    pthread_join(threads[r], NULL);
  CHECK(zero_rt_group_destroy(group));
  return 0;
}
