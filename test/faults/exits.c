/*===- exits.c - A process that ends with live objects --------------------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* exits PATH MOMENT HOW FOLDER
|*
|* Two ranks train the step of test/exec/Inputs/units.mlir. They are threads,
|* or, with RANK in the environment, one is this process. Rank 1 ends its
|* process in the second step, with code 3, and destroys nothing. Rank 0 goes on
|* until a call fails, prints the error, and ends in the same way, with code 4.
|* A rank has threads for its kernels. Moments:
|*
|*   idle       between two steps
|*   unsharded  a unit is unsharded
|*   backward   a backward pass is open
|*   saving     a thread writes a checkpoint to FOLDER
|*   waiting    another thread ends the process while the rank waits for rank 0
|*
|* HOW is exit, by the thread of the rank, or return, from main.
|*
\*===----------------------------------------------------------------------===*/

#include "zero_rt/step.h"
#include "zero_rt/tcp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 2, UNITS = 3, ELEMENTS = 6, CODE_OF_FAULT = 3, CODE_OF_ERROR };

static const char *moment, *how, *folder;
static zero_rt_group *group;
static const zero_rt_library *library;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int code = -1; /* with which main returns */

/* Does not return. */
static void end(int with) {
  if (strcmp(how, "exit") == 0)
    exit(with);
  pthread_mutex_lock(&mutex);
  code = with;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  for (;;)
    pause();
}

#define CALL(CALL_)                                                            \
  do {                                                                         \
    if ((CALL_) != ZERO_RT_OK) {                                               \
      printf("rank %d: %s\n", rank, zero_rt_message());                        \
      end(CODE_OF_ERROR);                                                      \
    }                                                                          \
  } while (0)

static void *end_soon(void *argument) {
  (void)argument;
  usleep(20000);
  end(CODE_OF_FAULT);
  return NULL;
}

static int is(const char *name) { return strcmp(moment, name) == 0; }

/* Rank 1 is at |name| in its second step. */
static void reach(int rank, int number, const char *name) {
  if (rank == 1 && number == 1 && is(name))
    end(CODE_OF_FAULT);
}

static void deliver(zero_rt_step *step, int rank, int parameter) {
  float values[ELEMENTS] = {0};
  zero_rt_tensor tensor = {sizeof(tensor), ZERO_RT_F32, ZERO_RT_SPACE_DEVICE, 0,
                           ELEMENTS,       values};
  CALL(zero_rt_step_gradient(step, parameter, &tensor, NULL, NULL));
}

static void train(zero_rt_step *step, int rank, int number) {
  const double rate = 1;
  zero_rt_results results = {.struct_size = sizeof(results)};
  if (number == 1 && is("saving"))
    CALL(zero_rt_step_save_begin(step, folder, 1));
  if (number == 1 && is("waiting")) {
    pthread_t thread;
    if (rank == 0)
      usleep(300000);
    else if (pthread_create(&thread, NULL, end_soon, NULL))
      abort();
  }
  reach(rank, number, "idle");
  reach(rank, number, "saving");
  for (int unit = 0; unit < UNITS; ++unit) {
    CALL(zero_rt_step_unshard(step, unit, NULL));
    reach(rank, number, "unsharded");
    CALL(zero_rt_step_reshard(step, unit, NULL));
  }
  CALL(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  for (int parameter = UNITS; parameter >= 0; --parameter) {
    deliver(step, rank, parameter);
    reach(rank, number, "backward");
  }
  CALL(zero_rt_step_apply(step, &rate, 1, NULL));
  CALL(zero_rt_step_results(step, &results));
}

static void *run_rank(void *argument) {
  int rank = (int)(intptr_t)argument;
  zero_rt_options options = {
      .struct_size = sizeof(options), .timeout_ms = 20000, .threads = 3};
  zero_rt_runtime *runtime;
  zero_rt_step *step;
  CALL(zero_rt_create(group, rank, &options, &runtime));
  CALL(zero_rt_step_create(runtime, library, NULL, &step));
  for (int number = 0;; ++number)
    train(step, rank, number);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  moment = argv[2];
  how = argv[3];
  folder = argv[4];
  int rank = -1; /* of this process */
  setvbuf(stdout, NULL, _IOLBF, 0);
  CALL(zero_rt_open(argv[1], &library));
  if (getenv("RANK")) {
    zero_rt_tcp_options options = {.struct_size = sizeof(options)};
    CALL(zero_rt_tcp_environment(&options));
    CALL(zero_rt_tcp_group_create(&options, &group));
    rank = options.rank;
  } else {
    CALL(zero_rt_local_group_create(RANKS, &group));
  }
  pthread_t threads[RANKS];
  for (intptr_t r = 0; r < RANKS; ++r)
    if ((rank < 0 || rank == r) &&
        pthread_create(&threads[r], NULL, run_rank, (void *)r))
      return 2;
  pthread_mutex_lock(&mutex);
  while (code < 0)
    pthread_cond_wait(&changed, &mutex);
  return code;
}
