//===- Placement.h - The placement of a value over an axis ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of a !zero.value, and the algebra of scale monomials.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_PLACEMENT_H
#define ZERO_DIALECT_ZERO_PLACEMENT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/Hashing.h"

namespace zero {

/// The axis of time: the backward passes of one step.
inline constexpr llvm::StringLiteral kMicroAxis = "micro";
/// The symbol of the number of backward passes in one step.
inline constexpr llvm::StringLiteral kAccumulation = "accumulation";
/// The symbol of the number of tokens in one step.
inline constexpr llvm::StringLiteral kTokens = "tokens";
/// The symbol of the loss scale that the step names.
inline constexpr llvm::StringLiteral kLossScale = "loss_scale";
/// The name of an input that is the max of a clip.
inline constexpr llvm::StringLiteral kMaxNorm = "max_norm";
/// The attribute of the argument of a step that is the number of tokens.
inline constexpr llvm::StringLiteral kTokensArgument = "zero.tokens";
/// The attribute of an argument of a step with the name that callers know.
inline constexpr llvm::StringLiteral kNamedArgument = "zero.name";

enum class PlacementKind : uint32_t {
  Replicated,
  Sharded,
  Partial,
  PartialMax,
  PartialMin,
  PartialOr,
  Varying
};

/// The keyword of |kind| in the assembly, e.g. "partial_max".
llvm::StringRef stringifyPlacementKind(PlacementKind kind);

/// The placement of a value over one axis.
struct AxisPlacement {
  mlir::StringAttr axis;
  PlacementKind kind = PlacementKind::Replicated;
  int64_t dim = 0;      // of a sharded axis
  bool reduced = false; // autograd has already summed over the axis

  bool operator==(const AxisPlacement &other) const {
    return axis == other.axis && kind == other.kind && dim == other.dim &&
           reduced == other.reduced;
  }
  friend llvm::hash_code hash_value(const AxisPlacement &p) {
    return llvm::hash_combine(p.axis.getAsOpaquePointer(), p.kind, p.dim,
                              p.reduced);
  }
};

/// A coordinate at which a value exists. A value exists on all coordinates of
/// an axis that no AxisCoordinate names.
struct AxisCoordinate {
  mlir::StringAttr axis;
  int64_t coordinate = 0;

  bool operator==(const AxisCoordinate &other) const {
    return axis == other.axis && coordinate == other.coordinate;
  }
  friend llvm::hash_code hash_value(const AxisCoordinate &c) {
    return llvm::hash_combine(c.axis.getAsOpaquePointer(), c.coordinate);
  }
};

/// One power of a monomial.
struct ScaleFactor {
  mlir::StringAttr symbol;
  int64_t exponent = 0;

  bool operator==(const ScaleFactor &other) const {
    return symbol == other.symbol && exponent == other.exponent;
  }
  friend llvm::hash_code hash_value(const ScaleFactor &f) {
    return llvm::hash_combine(f.symbol.getAsOpaquePointer(), f.exponent);
  }
};

using Scale = llvm::SmallVector<ScaleFactor>;

/// The largest absolute value of an exponent. No step needs more, and a
/// monomial of ordinary numbers stays finite.
inline constexpr int64_t kMaxExponent = 8;

/// The same of a gradient that arrives, since a norm squares it.
inline constexpr int64_t kMaxGradientExponent = kMaxExponent / 2;
/// The number of backward passes of a step on all ranks together is less than 2
/// to the power of this. So the square of it is exact in f64.
inline constexpr int kBackwardsExponent = 26;
/// The sizes of axes and numbers of backward passes that multiply a gradient,
/// or those that divide it, are at most 2 to the power of this. So the square
/// is a whole number of 64 bits.
inline constexpr int kFactorExponent = 31;

/// A limit far beyond any machine. Products of sizes stay in 64 bits.
inline constexpr int64_t kMaxElements = int64_t(1) << 40;
/// Whether extents are not negative and their product, with empty dimensions
/// counted as 1, is at most |kMaxElements|.
bool areExtentsInRange(llvm::ArrayRef<int64_t> shape);

/// a · b, sorted, without zero exponents.
Scale multiply(llvm::ArrayRef<ScaleFactor> a, llvm::ArrayRef<ScaleFactor> b);
/// aⁿ.
Scale power(llvm::ArrayRef<ScaleFactor> a, int64_t n);
/// The exponent of |symbol|; 0 if it does not occur.
int64_t getExponent(llvm::ArrayRef<ScaleFactor> monomial,
                    llvm::StringRef symbol);
/// √a, or failure if an exponent is odd.
mlir::FailureOr<Scale> root(llvm::ArrayRef<ScaleFactor> a);
/// "dp : 1, loss_scale : -1", or "1" when empty.
std::string toString(llvm::ArrayRef<ScaleFactor> scale);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_PLACEMENT_H
