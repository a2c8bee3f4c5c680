//===- Units.cpp - Uses the units of a compiled step ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Units.h"

#include "dialect/interpret/Ranks.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>

using namespace mlir;
using namespace zero;

zero_rt_status Units::read(ModuleOp module, int64_t rank, zero_rt_step *step,
                           int32_t numParameters, UnitUses choice) {
  uses = choice;
  bool hasUnits = false;
  for (int32_t id = 0; id < numParameters; ++id) {
    int32_t unit = -1;
    if (zero_rt_status status = zero_rt_step_unit_of(step, id, &unit))
      return status;
    unitOf.push_back(unit);
    hasUnits |= unit >= 0;
  }
  if (!hasUnits)
    return ZERO_RT_OK;
  Ranks ranks(*module.getOps<MeshOp>().begin());
  SymbolTableCollection symbols;
  llvm::MapVector<Attribute, int32_t> here;
  for (auto [number, unit] : llvm::enumerate(module.getOps<UnitOp>()))
    if (ranks.isOn(unit.getPlace(symbols), rank)) {
      here.insert({FlatSymbolRefAttr::get(unit), int32_t(number)});
      forward.push_back(int32_t(number));
    }
  backward.assign(forward.rbegin(), forward.rend());
  if (uses == UnitUses::reversed)
    std::swap(forward, backward);
  auto orders = llvm::to_vector(module.getOps<UnitOrderOp>());
  if (orders.empty())
    return ZERO_RT_OK;
  isDeclared = true;
  auto list = [&](UnitOrderOp order, std::vector<int32_t> &units) {
    units.clear();
    for (Attribute unit : order.getUnits())
      if (auto it = here.find(unit); it != here.end())
        units.push_back(it->second);
  };
  list(orders.front(), forward);
  list(orders.back(), backward);
  return ZERO_RT_OK;
}

ArrayRef<int32_t> Units::getWay(int32_t last, int32_t unit) const {
  ArrayRef<int32_t> order = forward;
  auto behind = [&](int32_t one) {
    return size_t(llvm::find(order, one) - order.begin()) + 1;
  };
  size_t end = unit >= 0 ? behind(unit) : order.size();
  size_t first = last >= 0 ? behind(last) : 0;
  if (!isDeclared)
    first = unit >= 0 ? end - 1 : end;
  else if (first >= end && unit >= 0)
    first = 0;
  return order.slice(first, end - first);
}

zero_rt_status Units::use(zero_rt_step *step, ArrayRef<int32_t> order,
                          llvm::function_ref<zero_rt_status(int32_t)> work) {
  zero_rt_status status = ZERO_RT_OK;
  for (auto [i, unit] : llvm::enumerate(order)) {
    if (!status)
      status = zero_rt_step_unshard(step, unit, nullptr);
    if (!status && i + 1 < order.size() && !isDeclared)
      status = zero_rt_step_prefetch(step, order[i + 1]);
    if (!status)
      status = work(unit);
    if (!status)
      status = zero_rt_step_reshard(step, unit, nullptr);
  }
  return status;
}

zero_rt_status Units::runForward(zero_rt_step *step) {
  if (!isDeclared && uses == UnitUses::random)
    std::shuffle(forward.begin(), forward.end(), random);
  size_t times = !isDeclared && uses == UnitUses::repeated ? 2 : 1;
  std::vector<int32_t> order;
  for (int32_t unit : forward)
    order.insert(order.end(), times, unit);
  return use(step, order, [](int32_t) { return ZERO_RT_OK; });
}

zero_rt_status Units::runBackward(
    zero_rt_step *step, MutableArrayRef<Arrival> order,
    llvm::function_ref<zero_rt_status(ArrayRef<Arrival *>)> deliver) {
  auto deliverOf = [&](int32_t unit) {
    SmallVector<Arrival *> ofUnit;
    for (Arrival &arrival : order)
      if (of(arrival.parameter) == unit)
        ofUnit.push_back(&arrival);
    return deliver(ofUnit);
  };
  if (!isDeclared && uses == UnitUses::random)
    std::shuffle(backward.begin(), backward.end(), random);
  zero_rt_status status = deliverOf(-1);
  return status ? status : use(step, backward, deliverOf);
}
