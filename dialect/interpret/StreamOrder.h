//===- StreamOrder.h - Runs a program in an order of streams ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An item of a queue starts and finishes, and items of other queues may start
// and finish in between. A call computes when it finishes. It is an error if an
// item starts while another item of its rank writes the same memory, or reads
// memory that the first item writes. A call touches only the memory that it
// declares (see ProgramInterpreter::run), so races show without poison.
//
// Items that a step leaves in the queues run beside the next step.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_STREAMORDER_H
#define ZERO_DIALECT_INTERPRET_STREAMORDER_H

#include "dialect/interpret/ProgramInterpreter.h"
#include "dialect/interpret/Races.h"

#include <random>

namespace zero {

class ProgramInterpreter::StreamOrder {
public:
  StreamOrder(ProgramInterpreter &owner, uint64_t seed);

  /// Queues one step of all ranks, and runs until no item in the queues needs
  /// the inputs of the step. If a legal order has a race, this order is run.
  mlir::LogicalResult run(llvm::ArrayRef<Actions> plans);
  /// Runs until the caller may read the parameters of |table| on |rank|.
  mlir::LogicalResult waitForParameters(int64_t rank, zrt::BucketTableOp table);
  /// Runs everything.
  mlir::LogicalResult finish() { return finishBefore(queues.size()); }

private:
  using Item = StreamQueues::Item;

  /// Runs items in an order drawn at random, until |goal| are done. Items that
  /// |goal| need not wait for may run, too.
  mlir::LogicalResult runUntil(llvm::SmallVector<size_t> goal);
  mlir::LogicalResult finishBefore(size_t end);
  mlir::LogicalResult runRace(const Race &race);
  /// Starts or finishes an item, and those that it meets.
  mlir::LogicalResult move(size_t index);
  mlir::LogicalResult start(size_t index);
  mlir::LogicalResult finish(size_t index);
  std::vector<size_t> getMoves(const llvm::BitVector *among = nullptr);
  mlir::LogicalResult reportRace(const Item &item, const Item &other,
                                 const zrt::MemoryUse &use, bool otherWrites);

  ProgramInterpreter &owner;
  uint64_t seed;
  std::mt19937_64 random;
  StreamQueues queues;
  StreamQueues::Progress progress;
  llvm::DenseSet<size_t> started; // and not finished
  size_t lastStep = 0;            // the first item of the last step
  size_t numFinished = 0;         // all items before it are done
  /// The stream that is held back while another stream can advance.
  std::optional<zrt::Stream> late;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_STREAMORDER_H
