//===- EmitKernel.cpp - CUDA code for a zrt.kernel ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that does not sum has a block for each piece. A thread uses vectors
// whose elements fill 16 bytes of the widest array, and neighbouring threads
// have neighbouring vectors.
//
// A reducing kernel has a warp for each piece, and each thread has one lane of
// the sum. A thread loads one element of each of several rows of 32 together,
// and adds in the order of the rows. The warp folds its lanes, and SumTree sums
// the results. With vectors a small range would have too few threads to hide
// the latency of memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitKernel.h"

#include "codegen/cuda/SumTree.h"
#include "codegen/kernels/Body.h"
#include "codegen/kernels/Elements.h"
#include "zero_rt/cuda_code.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace zero;

/// The widest load and store.
static constexpr int64_t kVectorBytes = 16;
static constexpr int64_t kMaxWidth = 8;
/// Rows of 32 elements that a sum loads together.
static constexpr int64_t kRows = 16;
/// Blocks of a reducing kernel that a multiprocessor runs at once. Without this
/// number ptxas uses so few registers that it loads two rows at once.
static constexpr int32_t kSumBlocksAtOnce = 4;

static int64_t getNumBytes(Type element) {
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

/// Elements of a vector.
static int64_t getWidth(zrt::KernelOp kernel) {
  if (kernel.getSums())
    return 1;
  int64_t widest = kVectorBytes / kMaxWidth;
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i)
    widest = std::max(widest, getNumBytes(kernel.getArrayType(i)));
  return kVectorBytes / widest;
}

int64_t zero::getPiecesPerBlock(zrt::KernelOp kernel) {
  return kernel.getSums() ? kCudaThreads / kWarp : 1;
}

void zero::markCudaKernel(LLVM::LLVMFuncOp function, int32_t threads,
                          int32_t blocksAtOnce) {
  Builder builder(function.getContext());
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    builder.getDenseI32ArrayAttr({threads}));
  if (blocksAtOnce)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      builder.getI32IntegerAttr(blocksAtOnce));
}

namespace {

class CudaEmitter : WarpBuilder {
public:
  explicit CudaEmitter(zrt::KernelOp kernel)
      : WarpBuilder(kernel.getContext(), kernel.getLoc()), kernel(kernel),
        width(getWidth(kernel)),
        elements(builder, kernel, {width, /*alignedVectors=*/true}),
        pointerType(LLVM::LLVMPointerType::get(kernel.getContext())) {}

  LLVM::LLVMFuncOp emit(ModuleOp target, StringRef name);
  LLVM::LLVMFuncOp emitBatch(ModuleOp target, StringRef name);

private:
  /// A row of the table of pieces.
  struct Piece {
    Value begin;
    Value end;
    Value scalars;
  };

  LLVM::LLVMFuncOp emitEntry(ModuleOp target, StringRef name,
                             ArrayRef<Type> types);
  Value loadField(Value index, int64_t size, int64_t field, Type type);
  Piece loadPiece(Value index);
  void emitGuarded(const Piece &piece, llvm::function_ref<void()> emitAll,
                   llvm::function_ref<void()> emitNone);
  Value emitAligned();
  void emitPlain(const Piece &piece);
  void emitWarp(Value block, Value numPieces, const SumTree::Memory &memory);
  void emitSum(const Piece &piece, Value partial);
  void emitPartial(Value sum, Value partial);
  Value emitWholeRows(Value begin, Value end, Value sum);
  Value emitLastRows(Value begin, Value end, Value sum);

  zrt::KernelOp kernel;
  int64_t width;
  Elements elements;
  Type pointerType;
  SmallVector<Value> arrays;
  Value slots;
  Value pieces;
  /// The number of this thread in its block, or in its warp if the kernel sums.
  Value thread;
};

} // namespace

//===----------------------------------------------------------------------===//
// Function and pieces
//===----------------------------------------------------------------------===//

/// Begins the function, in whose body later code goes.
LLVM::LLVMFuncOp CudaEmitter::emitEntry(ModuleOp target, StringRef name,
                                        ArrayRef<Type> types) {
  builder.setInsertionPointToEnd(target.getBody());
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(kernel.getContext()),
                                  types));
  markCudaKernel(function, kCudaThreads,
                 kernel.getSums() ? kSumBlocksAtOnce : 0);
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  return function;
}

