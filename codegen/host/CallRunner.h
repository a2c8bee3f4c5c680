//===- CallRunner.h - Makes the calls of handlers ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls of handlers are a constant table of int64_t. Each call is the
// number of a Call, and then its numbers, in the order of its prototype. A list
// of int32_t is the place of its first number in the lists of the library.
//
// A step of 1000 buckets has 2000 handlers with 28 000 calls. As code, each of
// them took LLVM as long as a small function.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_CALLRUNNER_H
#define ZERO_CODEGEN_HOST_CALLRUNNER_H

#include "codegen/host/GlobalBuilder.h"

namespace zero {

/// Emits the zero_rt_make_calls_fn of a library. Returns its address.
Constant emitCallRunner(GlobalBuilder &globals);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_CALLRUNNER_H
