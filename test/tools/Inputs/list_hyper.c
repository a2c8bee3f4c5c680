/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Prints the inputs of a library, and which of them are the hyperparameters of
   its parameters: list_hyper LIBRARY HYPER... */

#include "zero_rt/step.h"

#include <stdio.h>

int main(int argc, char **argv) {
  const zero_rt_library *library = NULL;
  if (argc < 2 || zero_rt_open(argv[1], &library)) {
    fprintf(stderr, "%s\n", zero_rt_message());
    return 1;
  }
  zero_rt_library_info all = {.struct_size = sizeof(all)};
  if (zero_rt_library_describe(library, &all))
    return 1;
  for (int number = 0; number < all.num_inputs; ++number) {
    zero_rt_input_info input = {.struct_size = sizeof(input)};
    if (zero_rt_library_input(library, number, &input))
      return 1;
    printf("input %d '%s' is '%s'\n", number, input.argument, input.name);
  }
  for (int number = 0; number < all.num_parameters + all.num_frozen; ++number) {
    zero_rt_parameter_info parameter = {.struct_size = sizeof(parameter)};
    if (zero_rt_library_parameter(library, number, &parameter))
      return 1;
    printf("%s:", parameter.name);
    for (int h = 2; h < argc; ++h) {
      int32_t input = -2;
      if (zero_rt_library_hyper(library, number, argv[h], &input)) {
        printf(" %s\n", zero_rt_message());
        return 1;
      }
      printf(" %s=%d", argv[h], input);
    }
    printf("\n");
  }
  /* What is no row of the library. */
  int32_t input = -2;
  if (!zero_rt_library_hyper(library, all.num_parameters + all.num_frozen, "lr",
                             &input))
    return 1;
  printf("%s\n", zero_rt_message());
  if (!zero_rt_library_hyper(library, 0, NULL, &input))
    return 1;
  printf("%s\n", zero_rt_message());
  return 0;
}
