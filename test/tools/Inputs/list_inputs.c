/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Prints what a library demands of each of its inputs: list_inputs LIBRARY. */

#include "zero_rt/step.h"

#include <stdio.h>

int main(int argc, char **argv) {
  const zero_rt_library *library = NULL;
  if (argc != 2 || zero_rt_open(argv[1], &library)) {
    fprintf(stderr, "%s\n", zero_rt_message());
    return 1;
  }
  zero_rt_library_info all = {.struct_size = sizeof(all)};
  zero_rt_input_info input = {.struct_size = sizeof(input)};
  if (zero_rt_library_describe(library, &all))
    return 1;
  for (int number = 0; number < all.num_inputs; ++number) {
    if (zero_rt_library_input(library, number, &input))
      return 1;
    printf("input %d %s\n", number,
           input.is_hyper ? "must be finite" : "may be anything");
  }
  return 0;
}
