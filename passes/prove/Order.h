//===- Order.h - Which calls of a program may race --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_ORDER_H
#define ZERO_PASSES_PROVE_ORDER_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// Reports two calls that touch the same memory on different streams, one of
/// them to write, of which neither follows the other on some path of the
/// protocol. The caller is one of the two where gradients and parameters are
/// lent. Then collectives on several streams.
void checkOrder(Proof &proof, zrt::ProgramOp program);

/// Reports a collective that is not on the stream of the others.
void checkCollectiveStream(Proof &proof, zrt::ProgramOp program);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ORDER_H
