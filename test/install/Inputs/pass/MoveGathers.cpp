//===- MoveGathers.cpp - A pass that updates all buckets before gathers ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

/// Moves the all-gathers of each handler behind its last kernel, or in front of
/// it if |isTooEarly|.
static void moveGathers(ModuleOp module, bool isTooEarly) {
  module.walk([&](zrt::HandlerOp handler) {
    auto kernels = llvm::to_vector(handler.getBody().getOps<zrt::LaunchOp>());
    auto gathers =
        llvm::to_vector(handler.getBody().getOps<zrt::AllGatherOp>());
    if (kernels.empty())
      return;
    for (zrt::AllGatherOp gather : llvm::reverse(gathers))
      gather->moveAfter(kernels.back());
    if (isTooEarly && !gathers.empty())
      kernels.back()->moveAfter(gathers.back());
  });
}

namespace {
/// Every bucket is updated before the first one is gathered.
struct MoveGathers : PassWrapper<MoveGathers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MoveGathers)

  StringRef getArgument() const override { return "move-gathers"; }
  StringRef getDescription() const override {
    return "Moves all-gathers behind the updates of all buckets";
  }
  void runOnOperation() override {
    moveGathers(getOperation(), /*isTooEarly=*/false);
  }
};

/// A pass with a mistake: the last bucket is gathered before it is updated.
struct MoveGathersTooEarly
    : PassWrapper<MoveGathersTooEarly, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MoveGathersTooEarly)

  StringRef getArgument() const override { return "move-gathers-too-early"; }
  StringRef getDescription() const override {
    return "Moves all-gathers in front of the last update";
  }
  void runOnOperation() override {
    moveGathers(getOperation(), /*isTooEarly=*/true);
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "move-gathers", "1", [] {
            PassRegistration<MoveGathers>();
            PassRegistration<MoveGathersTooEarly>();
          }};
}
