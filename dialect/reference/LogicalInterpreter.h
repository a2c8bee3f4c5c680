//===- LogicalInterpreter.h - Runs a logical step ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_LOGICALINTERPRETER_H
#define ZERO_DIALECT_REFERENCE_LOGICALINTERPRETER_H

#include "dialect/reference/Interpreter.h"
#include "dialect/zero/ZeroDialect.h"

namespace zero {

mlir::FailureOr<std::unique_ptr<Interpreter>>
createLogicalInterpreter(StepOp step, Arithmetic arithmetic);

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_LOGICALINTERPRETER_H
