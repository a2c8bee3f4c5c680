/*===- compile_and_train.c - A step compiled and run by one process -------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* A recipe becomes a library in memory, which the runtime opens as a file, and
|* a step of gradient descent runs on one rank.
|*
|* cc examples/compile_and_train.c -Itools/compiler/include -Iruntime/include \
|*    -Lbuild/lib -lzero_compiler -lzero_rt -o out/compile_and_train
|* LD_LIBRARY_PATH=build/lib out/compile_and_train
|*
\*===----------------------------------------------------------------------===*/

#include "zero_compiler.h"
#include "zero_rt/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Writes the compiled step to a file that the runtime can open. The caller
   removes |path|, which ends with XXXXXX. */
static void compile(const char *recipe, char *path) {
  zero_compiler_request request = {.struct_size = sizeof(request)};
  request.parameters = "[{\"name\": \"w\", \"shape\": [4]}]";
  request.recipe = recipe;
  request.options = "{\"mesh\": \"dp=1\"}";
  zero_compiler_result *result;
  zero_compiler_output output = {.struct_size = sizeof(output)};
  if (zero_compiler_compile(&request, &result) != ZERO_COMPILER_OK) {
    if (zero_compiler_result_get(result, &output) == ZERO_COMPILER_OK)
      fprintf(stderr, "cannot compile: %s\n", output.errors);
    exit(1);
  }
  zero_compiler_result_get(result, &output);
  printf("compiled '%s' with zero-compile %s\n", output.name,
         zero_compiler_version());
  int file = mkstemp(path);
  if (file < 0 || write(file, output.library, output.library_size) !=
                      (ssize_t)output.library_size) {
    perror(path);
    exit(1);
  }
  close(file);
  zero_compiler_result_destroy(result);
}

int main(int argc, char **argv) {
  char path[] = "/tmp/compile_and_train.XXXXXX";
  compile(argc > 1 ? argv[1] : "sgd,momentum=0,wd=0", path);
  const zero_rt_library *library;
  zero_rt_status status = zero_rt_open(path, &library);
  remove(path); /* the runtime has read it */
  CHECK(status);

  zero_rt_group *group;
  zero_rt_runtime *runtime;
  zero_rt_step *step;
  zero_rt_options options = {.struct_size = sizeof(options)};
  CHECK(zero_rt_local_group_create(1, &group));
  CHECK(zero_rt_create(group, 0, &options, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &step));

  float weights[4] = {1, 2, 3, 4};
  zero_rt_tensor w = {sizeof(w), ZERO_RT_F32, ZERO_RT_SPACE_DEVICE,
                      0,         4,           weights};
  CHECK(zero_rt_step_bind_parameter(step, 0, &w));
  /* The gradient of half the square of a value is the value. */
  CHECK(zero_rt_step_begin_backward(step, ZERO_RT_HINT_LAST));
  CHECK(zero_rt_step_gradient(step, 0, &w, NULL, NULL));
  const double learning_rate = 0.5;
  CHECK(zero_rt_step_apply(step, &learning_rate, 1, NULL));
  zero_rt_tensor view = {.struct_size = sizeof(view)};
  CHECK(zero_rt_step_parameter(step, 0, &view));
  CHECK(zero_rt_copy(runtime, weights, view.data, sizeof(weights)));
  printf("w = %g %g %g %g\n", weights[0], weights[1], weights[2], weights[3]);

  CHECK(zero_rt_step_destroy(step));
  CHECK(zero_rt_destroy(runtime));
  CHECK(zero_rt_group_destroy(group));
  return 0;
}
