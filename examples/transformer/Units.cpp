//===- Units.cpp - Layers whose parameters ranks share at stage 3 ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Units.h"

#include "examples/transformer/Check.h"

namespace transformer {

void Units::unshard(int64_t layer) const {
  check(zero_rt_step_unshard(step, units[size_t(layer - first)], nullptr),
        "zero_rt_step_unshard", rank);
  visitLayer(layer, look);
}

void Units::reshard(int64_t layer) const {
  check(zero_rt_step_reshard(step, units[size_t(layer - first)], nullptr),
        "zero_rt_step_reshard", rank);
}

void Units::use(int64_t layer, Use use) const {
  switch (use) {
  case Use::BeforeForward:
  case Use::BeforeBackward:
    return unshard(layer);
  case Use::AfterForward:
  case Use::AfterBackward:
    return reshard(layer);
  }
}

void Units::visit(const std::function<void(size_t parameter)> &body) const {
  for (int64_t layer = first; layer < first + int64_t(units.size()); ++layer) {
    unshard(layer);
    visitLayer(layer, body);
    reshard(layer);
  }
}

void Units::visitLayer(
    int64_t layer, const std::function<void(size_t parameter)> &body) const {
  for (int64_t i = 0; i < BlockParameters; ++i)
    body(size_t(FirstBlock + layer * BlockParameters + i));
}

} // namespace transformer
