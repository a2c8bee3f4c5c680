//===- Program.h - Tables and memory of a program, all ranks ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_PROGRAM_H
#define ZERO_DIALECT_INTERPRET_PROGRAM_H

#include "dialect/interpret/Array.h"
#include "dialect/interpret/Ranks.h"
#include "dialect/interpret/ScalarBody.h"
#include "dialect/zrt/MemoryUses.h"

#include "llvm/ADT/StringMap.h"

namespace zero {

/// A zrt.buffer on all ranks, without its contents.
struct Buffer {
  zrt::BufferOp op;
  const Format *format = nullptr;
  std::vector<Range> held; // per rank, in bucket coordinates
  std::vector<bool> isOn;  // by rank
  std::vector<bool> allocated;
};

/// Memory that was read or written.
struct Touch {
  mlir::StringAttr memory;
  bool writes = false;
};

/// A zrt.kernel with its body translated.
struct Kernel {
  zrt::KernelOp op;
  std::unique_ptr<ScalarBody> body;
};

/// The tables of a zrt.program and the memory they describe.
class Program {
public:
  explicit Program(zrt::ProgramOp op) : op(op), symbols(op) {}

  /// Allocates everything. Emits a diagnostic at an op that is not supported.
  mlir::LogicalResult initialize(const Ranks &ranks);

  zrt::ProgramOp getOp() { return op; }
  const zrt::ProgramSymbols &getSymbols() const { return symbols; }
  const Buffer &getBuffer(mlir::FlatSymbolRefAttr symbol) {
    return buffers[symbol.getValue()];
  }
  /// The contents of a buffer on all ranks; empty where it is not allocated.
  const PerRank &read(mlir::FlatSymbolRefAttr buffer);
  PerRank &write(mlir::FlatSymbolRefAttr buffer);
  /// Sets buffers to nan that share memory with those that a call on |ranks|
  /// has written.
  void destroySharers(llvm::ArrayRef<int64_t> ranks);
  /// Gives |rank| its memory, each element |fill|.
  void allocate(mlir::FlatSymbolRefAttr buffer, int64_t rank, double fill);
  void release(mlir::FlatSymbolRefAttr buffer, int64_t rank);
  /// An on-demand buffer that has the memory of |buffer| on |rank|, or null.
  mlir::FlatSymbolRefAttr findSharerInUse(mlir::FlatSymbolRefAttr buffer,
                                          int64_t rank);
  Kernel &getKernel(mlir::FlatSymbolRefAttr symbol) {
    return kernels[symbol.getValue()];
  }
  zrt::SegmentsOp getSegments(mlir::FlatSymbolRefAttr symbol) {
    return op.lookupSymbol<zrt::SegmentsOp>(symbol);
  }
  zrt::HandlerOp getHandler(mlir::FlatSymbolRefAttr symbol) {
    return op.lookupSymbol<zrt::HandlerOp>(symbol);
  }
  /// Scalar slots of a rank.
  llvm::ArrayRef<Number> readSlots(mlir::FlatSymbolRefAttr symbol,
                                   int64_t rank);
  llvm::MutableArrayRef<Number> writeSlots(mlir::FlatSymbolRefAttr symbol,
                                           int64_t rank);
  void runScalars(const Calculator &calculator, mlir::FlatSymbolRefAttr symbol,
                  int64_t rank);
  /// The slots that kernels of a space see; nothing if they were never copied
  /// to the host.
  std::optional<llvm::ArrayRef<Number>>
  readScalars(mlir::FlatSymbolRefAttr symbol, int64_t rank, bool isOnHost);
  void copySlotsToHost(int64_t rank);

  /// Says that a call reads the caller's tensor of a gradient.
  void readArrivingGradient() {
    touch(symbols.getArrivingGradient(), /*writes=*/false);
  }

  /// Takes the memory that was read and written since the last call of this
  /// function.
  llvm::SmallVector<Touch> takeTouches() { return std::exchange(touches, {}); }

  /// Sets gradient buffers to nan at the begin of a step, so that a read before
  /// the first write shows.
  void poisonGradients();
  /// Sets |buffer| and every buffer that shares its memory on |rank| to nan.
  void poisonMemoryOf(mlir::FlatSymbolRefAttr buffer, int64_t rank);

private:
  struct Contents {
    mlir::StringAttr memory;
    PerRank elements;
    llvm::SmallVector<llvm::StringRef> sharers; // others in this memory
    std::vector<bool> isDestroyed;              // by rank: by one of them
  };
  /// The slots [first, first + size) of a symbol.
  struct SlotRange {
    mlir::StringAttr symbol;
    int64_t first = 0;
    int64_t size = 0;
  };
  const SlotRange &getSlotRange(mlir::FlatSymbolRefAttr symbol) {
    return slotRanges[slotRangeOf.lookup(symbol.getValue())];
  }
  void fill(llvm::StringRef buffer, int64_t rank, double value);
  void touch(mlir::StringAttr memory, bool writes) {
    touches.push_back({memory, writes});
  }

  zrt::ProgramOp op;
  zrt::ProgramSymbols symbols;
  llvm::StringMap<Buffer> buffers;
  llvm::StringMap<Contents> contents;
  llvm::StringMap<Kernel> kernels;
  llvm::StringMap<std::unique_ptr<ScalarBody>> scalars;
  std::vector<SlotRange> slotRanges; // by first slot
  llvm::StringMap<size_t> slotRangeOf;
  std::vector<std::vector<Number>> slots;     // by rank
  std::vector<std::vector<Number>> hostSlots; // by rank
  llvm::SmallVector<Touch> touches;
  llvm::SmallVector<llvm::StringRef> overwritten; // that share memory
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_PROGRAM_H
