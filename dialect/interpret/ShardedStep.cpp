//===- ShardedStep.cpp - The sharded phase: where things live -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ShardedStep.h"

using namespace mlir;
using namespace zero;

LogicalResult ShardedStep::initializeState() {
  auto module = step->getParentOfType<ModuleOp>();
  for (auto op : module.getOps<BucketOp>()) {
    BucketState &bucket = buckets[op.getSymName()];
    bucket.op = op;
    auto first = cast<FlatSymbolRefAttr>(op.getMembers()[0]).getValue();
    const Format &storage = *getFormat(findParameter(first).getDtype());
    bucket.parameters.assign(ranks.size(), Array(storage, op.getNumElements()));
    bucket.owned.assign(ranks.size(), {0, op.getNumElements()});
  }
  for (auto op : step.getBody().getOps<PrepareOp>())
    counters[op.getGroup()].assign(
        ranks.size(), optimizers[op.getOptimizer()]->getInitialCounters());
  for (auto op : step.getBody().getOps<UpdateBucketOp>()) {
    BucketState &bucket = buckets[op.getBucket()];
    bucket.optimizer = optimizers[op.getOptimizer()].get();
    // Rank i of a group owns what it updates: slice i.
    auto type = cast<ValueType>(op.getGradient().getType());
    for (const auto &group : getGroups(type.getAxes(PlacementKind::Sharded)))
      for (auto [i, rank] : llvm::enumerate(group))
        bucket.owned[rank] =
            getSlice(bucket.op.getNumElements(), i, group.size());
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
        return {&bucket,
                {offset, offset + findParameter(parameter).getNumElements()}};
  }
  return {};
}

LogicalResult ShardedStep::bindParameter(StringRef name,
                                         ArrayRef<double> full) {
  Place place = find(name);
  if (!place.bucket)
    return step.emitError() << "has no parameter '" << name << "'";
  if (place.range.size() != static_cast<int64_t>(full.size()))
    return step.emitError()
           << "parameter '" << name << "' has " << place.range.size()
           << " elements, got " << full.size();
  BucketState &bucket = *place.bucket;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    Array &whole = bucket.parameters[rank];
    Range owned = bucket.owned[rank];
    for (auto [i, value] : llvm::enumerate(full)) {
      int64_t e = place.range.begin + i;
      whole[e] = calculator.read(*whole.format, value);
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
  if (!place.bucket)
    return {};
  return place.bucket->parameters[rank].slice(place.range).elements;
}

std::vector<Number> ShardedStep::getState(StringRef role, StringRef name) {
  if (name.empty()) {
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
  std::vector<Number> joined(place.range.size());
  for (auto [owned, slice] : llvm::zip_equal(bucket.owned, *slices))
    for (int64_t e = std::max(owned.begin, place.range.begin);
         e < std::min(owned.end, place.range.end); ++e)
      joined[e - place.range.begin] = slice[e - owned.begin];
  return joined;
}

PerRank ShardedStep::deliver(FlatSymbolRefAttr source, const Format &format) {
  BucketOp bucket = buckets[source.getValue()].op;
  const Format &arrival = *getFormat(bucket.getArrivalType());
  PerRank packed;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    if (!makesBackward(rank)) {
      packed.emplace_back(format, 0);
      continue;
    }
    // Pads are zero.
    Array &whole = packed.emplace_back(format, bucket.getNumElements());
    for (auto [member, offset] :
         llvm::zip_equal(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
                         bucket.getOffsets())) {
      int64_t elements = findParameter(member.getValue()).getNumElements();
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
