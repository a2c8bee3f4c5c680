//===- ExpandFlattened.cpp - Axes for the names of views ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/Passes.h"

#include "dialect/zero/Flattened.h"

namespace zero {
#define GEN_PASS_DEF_EXPANDFLATTENEDPASS
#include "passes/layout/Passes.h.inc"
} // namespace zero

namespace {
struct ExpandFlattenedPass
    : zero::impl::ExpandFlattenedPassBase<ExpandFlattenedPass> {
  void runOnOperation() override {
    if (failed(zero::expandFlattened(getOperation())))
      signalPassFailure();
  }
};
} // namespace
