//===- Passes.h - Streams and events ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_SCHEDULE_PASSES_H
#define ZERO_PASSES_SCHEDULE_PASSES_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Pass/Pass.h"

namespace zero {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/schedule/Passes.h.inc"

} // namespace zero

#endif // ZERO_PASSES_SCHEDULE_PASSES_H
