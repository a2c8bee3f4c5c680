//===- Paths.cpp - The order in which a protocol runs handlers ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/Paths.h"

#include "dialect/zrt/MemoryUses.h"

using namespace mlir;
using namespace zrt;

namespace {
class PathBuilder {
public:
  explicit PathBuilder(ProgramOp program) : program(program), symbols(program) {
    for (auto op : program.getOps<TransitionOp>())
      if (op.getEvent() == Event::arrive)
        arrivals[op.getStateAttr()] = op;
      else if (op.getEvent() == Event::unshard)
        unshards.insert(op.getStateAttr());
  }

  Path build(TransitionOp transition);

private:
  void run(ArrayAttr handlers, FlatSymbolRefAttr arriving = nullptr);
  void runSequence(TransitionOp arrive);
  void runUnits();

  ProgramOp program;
  ProgramSymbols symbols;
  SymbolTableCollection outer;
  llvm::DenseMap<StringAttr, TransitionOp> arrivals;
  llvm::DenseSet<StringAttr> unshards; // states
  Path path;
};
} // namespace

void PathBuilder::run(ArrayAttr handlers, FlatSymbolRefAttr arriving) {
  for (auto symbol : handlers.getAsRange<FlatSymbolRefAttr>())
    path.steps.push_back({symbols.lookup<HandlerOp>(symbol),
                          {},
                          {},
                          arriving,
                          /*closed=*/nullptr,
                          /*isOptional=*/static_cast<bool>(arriving)});
}

void PathBuilder::runSequence(TransitionOp arrive) {
  auto sequence = symbols.lookup<SequenceOp>(arrive.getSequenceAttr());
  auto buckets =
      llvm::to_vector(sequence.getBuckets().getAsRange<FlatSymbolRefAttr>());
  auto handlers =
      llvm::to_vector(sequence.getHandlers().getAsRange<FlatSymbolRefAttr>());
  // By memory: the bucket that is open, which is followed by the next one.
  llvm::DenseMap<Attribute, size_t> lastWith;
  SmallVector<std::optional<size_t>> next(buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    auto memory =
        symbols.getMemory(symbols.getTable(buckets[i]).getGradientAttr());
    auto [it, isFirst] = lastWith.insert({memory, i});
    if (isFirst)
      run(arrive.getHandlers(), buckets[i]);
    else
      next[std::exchange(it->second, i)] = i;
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    run(arrive.getHandlers(), buckets[i]);
    auto bucket = lookup<zero::BucketOp>(outer, program, buckets[i]);
    bool isOnStages = bucket && !bucket.getValueType().getPresent().empty();
    path.steps.push_back({symbols.lookup<HandlerOp>(handlers[i]),
                          {},
                          {},
                          /*arriving=*/nullptr,
                          /*closed=*/buckets[i],
                          isOnStages});
    if (next[i])
      run(arrive.getHandlers(), buckets[*next[i]]);
  }
}

void PathBuilder::runUnits() {
  for (auto unit : program.getOps<UnitTableOp>()) {
    if (unit.isElsewhere())
      continue;
    path.steps.push_back({symbols.lookup<HandlerOp>(unit.getUnshardAttr()),
                          symbols.lookup<HandlerOp>(unit.getReshardAttr()),
                          unit,
                          /*arriving=*/nullptr,
                          /*closed=*/nullptr,
                          /*isOptional=*/true});
  }
}

Path PathBuilder::build(TransitionOp transition) {
  path = {transition.getStateAttr(),
          transition.getNextAttr(),
          transition.getEvent(),
          {}};
  if (transition.isOfUnit()) {
    runUnits();
    return std::move(path);
  }
  if (TransitionOp arrive = arrivals.lookup(transition.getStateAttr())) {
    if (arrive.getSequenceAttr())
      runSequence(arrive);
    else
      for (auto table : program.getOps<BucketTableOp>())
        run(arrive.getHandlers(), table.getBucketAttr());
  }
  if (unshards.contains(transition.getStateAttr()))
    runUnits();
  run(transition.getHandlers());
  return std::move(path);
}

void zrt::walkPaths(llvm::ArrayRef<Path> paths, StringAttr initial,
                    llvm::function_ref<bool(const Path &)> walk) {
  llvm::DenseMap<StringAttr, unsigned> changes; // 0: not reached
  changes[initial] = 1;
  SmallVector<unsigned> walkedAfter(paths.size(), 0);
  for (bool hasWalked = true; std::exchange(hasWalked, false);)
    for (auto [path, walked] : llvm::zip_equal(paths, walkedAfter)) {
      unsigned now = changes.lookup(path.from);
      if (now == walked)
        continue;
      walked = now;
      hasWalked = true;
      bool hasChanged = walk(path);
      unsigned &reached = changes[path.to];
      reached += hasChanged || reached == 0;
    }
}

std::vector<Path> zrt::enumeratePaths(ProgramOp program) {
  PathBuilder builder(program);
  std::vector<Path> paths;
  for (auto transition : program.getOps<TransitionOp>())
    if (transition.getEvent() != Event::arrive &&
        transition.getEvent() != Event::reshard) // is with unshard
      paths.push_back(builder.build(transition));
  return paths;
}
