//===- Check.h - Errors of the example --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_CHECK_H
#define ZERO_EXAMPLES_TRANSFORMER_CHECK_H

#include "zero_rt/status.h"

#include <string>

namespace transformer {

/// Ends the program with the message of a |call| that failed, and with |remedy|
/// if an argument was wrong. Other ranks may be waiting in a collective, so
/// nothing is torn down.
void check(zero_rt_status status, const char *call, int rank,
           const char *remedy = "");

/// Ends the program with |message|.
[[noreturn]] void fail(const std::string &message);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_CHECK_H
