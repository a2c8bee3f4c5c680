//===- EmitKernel.cpp - CUDA code for a zrt.kernel ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has vectors of as many elements as fill 16 bytes of the widest
// array.
//
// A kernel that does not sum has a block for each piece, whose threads have
// neighbouring vectors. One that sums has 32 / width threads for each piece:
// each has the same lanes in all rows of 32 elements, adds in the order of the
// rows, and the threads of a piece, all in one warp, fold their lanes.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitKernel.h"

#include "codegen/kernels/Body.h"
#include "codegen/kernels/Elements.h"
#include "codegen/kernels/Loops.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace zero;

/// The widest load and store.
static constexpr int64_t kVectorBytes = 16;
static constexpr int64_t kMaxWidth = 8;
static constexpr int64_t kWarp = 32;
/// Rows whose loads are under way at once in a sum, which has few threads.
static constexpr int64_t kRows = 8;

static int64_t getNumBytes(Type element) {
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

/// Elements of a vector.
static int64_t getWidth(zrt::KernelOp kernel) {
  int64_t widest = kVectorBytes / kMaxWidth;
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i)
    widest = std::max(widest, getNumBytes(kernel.getArrayType(i)));
  return kVectorBytes / widest;
}

int64_t zero::getPiecesPerBlock(zrt::KernelOp kernel) {
  return kernel.getSums() ? kCudaThreads * getWidth(kernel) / kSumLanes : 1;
}

void zero::markCudaKernel(LLVM::LLVMFuncOp function, int32_t threads) {
  Builder builder(function.getContext());
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    builder.getDenseI32ArrayAttr({threads}));
}

namespace {

class CudaEmitter : LoopBuilder {
public:
  explicit CudaEmitter(zrt::KernelOp kernel)
      : LoopBuilder(kernel.getContext(), kernel.getLoc()), kernel(kernel),
        width(getWidth(kernel)),
        elements(builder, kernel, {width, /*alignedVectors=*/true}) {}

  LLVM::LLVMFuncOp emit(ModuleOp target, StringRef name);

private:
  /// A row of the table of pieces.
  struct Piece {
    Value begin;
    Value end;
    Value scalars;
  };

