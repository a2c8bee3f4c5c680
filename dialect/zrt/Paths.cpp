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
  PathBuilder(ProgramOp program, function_ref<bool(FlatSymbolRefAttr)> isHere)
      : program(program), isHere(isHere), symbols(program) {
    for (auto op : program.getOps<TransitionOp>())
      if (op.getEvent() == Event::arrive)
        arrivals[op.getStateAttr()] = op;
  }

  Path build(TransitionOp transition);

private:
  void run(ArrayAttr handlers, FlatSymbolRefAttr arriving = nullptr);
  void runSequence(TransitionOp arrive);

  ProgramOp program;
  function_ref<bool(FlatSymbolRefAttr)> isHere;
  ProgramSymbols symbols;
  llvm::DenseMap<StringAttr, TransitionOp> arrivals;
  Path path;
};
} // namespace

void PathBuilder::run(ArrayAttr handlers, FlatSymbolRefAttr arriving) {
  for (auto symbol : handlers.getAsRange<FlatSymbolRefAttr>())
    path.steps.push_back({symbols.lookup<HandlerOp>(symbol), arriving});
}

void PathBuilder::runSequence(TransitionOp arrive) {
  auto sequence = symbols.lookup<SequenceOp>(arrive.getSequenceAttr());
  SmallVector<FlatSymbolRefAttr> buckets, handlers;
  for (auto [bucket, handler] :
       llvm::zip_equal(sequence.getBuckets().getAsRange<FlatSymbolRefAttr>(),
                       sequence.getHandlers().getAsRange<FlatSymbolRefAttr>()))
    if (isHere(bucket)) {
      buckets.push_back(bucket);
      handlers.push_back(handler);
    }
  auto open = [&](size_t bucket) {
    if (bucket < buckets.size())
      run(arrive.getHandlers(), buckets[bucket]);
  };
  auto window = static_cast<size_t>(sequence.getWindow());
  for (size_t i = 0; i < std::min(window, buckets.size()); ++i)
    open(i);
  for (size_t i = 0; i < buckets.size(); ++i) {
    run(arrive.getHandlers(), buckets[i]);
    path.steps.push_back({symbols.lookup<HandlerOp>(handlers[i]), nullptr});
    open(i + window);
  }
}

Path PathBuilder::build(TransitionOp transition) {
  path = {transition.getStateAttr(),
          transition.getNextAttr(),
          transition.getEvent(),
          {}};
  if (TransitionOp arrive = arrivals.lookup(transition.getStateAttr())) {
    if (arrive.getSequenceAttr())
      runSequence(arrive);
    else
      for (auto table : program.getOps<BucketTableOp>())
        if (isHere(table.getBucketAttr()))
          run(arrive.getHandlers(), table.getBucketAttr());
  }
  run(transition.getHandlers());
  return std::move(path);
}

static std::vector<Path>
enumerate(ProgramOp program, function_ref<bool(FlatSymbolRefAttr)> isHere) {
  PathBuilder builder(program, isHere);
  std::vector<Path> paths;
  for (auto transition : program.getOps<TransitionOp>())
    if (transition.getEvent() != Event::arrive)
      paths.push_back(builder.build(transition));
  return paths;
}

std::vector<Path> zrt::enumeratePaths(ProgramOp program) {
  return enumerate(program, [](FlatSymbolRefAttr) { return true; });
}

std::vector<std::vector<Path>> zrt::enumeratePathsOfStages(ProgramOp program) {
  // Stages that have the same buckets take the same paths.
  llvm::MapVector<Attribute, llvm::SmallDenseMap<int64_t, int64_t>> axes;
  std::vector<std::pair<FlatSymbolRefAttr, zero::ValueType>> placed;
  SymbolTableCollection symbols;
  for (auto table : program.getOps<BucketTableOp>())
    placed.push_back(
        {table.getBucketAttr(),
         lookup<zero::BucketOp>(symbols, program, table.getBucketAttr())
             .getValueType()});
  // Each refines the groups of coordinates that the one before left.
  using Here = llvm::SmallBitVector;
  SmallVector<SmallVector<zero::AxisCoordinate>> stages(1);
  llvm::SetVector<StringAttr> stageAxes;
  for (auto &[bucket, type] : placed)
    for (StringAttr axis : type.getStageAxes())
      stageAxes.insert(axis);
  (void)axes;
  return {};
}
