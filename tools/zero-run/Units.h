//===- Units.h - Uses the units of a compiled step --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_UNITS_H
#define ZERO_TOOLS_ZERO_RUN_UNITS_H

#include "tools/zero-run/Arrivals.h"
#include "tools/zero-run/Engine.h"
#include "zero_rt/step.h"

#include <random>

namespace zero {

/// The units of a step at stage 3 that are on the pipeline stage of a rank;
/// none at other stages. They are used in the orders that the step declares:
/// forward in the first one and backward in the last one. Without them, as
/// UnitUses says, and backward in reverse. All ranks of a pipeline stage call
/// the functions in one order.
class Units {
public:
  /// Asks |step| of |rank| for the units of its first |numParameters|
  /// parameters. It was compiled from |module|. |uses| counts if that declares
  /// no order.
  zero_rt_status read(mlir::ModuleOp module, int64_t rank, zero_rt_step *step,
                      int32_t numParameters, UnitUses uses);

  bool has(int32_t unit) const { return llvm::is_contained(forward, unit); }
  /// -1: none.
  int32_t of(int32_t parameter) const { return unitOf[parameter]; }
  /// Unshards each unit, and the next one ahead of it, as a forward pass does.
  zero_rt_status runForward(zero_rt_step *step);
  /// Unshards each unit, from the last one on, and delivers its gradients from
  /// |order|, as a backward pass does. Those of no unit come first.
  zero_rt_status runBackward(
      zero_rt_step *step, llvm::MutableArrayRef<Arrival> order,
      llvm::function_ref<zero_rt_status(llvm::ArrayRef<Arrival *>)> deliver);

  /// The units to unshard one after the other so that |unit| is read behind
  /// |last|, in one forward pass if possible; -1 and -1: the first and the end
  /// of a pass.
  llvm::ArrayRef<int32_t> getWay(int32_t last, int32_t unit) const;

private:
  zero_rt_status use(zero_rt_step *step, llvm::ArrayRef<int32_t> order,
                     llvm::function_ref<zero_rt_status(int32_t)> work);

  std::vector<int32_t> forward, backward;
  UnitUses uses = UnitUses::listed;
  std::mt19937_64 random; // the same numbers on each rank
  bool isDeclared = false;
  std::vector<int32_t> unitOf; // by parameter
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_UNITS_H
