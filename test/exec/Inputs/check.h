/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What clients in tests share.
 */
#ifndef ZERO_TEST_EXEC_CHECK_H
#define ZERO_TEST_EXEC_CHECK_H

#include "zero_rt/step.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the message of the call that failed. */
#define CHECK(CALL)                                                            \
  do {                                                                         \
    if ((CALL) != ZERO_RT_OK) {                                                \
      fprintf(stderr, "%s: %s\n", #CALL, zero_rt_message());                   \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#endif /* ZERO_TEST_EXEC_CHECK_H */
