//===- EmitKernel.cpp - CPU code for a zrt.kernel -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A main loop of 32 elements per iteration without masks, then a scalar loop
// for the rest. What depends on per-step scalars and constants only is computed
// once, before the loops.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitKernel.h"

#include "codegen/cpu/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace zero;
using zrt::Access;

/// Elements of an iteration, and lanes of a sum.
static constexpr int64_t kLanes = 32;
/// Elements that are summed into one partial.
static constexpr int64_t kBlock = 4096;
static constexpr int64_t kCacheLine = 64;

namespace {

class KernelEmitter {
public:
  KernelEmitter(zrt::KernelOp kernel, const CpuKernelOptions &options)
      : kernel(kernel), options(options), body(kernel.getBody().front()),
        loc(kernel.getLoc()), builder(kernel.getContext()) {}

  LLVM::LLVMFuncOp emit(ModuleOp target, StringRef name);

private:
  using LoopBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;

  template <typename T, typename... Args> Value create(Args &&...args) {
    return builder.create<T>(loc, std::forward<Args>(args)...);
  }
  Value i64(int64_t value) {
    return create<arith::ConstantOp>(builder.getI64IntegerAttr(value));
  }
  Value getAddress(Type element, Value base, Value index) {
    return create<LLVM::GEPOp>(pointerType, element, base, ValueRange{index});
  }
  /// |limit| rounded down to where whole iterations from |begin| end.
  Value getMainEnd(Value begin, Value limit) {
    Value whole = create<arith::AndIOp>(create<arith::SubIOp>(limit, begin),
                                        i64(-kLanes));
    return create<arith::AddIOp>(begin, whole);
  }
  SmallVector<Value> emitLoop(Value begin, Value end, int64_t step,
                              ValueRange initial, LoopBody emitBody);

  void emitPrologue(Value operands, Value scalars);
  void emitGuarded(Value begin, Value end, Value partials);
  void emitPlain(Value begin, Value end);
  void emitSums(Value begin, Value end, Value partials);
  SmallVector<Value> emitMainLoop(Value begin, Value end, ValueRange lanes);
  SmallVector<Value> emitSummedTail(Value begin, Value end, ValueRange lanes);
  Value emitFold(SmallVector<Value> lanes);
  void emitPrefetches(Value index);
  Value emitElements(Value index, int64_t width);

  zrt::KernelOp kernel;
  const CpuKernelOptions &options;
  Block &body;
  Location loc;
  OpBuilder builder;
  Type pointerType;

  SmallVector<Value> arrays;
  /// The ops of the body whose results differ from element to element.
  SmallVector<Operation *> varyingOps;
  /// Values of the body that are the same for all elements, as scalars and as
  /// vectors.
  IRMapping uniforms;
  IRMapping broadcasts;
  /// Where lanes wait while a tail is summed.
  Value spill;
};

} // namespace

SmallVector<Value> KernelEmitter::emitLoop(Value begin, Value end, int64_t step,
                                           ValueRange initial,
                                           LoopBody emitBody) {
  auto loop = builder.create<scf::ForOp>(
      loc, begin, end, i64(step), initial,
      [&](OpBuilder &nested, Location, Value index, ValueRange carried) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(nested.getInsertionBlock(),
                                  nested.getInsertionPoint());
        builder.create<scf::YieldOp>(loc, emitBody(index, carried));
      });
  return loop.getResults();
}

//===----------------------------------------------------------------------===//
// Function and prologue
//===----------------------------------------------------------------------===//

LLVM::LLVMFuncOp KernelEmitter::emit(ModuleOp target, StringRef name) {
  MLIRContext *context = kernel.getContext();
  pointerType = LLVM::LLVMPointerType::get(context);
  Type i64Type = builder.getI64Type();
  builder.setInsertionPointToEnd(target.getBody());
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, name,
      LLVM::LLVMFunctionType::get(
          LLVM::LLVMVoidType::get(context),
          {pointerType, pointerType, i64Type, i64Type, pointerType}));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Value scalars = entry->getArgument(1);
  if (kernel.getSums())
    spill = create<LLVM::AllocaOp>(pointerType, builder.getF64Type(),
                                   i64(kLanes), /*alignment=*/kCacheLine);
  auto emitAll = [&] {
    emitPrologue(entry->getArgument(0), scalars);
    emitGuarded(entry->getArgument(2), entry->getArgument(3),
                entry->getArgument(4));
  };
  if (kernel.getPredicated()) {
    Value first = create<LLVM::LoadOp>(builder.getF64Type(), scalars);
    Value zero = create<arith::ConstantOp>(builder.getF64FloatAttr(0.0));
    Value go = create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, first, zero);
    auto guarded = builder.create<scf::IfOp>(loc, go, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(guarded.thenBlock());
    emitAll();
  } else {
    emitAll();
  }
  builder.setInsertionPointToEnd(entry);
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return function;
}

