//===- ScheduledInterpreter.cpp - Runs a scheduled program ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/ScheduledInterpreter.h"

#include "dialect/reference/RankMemory.h"

#include <set>

using namespace mlir;
using namespace zero;
using zrt::Event;

namespace {
/// Where a parameter is in its bucket.
struct Place {
  ParameterOp op;
  BucketOp bucket;
  zrt::ArrivalsOp arrivals;
  int64_t offset = 0;
  int64_t extent = 0;
};

/// What a handler is told: the parameter that arrives on one rank, or nothing.
struct Arrival {
  int64_t rank = -1;
  StringRef name;
  ArrayRef<double> gradient;
};

class ScheduledInterpreter : public Interpreter {
public:
  explicit ScheduledInterpreter(zrt::ProgramOp program) : program(program) {}

  LogicalResult initialize();
  int64_t getNumRanks() const override { return numRanks; }
  LogicalResult bindParameter(StringRef name, ArrayRef<double> values) override;
  FailureOr<StepResult> apply(ArrayRef<RankInputs> ranks) override;
  std::vector<Number> getParameter(int64_t rank, StringRef name) override;
  std::vector<Number> getState(StringRef role, StringRef name) override;

private:
  /// Moves the protocol on |event| and runs its handlers, op by op on all
  /// ranks.
  LogicalResult fire(Event event, const Arrival &arrival = {});
  LogicalResult run(Operation *op, const Arrival &arrival);
  void pack(zrt::PackOp op, const Arrival &arrival);
  void fillMissing(BucketOp bucket);
  void reduceScatter(FlatSymbolRefAttr source, FlatSymbolRefAttr target,
                     bool adds);
  void allReduce(FlatSymbolRefAttr buffer);
  void allGather(FlatSymbolRefAttr buffer);
  /// The sum of element |i| over the ranks, in their order.
  double sumElement(FlatSymbolRefAttr buffer, int64_t i, Type type);
  Type typeOf(FlatSymbolRefAttr buffer) {
    return zrt::lookup<zrt::BufferOp>(symbols, program, buffer)
        .getValueType()
        .getElementType();
  }

  zrt::ProgramOp program;
  SymbolTableCollection symbols;
  int64_t numRanks = 1;
  std::vector<RankMemory> memory;
  llvm::StringMap<Place> places;
  llvm::DenseMap<Operation *, ScalarBody> bodies;
  std::string state;
  // Of the present step.
  int64_t numBackwards = 0;
  std::vector<int64_t> numMissing;
  std::vector<std::set<std::string>> arrived; // in this backward, by rank
};
} // namespace

LogicalResult ScheduledInterpreter::initialize() {
  auto mesh = zrt::lookup<MeshOp>(symbols, program, program.getMeshAttr());
  numRanks = mesh.getNumRanks();
  for (int64_t r = 0; r < numRanks; ++r)
    memory.emplace_back(program, r, numRanks);
  arrived.resize(numRanks);
  for (auto arrivals : program.getOps<zrt::ArrivalsOp>()) {
    auto bucket =
        zrt::lookup<BucketOp>(symbols, program, arrivals.getBucketAttr());
    for (auto [i, member] :
         llvm::enumerate(bucket.getMembers().getAsRange<FlatSymbolRefAttr>()))
      places[member.getValue()] = {
          zrt::lookup<ParameterOp>(symbols, program, member), bucket, arrivals,
          bucket.getOffsets()[i], bucket.getExtents()[i]};
  }
  for (Operation &op : program.getBody().getOps()) {
    if (!isa<zrt::KernelOp, zrt::ScalarsOp>(op))
      continue;
    FailureOr<ScalarBody> body = ScalarBody::create(
        op.getRegion(0).front(), /*allowSlots=*/isa<zrt::ScalarsOp>(op));
    if (failed(body))
      return failure();
    bodies[&op] = *body;
  }
  auto transitions = program.getOps<zrt::TransitionOp>();
  if (transitions.empty())
    return program.emitError() << "has no protocol";
  state = (*transitions.begin()).getState().str();
  return success();
}

