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
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/ADT/StringMap.h"

namespace zero {

/// A zrt.buffer on all ranks. The contents of a rank are empty while the buffer
/// is not allocated.
struct Buffer {
  zrt::BufferOp op;
  const Format *format = nullptr;
  std::vector<Range> held; // per rank, in bucket coordinates
  PerRank contents;
  std::vector<bool> isOn; // by rank
  std::vector<bool> allocated;

  /// Gives |rank| its memory, each element |fill|.
  void allocate(int64_t rank, double fill);
  /// The element of |rank| at position |e| of the bucket.
  Number &at(int64_t rank, int64_t e) {
    return contents[rank][e - held[rank].begin];
  }
};

/// A zrt.kernel with its body translated.
struct Kernel {
  zrt::KernelOp op;
  std::unique_ptr<ScalarBody> body;
};

/// The tables of a zrt.program and the memory they describe.
class Program {
public:
  explicit Program(zrt::ProgramOp op) : op(op) {}

  /// Allocates everything. Emits a diagnostic at an op that is not supported.
  mlir::LogicalResult initialize(const Ranks &ranks);

  zrt::ProgramOp getOp() { return op; }
  Buffer &getBuffer(mlir::FlatSymbolRefAttr symbol) {
    return buffers[symbol.getValue()];
  }
  Kernel &getKernel(mlir::FlatSymbolRefAttr symbol) {
    return kernels[symbol.getValue()];
  }
  ScalarBody &getScalars(mlir::FlatSymbolRefAttr symbol) {
    return *scalars[symbol.getValue()];
  }
  zrt::SegmentsOp getSegments(mlir::FlatSymbolRefAttr symbol) {
    return op.lookupSymbol<zrt::SegmentsOp>(symbol);
  }
  zrt::HandlerOp getHandler(mlir::FlatSymbolRefAttr symbol) {
    return op.lookupSymbol<zrt::HandlerOp>(symbol);
  }
  int64_t getFirstSlot(mlir::FlatSymbolRefAttr symbol) {
    return firstSlots.lookup(symbol.getValue());
  }
  int64_t getNumSlots(mlir::FlatSymbolRefAttr symbol) {
    return op.lookupSymbol<zrt::SlotsOp>(symbol).size();
  }
  /// All scalar slots of a rank.
  std::vector<Number> &getSlots(int64_t rank) { return slots[rank]; }

  /// Sets gradient buffers to nan at the begin of a step, so that a read before
  /// the first write shows.
  void poisonGradients();
  /// Sets |buffer| and every buffer that shares its memory on |rank| to nan.
  void poisonMemoryOf(mlir::FlatSymbolRefAttr buffer, int64_t rank);

private:
  zrt::ProgramOp op;
  llvm::StringMap<Buffer> buffers;
  llvm::StringMap<Kernel> kernels;
  llvm::StringMap<std::unique_ptr<ScalarBody>> scalars;
  llvm::StringMap<int64_t> firstSlots;
  std::vector<std::vector<Number>> slots;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_PROGRAM_H
