//===- Comparison.h - The comparison of two steps ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_COMPARISON_H
#define ZERO_PASSES_PROVE_COMPARISON_H

#include "passes/prove/Equality.h"

namespace zero::prove {

/// Counters live across steps, and the next step may compare them.
enum class ScalarKind { counter, result };

/// Compares the second step with the first one, which is as it should be.
class Comparison {
public:
  Comparison(Proof &proof, const StepSemantics &first,
             const StepSemantics &second)
      : proof(proof), first(first), second(second),
        equality(proof, first, second) {}

  void run();
  void compareNorms();

private:
  mlir::InFlightDiagnostic error(mlir::Operation *op) {
    mlir::InFlightDiagnostic diagnostic =
        proof.report.error(op ? op : second.step);
    return diagnostic;
  }
  void compareHyperInputs();
  void compareSkippedCounters();
  bool haveSameCounters();
  void compareParameter(const ParameterSemantics &a,
                        const ParameterSemantics &b);
  void compareElements(const ParameterSemantics &a, const ParameterSemantics &b,
                       const IntervalSemantics &x, const IntervalSemantics &y,
                       int64_t element);
  /// Adds that a number is |a|, and expected to be |expected|. Numbers differ
  /// only if there is an example of it.
  void describeDifference(mlir::InFlightDiagnostic &diagnostic,
                          mlir::Operation *op, Expr a, Expr expected,
                          llvm::StringRef reason = "");
  /// The reason for which |number| is less exact than |expected|, which it
  /// equals.
  std::optional<Beyond> findGrowthOrLoss(const Number &number,
                                         const Number &expected,
                                         ScalarKind kind);
  bool differByNorm(Expr a, Expr expected);
  void reportNorm();
  bool dependsOnNextScale(Expr a);
  bool areEqual(Expr a, Expr b, const ParameterSemantics *parameter = nullptr) {
    return equality.areEqual(a, b, parameter);
  }
  /// Reports scalars that differ. |when| begins their names in messages.
  void compareScalars(llvm::StringRef when, ScalarKind kind,
                      llvm::ArrayRef<std::pair<std::string, Number>> a,
                      llvm::ArrayRef<std::pair<std::string, Number>> b,
                      bool isApplied = true);

  Proof &proof;
  const StepSemantics &first;
  const StepSemantics &second;
  Equality equality;
  /// A gradient that differs by its norm only.
  struct Clipped {
    mlir::Operation *writer;
    llvm::StringRef name;
    Expr actual;
    Expr expected;
  };
  std::optional<Clipped> clipped;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_COMPARISON_H
