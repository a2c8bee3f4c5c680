// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands in for the library of NVTX: prints the ranges of one thread, and fails
// at the end if they do not nest.

#include <stdio.h>
#include <stdlib.h>

static _Thread_local int depth = 0;

int nvtxRangePushA(const char *name) {
  printf("range %d %s\n", depth, name);
  return depth++;
}

int nvtxRangePop(void) {
  if (depth == 0)
    abort();
  return --depth;
}
