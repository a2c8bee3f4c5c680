//===- Pipelines.h - From a logical step to a scheduled one -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PIPELINE_PIPELINES_H
#define ZERO_PASSES_PIPELINE_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace zero {

/// Options of `--zero-lower`, of zero-compile and of zero-run.
struct LowerOptions : mlir::PassPipelineOptions<LowerOptions> {
  Option<std::string> mesh{
      *this, "mesh",
      llvm::cl::desc("Sizes of mesh axes, e.g. dp=4; default: as in the IR.")};
  Option<int> stage{*this, "stage", llvm::cl::desc("ZeRO stage: 0 to 3."),
                    llvm::cl::init(1)};
  Option<std::string> shardOver{
      *this, "shard-over",
      llvm::cl::desc(
          "Axes that divide master weights and optimizer state, such as "
          "edp,ep; by default all axes that a gradient is summed over."),
      llvm::cl::init("")};
  Option<std::string> keepAfterForward{
      *this, "keep-after-forward",
      llvm::cl::desc("Units of stage 3 that are kept from the forward to the "
                     "backward pass: none but those of the step, last or all."),
      llvm::cl::init("none")};
  Option<std::string> unitOrder{
      *this, "unit-order",
      llvm::cl::desc("Order in which callers unshard units of stage 3: calls, "
                     "if the step says nothing, or declared: forward, then "
                     "backward in reverse."),
      llvm::cl::init("calls")};
  Option<int64_t> prefetchUnits{
      *this, "prefetch-units",
      llvm::cl::desc("Units of a declared order that are gathered ahead; -1: "
                     "as the orders say, or 1."),
      llvm::cl::init(-1)};
  Option<std::string> reduce{
      *this, "reduce",
      llvm::cl::desc("When stage 3 sums gradients over ranks: in each backward "
                     "pass, or at apply."),
      llvm::cl::init("backward")};
  Option<std::string> accumulate{
      *this, "accumulate",
      llvm::cl::desc("Where gradients that are summed at apply accumulate: in "
                     "the buffer in which they arrive (in-place), or apart."),
      llvm::cl::init("in-place")};
  Option<std::string> offload{
      *this, "offload",
      llvm::cl::desc(
          "The part that lives in the host's memory: none or optimizer."),
      llvm::cl::init("none")};
  Option<int64_t> bucketBytes{
      *this, "bucket-bytes",
      llvm::cl::desc("Size at which a bucket is closed, in bytes."),
      llvm::cl::init(25 * 1024 * 1024)};
  Option<std::string> until{
      *this, "until",
      llvm::cl::desc("Phase to stop at: logical, sharded, placed, lowered or "
                     "scheduled."),
      llvm::cl::init("scheduled")};
};

/// Adds the passes from the logical phase to |options|.until. An unknown phase
/// adds a check that fails with the list of phases.
void buildLowerPipeline(mlir::OpPassManager &pm, const LowerOptions &options);

/// Adds the passes from the placed phase to |until|.
void buildLowerPlacedPipeline(mlir::OpPassManager &pm, llvm::StringRef until);

/// Adds the passes from the lowered phase to the scheduled one.
void buildSchedulePipeline(mlir::OpPassManager &pm);

/// Registers all passes and the pipeline `--zero-lower`.
void registerZeroPasses();

} // namespace zero

#endif // ZERO_PASSES_PIPELINE_PIPELINES_H
