//===- Explain.h - What a step costs, before it runs ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_EXPLAIN_H
#define ZERO_TOOLS_ZERO_EXPLAIN_EXPLAIN_H

#include "passes/pipeline/Pipelines.h"
#include "tools/zero-explain/Timeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace zero {

/// What one rank has, sends and computes. With pipeline stages: the most of
/// any stage, of each number by itself.
struct Cost {
  int64_t deviceBytes = 0, hostBytes = 0; // of all buffers, at any time
  int64_t sentInBackward = 0;             // in the first backward pass
  int64_t sentAtApply = 0;
  int64_t copiedInBackward = 0; // between device and host
  int64_t copied = 0;           // the same, at apply
  /// What kernels read and write at apply.
  int64_t deviceTraffic = 0, hostTraffic = 0;

  llvm::json::Object toJson() const;
};

/// One way to lower a step.
struct Choice {
  int stage = 0;
  std::string offload;
  /// Why the step cannot be lowered so; empty if it can.
  std::string reason;
  llvm::json::Object plan;
  Cost cost;
  /// Of each pipeline stage; empty without a machine.
  std::vector<Timeline> timelines;
};

/// What to say of a choice beyond its cost.
struct Details {
  const Machine *machine = nullptr; // null: no times
  double backward = 0;              // seconds of a backward pass
};

/// Gives |module| the mesh of |options|. Why it cannot be on that mesh; empty
/// if it can.
std::string putOnMesh(mlir::ModuleOp module, const LowerOptions &options);

/// Lowers a copy of |module|, which is on the mesh of |options|, as these say.
/// With |details|, the plan is that of zero-compile, without facts of its code,
/// and the choice has timelines; otherwise the plan is what describePrograms
/// has of it. A step that cannot be lowered so has a reason.
Choice explain(mlir::ModuleOp module, const LowerOptions &options,
               const Details *details);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_EXPLAIN_H
