//===- Gradient.h - Which gradients a number contains -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_GRADIENT_H
#define ZERO_PASSES_PROVE_GRADIENT_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// |a| when a backward pass is closed: its gradient joins those of the earlier
/// ones where both count the same. What holds the earlier ones alone is from
/// now on without the last.
Expr closeBackward(Algebra &algebra, Expr a, bool isFirst);

/// |a| with the last backward pass and those before it as one, |whole|, where
/// both count the same: what is added after a backward pass was closed.
Expr joinLast(Algebra &algebra, Expr a, Epoch whole);

/// |a| when no backward pass follows: the closed ones are all.
Expr closeStep(Algebra &algebra, Expr a);

/// The sum over all backward passes of what |a| is in one.
Expr sumOverBackwards(Algebra &algebra, Expr a);

/// |a| where no gradient arrived in this backward pass; null where something
/// that is not linear depends on it.
Expr withoutCurrent(Algebra &algebra, Expr a);

/// Whether |a| is a factor times the gradient of all backward passes and ranks.
/// The factor is left in |factor|.
bool isWholeGradient(Algebra &algebra, Expr a, Expr *factor = nullptr);

/// Reports a gradient that does not reach its update exactly once, with the
/// declared weight, from every backward pass and rank, in the type it is kept
/// in.
void checkGradient(Proof &proof, mlir::Operation *op,
                   const ParameterSemantics &parameter, const MeshAxes &axes,
                   Number gradient);

/// Reports where a parameter of a program becomes something with gradients that
/// are not of all backward passes and ranks.
void checkArrived(Proof &proof, const ParameterSemantics &parameter,
                  const StepSemantics &semantics);

/// What is wrong with |a| where the gradient of all backward passes and ranks
/// was expected, in words: "rank 1 adds ... ".
std::string explainGradient(Expr a, const MeshAxes &axes);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_GRADIENT_H
