//===- ShardedStep.cpp - The sharded phase: where things live -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ShardedStep.h"
#include "dialect/zero/CountOf.h"

using namespace mlir;
using namespace zero;

LogicalResult ShardedStep::initializeState() {
  auto module = step->getParentOfType<ModuleOp>();
  for (auto op : module.getOps<BucketOp>()) {
    BucketState &bucket = buckets[op.getSymName()];
    bucket.op = op;
    auto first = cast<FlatSymbolRefAttr>(op.getMembers()[0]).getValue();
    const Format &storage = *getFormat(findParameter(first).getDtype());
    bucket.isOn = ranks.getHolders(op.getValueType());
    for (bool isOn : bucket.isOn) {
      int64_t elements = isOn ? op.getRowLength() : 0;
      bucket.parameters.emplace_back(storage, elements);
      bucket.owned.push_back({0, elements});
    }
  }
  for (auto op : step.getBody().getOps<PrepareOp>())
    counters[op.getGroup()].assign(
        ranks.size(), optimizers[op.getOptimizer()]->getInitialCounters());
  for (auto op : step.getBody().getOps<UpdateBucketOp>()) {
    BucketState &bucket = buckets[op.getBucket()];
    bucket.optimizer = optimizers[op.getOptimizer()].get();
    // Rank i of a process group owns and updates slice i of its row.
    auto type = cast<ValueType>(op.getGradient().getType());
    int64_t last = type.getShape().size() - 1;
    bucket.owned =
        ranks.getSlices(bucket.op.getRowLength(), type.getAxesOfDim(last));
    for (auto [range, isOn] : llvm::zip_equal(bucket.owned, bucket.isOn))
      if (!isOn)
        range = {};
    auto allocate = [&](const Format &format) {
      PerRank slices;
      for (Range owned : bucket.owned)
        slices.emplace_back(format, owned.size());
      return slices;
    };
    const Format &master = bucket.optimizer->getMasterFormat();
    if (&master != bucket.parameters[0].format)
      bucket.master = allocate(master);
    for (const Format *format : bucket.optimizer->getStateFormats())
      bucket.states.push_back(allocate(*format));
  }
  return success();
}

ShardedStep::Place ShardedStep::find(StringRef parameter) {
  for (auto &entry : buckets) {
    BucketState &bucket = entry.second;
    for (auto [member, offset] :
         llvm::zip_equal(bucket.op.getMembers().getAsRange<FlatSymbolRefAttr>(),
                         bucket.op.getOffsets()))
      if (member.getValue() == parameter)
        return {
            &bucket,
            {offset, offset + getNumHeld(bucket.op, findParameter(parameter))}};
  }
  return {};
}

LogicalResult ShardedStep::bindParameter(StringRef name,
                                         ArrayRef<double> full) {
  Place place = find(name);
  if (!place.bucket)
    return step.emitError() << "has no parameter '" << name << "'";
  int64_t elements = findParameter(name).getNumElements();
  if (elements != static_cast<int64_t>(full.size()))
    return step.emitError()
           << "parameter '" << name << "' has " << countOf(elements, "element")
           << ", got " << full.size();
  BucketState &bucket = *place.bucket;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    Array &whole = bucket.parameters[rank];
    Range owned = bucket.owned[rank];
    for (auto [i, position] : llvm::enumerate(getHeld(name, rank))) {
      int64_t e = place.range.begin + i;
      whole[e] = calculator.read(*whole.format, full[position]);
      if (!bucket.master.empty() && e >= owned.begin && e < owned.end) {
        Array &master = bucket.master[rank];
        master[e - owned.begin] =
            calculator.convert(*whole.format, *master.format, whole[e]);
      }
    }
  }
  return success();
}

std::vector<Number> ShardedStep::getParameter(int64_t rank, StringRef name) {
  Place place = find(name);
  if (!place.bucket || !place.bucket->isOn[rank])
    return {};
  return place.bucket->parameters[rank].slice(place.range).elements;
}

std::vector<Number> ShardedStep::getState(StringRef role, StringRef name) {
  if (name.empty()) {
    if (std::vector<Number> state = getRuleState(role); !state.empty())
      return state;
    auto [group, counter] = role.rsplit('.');
    for (auto op : step.getBody().getOps<PrepareOp>())
      if (op.getGroup() == group)
        if (auto i = optimizers[op.getOptimizer()]->findCounter(counter))
          return {counters[group][0][*i]};
    return {};
  }
  Place place = find(name);
  if (!place.bucket || !place.bucket->optimizer)
    return {};
  BucketState &bucket = *place.bucket;
  const PerRank *slices = nullptr;
  if (role == "master" && !bucket.master.empty())
    slices = &bucket.master;
  else if (auto i = bucket.optimizer->findState(role))
    slices = &bucket.states[*i];
  if (!slices)
    return {};
  std::vector<Number> joined(findParameter(name).getNumElements());
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    Range owned = bucket.owned[rank];
    std::vector<int64_t> held = getHeld(name, rank);
    for (int64_t e = std::max(owned.begin, place.range.begin);
         e < std::min(owned.end, place.range.end); ++e)
      joined[held[e - place.range.begin]] = (*slices)[rank][e - owned.begin];
  }
  return joined;
}

PerRank ShardedStep::deliver(FlatSymbolRefAttr source, const Format &format) {
  BucketOp bucket = buckets[source.getValue()].op;
  const Format &arrival = *getFormat(bucket.getArrivalType());
  PerRank packed;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    if (!makesBackward(rank) || !buckets[source.getValue()].isOn[rank]) {
      packed.emplace_back(format, 0);
      continue;
    }
    // Pads are zero.
    Array &whole = packed.emplace_back(format, bucket.getRowLength());
    for (auto [member, offset] :
         llvm::zip_equal(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
                         bucket.getOffsets())) {
      int64_t elements = getNumHeld(bucket, findParameter(member.getValue()));
      Array gradient =
          convert(calculator, format,
                  readGradient(rank, member.getValue(), elements, arrival));
      llvm::copy(gradient.elements, whole.elements.begin() + offset);
    }
  }
  return packed;
}

std::unique_ptr<StepInterpreter>
zero::createShardedStep(StepOp step, Arithmetic arithmetic) {
  return std::make_unique<ShardedStep>(step, arithmetic);
}
