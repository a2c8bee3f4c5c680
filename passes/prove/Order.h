//===- Order.h - Which calls of a handler may race --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_ORDER_H
#define ZERO_PASSES_PROVE_ORDER_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// Reports two calls that touch the same memory, one of them to write, and of
/// which neither awaits the other.
/// |symbols| are those of its program.
void checkOrder(Proof &proof, zrt::HandlerOp handler,
                const mlir::SymbolTable &symbols);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ORDER_H
