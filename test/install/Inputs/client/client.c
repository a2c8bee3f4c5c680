/*===- client.c - One step of one rank ------------------------------------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "train.h"

#include <stdio.h>
#include <stdlib.h>

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

int main(void) {
  zero_rt_group *group;
  zero_rt_runtime *runtime;
  const zero_rt_library *library;
  zero_rt_step *step;
  zero_rt_options options = {.struct_size = sizeof(options)};
  CHECK(zero_rt_local_group_create(TRAIN_RANKS, &group));
  CHECK(zero_rt_create(group, 0, &options, &runtime));
  CHECK(train_open(TRAIN_LIBRARY, &library));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));

  float weights[4] = {1, 2, 3, 4}, bias[2] = {5, 6};
  zero_rt_tensor w = {sizeof(w), ZERO_RT_F32, ZERO_RT_SPACE_DEVICE,
                      0,         4,           weights};
  zero_rt_tensor b = {sizeof(b), ZERO_RT_F32, ZERO_RT_SPACE_DEVICE, 0, 2, bias};
  CHECK(zero_rt_step_bind_parameter(step, TRAIN_PARAMETER_W, &w));
  CHECK(zero_rt_step_bind_parameter(step, TRAIN_PARAMETER_B, &b));

  /* The gradient of a value is the value. */
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_LAST));
  CHECK(zero_rt_step_gradient(step, TRAIN_PARAMETER_B, &b, NULL, NULL));
  CHECK(zero_rt_step_gradient(step, TRAIN_PARAMETER_W, &w, NULL, NULL));
  const double learning_rate = 0.5;
  CHECK(zero_rt_step_apply(step, &learning_rate, 1, NULL));

  zero_rt_tensor view = {.struct_size = sizeof(view)};
  CHECK(zero_rt_step_parameter(step, TRAIN_PARAMETER_W, &view));
  CHECK(zero_rt_copy(runtime, weights, view.data, sizeof(weights)));
  printf("w = %g %g %g %g\n", weights[0], weights[1], weights[2], weights[3]);

  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  CHECK(zero_rt_group_destroy(group));
  return 0;
}
