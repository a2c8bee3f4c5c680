//===- Interpreter.cpp - Which interpreter a module needs -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Interpreter.h"

#include "dialect/reference/LogicalInterpreter.h"
#include "dialect/reference/ScheduledInterpreter.h"

using namespace mlir;
using namespace zero;

FailureOr<std::unique_ptr<Interpreter>>
Interpreter::create(ModuleOp module, Arithmetic arithmetic) {
  auto steps = llvm::to_vector(module.getOps<StepOp>());
  auto programs = llvm::to_vector(module.getOps<zrt::ProgramOp>());
  if (steps.size() + programs.size() != 1)
    return module.emitError() << "one step can be interpreted, got "
                              << steps.size() + programs.size();
  if (!steps.empty())
    return createLogicalInterpreter(steps.front(), arithmetic);
  if (arithmetic == Arithmetic::F64)
    return module.emitError() << "a scheduled program can be interpreted in "
                                 "typed arithmetic only";
  return createScheduledInterpreter(programs.front());
}
