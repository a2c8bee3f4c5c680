//===- Units.cpp - Uses the units of a compiled step ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Units.h"

#include <algorithm>

using namespace mlir;
using namespace zero;

zero_rt_status Units::read(zero_rt_step *step, int32_t numParameters) {
  for (int32_t id = 0; id < numParameters; ++id) {
    int32_t unit = -1;
    if (zero_rt_status status = zero_rt_step_unit_of(step, id, &unit))
      return status;
    unitOf.push_back(unit);
    numUnits = std::max(numUnits, unit + 1);
  }
  return ZERO_RT_OK;
}

zero_rt_status Units::runForward(zero_rt_step *step) const {
  zero_rt_status status = ZERO_RT_OK;
  for (int32_t unit = 0; unit < numUnits && !status; ++unit) {
    status = zero_rt_step_unshard(step, unit, nullptr);
    if (!status && unit + 1 < numUnits)
      status = zero_rt_step_prefetch(step, unit + 1);
    if (!status)
      status = zero_rt_step_reshard(step, unit, nullptr);
  }
  return status;
}

zero_rt_status Units::runBackward(
    zero_rt_step *step, MutableArrayRef<Arrival> order,
    llvm::function_ref<zero_rt_status(Arrival &)> deliver) const {
  auto deliverOf = [&](int32_t unit) {
    zero_rt_status status = ZERO_RT_OK;
    for (Arrival &arrival : order)
      if (!status && of(arrival.parameter) == unit)
        status = deliver(arrival);
    return status;
  };
  zero_rt_status status = deliverOf(-1);
  for (int32_t unit = numUnits - 1; unit >= 0 && !status; --unit) {
    status = zero_rt_step_unshard(step, unit, nullptr);
    if (!status && unit > 0)
      status = zero_rt_step_prefetch(step, unit - 1);
    if (!status)
      status = deliverOf(unit);
    if (!status)
      status = zero_rt_step_reshard(step, unit, nullptr);
  }
  return status;
}
