//===- Interpreter.cpp - Finds what a module has to run -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Interpreter.h"

#include "dialect/interpret/ProgramInterpreter.h"
#include "dialect/interpret/StepInterpreter.h"

using namespace mlir;
using namespace zero;

static FailureOr<std::unique_ptr<Interpreter>>
createProgram(zrt::ProgramOp op, Arithmetic arithmetic) {
  auto interpreter = std::make_unique<ProgramInterpreter>(op, arithmetic);
  if (failed(interpreter->initialize()))
    return failure();
  return std::unique_ptr<Interpreter>(std::move(interpreter));
}

static FailureOr<std::unique_ptr<Interpreter>>
createStep(StepOp op, Arithmetic arithmetic) {
  auto module = op->getParentOfType<ModuleOp>();
  // Gradients of buckets arrive in the sharded phase only.
  bool sharded = false;
  op.walk([&](BackwardOp backward) {
    for (auto source : backward.getSources().getAsRange<FlatSymbolRefAttr>())
      sharded |= module.lookupSymbol<BucketOp>(source) != nullptr;
  });
  auto interpreter = sharded ? createShardedStep(op, arithmetic)
                             : createLogicalStep(op, arithmetic);
  if (failed(interpreter->initialize()))
    return failure();
  return std::unique_ptr<Interpreter>(std::move(interpreter));
}

FailureOr<std::unique_ptr<Interpreter>>
Interpreter::create(ModuleOp module, Arithmetic arithmetic) {
  auto steps = llvm::to_vector(module.getOps<StepOp>());
  auto programs = llvm::to_vector(module.getOps<zrt::ProgramOp>());
  if (steps.size() + programs.size() != 1)
    return module.emitError()
           << "needs one zero.step or zrt.program to interpret, got "
           << steps.size() + programs.size();
  if (!programs.empty())
    return createProgram(programs.front(), arithmetic);
  return createStep(steps.front(), arithmetic);
}
