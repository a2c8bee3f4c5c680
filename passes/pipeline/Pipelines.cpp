//===- Pipelines.cpp - From a logical step to a scheduled one -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/pipeline/Pipelines.h"

#include "passes/accumulate/Passes.h"
#include "passes/check/Passes.h"
#include "passes/collective/Passes.h"
#include "passes/layout/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/offload/Passes.h"
#include "passes/prove/Passes.h"
#include "passes/scalar/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/stage/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace zero;

void zero::buildLowerPipeline(OpPassManager &pm, const LowerOptions &options) {
  if (!options.mesh.empty())
    pm.addPass(createSetMeshPass({options.mesh}));
  pm.addPass(createExpandFlattenedPass());
  if (options.keepAfterForward != "none")
    pm.addPass(createKeepUnitsPass({options.keepAfterForward}));
  if (options.unitOrder != "calls")
    pm.addPass(createDeclareUnitOrderPass({options.prefetchUnits}));
  pm.addPass(createCheckPhasePass({"logical"}));
  if (options.until == "logical")
    return;

  pm.addPass(createAssignLayoutPass({options.bucketBytes}));
  pm.addPass(createInsertCollectivesPass({options.stage, options.shardOver}));
  // Before scalars are coalesced: the placement of gradients decides which sums
  // of squares are partial.
  // At apply is where stage 1 sums them.
  int placement = options.reduce == "apply" ? 1 : int(options.stage);
  if (options.stage > 0)
    pm.addPass(createPlaceAccumulatorsPass(
        {placement, options.accumulate == "apart"}));
  pm.addPass(createCoalesceScalarsPass());
  pm.addPass(createCSEPass());
  pm.addPass(createCheckPhasePass({"sharded"}));
  if (options.until == "sharded")
    return;

  // After the collectives, so that only slices are transferred.
  pm.addPass(createInsertOffloadPass({options.offload}));
  buildLowerPlacedPipeline(pm, options.until.getValue());
}

void zero::buildLowerPlacedPipeline(OpPassManager &pm, StringRef until) {
  pm.addPass(createCheckPhasePass({"placed"}));
  if (until == "placed")
    return;

  pm.addPass(createLowerToZrtPass());
  pm.addPass(createPromoteSlotsPass());
  pm.addPass(createCSEPass());
  if (until != "lowered")
    buildSchedulePipeline(pm);
  // The last phase. `zero-check-phase` reports an unknown name.
  pm.addPass(createCheckPhasePass({until.str()}));
}

void zero::buildSchedulePipeline(OpPassManager &pm) {
  pm.addPass(createSchedulePass());
  pm.addPass(createElideWaitsPass());
}

void zero::registerZeroPasses() {
  registerZeroLayoutPasses();
  registerZeroCollectivePasses();
  registerZeroAccumulatePasses();
  registerZeroOffloadPasses();
  registerZeroScalarPasses();
  registerZeroLowerPasses();
  registerZeroSchedulePasses();
  registerZeroStagePasses();
  registerZeroCheckPasses();
  registerZeroProvePasses();
  PassPipelineRegistration<LowerOptions>(
      "zero-lower",
      "Lowers a logical step to the sharded, placed, lowered or scheduled "
      "phase.",
      buildLowerPipeline);
}
