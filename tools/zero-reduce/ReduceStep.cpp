//===- ReduceStep.cpp - Makes a step smaller while it is bad --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// --reduction-tree erases ops one by one, or applies patterns to a range of
// them. A parameter without its gradient does not verify, and a range that
// holds two parameters that are needed is never split further. This pass drops
// parts with all that depends on them, in ever smaller runs (Zeller's ddmin, on
// complements).
//
//===----------------------------------------------------------------------===//

#include "tools/zero-reduce/ReduceStep.h"

#include "tools/zero-reduce/Dropper.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Reducer/Tester.h"

using namespace mlir;
using namespace zero;

namespace {
struct ReduceStepPass : PassWrapper<ReduceStepPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceStepPass)

  ReduceStepPass() = default;
  ReduceStepPass(const ReduceStepPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "zero-reduce-step"; }
  StringRef getDescription() const override {
    return "Drops parameters, groups, buckets, inputs, results and calls of a "
           "step while the test still exits with 1.";
  }

  void runOnOperation() override;

  Option<std::string> testerName{
      *this, "test",
      llvm::cl::desc("Program that exits with 1 where a module is interesting, "
                     "and with 0 where it is not")};
  ListOption<std::string> testerArgs{*this, "test-arg",
                                     llvm::cl::desc("Arguments of the test")};

private:
  /// The module without |count| parts from |first| on; null if that does not
  /// verify.
  OwningOpRef<ModuleOp> without(size_t first, size_t count);
};
} // namespace

OwningOpRef<ModuleOp> ReduceStepPass::without(size_t first, size_t count) {
  OwningOpRef<ModuleOp> smaller = getOperation().clone();
  SmallVector<Part> parts = findParts(*smaller);
  Dropper dropper(*smaller);
  for (const Part &part : ArrayRef(parts).slice(first, count))
    dropper.drop(part);
  dropper.finish();
  ScopedDiagnosticHandler quiet(&getContext(),
                                [](Diagnostic &) { return success(); });
  if (failed(verify(*smaller)))
    return nullptr;
  return smaller;
}

void ReduceStepPass::runOnOperation() {
  using Interestingness = Tester::Interestingness;
  ModuleOp module = getOperation();
  if (testerName.empty()) {
    module.emitError() << "no test: give --zero-reduce-step='test=PROGRAM'";
    return signalPassFailure();
  }
  std::vector<std::string> arguments(testerArgs.begin(), testerArgs.end());
  Tester tester(testerName, arguments);
  auto [status, size] = tester.isInteresting(module);
  if (status != Interestingness::True) {
    module.emitError() << "'" << testerName
                       << "' exits with 0 for the whole step, expected 1: "
                          "there is nothing to keep while reducing";
    return signalPassFailure();
  }
  // In ever smaller runs, then until no part can go by itself.
  size_t largest = findParts(module).size();
  for (bool changed = true; changed; largest = 1) {
    changed = false;
    for (size_t count = largest; count > 0; count /= 2) {
      for (size_t first = 0; first < findParts(module).size();) {
        size_t taken = std::min(count, findParts(module).size() - first);
        OwningOpRef<ModuleOp> smaller = without(first, taken);
        auto [found, newSize] =
            smaller ? tester.isInteresting(*smaller)
                    : std::pair(Interestingness::False, size_t(0));
        if (found != Interestingness::True || newSize >= size) {
          first += taken;
          continue;
        }
        size = newSize;
        changed = true;
        module.getBodyRegion().takeBody(smaller->getBodyRegion());
      }
    }
  }
}

void zero::registerReduceStepPass() { PassRegistration<ReduceStepPass>(); }
