//===- ShardedOps.cpp - The sharded phase: what ops do --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ShardedStep.h"

#include "dialect/zero/Outcome.h"

#include <cmath>

using namespace mlir;
using namespace zero;

std::vector<std::vector<int64_t>> ShardedStep::getGroups(ArrayAttr axes,
                                                         Value input) {
  return ranks.getGroups(SmallVector<StringAttr>(axes.getAsRange<StringAttr>()),
                         cast<ValueType>(input.getType()));
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

template <typename OpT> void ShardedStep::evaluateSum(OpT op) {
  PerRank results = values[op.getInput()];
  PerRank addends = travel(calculator, results, getReduceDtype(op));
  for (const auto &group : getGroups(op.getAxes(), op.getInput())) {
    auto arrays = llvm::map_to_vector(
        group, [&](int64_t rank) { return &addends[rank]; });
    Array sum = sumInOrder(calculator, *results[group.front()].format, arrays);
    for (auto [i, rank] : llvm::enumerate(group))
      results[rank] = std::is_same_v<OpT, ReduceScatterOp>
                          ? sum.slice(getSlice(sum.size(), i, group.size()))
                          : sum;
  }
  values[op.getOutput()] = std::move(results);
}

PerRank ShardedStep::gather(Value input, ArrayRef<StringAttr> axes) {
  PerRank results = values[input];
  const PerRank &slices = values[input];
  for (const auto &group :
       ranks.getGroups(axes, cast<ValueType>(input.getType()))) {
    Array whole = slices[group.front()];
    for (int64_t rank : ArrayRef(group).drop_front())
      llvm::append_range(whole.elements, slices[rank].elements);
    for (int64_t rank : group)
      results[rank] = whole;
  }
  return results;
}

/// Callers read the whole parameters: at stage 3 they unshard a unit first.
void ShardedStep::evaluateAssign(AssignOp op) {
  auto type = cast<ValueType>(op.getValue().getType());
  int64_t last = type.getShape().size() - 1;
  buckets[op.getBucket()].parameters =
      gather(op.getValue(), type.getAxesOfDim(last));
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

void ShardedStep::evaluateArrivals(ArrivalCountOp op) {
  auto count = [&](int64_t rank) -> double {
    return window->getBackwards(rank);
  };
  defineScalar(op.getBackwards(),
               [&](int64_t rank) { return Number{count(rank), 0}; });
  defineScalar(op.getSquared(), [&](int64_t rank) {
    return Number{count(rank) * count(rank), 0};
  });
  defineScalar(op.getMissing(), [&](int64_t rank) {
    return Number{static_cast<double>(window->getMissing(rank)), 0};
  });
}

void ShardedStep::evaluateDelivered(DeliveredCountOp op) {
  for (auto [parameter, count] : llvm::zip_equal(
           op.getParameters().getAsRange<FlatSymbolRefAttr>(), op.getCounts()))
    defineScalar(count, [&, name = parameter.getValue()](int64_t rank) {
      auto delivered = window->getDelivered(rank, name);
      return Number{static_cast<double>(delivered), 0};
    });
}

void ShardedStep::evaluateCountReplicatedOnce(CountReplicatedOnceOp op) {
  auto type = cast<ValueType>(op.getInput().getType());
  defineScalar(op.getOutput(), [&](int64_t rank) {
    bool isFirst =
        llvm::all_of(op.getAxes().getAsRange<StringAttr>(), [&](auto axis) {
          SmallVector<int64_t> stages = type.getCoordinates(axis);
          return ranks.getCoordinate(rank, axis) ==
                 (stages.empty() ? 0 : stages.front());
        });
    return isFirst ? getScalar(op.getInput(), rank) : Number{};
  });
}

Number ShardedStep::evaluateOutcome(OutcomeOp op, int64_t rank) {
  auto number = [](Outcome outcome) { return Number{double(outcome), 0}; };
  if (op.getBackwards()) {
    double sum = getScalar(op.getBackwards(), rank).value;
    // n * sum(a^2) = (sum a)^2 exactly if all ranks have the same count a.
    if (op.getRanks() * getScalar(op.getSquared(), rank).value != sum * sum)
      return number(Outcome::refused_unequal_backwards);
  }
  if (getScalar(op.getMissing(), rank).value != 0)
    return number(Outcome::refused_missing_gradient);
  if (op.getTokens() && !isCount(getScalar(op.getTokens(), rank)))
    return number(Outcome::refused_no_tokens);
  bool isFinite = llvm::all_of(op.getSums(), [&](Value each) {
    return std::isfinite(getScalar(each, rank).value);
  });
  return number(isFinite ? Outcome::applied
                         : getNonfiniteOutcome(op.getNonfinite()));
}

FailureOr<Outcome> ShardedStep::finish() {
  for (auto op : step.getBody().getOps<OutcomeOp>()) {
    double outcome = getScalar(op.getOutcome(), 0).value;
    for (int64_t rank = 1; rank < ranks.size(); ++rank)
      if (getScalar(op.getOutcome(), rank).value != outcome)
        return op.emitError()
               << "ranks 0 and " << rank << " disagree, " << outcome << " and "
               << getScalar(op.getOutcome(), rank).value;
    return Outcome(static_cast<int>(outcome));
  }
  return Outcome::applied;
}

//===----------------------------------------------------------------------===//
// Update
//===----------------------------------------------------------------------===//

void ShardedStep::evaluatePrepare(PrepareOp op) {
  Optimizer &optimizer = *optimizers[op.getOptimizer()];
  std::vector<std::vector<Number>> scalars;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    auto hyper = llvm::map_to_vector(
        op.getHyper(), [&](Value value) { return getScalar(value, rank); });
    bool applied = getScalar(op.getOutcome(), rank).value == 0;
    scalars.push_back(optimizer.prepare(
        calculator, hyper, counters[op.getGroup()][rank], applied));
  }
  for (auto [i, result] : llvm::enumerate(op.getScalars()))
    defineScalar(result, [&, i = i](int64_t rank) { return scalars[rank][i]; });
}

void ShardedStep::evaluateUpdate(UpdateBucketOp op) {
  BucketState &bucket = buckets[op.getBucket()];
  const Format &storage = *bucket.parameters[0].format;
  size_t width = optimizers[op.getOptimizer()]->getOp().getNumScalars();
  PerRank results;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    Range owned = bucket.owned[rank];
    Array &whole = bucket.parameters[rank];
    if (!bucket.isOn[rank]) {
      results.push_back(whole.slice(owned));
      continue;
    }
    Array master =
        bucket.master.empty() ? whole.slice(owned) : bucket.master[rank];
    SmallVector<Array *> states;
    for (PerRank &slices : bucket.states)
      states.push_back(&slices[rank]);
    std::vector<Range> skipped;
    for (auto [i, row] : llvm::enumerate(op.getRowOf())) {
      // The pad behind a parameter is updated like it.
      int64_t begin = bucket.op.getOffsets()[i];
      int64_t end = begin + bucket.op.getExtents()[i];
      Range part = {std::max(begin, owned.begin) - owned.begin,
                    std::min(end, owned.end) - owned.begin};
      if (getScalar(op.getOutcome(row), rank).value != 0) {
        skipped.push_back(part);
        continue;
      }
      auto scalars = llvm::map_to_vector(
          op.getRows().slice(row * width, width),
          [&](Value value) { return getScalar(value, rank); });
      bucket.optimizer->update(calculator, part,
                               {values[op.getGradient()][rank], master, states},
                               scalars);
    }
    Array result = convert(calculator, storage, master);
    for (Range part : skipped)
      for (int64_t i = part.begin; i < part.end; ++i)
        result[i] = whole[owned.begin + i];
    results.push_back(result);
    if (bucket.master.empty())
      llvm::copy(master.elements, whole.elements.begin() + owned.begin);
    else
      bucket.master[rank] = master;
  }
  values[op.getParameters()] = std::move(results);
}

