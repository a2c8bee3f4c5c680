//===- LostBits.h - Digits that a sum loses ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_LOSTBITS_H
#define ZERO_PASSES_PROVE_LOSTBITS_H

#include "passes/prove/Algebra.h"

namespace zero::prove {

/// The binary digits that the |sum| of two |addends| loses since terms of them
/// cancel, or may cancel where choices in them are decided:
/// b + 1e9 - (c > 0 ? 1e9 : 0) loses digits of b.
double findLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends, Expr sum);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_LOSTBITS_H
