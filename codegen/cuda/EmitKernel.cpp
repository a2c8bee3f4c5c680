//===- EmitKernel.cpp - CUDA code for a zrt.kernel ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread uses vectors whose elements fill 16 bytes of the widest array.
//
// A kernel that does not sum has a block for each piece, whose threads have
// neighbouring vectors. A reducing kernel has 32 / width threads for each
// piece, all in one warp. Each thread has the same lanes in all rows of 32
// elements and adds in the order of the rows, and the threads of a piece fold
// their lanes. SumTree sums the results.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitKernel.h"

#include "codegen/cuda/SumTree.h"
#include "codegen/kernels/Body.h"
#include "codegen/kernels/Elements.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace zero;

/// The widest load and store.
static constexpr int64_t kVectorBytes = 16;
static constexpr int64_t kMaxWidth = 8;
/// Rows that a sum loads together, because a sum has few threads.
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

class CudaEmitter : WarpBuilder {
public:
  explicit CudaEmitter(zrt::KernelOp kernel)
      : WarpBuilder(kernel.getContext(), kernel.getLoc()), kernel(kernel),
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

  Piece loadPiece(Value index);
  void emitGuarded(const Piece &piece, llvm::function_ref<void()> emitAll,
                   llvm::function_ref<void()> emitNone);
  Value emitAligned();
  void emitPlain(const Piece &piece);
  void emitTeam(Value block, Value numPieces, const SumTree::Memory &memory);
  void emitSum(const Piece &piece, Value partial);
  void emitPartial(Value sum, Value partial);
  SmallVector<Value> emitRows(Value begin, Value end, SmallVector<Value> lanes);
  SmallVector<Value> emitTail(Value begin, Value end, SmallVector<Value> lanes);
  Value emitFold(SmallVector<Value> lanes);

  zrt::KernelOp kernel;
  int64_t width;
  Elements elements;
  Type pointerType;
  SmallVector<Value> arrays;
  Value slots;
  Value pieces;
  /// The number of this thread in its block, or among the threads of its piece.
  Value thread;
  /// The threads of this thread's piece, as bits of the warp.
  Value members;
};

} // namespace

//===----------------------------------------------------------------------===//
// Function and pieces
//===----------------------------------------------------------------------===//

LLVM::LLVMFuncOp CudaEmitter::emit(ModuleOp target, StringRef name) {
  MLIRContext *context = kernel.getContext();
  pointerType = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> types(kernel.getNumArrays() + 2, pointerType);
  types.push_back(builder.getI64Type());
  if (kernel.getSums())
    types.append(3, pointerType);
  builder.setInsertionPointToEnd(target.getBody());
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  markCudaKernel(function, kCudaThreads);
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  auto arguments = entry->getArguments();
  arrays.append(arguments.begin(), arguments.begin() + kernel.getNumArrays());
  arguments = arguments.drop_front(arrays.size());
  slots = arguments[0];
  pieces = arguments[1];

  thread = readRegister<NVVM::ThreadIdXOp>();
  Value block = readRegister<NVVM::BlockIdXOp>();
  if (kernel.getSums()) {
    emitTeam(block, /*numPieces=*/arguments[2],
             {arguments[3], arguments[4], arguments[5]});
  } else {
    Piece piece = loadPiece(block);
    emitGuarded(piece, [&] { emitPlain(piece); }, [] {});
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

/// Emits the code of the threads of a warp: first in teams, each with one piece
/// at most, and then together.
void CudaEmitter::emitTeam(Value block, Value numPieces,
                           const SumTree::Memory &memory) {
  int64_t threads = kSumLanes / width;
  int64_t perWarp = kWarp / threads;
  Value inBlock = thread;
  Value team = create<arith::DivUIOp>(inBlock, i64(threads));
  Value firstOfBlock = mul(block, kCudaThreads / threads);
  Value inWarp = both(inBlock, i64(kWarp - threads));
  thread = both(inBlock, i64(threads - 1));
  members = create<arith::TruncIOp>(
      builder.getI32Type(),
      create<arith::ShLIOp>(i64((int64_t(1) << threads) - 1), inWarp));
  Value index = add(firstOfBlock, team);
  emitWhere(isLess(index, numPieces), [&] {
    Piece piece = loadPiece(index);
    Value partial =
        emitAddress(builder, loc, builder.getF64Type(), memory.partials, index);
    emitGuarded(
        piece, [&] { emitSum(piece, partial); },
        [&] { emitPartial(f64(0.0), partial); });
  });
  SumTree tree(builder, loc, memory);
  Value firstTeam = both(team, i64(-perWarp));
  tree.emit(add(firstOfBlock, firstTeam), perWarp, numPieces,
            both(inBlock, i64(kWarp - 1)));
}

void CudaEmitter::emitPartial(Value sum, Value partial) {
  emitWhere(isEqual(thread, i64(0)),
            [&] { builder.create<LLVM::StoreOp>(loc, sum, partial); });
}

void CudaEmitter::emitSum(const Piece &piece, Value partial) {
  Value size = create<arith::SubIOp>(piece.end, piece.begin);
  Value whole = both(size, i64(-kRows * kSumLanes));
  whole = create<arith::SelectOp>(emitAligned(), whole, i64(0));
  Value mainEnd = add(piece.begin, whole);
  SmallVector<Value> lanes(width, f64(0.0));
  lanes = emitRows(piece.begin, mainEnd, lanes);
  lanes = emitTail(mainEnd, piece.end, lanes);
  emitPartial(emitFold(lanes), partial);
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

/// Adds lane i + n/2 to lane i, and repeats this with half the lanes until one
/// is left, in the first thread.
Value CudaEmitter::emitFold(SmallVector<Value> lanes) {
  for (int64_t half = kSumLanes / 2; half >= width; half /= 2)
    for (Value &lane : lanes)
      lane = create<arith::AddFOp>(lane, exchange(members, lane, half / width));
  for (int64_t half = width / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] = create<arith::AddFOp>(lanes[i], lanes[i + half]);
  return lanes.front();
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