void KernelEmitter::emitPrologue(Value operands, Value scalars) {
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i)
    arrays.push_back(create<LLVM::LoadOp>(
        pointerType, getAddress(pointerType, operands, i64(i))));
  unsigned firstScalar = body.getNumArguments() - kernel.getNumScalars();
  for (BlockArgument argument : body.getArguments().drop_front(firstScalar)) {
    Value slot = i64(argument.getArgNumber() - firstScalar);
    Type f64 = builder.getF64Type();
    uniforms.map(argument,
                 create<LLVM::LoadOp>(f64, getAddress(f64, scalars, slot)));
  }

  auto isUniform = [&](Value value) { return uniforms.contains(value); };
  for (Operation &op : body.without_terminator()) {
    if (llvm::all_of(op.getOperands(), isUniform))
      emitBodyOp(builder, op, uniforms, /*width=*/1);
    else
      varyingOps.push_back(&op);
  }

  auto broadcast = [&](OperandRange values) {
    for (Value value : values) {
      if (!isUniform(value) || broadcasts.contains(value))
        continue;
      Value scalar = uniforms.lookup(value);
      Type type = widen(scalar.getType(), options.vectorElements);
      broadcasts.map(value, options.vectorElements == 1
                                ? scalar
                                : create<vector::BroadcastOp>(type, scalar));
    }
  };
  for (Operation *op : varyingOps)
    broadcast(op->getOperands());
  broadcast(body.getTerminator()->getOperands());
}

void KernelEmitter::emitGuarded(Value begin, Value end, Value partials) {
  if (kernel.getSums())
    emitSums(begin, end, partials);
  else
    emitPlain(begin, end);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Emits the body for the |width| elements from |index| on, and returns what it
/// adds to the sum, or null. All loads come before all stores, so that an array
/// may be two operands.
Value KernelEmitter::emitElements(Value index, int64_t width) {
  IRMapping mapping = width == 1 ? uniforms : broadcasts;
  SmallVector<std::pair<unsigned, Value>> written;
  unsigned argument = 0;
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i) {
    Type element = getCpuType(kernel.getArrayType(i));
    Value address = getAddress(element, arrays[i], index);
    unsigned alignment = element.getIntOrFloatBitWidth() / 8;
    if (kernel.getArrayAccess(i) != Access::read)
      written.push_back({alignment, address});
    if (kernel.getArrayAccess(i) != Access::write)
      mapping.map(
          body.getArgument(argument++),
          create<LLVM::LoadOp>(widen(element, width), address, alignment));
  }
  for (Operation *op : varyingOps)
    emitBodyOp(builder, *op, mapping, width);
  OperandRange yields = body.getTerminator()->getOperands();
  for (auto [target, value] : llvm::zip(written, yields))
    builder.create<LLVM::StoreOp>(loc, mapping.lookup(value), target.second,
                                  target.first);
  return kernel.getSums() ? mapping.lookup(yields.back()) : Value();
}

/// Prefetches what an iteration from |index| on will read some iterations
/// later. Without it the hardware's prefetchers lose streams at some placements
/// of the code, and a kernel's speed depends on where it was linked.
void KernelEmitter::emitPrefetches(Value index) {
  bool onlyReads = kernel.getSums();
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i)
    onlyReads &= kernel.getArrayAccess(i) == Access::read;
  int64_t distance =
      onlyReads ? options.reductionPrefetchDistance : options.prefetchDistance;
  if (distance == 0)
    return;
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i) {
    if (kernel.getArrayAccess(i) == Access::write)
      continue;
    Type element = getCpuType(kernel.getArrayType(i));
    int64_t lineElements = kCacheLine * 8 / element.getIntOrFloatBitWidth();
    for (int64_t offset = 0; offset < kLanes; offset += lineElements) {
      // The address may lie behind the array: a prefetch never faults.
      Value ahead = create<arith::AddIOp>(index, i64(distance + offset));
      builder.create<LLVM::Prefetch>(loc, getAddress(element, arrays[i], ahead),
                                     /*rw=*/0, /*hint=*/3,
                                     /*cache=*/1);
    }
  }
}

/// Whole iterations of [begin, end). |lanes| are the sums so far, or empty.
SmallVector<Value> KernelEmitter::emitMainLoop(Value begin, Value end,
                                               ValueRange lanes) {
  return emitLoop(
      begin, end, kLanes, lanes, [&](Value index, ValueRange carried) {
        emitPrefetches(index);
        SmallVector<Value> sums(carried);
        int64_t width = options.vectorElements;
        for (int64_t unit = 0; unit < kLanes / width; ++unit) {
          Value at = create<arith::AddIOp>(index, i64(unit * width));
          if (Value value = emitElements(at, width))
            sums[unit] = create<arith::AddFOp>(sums[unit], value);
        }
        return sums;
      });
}

