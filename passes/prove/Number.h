//===- Number.h - A number of a step and its roundings ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_NUMBER_H
#define ZERO_PASSES_PROVE_NUMBER_H

#include "passes/prove/Algebra.h"
#include "passes/prove/Roundings.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <tuple>

namespace zero::prove {

/// The way of a number that was computed by several ways, by the path that a
/// program took. Numbers that are computed of it have several
/// ways, too.
constexpr uint64_t kSeveralWays = ~uint64_t(0);
/// The way of a number that |part| is the next part of.
uint64_t combineWays(uint64_t way, uint64_t part);
/// The way of a number that |a| computed on one path, and |b| on another one.
inline uint64_t joinWays(uint64_t a, uint64_t b) {
  return a == b ? a : kSeveralWays;
}
/// The way of a sum of backward passes, which programs add in several orders.
inline uint64_t addWays(uint64_t a, uint64_t b) {
  return a == 0 ? b : b == 0 ? a : joinWays(a, b);
}

/// A number over the reals, and the narrowest types on the way of its sources
/// from the caller or from the step before.
struct Number {
  Expr expr = nullptr;
  Roundings roundings = {};
  /// The same where |ran| is false, without the roundings of these kernels.
  Roundings skipped = {};
  /// The condition on which predicated kernels ran; null: none did.
  Expr ran = nullptr;
  /// The narrowest type since a square, or another function of an element that
  /// is not linear, was taken. Reason: a square overflows where its root does
  /// not.
  Precision nonlinear = {};
  /// The narrowest type in which the number, or an addend, went to other ranks.
  Precision reduceDtype = {};
  /// Whether one rank holds a sum over ranks as its addend: it must not be
  /// rounded once more as addends may be.
  bool holdsSum = false;
  /// The roundings before the last operation, if this was a conversion.
  std::optional<Roundings> beforeConversion = {};
  double errorBeforeConversion = 0;
  /// What arrived from the caller, and its type. A type that holds all numbers
  /// of this one does not round it, as long as the number is what arrived.
  Expr arrived = nullptr;
  Precision arrivedAs = {};
  /// An operation of a scalar program on the way, of which the result in f64
  /// may compare otherwise than over the reals. See mayRound().
  mlir::Operation *rounding = nullptr;
  /// Of a constant that was computed: what it is in its type.
  std::optional<double> computed = {};
  /// Not 0 where a counter, or a selection of numbers, was computed again on
  /// the way, as c * 3 / 3 is: it may have other bits. Null: nowhere.
  Expr computedAgain = nullptr;
  /// A bound of its relative error, see computeError().
  double error = 0;
  /// The sums on its way, one after the other, in which a term cancels in
  /// whole. How large it is beside what is left is not known.
  unsigned losses = 0;
  /// How often both grew where paths meet. A number of which the error grows
  /// with each backward pass has no bound.
  unsigned growths = 0;
  /// The most roundings of two counters, together, that were compared on its
  /// way.
  double roundingsCompared = 0;
  /// The operations that computed it, one after the other, and the numbers that
  /// they began with; 0: none. Two numbers that are equal over the reals have
  /// equal bits if their ways are equal and not kSeveralWays. It is no part of
  /// the key: what only one path to apply computes may have another way than on
  /// another path.
  uint64_t way = 0;
  /// The same where |ran| is false.
  uint64_t skippedWay = 0;

  uint64_t getWayIfSkipped() const { return ran ? skippedWay : way; }
  bool isComputedAgain() const {
    return computedAgain && !computedAgain->isZero();
  }
  /// It was computed as before on one path, and as |other|, which is the same
  /// over the reals, on another one.
  void joinPath(const Number &other);
  /// What the way of a number that is computed of this one depends on: its way,
  /// and which number it is.
  uint64_t getWayFrom() const;
  /// The way of its sum over the ranks of |set|.
  uint64_t getWayOfSum(AxisSet set) const;
  /// The way of this number behind a conversion to |type|, which is another.
  uint64_t getWayTo(mlir::Type type) const;
  /// Whether |way| is that of a copy, or of a conversion to |type|.
  static bool isMoved(uint64_t way, mlir::Type type);

  /// |expr| arrives as a number of |type|.
  void arrive(Precision type);
  void narrow(Precision to);
  /// Narrows as |other| was narrowed, since both are combined.
  void narrowAs(const Number &other);
  /// Records that |bits| binary digits were lost, in whole.
  void lose(double bits);
  void add(Algebra &algebra, const Number &other);
  /// Converts it to the type of |to|.
  void convert(Precision to);
  /// Treats the last conversion as one to the reduce dtype, which does not
  /// narrow the sum. Each addend is rounded once on its way.
  void travel();
  /// Numbers are equal if their keys are.
  using Key =
      std::tuple<Expr, const void *, const void *, Expr, uint64_t, uint64_t,
                 bool, bool, const void *, const void *, uint64_t>;
  Key getKey() const {
    return {expr,
            roundings.getKey(),
            skipped.getKey(),
            ran,
            nonlinear.getKey(),
            reduceDtype.getKey(),
            holdsSum,
            beforeConversion.has_value(),
            beforeConversion.value_or(Roundings()).getKey(),
            rounding,
            isAsItArrived() ? arrivedAs.getKey() : 0};
  }
  bool operator==(const Number &other) const {
    return getKey() == other.getKey();
  }

  /// Whether the same is known of the operations that computed |other|.
  bool isComputedAs(const Number &other) const {
    return way == other.way && getWayIfSkipped() == other.getWayIfSkipped() &&
           computed == other.computed && error == other.error &&
           losses == other.losses &&
           roundingsCompared == other.roundingsCompared &&
           computedAgain == other.computedAgain;
  }
  /// Whether nothing tells it from |other|.
  bool isSame(const Number &other) const {
    return *this == other && arrived == other.arrived &&
           arrivedAs.getKey() == other.arrivedAs.getKey() &&
           isComputedAs(other);
  }
  bool isAsItArrived() const { return arrived && arrived == expr; }
};

/// |expr|, whose sources were not rounded yet.
Number makeSource(Algebra &algebra, Expr expr);

/// Conditions of selections and of kernels.
using Conditions = llvm::MapVector<Expr, Number>;
void addCondition(Conditions &conditions, const Number &condition);

/// Evaluates the body of an optimizer, a kernel or a scalar program, and
/// returns the operands of its terminator. |other| evaluates ops that are
/// neither arith nor math, and fails for unknown ops. Adds the conditions of
/// selections to |conditions|, which may be null.
mlir::FailureOr<llvm::SmallVector<Number>>
evaluateBody(Algebra &algebra, mlir::Block &block,
             llvm::ArrayRef<Number> arguments,
             llvm::function_ref<mlir::FailureOr<Number>(mlir::Operation &,
                                                        llvm::ArrayRef<Number>)>
                 other = {},
             Conditions *conditions = nullptr);

/// min(1, max / (norm + epsilon)).
Number clipCoefficient(Algebra &algebra, Number norm, const Number &max,
                       double epsilon);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_NUMBER_H
