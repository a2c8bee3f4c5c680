//===- Check.cpp - Errors of the example ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Check.h"

#include <cstdio>
#include <cstdlib>

namespace transformer {

void fail(const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "char_model: %s\n", message.c_str());
  std::_Exit(1);
}

void check(zero_rt_status status, const char *call, int rank,
           const char *remedy) {
  if (status != ZERO_RT_OK)
    fail("rank " + std::to_string(rank) + ": " + call + ": " +
         zero_rt_status_name(status) + ": " + zero_rt_message() +
         (status == ZERO_RT_INVALID_ARGUMENT ? remedy : ""));
}

} // namespace transformer
