//===- CallRunner.h - Makes the calls of handlers ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls of a handler are a constant table of int64_t. Each call is the
// number of a Call, and then its numbers, in the order of its prototype. A list
// of int32_t is the place of its first number in the lists of the handler.
//
// A step of 1000 buckets has 28 000 calls. As straight code each took LLVM as
// long as a small function.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_CALLRUNNER_H
#define ZERO_CODEGEN_HOST_CALLRUNNER_H

#include "codegen/host/GlobalBuilder.h"

namespace zero {

/// Emits the function that makes calls in order, and returns the status of the
/// first that fails: (step, event, words, number of words, lists) -> status.
void emitCallRunner(GlobalBuilder &globals);

/// Emits the zero_rt_handler_fn |name|, which makes the calls of |words|.
void emitRunnerOf(llvm::StringRef name, const Constant &words,
                  uint64_t numWords, const Constant &lists, mlir::Location loc,
                  GlobalBuilder &globals);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_CALLRUNNER_H
