//===- ProveEachPass.cpp - Which pass changed what a step does? -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProveEachPass.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace zero;

void ProveEachPass::runBeforePass(Pass *pass, Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module || reference || hasBegun)
    return;
  hasBegun = true;
  // Passes also take modules without a complete step.
  ScopedDiagnosticHandler silence(op->getContext(),
                                  [](Diagnostic &) { return success(); });
  auto step = std::make_unique<ProvedStep>(module);
  if (step->isProved())
    first = std::move(step);
}

void ProveEachPass::runAfterPass(Pass *pass, Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  ProvedStep *expected = reference ? reference : first.get();
  if (!module || !expected || !result.broken.empty())
    return;
  // These passes change the step on request. The result is the new reference.
  if (!reference && (pass->getArgument() == "zero-set-mesh" ||
                     pass->getArgument() == "zrt-select-stage")) {
    hasBegun = false;
    first.reset();
    return;
  }
  if (proved && OperationEquivalence::isEquivalentTo(
                    *proved, module, OperationEquivalence::IgnoreLocations)) {
    ++result.passes;
    return;
  }
  if (expected->isSameAs(module)) {
    proved = module.clone();
    ++result.passes;
    return;
  }
  result.broken = pass->getArgument().str();
  emitError(module.getLoc())
      << "pass '" << result.broken << "' changed what the step does";
}