LLVM::LLVMFuncOp CudaEmitter::emit(ModuleOp target, StringRef name) {
  SmallVector<Type> types(kernel.getNumArrays() + 2, pointerType);
  types.push_back(builder.getI64Type());
  if (kernel.getSums())
    types.append(3, pointerType);
  LLVM::LLVMFuncOp function = emitEntry(target, name, types);
  auto arguments = function.getArguments();
  arrays.append(arguments.begin(), arguments.begin() + kernel.getNumArrays());
  arguments = arguments.drop_front(arrays.size());
  slots = arguments[0];
  pieces = arguments[1];

  thread = readRegister<NVVM::ThreadIdXOp>();
  Value block = readRegister<NVVM::BlockIdXOp>();
  if (kernel.getSums()) {
    emitWarp(block, /*numPieces=*/arguments[2],
             {arguments[3], arguments[4], arguments[5]});
  } else {
    Piece piece = loadPiece(block);
    emitGuarded(piece, [&] { emitPlain(piece); }, [] {});
  }
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return function;
}

LLVM::LLVMFuncOp CudaEmitter::emitBatch(ModuleOp target, StringRef name) {
  Type i64Type = builder.getI64Type();
  LLVM::LLVMFuncOp function = emitEntry(target, name, {pointerType, i64Type});
  pieces = function.getArgument(0);
  thread = readRegister<NVVM::ThreadIdXOp>();
  Value block = readRegister<NVVM::BlockIdXOp>();
  constexpr int64_t fields = sizeof(zero_rt_cuda_batch_piece) / 8;
  Piece piece = {loadField(block, fields, 0, i64Type),
                 loadField(block, fields, 1, i64Type), /*scalars=*/Value()};
  // LLVM knows of arguments only that they are in global memory.
  Type global = LLVM::LLVMPointerType::get(
      kernel.getContext(), NVVM::NVVMMemorySpace::kGlobalMemorySpace);
  for (int64_t i = 0; i < int64_t(kernel.getNumArrays()); ++i)
    arrays.push_back(create<LLVM::AddrSpaceCastOp>(
        global, loadField(block, fields, 2 + i, pointerType)));
  elements.emitUniforms(arrays, piece.scalars);
  emitPlain(piece);
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return function;
}

/// Loads a field of row |index| of the pieces, which has |size| fields of 8
/// bytes.
Value CudaEmitter::loadField(Value index, int64_t size, int64_t field,
                             Type type) {
  Value address = emitAddress(builder, loc, builder.getI64Type(), pieces,
                              add(mul(index, size), i64(field)));
  return create<LLVM::LoadOp>(type, address);
}

CudaEmitter::Piece CudaEmitter::loadPiece(Value index) {
  Type i64Type = builder.getI64Type();
  constexpr int64_t fields = sizeof(zero_rt_cuda_piece) / 8;
  return {loadField(index, fields, 0, i64Type),
          loadField(index, fields, 1, i64Type),
          emitAddress(builder, loc, builder.getF64Type(), slots,
                      loadField(index, fields, 2, i64Type))};
}

/// |emitNone| emits the code for a predicate that is false.
void CudaEmitter::emitGuarded(const Piece &piece,
                              llvm::function_ref<void()> emitAll,
                              llvm::function_ref<void()> emitNone) {
  auto emit = [&] {
    elements.emitUniforms(arrays, piece.scalars);
    emitAll();
  };
  if (!kernel.getPredicated())
    return emit();
  Value first = create<LLVM::LoadOp>(builder.getF64Type(), piece.scalars);
  auto branch = [](llvm::function_ref<void()> code) {
    return [code] {
      code();
      return SmallVector<Value>();
    };
  };
  emitIf(create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, first, f64(0.0)),
         branch(emit), branch(emitNone));
}

/// Whether all arrays are aligned for vector loads and stores.
Value CudaEmitter::emitAligned() {
  Value wrong = i64(0);
  for (auto [i, array] : llvm::enumerate(arrays)) {
    int64_t bytes = getNumBytes(kernel.getArrayType(i)) * width;
    int64_t alignment = std::min(bytes, kVectorBytes);
    Value address = create<LLVM::PtrToIntOp>(builder.getI64Type(), array);
    wrong = create<arith::OrIOp>(wrong, both(address, i64(alignment - 1)));
  }
  return isEqual(wrong, i64(0));
}

