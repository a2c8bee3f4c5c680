//===- ScheduledInterpreter.h - Runs a scheduled program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_SCHEDULEDINTERPRETER_H
#define ZERO_DIALECT_REFERENCE_SCHEDULEDINTERPRETER_H

#include "dialect/reference/Interpreter.h"
#include "dialect/zrt/ZrtDialect.h"

namespace zero {

/// In typed arithmetic: what the compiled program computes, bit for bit.
mlir::FailureOr<std::unique_ptr<Interpreter>>
createScheduledInterpreter(zrt::ProgramOp program);

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_SCHEDULEDINTERPRETER_H
