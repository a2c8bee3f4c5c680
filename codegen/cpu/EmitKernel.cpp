//===- EmitKernel.cpp - CPU code for a zrt.kernel -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel has a main loop with 32 elements per iteration and without masks,
// and a scalar loop for the rest.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitKernel.h"

#include "codegen/kernels/Body.h"
#include "codegen/kernels/Elements.h"
#include "codegen/kernels/Loops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace zero;
using zrt::Access;

/// Elements of an iteration of the main loop.
static constexpr int64_t kUnroll = kSumLanes;
static constexpr int64_t kCacheLine = 64;

namespace {

class KernelEmitter : LoopBuilder {
public:
  KernelEmitter(zrt::KernelOp kernel, const CpuKernelOptions &options)
      : LoopBuilder(kernel.getContext(), kernel.getLoc()), kernel(kernel),
        options(options), elements(builder, kernel, {options.vectorElements}) {}

  LLVM::LLVMFuncOp emit(ModuleOp target, StringRef name);

private:
  Value getAddress(Type element, Value base, Value index) {
    return emitAddress(builder, loc, element, base, index);
  }
  /// The end of the whole iterations from |begin| up to |limit|.
  Value getMainEnd(Value begin, Value limit) {
    Value whole = create<arith::AndIOp>(create<arith::SubIOp>(limit, begin),
                                        i64(-kUnroll));
    return create<arith::AddIOp>(begin, whole);
  }
  void emitPrologue(Value operands, Value scalars);
  void emitGuarded(Value begin, Value end, Value partials);
  void emitPlain(Value begin, Value end);
  void emitSums(Value begin, Value end, Value partials);
  SmallVector<Value> emitMainLoop(Value begin, Value end, ValueRange lanes);
  SmallVector<Value> emitSummedTail(Value begin, Value end, ValueRange lanes);
  Value emitFold(SmallVector<Value> lanes);
  void emitPrefetches(Value index);

  zrt::KernelOp kernel;
  const CpuKernelOptions &options;
  Type pointerType;

  Elements elements;
  SmallVector<Value> arrays;
  /// Memory for lanes while a tail is summed.
  Value spill;
};

} // namespace

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
                                   i64(kSumLanes), /*alignment=*/kCacheLine);
  auto emitAll = [&] {
    emitPrologue(entry->getArgument(0), scalars);
    emitGuarded(entry->getArgument(2), entry->getArgument(3),
                entry->getArgument(4));
  };
  if (kernel.getPredicated()) {
    Value first = create<LLVM::LoadOp>(builder.getF64Type(), scalars);
    Value go =
        create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, first, f64(0.0));
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
  elements.emitUniforms(arrays, scalars);
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

/// Prefetches the elements of a later iteration. Without prefetches the
/// hardware prefetchers lose streams at some addresses of the code, and the
/// speed of a kernel depends on its place in the library.
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
    Type element = getStoredType(kernel.getArrayType(i));
    int64_t lineElements = kCacheLine * 8 / element.getIntOrFloatBitWidth();
    for (int64_t offset = 0; offset < kUnroll; offset += lineElements) {
      // The address may be behind the array, because a prefetch never faults.
      Value ahead = create<arith::AddIOp>(index, i64(distance + offset));
      builder.create<LLVM::Prefetch>(loc, getAddress(element, arrays[i], ahead),
                                     /*rw=*/0, /*hint=*/3,
                                     /*cache=*/1);
    }
  }
}

/// Emits whole iterations of [begin, end). |lanes| are the sums so far, or
/// empty.
SmallVector<Value> KernelEmitter::emitMainLoop(Value begin, Value end,
                                               ValueRange lanes) {
  return emitLoop(
      begin, end, kUnroll, lanes, [&](Value index, ValueRange carried) {
        emitPrefetches(index);
        SmallVector<Value> sums(carried);
        int64_t width = options.vectorElements;
        for (int64_t unit = 0; unit < kUnroll / width; ++unit) {
          Value at = create<arith::AddIOp>(index, i64(unit * width));
          if (Value value = elements.emit(at, width))
            sums[unit] = create<arith::AddFOp>(sums[unit], value);
        }
        return sums;
      });
}

void KernelEmitter::emitPlain(Value begin, Value end) {
  Value mainEnd = getMainEnd(begin, end);
  emitMainLoop(begin, mainEnd, {});
  emitLoop(mainEnd, end, 1, {}, [&](Value index, ValueRange) {
    elements.emit(index, /*width=*/1);
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Adds the elements of [begin, end), fewer than 32, to their |lanes|.
SmallVector<Value> KernelEmitter::emitSummedTail(Value begin, Value end,
                                                 ValueRange lanes) {
  Type f64Type = builder.getF64Type();
  auto getLane = [&](Value index) { return getAddress(f64Type, spill, index); };
  int64_t width = options.vectorElements;
  unsigned alignment = sizeof(double);
  for (auto [unit, value] : llvm::enumerate(lanes))
    builder.create<LLVM::StoreOp>(loc, value, getLane(i64(unit * width)),
                                  alignment);
  emitLoop(begin, end, 1, {}, [&](Value index, ValueRange) {
    Value value = elements.emit(index, /*width=*/1);
    Value lane = getLane(create<arith::AndIOp>(index, i64(kSumLanes - 1)));
    Value sum =
        create<arith::AddFOp>(create<LLVM::LoadOp>(f64Type, lane), value);
    builder.create<LLVM::StoreOp>(loc, sum, lane);
    return SmallVector<Value>();
  });
  SmallVector<Value> sums;
  for (auto [unit, value] : llvm::enumerate(lanes))
    sums.push_back(create<LLVM::LoadOp>(value.getType(),
                                        getLane(i64(unit * width)), alignment));
  return sums;
}

/// Adds lane i + n/2 to lane i, and repeats this with half the lanes until one
/// is left.
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
  Type f64Type = builder.getF64Type();
  int64_t width = options.vectorElements;
  Value zero = f64(0.0);
  if (width > 1)
    zero = create<vector::BroadcastOp>(widen(f64Type, width), zero);
  SmallVector<Value> zeros(kSumLanes / width, zero);
  emitLoop(begin, end, kSumBlock, {}, [&](Value block, ValueRange) {
    Value blockEnd = create<arith::MinSIOp>(
        create<arith::AddIOp>(block, i64(kSumBlock)), end);
    Value mainEnd = getMainEnd(block, blockEnd);
    SmallVector<Value> lanes = emitMainLoop(block, mainEnd, zeros);
    Value hasTail =
        create<arith::CmpIOp>(arith::CmpIPredicate::slt, mainEnd, blockEnd);
    lanes = emitIf(
        hasTail, [&] { return emitSummedTail(mainEnd, blockEnd, lanes); },
        [&] { return lanes; });
    Value partial = create<arith::DivSIOp>(block, i64(kSumBlock));
    builder.create<LLVM::StoreOp>(loc, emitFold(lanes),
                                  getAddress(f64Type, partials, partial));
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
         options.vectorElements <= kUnroll && "no such vector");
  if (failed(checkKernel(kernel, "a CPU kernel")))
    return failure();
  kernel.getContext()
      ->loadDialect<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  return KernelEmitter(kernel, options).emit(target, name);
}
