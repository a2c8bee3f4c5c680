//===- Gradient.h - The gradients in a number -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_GRADIENT_H
#define ZERO_PASSES_PROVE_GRADIENT_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// |a| after a backward pass is closed. Its gradient joins the earlier ones if
/// both have the same factor. A number with the earlier gradients alone is from
/// now on one without the last.
Expr closeBackward(Algebra &algebra, Expr a, bool isFirst);

/// |a| with the last backward pass and the ones before as one epoch, |whole|,
/// if both have the same factor. For sums that are taken after a backward pass
/// is closed.
Expr joinLast(Algebra &algebra, Expr a, Epoch whole);

/// |a| if no backward pass follows: the closed ones are all.
Expr closeStep(Algebra &algebra, Expr a);

/// Both of the numbers of a program. Its paths close the same numbers again and
/// again.
class ClosedNumbers {
public:
  explicit ClosedNumbers(Algebra &algebra) : algebra(algebra) {}

  Expr closeBackward(Expr a, bool isFirst) {
    Expr &closed = (isFirst ? ofFirst : ofLater)[a];
    if (!closed)
      closed = prove::closeBackward(algebra, a, isFirst);
    return closed;
  }
  Expr closeStep(Expr a) {
    Expr &closed = ofStep[a];
    if (!closed)
      closed = prove::closeStep(algebra, a);
    return closed;
  }

private:
  Algebra &algebra;
  llvm::DenseMap<Expr, Expr> ofFirst, ofLater, ofStep;
};

/// The sum over all backward passes. |a| is the number of one backward pass.
Expr sumOverBackwards(Algebra &algebra, Expr a);

/// |a| if no gradient arrived in this backward pass; null if |a| is not linear
/// in this gradient.
Expr withoutCurrent(Algebra &algebra, Expr a);

/// Whether |a| is a factor times the gradient of all backward passes and ranks.
/// The factor is left in |factor|.
bool isWholeGradient(Algebra &algebra, Expr a, Expr *factor = nullptr);

/// Reports a gradient that does not reach its update exactly once, with the
/// declared normalization, from every backward pass and rank, in the type in
/// which it is kept.
void checkGradient(Proof &proof, mlir::Operation *op,
                   const ParameterSemantics &parameter, const MeshAxes &axes,
                   Number gradient);

/// Reports a parameter of a program whose new value has gradients that are not
/// of all backward passes and ranks.
void checkArrived(Proof &proof, const ParameterSemantics &parameter,
                  const StepSemantics &semantics);

/// Describes the difference of |a| from the gradient of all backward passes and
/// ranks, such as "the last backward pass is lost".
std::string explainGradient(Expr a, const MeshAxes &axes);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_GRADIENT_H