  template <typename RegisterOp> Value readRegister() {
    return create<arith::ExtUIOp>(builder.getI64Type(),
                                  create<RegisterOp>(builder.getI32Type()));
  }
  Value add(Value a, Value b) { return create<arith::AddIOp>(a, b); }
  Value mul(Value a, int64_t b) { return create<arith::MulIOp>(a, i64(b)); }
  Value both(Value a, Value b) { return create<arith::AndIOp>(a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return create<arith::CmpIOp>(predicate, a, b);
  }
  Value isLess(Value a, Value b) {
    return compare(arith::CmpIPredicate::slt, a, b);
  }
  void emitWhere(Value condition, llvm::function_ref<void()> emitThen);

  Piece loadPiece(Value index);
  void emitGuarded(const Piece &piece, llvm::function_ref<void()> emitAll);
  Value emitAligned();
  void emitPlain(const Piece &piece);
  void emitSum(const Piece &piece, Value partial);
  SmallVector<Value> emitRows(Value begin, Value end, SmallVector<Value> lanes);
  SmallVector<Value> emitTail(Value begin, Value end, SmallVector<Value> lanes);
  Value emitFold(SmallVector<Value> lanes);
  Value exchange(Value value, int64_t distance);

  zrt::KernelOp kernel;
  int64_t width;
  Elements elements;
  Type pointerType;
  SmallVector<Value> arrays;
  Value slots;
  Value pieces;
  /// The number of this thread in its block, or of those with its piece.
  Value thread;
  /// The threads of this one's piece, as bits of its warp.
  Value members;
};

} // namespace

void CudaEmitter::emitWhere(Value condition,
                            llvm::function_ref<void()> emitThen) {
  auto none = [] { return SmallVector<Value>(); };
  emitIf(
      condition,
      [&] {
        emitThen();
        return none();
      },
      none);
}

//===----------------------------------------------------------------------===//
// Function and pieces
//===----------------------------------------------------------------------===//

LLVM::LLVMFuncOp CudaEmitter::emit(ModuleOp target, StringRef name) {
  MLIRContext *context = kernel.getContext();
  pointerType = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> types(kernel.getNumArrays() + 2, pointerType);
  types.push_back(builder.getI64Type());
  types.push_back(pointerType);
  builder.setInsertionPointToEnd(target.getBody());
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  markCudaKernel(function, kCudaThreads);
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  auto arguments = entry->getArguments();
  arrays.append(arguments.begin(), arguments.end() - 4);
  slots = *(arguments.end() - 4);
  pieces = *(arguments.end() - 3);
  Value numPieces = *(arguments.end() - 2);
  Value partials = *(arguments.end() - 1);

  thread = readRegister<NVVM::ThreadIdXOp>();
  Value block = readRegister<NVVM::BlockIdXOp>();
  if (kernel.getSums()) {
    int64_t threads = kSumLanes / width;
    Value team = create<arith::DivUIOp>(thread, i64(threads));
    Value index = add(mul(block, kCudaThreads / threads), team);
    Value inWarp = both(thread, i64(kWarp - threads));
    thread = both(thread, i64(threads - 1));
    members = create<arith::TruncIOp>(
        builder.getI32Type(),
        create<arith::ShLIOp>(i64((int64_t(1) << threads) - 1), inWarp));
    emitWhere(isLess(index, numPieces), [&] {
      Piece piece = loadPiece(index);
      emitGuarded(piece, [&] {
        emitSum(piece, emitAddress(builder, loc, builder.getF64Type(), partials,
                                   index));
      });
    });
  } else {
    Piece piece = loadPiece(block);
    emitGuarded(piece, [&] { emitPlain(piece); });
  }
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return function;
}

CudaEmitter::Piece CudaEmitter::loadPiece(Value index) {
  Type i64Type = builder.getI64Type();
  auto load = [&](int64_t field) -> Value {
    Value address = emitAddress(builder, loc, i64Type, pieces,
                                add(mul(index, 3), i64(field)));
    return create<LLVM::LoadOp>(i64Type, address);
  };
  Piece piece;
  piece.begin = load(0);
  piece.end = load(1);
  piece.scalars =
      emitAddress(builder, loc, builder.getF64Type(), slots, load(2));
  return piece;
}

void CudaEmitter::emitGuarded(const Piece &piece,
                              llvm::function_ref<void()> emitAll) {
  auto emit = [&] {
    elements.emitUniforms(arrays, piece.scalars);
    emitAll();
  };
  if (!kernel.getPredicated())
    return emit();
  Value first = create<LLVM::LoadOp>(builder.getF64Type(), piece.scalars);
  emitWhere(create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, first, f64(0.0)),
            emit);
}

/// Whether vectors of all arrays can be loaded and stored at once.
Value CudaEmitter::emitAligned() {
  Value wrong = i64(0);
  for (auto [i, array] : llvm::enumerate(arrays)) {
    int64_t bytes = getNumBytes(kernel.getArrayType(i)) * width;
    int64_t alignment = std::min(bytes, kVectorBytes);
    Value address = create<LLVM::PtrToIntOp>(builder.getI64Type(), array);
    wrong = create<arith::OrIOp>(wrong, both(address, i64(alignment - 1)));
  }
  return compare(arith::CmpIPredicate::eq, wrong, i64(0));
}

//===----------------------------------------------------------------------===//
// Without a sum
//===----------------------------------------------------------------------===//

void CudaEmitter::emitPlain(const Piece &piece) {
  Value aligned = emitAligned();
  // Vectors begin at multiples of their width, as arrays do.
  Value first = add(both(piece.begin, i64(-width)), mul(thread, width));
  emitLoop(
      first, piece.end, kCudaThreads * width, {}, [&](Value index, ValueRange) {
        Value end = add(index, i64(width));
        Value isWhole =
            both(aligned,
                 both(compare(arith::CmpIPredicate::sge, index, piece.begin),
                      compare(arith::CmpIPredicate::sle, end, piece.end)));
        auto none = [] { return SmallVector<Value>(); };
        emitIf(
            isWhole,
            [&] {
              elements.emit(index, width);
              return none();
            },
            [&] {
              emitLoop(create<arith::MaxSIOp>(index, piece.begin),
                       create<arith::MinSIOp>(end, piece.end), 1, {},
                       [&](Value at, ValueRange) {
                         elements.emit(at, /*width=*/1);
                         return none();
                       });
              return none();
            });
        return none();
      });
}

//===----------------------------------------------------------------------===//
// With a sum
//===----------------------------------------------------------------------===//