//===----------------------------------------------------------------------===//
// Without a sum
//===----------------------------------------------------------------------===//

void CudaEmitter::emitPlain(const Piece &piece) {
  Value aligned = emitAligned();
  // Vectors begin at multiples of their width, because arrays do.
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

/// Emits the code of a warp, which has one piece at most.
void CudaEmitter::emitWarp(Value block, Value numPieces,
                           const SumTree::Memory &memory) {
  Value index = add(mul(block, kCudaThreads / kWarp),
                    create<arith::DivUIOp>(thread, i64(kWarp)));
  thread = both(thread, i64(kWarp - 1));
  emitWhere(isLess(index, numPieces), [&] {
    Piece piece = loadPiece(index);
    Value partial =
        emitAddress(builder, loc, builder.getF64Type(), memory.partials, index);
    emitGuarded(
        piece, [&] { emitSum(piece, partial); },
        [&] { emitPartial(f64(0.0), partial); });
  });
  SumTree(builder, loc, memory).emit(index, numPieces, thread);
}

void CudaEmitter::emitPartial(Value sum, Value partial) {
  emitWhere(isEqual(thread, i64(0)),
            [&] { builder.create<LLVM::StoreOp>(loc, sum, partial); });
}

void CudaEmitter::emitSum(const Piece &piece, Value partial) {
  Value size = create<arith::SubIOp>(piece.end, piece.begin);
  Value mainEnd = add(piece.begin, both(size, i64(-kRows * kSumLanes)));
  Value sum = emitWholeRows(piece.begin, mainEnd, f64(0.0));
  sum = emitIf(
      isLess(mainEnd, piece.end),
      [&] { return SmallVector<Value>{emitLastRows(mainEnd, piece.end, sum)}; },
      [&] { return SmallVector<Value>{sum}; })[0];
  emitPartial(emitFold(sum), partial);
}

/// kRows rows at a time.
Value CudaEmitter::emitWholeRows(Value begin, Value end, Value sum) {
  return emitLoop(
      begin, end, kRows * kSumLanes, sum, [&](Value index, ValueRange carried) {
        SmallVector<Elements::Loaded> rows;
        for (int64_t row = 0; row < kRows; ++row)
          rows.push_back(
              elements.emitLoads(add(add(index, thread), i64(row * kSumLanes)),
                                 /*width=*/1));
        Value all = carried[0];
        for (Elements::Loaded &row : rows)
          all = create<arith::AddFOp>(all, elements.emitBody(row));
        return SmallVector<Value>{all};
      })[0];
}

/// At least one element, and fewer than kRows rows. Their loads are issued
/// together, too: behind the last element a thread loads the last element, and
/// adds 0.
Value CudaEmitter::emitLastRows(Value begin, Value end, Value sum) {
  Value last = create<arith::SubIOp>(end, i64(1));
  SmallVector<Value> inside;
  SmallVector<Elements::Loaded> rows;
  for (int64_t row = 0; row < kRows; ++row) {
    Value at = add(add(begin, thread), i64(row * kSumLanes));
    inside.push_back(isLess(at, end));
    rows.push_back(
        elements.emitLoads(create<arith::MinSIOp>(at, last), /*width=*/1));
  }
  for (auto [isInside, row] : llvm::zip(inside, rows)) {
    Value addend = emitIf(
        isInside,
        [&, &row = row] { return SmallVector<Value>{elements.emitBody(row)}; },
        [&] { return SmallVector<Value>{f64(0.0)}; })[0];
    sum = create<arith::AddFOp>(sum, addend);
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

static LogicalResult prepare(zrt::KernelOp kernel, StringRef place) {
  if (failed(checkKernel(kernel, place)))
    return failure();
  kernel.getContext()
      ->loadDialect<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    NVVM::NVVMDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  return success();
}

FailureOr<LLVM::LLVMFuncOp>
zero::emitCudaKernel(zrt::KernelOp kernel, ModuleOp target, StringRef name) {
  if (failed(prepare(kernel, "a CUDA kernel")))
    return failure();
  return CudaEmitter(kernel).emit(target, name);
}

FailureOr<LLVM::LLVMFuncOp>
zero::emitCudaBatch(zrt::KernelOp kernel, ModuleOp target, StringRef name) {
  if (failed(prepare(kernel, "a CUDA kernel")))
    return failure();
  return CudaEmitter(kernel).emitBatch(target, name);
}
