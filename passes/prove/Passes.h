//===- Passes.h - Passes of the prove component -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_PASSES_H
#define ZERO_PASSES_PROVE_PASSES_H

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace zero {

#define GEN_PASS_DECL
#include "passes/prove/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/prove/Passes.h.inc"

} // namespace zero

#endif // ZERO_PASSES_PROVE_PASSES_H
