//===- LowerToZrt.cpp - Lowers a sharded step to a scheduled program ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Passes.h"
#include "passes/lower/StepLowering.h"

namespace zero {
#define GEN_PASS_DEF_LOWERTOZRTPASS
#include "passes/lower/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

namespace {
struct LowerToZrtPass : zero::impl::LowerToZrtPassBase<LowerToZrtPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto step : llvm::to_vector(getOperation().getOps<StepOp>()))
      if (failed(StepLowering(step, symbols).run()))
        return signalPassFailure();
    // From here on only the program uses the layout. The proof reads which
    // groups a step may leave as they are.
    for (auto group : llvm::to_vector(getOperation().getOps<GroupOp>()))
      if (!group.getSkipsAbsent())
        group.erase();
    for (auto op : llvm::to_vector(getOperation().getOps<OptimizerOp>()))
      op.erase();
  }
};
} // namespace