LogicalResult ShardedStep::evaluateOwn(Operation &op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    evaluateSum(reduce);
  } else if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    evaluateSum(scatter);
  } else if (auto all = dyn_cast<AllGatherOp>(op)) {
    values[all.getOutput()] =
        gather(all.getInput(),
               SmallVector<StringAttr>(all.getAxes().getAsRange<StringAttr>()));
  } else if (auto transfer = dyn_cast<TransferOp>(op)) {
    // A transfer does not change the value.
    define(transfer.getOutput(),
           [&](int64_t rank) { return values[transfer.getInput()][rank]; });
  } else if (auto arrivals = dyn_cast<ArrivalCountOp>(op)) {
    evaluateArrivals(arrivals);
  } else if (auto delivered = dyn_cast<DeliveredCountOp>(op)) {
    evaluateDelivered(delivered);
  } else if (auto group = dyn_cast<GroupOutcomeOp>(op)) {
    defineScalar(group.getOwn(), [&](int64_t rank) {
      Number outcome = getScalar(group.getOutcome(), rank);
      bool isAbsent = getScalar(group.getDelivered(), rank).value == 0;
      return outcome.value == 0 && isAbsent ? Number{1.0, 0} : outcome;
    });
  } else if (auto once = dyn_cast<CountReplicatedOnceOp>(op)) {
    evaluateCountReplicatedOnce(once);
  } else if (auto stack = dyn_cast<StackOp>(op)) {
    define(stack.getVector(), [&](int64_t rank) {
      Array vector(kF64, 0);
      for (Value scalar : stack.getScalars())
        vector.elements.push_back(getScalar(scalar, rank));
      return vector;
    });
  } else if (auto unstack = dyn_cast<UnstackOp>(op)) {
    for (auto [i, scalar] : llvm::enumerate(unstack.getScalars()))
      defineScalar(scalar, [&, i = i](int64_t rank) {
        return values[unstack.getVector()][rank][i];
      });
  } else if (auto outcome = dyn_cast<OutcomeOp>(op)) {
    defineScalar(outcome.getOutcome(),
                 [&](int64_t rank) { return evaluateOutcome(outcome, rank); });
  } else if (auto read = dyn_cast<ReadScaleOp>(op)) {
    defineScalar(read.getValue(), [&](int64_t rank) {
      return getRule(read.getLossScaleAttr()).read(calculator, rank);
    });
  } else if (auto advance = dyn_cast<AdvanceOp>(op)) {
    Counters &rule = getRule(advance.getRuleSymbol());
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      rule.advance(calculator, rank,
                   Outcome(static_cast<int>(
                       getScalar(advance.getOutcome(), rank).value)));
  } else if (auto prepare = dyn_cast<PrepareOp>(op)) {
    evaluatePrepare(prepare);
  } else if (auto update = dyn_cast<UpdateBucketOp>(op)) {
    evaluateUpdate(update);
  } else if (auto assign = dyn_cast<AssignOp>(op)) {
    evaluateAssign(assign);
  } else {
    return op.emitOpError()
           << "is not supported by the interpreter in the sharded phase";
  }
  return success();
}
