// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library that ends the process that loads it, or keeps it for ever.

#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void load(void) {
#ifdef CRASH
  abort();
#else
  for (;;)
    pause();
#endif
}
