/*===- two_steps.c - Two steps of quickstart.mlir on two ranks ------------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* build/bin/zero-compile examples/quickstart.mlir -o out --mesh=dp=2
|* cc examples/two_steps.c -Iout -Iruntime/include -Lbuild/lib -lzero_rt \
|*    -lpthread -o out/two_steps
|* LD_LIBRARY_PATH=build/lib out/two_steps
|*
|* The ranks are threads. With -DWITH_TCP they are processes that you, torchrun,
|* srun or mpiexec has started, with the same result:
|*
|* for r in 0 1; do RANK=$r WORLD_SIZE=2 out/two_steps_tcp & done; wait
|*
|* With -DWITH_MPI, mpicc and -lzero_rt_mpi they are those of MPI:
|*
|* mpiexec -n 2 out/two_steps_mpi
|*
|* With -DWITH_CUDA, and zero-compile --target=cuda, threads run on one GPU, and
|* processes on one each, which meet over NCCL.
|*
\*===----------------------------------------------------------------------===*/

#include "train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(WITH_MPI)
#include "zero_rt/mpi.h"
#elif defined(WITH_TCP)
#include "zero_rt/tcp.h"
#endif

_Static_assert(TRAIN_RANKS == 2, "compile the step with --mesh=dp=2");

enum { STEPS = 2, BACKWARDS = 2 };

static const char *path; /* of the library */
static zero_rt_group *group;
static int gpu; /* which one, of those of this machine */

/* Ends the program with the message of the call that failed. */
#define CHECK(call)                                                            \
  do {                                                                         \
    zero_rt_status status_ = (call);                                           \
    if (status_ != ZERO_RT_OK) {                                               \
      fprintf(stderr, "%s: %s: %s\n", #call, zero_rt_status_name(status_),     \
              zero_rt_message());                                              \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* The gradient of every element is 1 on rank 0 and 2 on rank 1, as bf16, in
   memory of the runtime's device. */
static void run_backward(zero_rt_runtime *runtime, zero_rt_step *step, int rank,
                         zero_rt_hint hint) {
  static const int64_t elements[] = TRAIN_PARAMETER_ELEMENTS;
  static const zero_rt_dtype dtypes[] = TRAIN_GRADIENT_DTYPES; /* all bf16 */
  static const uint16_t one_or_two[] = {0x3f80, 0x4000};
  CHECK(zero_rt_step_begin_backward(step, hint));
  for (int32_t id = TRAIN_NUM_PARAMETERS - 1; id >= 0; --id) {
    static _Thread_local uint16_t values[64 * 48];
    const int64_t bytes = elements[id] * (int64_t)sizeof(values[0]);
    for (int64_t i = 0; i < elements[id]; ++i)
      values[i] = one_or_two[rank];
    void *data = NULL;
    CHECK(zero_rt_allocate(runtime, bytes, &data));
    CHECK(zero_rt_copy(runtime, data, values, bytes));
    zero_rt_tensor gradient = {sizeof(gradient),     dtypes[id],
                               ZERO_RT_SPACE_DEVICE, 0,
                               elements[id],         data};
    CHECK(zero_rt_step_gradient(step, id, &gradient, NULL, NULL));
    CHECK(zero_rt_release(runtime, data)); /* the gradient has been taken */
  }
}

static void *run_rank(void *argument) {
  int rank = (int)(intptr_t)argument;
  const zero_rt_library *library;
  zero_rt_runtime *runtime;
  zero_rt_step *step;
  zero_rt_options options = {.struct_size = sizeof(options)};
#if defined(WITH_CUDA)
  options.device = "cuda";
#endif
  options.ordinal = gpu;
  CHECK(zero_rt_create(group, rank, &options, &runtime));
  CHECK(train_open(path, &library));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));
  for (int k = 0; k < STEPS; ++k) {
    for (int b = 0; b < BACKWARDS; ++b) {
      if (b > 0)
        CHECK(zero_rt_step_accumulate(step));
      /* In the last one, reductions begin before all gradients have come. */
      run_backward(runtime, step, rank,
                   b + 1 == BACKWARDS ? ZERO_RT_HINT_LAST : ZERO_RT_HINT_MORE);
    }
    const double inputs[TRAIN_NUM_INPUTS] = {[TRAIN_INPUT_LR] = 0.5};
    CHECK(zero_rt_step_apply(step, inputs, TRAIN_NUM_INPUTS, NULL));
    zero_rt_results results = {.struct_size = sizeof(results)};
    CHECK(zero_rt_step_results(step, &results));
    if (rank == 0)
      printf("step %d: norm %.6f\n", k, results.values[TRAIN_RESULT_NORM]);
  }
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  CHECK(zero_rt_step_parameter(step, TRAIN_PARAMETER_FC2_BIAS, &view));
  uint16_t bias = 0;
  CHECK(zero_rt_copy(runtime, &bias, view.data, sizeof(bias)));
  printf("rank %d: fc2.bias[0] = 0x%04x\n", rank, bias);
  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  return NULL;
}

int main(int argc, char **argv) {
  path = argc > 1 ? argv[1] : "out/libtrain.so";
#if defined(WITH_MPI)
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL,
                      &node);
  MPI_Comm_rank(node, &gpu);
  CHECK(zero_rt_mpi_group_create(MPI_COMM_WORLD, &group));
  run_rank((void *)(intptr_t)rank);
  CHECK(zero_rt_group_destroy(group));
  MPI_Finalize();
#elif defined(WITH_TCP)
  zero_rt_tcp_options options = {.struct_size = sizeof(options)};
  CHECK(zero_rt_tcp_environment(&options));
  gpu = options.local_rank;
  CHECK(zero_rt_tcp_group_create(&options, &group));
  run_rank((void *)(intptr_t)options.rank);
  CHECK(zero_rt_group_destroy(group));
#else
  pthread_t threads[TRAIN_RANKS];
  CHECK(zero_rt_local_group_create(TRAIN_RANKS, &group));
  for (intptr_t r = 0; r < TRAIN_RANKS; ++r)
    if (pthread_create(&threads[r], NULL, run_rank, (void *)r))
      return 1;
  for (int r = 0; r < TRAIN_RANKS; ++r)
    pthread_join(threads[r], NULL);
  CHECK(zero_rt_group_destroy(group));
#endif
  return 0;
}