void CudaEmitter::emitSum(const Piece &piece, Value partial) {
  Value size = create<arith::SubIOp>(piece.end, piece.begin);
  Value whole = both(size, i64(-kRows * kSumLanes));
  whole = create<arith::SelectOp>(emitAligned(), whole, i64(0));
  Value mainEnd = add(piece.begin, whole);
  SmallVector<Value> lanes(width, f64(0.0));
  lanes = emitRows(piece.begin, mainEnd, lanes);
  lanes = emitTail(mainEnd, piece.end, lanes);
  Value sum = emitFold(lanes);
  emitWhere(compare(arith::CmpIPredicate::eq, thread, i64(0)),
            [&] { builder.create<LLVM::StoreOp>(loc, sum, partial); });
}

/// Whole rows, kRows at a time.
SmallVector<Value> CudaEmitter::emitRows(Value begin, Value end,
                                         SmallVector<Value> lanes) {
  Value own = mul(thread, width);
  return emitLoop(begin, end, kRows * kSumLanes, lanes,
                  [&](Value index, ValueRange carried) {
                    SmallVector<Value> sums(carried);
                    SmallVector<Elements::Loaded> rows;
                    for (int64_t row = 0; row < kRows; ++row)
                      rows.push_back(elements.emitLoads(
                          add(add(index, own), i64(row * kSumLanes)), width));
                    for (Elements::Loaded &row : rows) {
                      Value addends = elements.emitBody(row);
                      for (auto [lane, sum] : llvm::enumerate(sums))
                        sum = create<arith::AddFOp>(
                            sum,
                            create<vector::ExtractOp>(addends, int64_t(lane)));
                    }
                    return sums;
                  });
}

SmallVector<Value> CudaEmitter::emitTail(Value begin, Value end,
                                         SmallVector<Value> lanes) {
  Value own = mul(thread, width);
  return emitLoop(begin, end, kSumLanes, lanes,
                  [&](Value index, ValueRange carried) {
                    SmallVector<Value> sums(carried);
                    for (auto [lane, sum] : llvm::enumerate(sums)) {
                      Value at = add(add(index, own), i64(lane));
                      Value before = sum;
                      sum = emitIf(
                          isLess(at, end),
                          [&] {
                            Value addend = elements.emit(at, /*width=*/1);
                            return SmallVector<Value>{
                                create<arith::AddFOp>(before, addend)};
                          },
                          [&] { return SmallVector<Value>{before}; })[0];
                    }
                    return sums;
                  });
}

/// Adds lane i + n/2 to lane i, then so with half the lanes, down to one, in
/// the first thread.
Value CudaEmitter::emitFold(SmallVector<Value> lanes) {
  for (int64_t half = kSumLanes / 2; half >= width; half /= 2)
    for (Value &lane : lanes)
      lane = create<arith::AddFOp>(lane, exchange(lane, half / width));
  for (int64_t half = width / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] = create<arith::AddFOp>(lanes[i], lanes[i + half]);
  return lanes.front();
}

/// The |value| of the thread whose number differs in the bit |distance|.
Value CudaEmitter::exchange(Value value, int64_t distance) {
  Type i32Type = builder.getI32Type();
  Type i64Type = builder.getI64Type();
  auto i32 = [&](int32_t number) {
    return create<arith::ConstantOp>(builder.getI32IntegerAttr(number));
  };
  auto shuffle = [&](Value word) {
    return create<NVVM::ShflOp>(i32Type, members, word, i32(distance),
                                i32(kWarp - 1), NVVM::ShflKind::bfly,
                                UnitAttr());
  };
  Value bits = create<arith::BitcastOp>(i64Type, value);
  Value low = shuffle(create<arith::TruncIOp>(i32Type, bits));
  Value high = shuffle(
      create<arith::TruncIOp>(i32Type, create<arith::ShRUIOp>(bits, i64(32))));
  Value joined = create<arith::OrIOp>(
      create<arith::ExtUIOp>(i64Type, low),
      create<arith::ShLIOp>(create<arith::ExtUIOp>(i64Type, high), i64(32)));
  return create<arith::BitcastOp>(builder.getF64Type(), joined);
}

//===----------------------------------------------------------------------===//
// Entry point
//===----------------------------------------------------------------------===//

FailureOr<LLVM::LLVMFuncOp>
zero::emitCudaKernel(zrt::KernelOp kernel, ModuleOp target, StringRef name) {
  if (failed(checkKernel(kernel, "a CUDA kernel")))
    return failure();
  kernel.getContext()
      ->loadDialect<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    NVVM::NVVMDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  return CudaEmitter(kernel).emit(target, name);
}