void KernelEmitter::emitPlain(Value begin, Value end) {
  Value mainEnd = getMainEnd(begin, end);
  emitMainLoop(begin, mainEnd, {});
  emitLoop(mainEnd, end, 1, {}, [&](Value index, ValueRange) {
    emitElements(index, /*width=*/1);
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

// Element i goes to lane i mod 32, whatever the width of a vector. Lanes start
// at +0.0, so no lane and no sum is ever -0.0, and a lane that got no element
// adds nothing.

/// Adds the elements of [begin, end), fewer than 32, to their |lanes|.
SmallVector<Value> KernelEmitter::emitSummedTail(Value begin, Value end,
                                                 ValueRange lanes) {
  Type f64 = builder.getF64Type();
  auto getLane = [&](Value index) { return getAddress(f64, spill, index); };
  int64_t width = options.vectorElements;
  unsigned alignment = sizeof(double);
  for (auto [unit, value] : llvm::enumerate(lanes))
    builder.create<LLVM::StoreOp>(loc, value, getLane(i64(unit * width)),
                                  alignment);
  emitLoop(begin, end, 1, {}, [&](Value index, ValueRange) {
    Value value = emitElements(index, /*width=*/1);
    Value lane = getLane(create<arith::AndIOp>(index, i64(kLanes - 1)));
    Value sum = create<arith::AddFOp>(create<LLVM::LoadOp>(f64, lane), value);
    builder.create<LLVM::StoreOp>(loc, sum, lane);
    return SmallVector<Value>();
  });
  SmallVector<Value> sums;
  for (auto [unit, value] : llvm::enumerate(lanes))
    sums.push_back(create<LLVM::LoadOp>(value.getType(),
                                        getLane(i64(unit * width)), alignment));
  return sums;
}

/// Adds lane i + n/2 to lane i, then so with half the lanes, down to one.
Value KernelEmitter::emitFold(SmallVector<Value> lanes) {
  for (size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i)
      lanes[i] = create<arith::AddFOp>(lanes[i], lanes[i + half]);
    lanes.resize(half);
  }
  Value sum = lanes.front();
  for (int64_t half = options.vectorElements / 2; half > 0; half /= 2) {
    auto low = llvm::to_vector(llvm::seq<int64_t>(0, half));
    auto high = llvm::to_vector(llvm::seq<int64_t>(half, 2 * half));
    sum = create<arith::AddFOp>(create<vector::ShuffleOp>(sum, sum, low),
                                create<vector::ShuffleOp>(sum, sum, high));
  }
  if (options.vectorElements > 1)
    sum = create<vector::ExtractOp>(sum, int64_t(0));
  return sum;
}

void KernelEmitter::emitSums(Value begin, Value end, Value partials) {
  Type f64 = builder.getF64Type();
  int64_t width = options.vectorElements;
  Value zero = create<arith::ConstantOp>(builder.getF64FloatAttr(0.0));
  if (width > 1)
    zero = create<vector::BroadcastOp>(widen(f64, width), zero);
  SmallVector<Value> zeros(kLanes / width, zero);
  emitLoop(begin, end, kBlock, {}, [&](Value block, ValueRange) {
    Value blockEnd =
        create<arith::MinSIOp>(create<arith::AddIOp>(block, i64(kBlock)), end);
    Value mainEnd = getMainEnd(block, blockEnd);
    SmallVector<Value> lanes = emitMainLoop(block, mainEnd, zeros);
    Value hasTail =
        create<arith::CmpIOp>(arith::CmpIPredicate::slt, mainEnd, blockEnd);
    auto tail = builder.create<scf::IfOp>(
        loc, hasTail,
        [&](OpBuilder &nested, Location) {
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPointToEnd(nested.getInsertionBlock());
          builder.create<scf::YieldOp>(
              loc, emitSummedTail(mainEnd, blockEnd, lanes));
        },
        [&](OpBuilder &nested, Location) {
          nested.create<scf::YieldOp>(loc, lanes);
        });
    Value partial = create<arith::DivSIOp>(block, i64(kBlock));
    builder.create<LLVM::StoreOp>(loc, emitFold(tail.getResults()),
                                  getAddress(f64, partials, partial));
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Entry point
//===----------------------------------------------------------------------===//

FailureOr<LLVM::LLVMFuncOp>
zero::emitCpuKernel(zrt::KernelOp kernel, ModuleOp target, StringRef name,
                    const CpuKernelOptions &options) {
  assert(llvm::isPowerOf2_64(options.vectorElements) &&
         options.vectorElements <= kLanes && "no such vector");
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i)
    if (!isCpuElementType(kernel.getArrayType(i)))
      return kernel.emitOpError()
             << "operand #" << i << " of type " << kernel.getArrayType(i)
             << " is not supported on a CPU";
  if (failed(checkCpuBody(kernel.getBody().front(), "a CPU kernel")))
    return failure();
  kernel.getContext()
      ->loadDialect<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  return KernelEmitter(kernel, options).emit(target, name);
}
