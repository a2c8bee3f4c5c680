//===- SignForms.h - Numbers whose zeros have a sign ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over the reals a sum of 0 has no sign, and so a + b and -(-a - b) are equal.
// `copysign` tells them apart: where a is -b, the first is 0 and the second -0.
// So it takes the sign of a number whose sums stay sums
// (Algebra::signedSum):
//
// - Addends may have any order: a sum of 0 is -0 only if all of them are.
// - A sum that is negated, or multiplied by a negative number, is no sum of
//   negated addends. Factors that are no constants are taken as positive.
// - 0 times a number has the sign of the number, and a constant 0 its own.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_SIGNFORMS_H
#define ZERO_PASSES_PROVE_SIGNFORMS_H

#include "passes/prove/Algebra.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

namespace zero::prove {

/// The forms of the numbers of a body. A body without `copysign` has none.
class SignForms {
public:
  SignForms(Algebra &algebra, mlir::Block &body);

  bool isEmpty() const { return !hasCopySign; }
  /// The form of |value|; that of an argument is the number itself.
  Expr get(mlir::Value value) const { return forms.lookup(value); }
  void set(mlir::Value value, Expr form) { forms[value] = form; }
  /// Makes the form of the result of |op|. Over the reals |op| makes |result|
  /// of the forms of its operands.
  Expr make(mlir::Operation &op, Expr result);

private:
  Expr multiply(Expr a, Expr b);

  Algebra &algebra;
  bool hasCopySign;
  llvm::DenseMap<mlir::Value, Expr> forms;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_SIGNFORMS_H