LogicalResult ScheduledInterpreter::bindParameter(StringRef name,
                                                  ArrayRef<double> values) {
  auto it = places.find(name);
  if (it == places.end() ||
      it->second.op.getNumElements() != static_cast<int64_t>(values.size()))
    return program.emitError() << "parameter '" << name << "' with "
                               << values.size() << " elements does not exist";
  Place &place = it->second;
  for (RankMemory &rank : memory) {
    for (FlatSymbolRefAttr symbol :
         {place.arrivals.getParametersAttr(), place.arrivals.getMasterAttr()}) {
      if (!symbol)
        continue;
      std::vector<double> &buffer = rank.getBuffer(symbol);
      int64_t elements = place.bucket.getNumElements();
      bool isWhole = static_cast<int64_t>(buffer.size()) == elements;
      auto [first, last] = isWhole ? std::pair<int64_t, int64_t>(0, elements)
                                   : rank.getSlice(elements);
      for (auto [i, value] : llvm::enumerate(values)) {
        int64_t at = place.offset + i;
        if (at >= first && at < last)
          buffer[at - first] = roundTo(value, place.op.getDtype());
      }
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void ScheduledInterpreter::pack(zrt::PackOp op, const Arrival &arrival) {
  Place &place = places[arrival.name];
  RankMemory &rank = memory[arrival.rank];
  FlatSymbolRefAttr name = op.getAccumulate() ? place.arrivals.getAddAttr()
                                              : place.arrivals.getStoreAttr();
  auto kernel = zrt::lookup<zrt::KernelOp>(symbols, program, name);
  FlatSymbolRefAttr buffer = place.arrivals.getGradientAttr();
  rank.pack(kernel, bodies[kernel], arrival.gradient, buffer, place.offset);
  if (op.getAccumulate())
    return;
  // Whoever writes a parameter zeroes its pad.
  auto begin = rank.getBuffer(buffer).begin() + place.offset;
  std::fill(begin + arrival.gradient.size(), begin + place.extent, 0.0);
}

void ScheduledInterpreter::fillMissing(BucketOp bucket) {
  for (RankMemory &rank : memory)
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>()) {
      if (arrived[rank.getRank()].count(member.getValue().str()))
        continue;
      Place &place = places[member.getValue()];
      auto begin = rank.getBuffer(place.arrivals.getGradientAttr()).begin() +
                   place.offset;
      std::fill(begin, begin + place.extent, 0.0);
    }
}

double ScheduledInterpreter::sumElement(FlatSymbolRefAttr buffer, int64_t i,
                                        Type type) {
  // 16-bit types are added in f32 and rounded once.
  Type wide = type.getIntOrFloatBitWidth() < 32
                  ? Type(Float32Type::get(type.getContext()))
                  : type;
  double sum = memory[0].getBuffer(buffer)[i];
  for (RankMemory &rank : llvm::drop_begin(memory))
    sum = roundTo(sum + rank.getBuffer(buffer)[i], wide);
  return roundTo(sum, type);
}

void ScheduledInterpreter::reduceScatter(FlatSymbolRefAttr source,
                                         FlatSymbolRefAttr target, bool adds) {
  Type type = typeOf(source);
  for (RankMemory &rank : memory) {
    auto [first, last] = rank.getSlice(memory[0].getBuffer(source).size());
    for (int64_t i = first; i < last; ++i) {
      double sum = sumElement(source, i, type);
      double &element = rank.getBuffer(target)[i - first];
      element = adds ? roundTo(element + sum, type) : sum;
    }
  }
}

void ScheduledInterpreter::allReduce(FlatSymbolRefAttr buffer) {
  Type type = typeOf(buffer);
  std::vector<double> sums(memory[0].getBuffer(buffer).size());
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = sumElement(buffer, i, type);
  for (RankMemory &rank : memory)
    rank.getBuffer(buffer) = sums;
}

void ScheduledInterpreter::allGather(FlatSymbolRefAttr buffer) {
  std::vector<double> whole(memory[0].getBuffer(buffer).size());
  for (RankMemory &rank : memory) {
    auto [first, last] = rank.getSlice(whole.size());
    std::copy(rank.getBuffer(buffer).begin() + first,
              rank.getBuffer(buffer).begin() + last, whole.begin() + first);
  }
  for (RankMemory &rank : memory)
    rank.getBuffer(buffer) = whole;
}

LogicalResult ScheduledInterpreter::run(Operation *op, const Arrival &arrival) {
  if (auto packOp = dyn_cast<zrt::PackOp>(op)) {
    pack(packOp, arrival);
  } else if (auto fill = dyn_cast<zrt::FillMissingOp>(op)) {
    fillMissing(zrt::lookup<BucketOp>(symbols, program, fill.getBucketAttr()));
  } else if (auto launch = dyn_cast<zrt::LaunchOp>(op)) {
    auto kernel =
        zrt::lookup<zrt::KernelOp>(symbols, program, launch.getKernelAttr());
    auto segments = zrt::lookup<zrt::SegmentsOp>(symbols, program,
                                                 launch.getSegmentsAttr());
    for (RankMemory &rank : memory)
      rank.launch(launch, kernel, segments, bodies[kernel]);
  } else if (auto scalars = dyn_cast<zrt::RunScalarsOp>(op)) {
    auto body =
        zrt::lookup<zrt::ScalarsOp>(symbols, program, scalars.getProgramAttr());
    for (RankMemory &rank : memory)
      rank.runScalars(bodies[body]);
  } else if (auto count = dyn_cast<zrt::CountArrivalsOp>(op)) {
    for (RankMemory &rank : memory)
      rank.getSlots(count.getSlotsAttr()) = {
          static_cast<double>(numBackwards),
          static_cast<double>(numMissing[rank.getRank()])};
  } else if (auto reduce = dyn_cast<zrt::AllReduceOp>(op)) {
    allReduce(reduce.getBufferAttr());
  } else if (auto scatter = dyn_cast<zrt::ReduceScatterOp>(op)) {
    reduceScatter(scatter.getSourceAttr(), scatter.getTargetAttr(), false);
  } else if (auto scatterAdd = dyn_cast<zrt::ReduceScatterAddOp>(op)) {
    reduceScatter(scatterAdd.getSourceAttr(), scatterAdd.getTargetAttr(), true);
  } else if (auto gather = dyn_cast<zrt::AllGatherOp>(op)) {
    allGather(gather.getBufferAttr());
  } else if (auto reduceSlots = dyn_cast<zrt::AllReduceScalarsOp>(op)) {
    std::vector<double> sums = memory[0].getSlots(reduceSlots.getSlotsAttr());
    for (RankMemory &rank : llvm::drop_begin(memory))
      for (auto [sum, addend] :
           llvm::zip_equal(sums, rank.getSlots(reduceSlots.getSlotsAttr())))
        sum += addend;
    for (RankMemory &rank : memory)
      rank.getSlots(reduceSlots.getSlotsAttr()) = sums;
  } else if (!isa<zrt::RetagOp, zrt::SettleOp>(op)) {
    // Retagging moves nothing, and the verdict is read where the step ends.
    return op->emitOpError() << "cannot be interpreted yet";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The protocol
//===----------------------------------------------------------------------===//

LogicalResult ScheduledInterpreter::fire(Event event, const Arrival &arrival) {
  for (auto transition : program.getOps<zrt::TransitionOp>()) {
    if (transition.getState() != state || transition.getEvent() != event)
      continue;
    for (auto symbol :
         transition.getHandlers().getAsRange<FlatSymbolRefAttr>()) {
      auto handler = zrt::lookup<zrt::HandlerOp>(symbols, program, symbol);
      for (Operation &op : handler.getBody().getOps())
        if (failed(run(&op, arrival)))
          return failure();
    }
    state = transition.getNext().str();
    return success();
  }
  return program.emitError() << zrt::stringifyEvent(event)
                             << " is not allowed in state '" << state << "'";
}

FailureOr<StepResult> ScheduledInterpreter::apply(ArrayRef<RankInputs> ranks) {
  if (static_cast<int64_t>(ranks.size()) != numRanks)
    return program.emitError()
           << "the mesh has " << numRanks << " ranks, got " << ranks.size();
  numBackwards = ranks[0].backwards.size();
  numMissing.assign(numRanks, 0);
  for (const RankInputs &rank : ranks) {
    if (static_cast<int64_t>(rank.backwards.size()) != numBackwards)
      return program.emitError()
             << "ranks with different numbers of backwards cannot be "
                "interpreted yet";
    if (rank.inputs.size() != program.getInputs().size())
      return program.emitError()
             << "the step has " << program.getInputs().size() << " inputs, got "
             << rank.inputs.size();
  }
  for (auto [r, rank] : llvm::enumerate(ranks))
    for (auto [i, input] :
         llvm::enumerate(program.getInputs().getAsRange<FlatSymbolRefAttr>()))
      memory[r].getSlots(input)[0] = rank.inputs[i];
  if (numBackwards == 0)
    return program.emitError() << "apply without a backward";

  for (int64_t k = 0; k < numBackwards; ++k) {
    for (auto &names : arrived)
      names.clear();
    if (failed(fire(Event::begin)))
      return failure();
    for (auto [r, rank] : llvm::enumerate(ranks))
      for (auto &gradient : rank.backwards[k]) {
        auto it = places.find(gradient.getKey());
        if (it == places.end() ||
            it->second.op.getNumElements() !=
                static_cast<int64_t>(gradient.getValue().size()))
          return program.emitError() << "gradient of '" << gradient.getKey()
                                     << "' has no parameter of its size";
        if (failed(
                fire(Event::arrive, {static_cast<int64_t>(r), gradient.getKey(),
                                     gradient.getValue()})))
          return failure();
        arrived[r].insert(gradient.getKey().str());
      }
    for (auto &entry : places)
      for (int64_t r = 0; r < numRanks; ++r)
        if (!entry.getValue().op.getOptional() &&
            !arrived[r].count(entry.getKey().str()))
          ++numMissing[r];
    if (failed(fire(k + 1 < numBackwards ? Event::accumulate : Event::apply)))
      return failure();
  }

  StepResult result;
  result.backwards = numBackwards;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto settle : handler.getBody().getOps<zrt::SettleOp>())
      result.verdict =
          static_cast<int>(memory[0].getSlots(settle.getVerdictAttr())[0]);
  for (auto symbol : program.getResults().getAsRange<FlatSymbolRefAttr>())
    result.values.push_back(memory[0].getSlots(symbol)[0]);
  return result;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::vector<Number> ScheduledInterpreter::getParameter(int64_t rank,
                                                       StringRef name) {
  auto it = places.find(name);
  if (it == places.end())
    return {};
  Place &place = it->second;
  std::vector<double> &buffer =
      memory[rank].getBuffer(place.arrivals.getParametersAttr());
  std::vector<Number> numbers;
  for (int64_t i = 0; i < place.op.getNumElements(); ++i)
    numbers.push_back({buffer[place.offset + i], 0});
  return numbers;
}

std::vector<Number> ScheduledInterpreter::getState(StringRef role,
                                                   StringRef name) {
  auto it = places.find(name);
  if (it == places.end())
    return {};
  Place &place = it->second;
  for (auto stateOp : program.getOps<zrt::StateOp>()) {
    if (stateOp.getRole() != role ||
        stateOp.getBucketAttr() != place.arrivals.getBucketAttr())
      continue;
    int64_t elements = place.bucket.getNumElements();
    std::vector<Number> numbers;
    for (int64_t i = 0; i < place.op.getNumElements(); ++i) {
      int64_t at = place.offset + i;
      for (RankMemory &rank : memory) {
        std::vector<double> &buffer = rank.getBuffer(stateOp.getBufferAttr());
        bool isWhole = static_cast<int64_t>(buffer.size()) == elements;
        auto [first, last] = isWhole ? std::pair<int64_t, int64_t>(0, elements)
                                     : rank.getSlice(elements);
        if (at < first || at >= last)
          continue;
        numbers.push_back({buffer[at - first], 0});
        break;
      }
    }
    return numbers;
  }
  return {};
}

FailureOr<std::unique_ptr<Interpreter>>
zero::createScheduledInterpreter(zrt::ProgramOp program) {
  auto interpreter = std::make_unique<ScheduledInterpreter>(program);
  if (failed(interpreter->initialize()))
    return failure();
  return std::unique_ptr<Interpreter>(std::move(interpreter));
}
