//===- ExpandViews.cpp - Writes axes for the names of views ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/Passes.h"

#include "dialect/zero/Views.h"

namespace zero {
#define GEN_PASS_DEF_EXPANDVIEWSPASS
#include "passes/layout/Passes.h.inc"
} // namespace zero

namespace {
struct ExpandViewsPass : zero::impl::ExpandViewsPassBase<ExpandViewsPass> {
  void runOnOperation() override {
    if (failed(zero::expandViews(getOperation())))
      signalPassFailure();
  }
};
} // namespace
