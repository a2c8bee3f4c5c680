//===- Order.cpp - Which calls of a handler may race ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Order.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

namespace {
struct Access {
  StringAttr memory; // a buffer with memory of its own, or slots
  bool writes = false;
};
using Accesses = SmallVector<Access, 4>;
} // namespace

static Accesses getAccesses(Operation *call, zrt::ProgramOp program,
                            const SymbolTable &symbols) {
  Accesses accesses;
  auto add = [&](FlatSymbolRefAttr symbol, bool writes) {
    if (auto buffer = symbols.lookup<zrt::BufferOp>(symbol.getAttr()))
      symbol = buffer.getMemory();
    accesses.push_back({symbol.getAttr(), writes});
  };
  auto addBucket = [&](FlatSymbolRefAttr bucket) {
    for (auto op : program.getOps<zrt::BucketTableOp>())
      if (!bucket || op.getBucketAttr() == bucket)
        add(op.getGradientAttr(), true);
  };
  llvm::TypeSwitch<Operation *>(call)
      .Case([&](zrt::PackOp op) { addBucket({}); })
      .Case([&](zrt::FillMissingOp op) { addBucket(op.getBucketAttr()); })
      .Case([&](zrt::LaunchOp op) {
        auto kernel =
            symbols.lookup<zrt::KernelOp>(op.getKernelAttr().getAttr());
        for (auto [i, buffer] :
             llvm::enumerate(op.getBuffers().getAsRange<FlatSymbolRefAttr>()))
          add(buffer, kernel.getArrayAccess(i) != zrt::Access::read);
        if (kernel.getNumScalars() > 0)
          for (auto slots :
               symbols.lookup<zrt::SegmentsOp>(op.getSegmentsAttr().getAttr())
                   .getScalars()
                   .getAsRange<FlatSymbolRefAttr>())
            add(slots, false);
        if (op.getSumAttr())
          add(op.getSumAttr(), true);
      })
      .Case([&](zrt::RunScalarsOp op) {
        auto scalars =
            symbols.lookup<zrt::ScalarsOp>(op.getProgramAttr().getAttr());
        for (Operation &inner : scalars.getBody().front())
          if (auto load = dyn_cast<zrt::LoadSlotOp>(inner))
            add(load.getSlotsAttr(), false);
          else if (auto store = dyn_cast<zrt::StoreSlotOp>(inner))
            add(store.getSlotsAttr(), true);
      })
      .Case<zrt::ReduceScatterOp, zrt::ReduceScatterAddOp, zrt::CopyOp>(
          [&](auto op) {
            add(op.getSourceAttr(), false);
            add(op.getTargetAttr(), true);
          })
      .Case([&](zrt::AllReduceOp op) {
        add(op.getBufferAttr(), false);
        add(op.getResultBuffer(), true);
      })
      .Case<zrt::AllGatherOp, zrt::KeepOnRootOp, zrt::AllocateOp,
            zrt::ReleaseOp, zrt::SetRoleOp>(
          [&](auto op) { add(op.getBufferAttr(), true); })
      .Case<zrt::CountArrivalsOp, zrt::CountReplicatedOnceOp,
            zrt::AllReduceScalarsOp>(
          [&](auto op) { add(op.getSlotsAttr(), true); })
      .Case([&](zrt::CommitOp op) {
        add(op.getOutcomeAttr(), false);
        for (auto slots : program.getResults().getAsRange<FlatSymbolRefAttr>())
          add(slots, false);
      });
  return accesses;
}

/// Whether every call awaits the one before it: the usual case, in which
/// nothing can race.
static bool isChain(Block &block) {
  Operation *previous = nullptr;
  for (Operation &call : block) {
    if (previous &&
        !llvm::is_contained(call.getOperands(), previous->getResult(0)))
      return false;
    previous = &call;
  }
  return true;
}

void prove::checkOrder(Proof &proof, zrt::HandlerOp handler,
                       const SymbolTable &symbols) {
  Block &block = handler.getBody().front();
  if (isChain(block))
    return;
  auto program = handler->getParentOfType<zrt::ProgramOp>();
  auto calls = llvm::to_vector(llvm::make_pointer_range(block));
  llvm::DenseMap<Operation *, unsigned> indices;
  std::vector<llvm::BitVector> before; // what has finished when call i starts
  struct Last {
    SmallVector<unsigned> reads; // since the last write
    int64_t write = -1;
  };
  llvm::DenseMap<StringAttr, Last> touched;
  for (unsigned i = 0; i < calls.size(); ++i) {
    Operation *call = calls[i];
    indices[call] = i;
    llvm::BitVector &finished = before.emplace_back(calls.size());
    for (Value timepoint : call->getOperands()) {
      unsigned awaited = indices.lookup(timepoint.getDefiningOp());
      finished |= before[awaited];
      finished.set(awaited);
    }
    auto require = [&](int64_t other, StringAttr memory) {
      if (other < 0 || other == int64_t(i) || finished.test(other))
        return;
      InFlightDiagnostic diagnostic = proof.report.error(call);
      diagnostic << "races with '" << calls[other]->getName() << "' for @"
                 << memory.getValue() << ": it does not await that call";
      diagnostic.attachNote(calls[other]->getLoc()) << "which is here";
    };
    for (const Access &access : getAccesses(call, program, symbols)) {
      Last &last = touched[access.memory];
      require(last.write, access.memory);
      if (!access.writes) {
        last.reads.push_back(i);
        continue;
      }
      for (unsigned reader : last.reads)
        require(reader, access.memory);
      last.reads.clear();
      last.write = i;
    }
  }
}
