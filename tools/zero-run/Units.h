//===- Units.h - Uses the units of a compiled step --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_UNITS_H
#define ZERO_TOOLS_ZERO_RUN_UNITS_H

#include "tools/zero-run/Arrivals.h"
#include "zero_rt/step.h"

namespace zero {

/// The units of a step at stage 3, in the order in which it declares them; none
/// at other stages. All ranks call the functions in one order.
class Units {
public:
  /// Asks |step| for the units of its first |numParameters| parameters.
  zero_rt_status read(zero_rt_step *step, int32_t numParameters);

  bool empty() const { return numUnits == 0; }
  /// -1: none.
  int32_t of(int32_t parameter) const { return unitOf[parameter]; }
  /// Unshards each unit, and the next one ahead of it, as a forward pass does.
  zero_rt_status runForward(zero_rt_step *step) const;
  /// Unshards each unit, from the last one on, and delivers its gradients from
  /// |order|, as a backward pass does. Those of no unit come first.
  zero_rt_status
  runBackward(zero_rt_step *step, llvm::MutableArrayRef<Arrival> order,
              llvm::function_ref<zero_rt_status(Arrival &)> deliver) const;

private:
  int32_t numUnits = 0;
  std::vector<int32_t> unitOf; // by parameter
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_UNITS_H
