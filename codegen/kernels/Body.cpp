//===- Body.cpp - Scalar bodies as scalar or vector code ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Body.h"

#include "dialect/zero/StorageTypes.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// What is supported
//===----------------------------------------------------------------------===//

bool zero::isElementType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() &&
           llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
  return isStorageType(type);
}

Type zero::getStoredType(Type type) {
  return type.isBF16() ? IntegerType::get(type.getContext(), 16) : type;
}

Type zero::widen(Type type, int64_t width) {
  return width == 1 ? type : VectorType::get(width, type);
}

static bool isNarrow(Type type) { return type.isBF16() || type.isF16(); }

/// Whether |op| becomes instructions with the same results on all targets.
/// Other ops would become calls of a math library, which a compiled step does
/// not have; or have no lowering; or are undefined for some numbers: a
/// conversion of a number that does not fit, a division by 0, a shift by too
/// many bits.
static bool hasInstructions(Operation &op) {
  if (isa<arith::ArithDialect>(op.getDialect()))
    return !isa<arith::RemFOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
                arith::FloorDivSIOp, arith::IndexCastOp, arith::IndexCastUIOp,
                arith::FPToSIOp, arith::FPToUIOp, arith::DivSIOp,
                arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::ShLIOp,
                arith::ShRSIOp, arith::ShRUIOp>(op);
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::RoundEvenOp,
             math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

static LogicalResult checkType(Operation &op, Type type, StringRef place) {
  if (!zero::isElementType(type) && !type.isInteger(1))
    return op.emitOpError()
           << "type " << type << " is not supported in " << place;
  // Each op rounds once. 16-bit arithmetic would compute in f32 and round
  // again.
  if (isNarrow(type) &&
      !isa<arith::ExtFOp, arith::TruncFOp, arith::ConstantOp, arith::SelectOp>(
          op))
    return op.emitOpError() << "in " << type << " is not supported in " << place
                            << "; extend its operands to f32 first";
  return success();
}

LogicalResult zero::checkBody(Block &body, StringRef place) {
  for (Operation &op : body.without_terminator()) {
    // By definition these ops have f64 values only.
    if (isa<zrt::LoadSlotOp, zrt::StoreSlotOp>(op))
      continue;
    if (!hasInstructions(op))
      return op.emitOpError() << "is not supported in " << place;
    auto truncation = dyn_cast<arith::TruncFOp>(op);
    if (truncation && truncation.getRoundingmode())
      return op.emitOpError() << "with a rounding mode is not supported in "
                              << place << ", which rounds to nearest even";
    for (Type type : op.getOperandTypes())
      if (failed(checkType(op, type, place)))
        return failure();
    for (Type type : op.getResultTypes())
      if (failed(checkType(op, type, place)))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Conversions of 16-bit floats
//===----------------------------------------------------------------------===//

namespace {

/// Builds ops on |width| elements at a time.
class Converter {
public:
  Converter(OpBuilder &builder, Location loc, int64_t width)
      : builder(builder), loc(loc), width(width) {}

  /// |value|, whose elements are of |from|, as f32 or f64. Exact.
  Value extend(Value value, Type from, Type to) {
    Value wide =
        from.isBF16() ? extendBF16(value) : create<arith::ExtFOp>(f32(), value);
    return to.isF32() ? wide : create<arith::ExtFOp>(f64(), wide);
  }

  /// |value|, whose elements are of |from|, as bf16 or f16. Rounds once.
  Value truncate(Value value, Type from, Type to) {
    if (from.isF64())
      value = roundToOdd(value);
    return to.isBF16() ? truncateToBF16(value)
                       : create<arith::TruncFOp>(widen(to), value);
  }

private:
  template <typename T, typename... Args> Value create(Args &&...args) {
    return builder.create<T>(loc, std::forward<Args>(args)...);
  }
  Type widen(Type type) { return zero::widen(type, width); }
  Type f32() { return widen(builder.getF32Type()); }
  Type f64() { return widen(builder.getF64Type()); }
  Type i16() { return widen(builder.getI16Type()); }
  Type i32() { return widen(builder.getI32Type()); }

  Value bits(int32_t value) {
    TypedAttr attr = builder.getI32IntegerAttr(value);
    if (width != 1)
      attr = DenseElementsAttr::get(cast<VectorType>(i32()), value);
    return create<arith::ConstantOp>(attr);
  }

  Value extendBF16(Value value) {
    Value wide = create<arith::ExtUIOp>(i32(), value);
    return create<arith::BitcastOp>(f32(),
                                    create<arith::ShLIOp>(wide, bits(16)));
  }

  /// f32 to bf16: to nearest, ties to even; every NaN becomes 0x7fc0.
  Value truncateToBF16(Value value) {
    Value word = create<arith::BitcastOp>(i32(), value);
    Value even =
        create<arith::AndIOp>(create<arith::ShRUIOp>(word, bits(16)), bits(1));
    Value bias = create<arith::AddIOp>(even, bits(0x7fff));
    Value rounded =
        create<arith::ShRUIOp>(create<arith::AddIOp>(word, bias), bits(16));
    Value isNan =
        create<arith::CmpFOp>(arith::CmpFPredicate::UNO, value, value);
    return create<arith::TruncIOp>(
        i16(), create<arith::SelectOp>(isNan, bits(0x7fc0), rounded));
  }

  /// f64 to f32, rounded to odd: an inexact result becomes the neighbor whose
  /// last bit is 1. f32 has more than two bits more than bf16 and f16.
  /// Therefore a second rounding, to bf16 or f16, gives the same result as one
  /// rounding of the f64.
  Value roundToOdd(Value value) {
    Value nearest = create<arith::TruncFOp>(f32(), value);
    Value back = create<arith::ExtFOp>(f64(), nearest);
    Value word = create<arith::BitcastOp>(i32(), nearest);
    // Unordered, so that a NaN stays a NaN.
    Value keep = create<arith::OrIOp>(
        create<arith::CmpFOp>(arith::CmpFPredicate::UEQ, back, value),
        create<arith::CmpIOp>(arith::CmpIPredicate::ne,
                              create<arith::AndIOp>(word, bits(1)), bits(0)));
    // Sign and magnitude: the next bit pattern is the next larger magnitude.
    Value tooLarge = create<arith::CmpFOp>(arith::CmpFPredicate::OGT,
                                           create<math::AbsFOp>(back),
                                           create<math::AbsFOp>(value));
    Value step = create<arith::SelectOp>(tooLarge, bits(-1), bits(1));
    Value odd =
        create<arith::SelectOp>(keep, word, create<arith::AddIOp>(word, step));
    return create<arith::BitcastOp>(f32(), odd);
  }

  OpBuilder &builder;
  Location loc;
  int64_t width;
};

} // namespace

//===----------------------------------------------------------------------===//
// Cloning
//===----------------------------------------------------------------------===//

/// The larger (or smaller) of two numbers. Of a number and a NaN the result is
/// the number. Of 0 and -0 the result is the same on all targets; the op of a
/// machine may return either.
template <typename OpT>
static Value emitNumber(OpBuilder &builder, Location loc, Value a, Value b) {
  auto isNaN = [&](Value value) -> Value {
    return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, value,
                                         value);
  };
  Value chosen = builder.create<OpT>(loc, a, b);
  chosen = builder.create<arith::SelectOp>(loc, isNaN(b), a, chosen);
  return builder.create<arith::SelectOp>(loc, isNaN(a), b, chosen);
}

/// copysign that ignores the sign of a NaN, because the sign of a NaN depends
/// on the machine.
static Value emitCopySign(OpBuilder &builder, math::CopySignOp op,
                          const IRMapping &mapping) {
  Location loc = op.getLoc();
  Value sign = mapping.lookup(op.getRhs());
  Value zero = builder.create<arith::ConstantOp>(
      loc, builder.getZeroAttr(sign.getType()));
  Value isNaN =
      builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, sign, sign);
  return builder.create<math::CopySignOp>(
      loc, mapping.lookup(op.getLhs()),
      builder.create<arith::SelectOp>(loc, isNaN, zero, sign));
}

void zero::emitBodyOp(OpBuilder &builder, Operation &op, IRMapping &mapping,
                      int64_t width) {
  auto in = [&](unsigned i) { return mapping.lookup(op.getOperand(i)); };
  if (auto sign = dyn_cast<math::CopySignOp>(op))
    return mapping.map(sign.getResult(), emitCopySign(builder, sign, mapping));
  if (isa<arith::MaxNumFOp>(op))
    return mapping.map(
        op.getResult(0),
        emitNumber<arith::MaximumFOp>(builder, op.getLoc(), in(0), in(1)));
  if (isa<arith::MinNumFOp>(op))
    return mapping.map(
        op.getResult(0),
        emitNumber<arith::MinimumFOp>(builder, op.getLoc(), in(0), in(1)));
  Converter converter(builder, op.getLoc(), width);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    Value in = op.getOperand(0);
    Value out = op.getResult(0);
    if (isNarrow(in.getType())) {
      mapping.map(out, converter.extend(mapping.lookup(in), in.getType(),
                                        out.getType()));
      return;
    }
    if (isNarrow(out.getType())) {
      mapping.map(out, converter.truncate(mapping.lookup(in), in.getType(),
                                          out.getType()));
      return;
    }
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && constant.getType().isBF16()) {
    assert(width == 1 && "constants are the same for all elements");
    APInt word =
        cast<FloatAttr>(constant.getValue()).getValue().bitcastToAPInt();
    mapping.map(
        constant.getResult(),
        builder.create<arith::ConstantOp>(
            op.getLoc(), builder.getIntegerAttr(builder.getI16Type(), word)));
    return;
  }
  Operation *clone = builder.clone(op, mapping);
  for (Value result : clone->getResults())
    result.setType(widen(getStoredType(result.getType()), width));
  // Every operation is IEEE, even if the source allows fast-math: the
  // interpreter and all targets must have the same bits.
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(clone))
    clone->setAttr(fast.getFastMathAttrName(),
                   arith::FastMathFlagsAttr::get(op.getContext(),
                                                 arith::FastMathFlags::none));
}
