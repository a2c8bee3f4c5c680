//===- FoldedConstants.h - Constants that f64 cannot tell apart -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass such as --canonicalize folds 1 - 0.9 to 0.09999999999999998, which is
// another number over the reals.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_FOLDEDCONSTANTS_H
#define ZERO_PASSES_PROVE_FOLDEDCONSTANTS_H

#include "passes/prove/Algebra.h"

#include <set>

namespace zero::prove {

/// Makes constants one that differ by as little as a few operations in f64 may
/// round. Numbers are equal but for such roundings if they are equal folded.
class FoldedConstants {
public:
  explicit FoldedConstants(Algebra &algebra) : algebra(algebra) {}

  Expr fold(Expr a);

private:
  double choose(double value);
  Expr fold(BaseRef base);

  Algebra &algebra;
  std::set<double> chosen;
  llvm::DenseMap<Expr, Expr> known;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_FOLDEDCONSTANTS_H
