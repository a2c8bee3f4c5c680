/*===- faulty_ranks.c - One of two ranks does something else --------------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* faulty_ranks FAULT prints what each call that matters answered on each rank,
|* where rank 1 has the fault: none, plan (it loads the library of another
|* plan), absent (it creates no step), leaves (it destroys its step before
|* apply), stalls (it comes to apply after rank 0 gave up) or vain (both make
two
|* backward passes, and it alone says of the first that it is the last).
|*
\*===----------------------------------------------------------------------===*/

#include "one.h"
#include "two.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

static zero_rt_group *group;
static const char *fault;
static sem_t gave_up; /* posted when rank 0 is done */

static int is_fault(int rank, const char *name) {
  return rank == 1 && strcmp(fault, name) == 0;
}

static int report(int rank, const char *call, zero_rt_status status) {
  printf("rank %d: %s: %s%s%s\n", rank, call, zero_rt_status_name(status),
         status ? ": " : "", status ? zero_rt_message() : "");
  return status == ZERO_RT_OK;
}

/* Every gradient is 0. */
static void run_backward(zero_rt_step *step, int32_t hint) {
  static const int64_t elements[] = {64 * 48, 64, 10 * 64, 10};
  static uint16_t zeros[64 * 48];
  one_begin_backward(step, hint);
  for (int32_t id = 0; id < ONE_NUM_PARAMETERS; ++id) {
    zero_rt_tensor gradient = {sizeof(gradient),     ZERO_RT_BF16,
                               ZERO_RT_SPACE_DEVICE, 0,
                               elements[id],         zeros};
    one_gradient(step, id, &gradient, NULL, NULL);
  }
}

static void run_step(int rank, zero_rt_step *step) {
  const double learning_rate = 0.5;
  if (strcmp(fault, "vain") == 0) {
    run_backward(step, is_fault(rank, "vain") ? ZERO_RT_HINT_LAST
                                              : ZERO_RT_HINT_UNKNOWN);
    one_accumulate(step);
  }
  run_backward(step, ZERO_RT_HINT_UNKNOWN);
  if (is_fault(rank, "leaves"))
    return;
  if (is_fault(rank, "stalls"))
    sem_wait(&gave_up);
  report(rank, "apply", one_apply(step, &learning_rate, 1, NULL));
  report(rank, "next", one_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
}

static void *run_rank(void *argument) {
  int rank = (int)(intptr_t)argument;
  zero_rt_options options = {.struct_size = sizeof(options),
                             .timeout_ms = 2000};
  zero_rt_runtime *runtime;
  zero_rt_step *step = NULL;
  if (!report(rank, "runtime", zero_rt_create(group, rank, &options, &runtime)))
    return NULL;
  zero_rt_status (*create)(zero_rt_runtime *, const void *, zero_rt_step **) =
      is_fault(rank, "plan") ? two_create : one_create;
  if (is_fault(rank, "absent"))
    sem_wait(&gave_up);
  else if (report(rank, "create", create(runtime, NULL, &step)))
    run_step(rank, step);
  if (rank == 0)
    sem_post(&gave_up);
  if (step)
    one_destroy(step);
  zero_rt_destroy(runtime);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 2 || zero_rt_local_group_create(2, &group) != ZERO_RT_OK)
    return 1;
  fault = argv[1];
  sem_init(&gave_up, 0, 0);
  pthread_t threads[2];
  for (intptr_t rank = 0; rank < 2; ++rank)
    pthread_create(&threads[rank], NULL, run_rank, (void *)rank);
  for (int rank = 0; rank < 2; ++rank)
    pthread_join(threads[rank], NULL);
  sem_destroy(&gave_up);
  return zero_rt_group_destroy(group) != ZERO_RT_OK;
}
