//===- ProgramInterpreter.cpp - Runs a zrt.program: the protocol ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ProgramInterpreter.h"

#include "dialect/interpret/StreamOrder.h"

using namespace mlir;
using namespace zero;
using zrt::Event;

static std::string getKey(StringRef state, Event event) {
  return (state + "/" + zrt::stringifyEvent(event)).str();
}

//===----------------------------------------------------------------------===//
// What is known before the first step
//===----------------------------------------------------------------------===//

ProgramInterpreter::ProgramInterpreter(zrt::ProgramOp op, Arithmetic arithmetic)
    : program(op), calculator(arithmetic) {}

ProgramInterpreter::~ProgramInterpreter() = default;

void ProgramInterpreter::setOrder(uint64_t newSeed) {
  seed = newSeed;
  order = seed ? std::make_unique<StreamOrder>(*this, seed) : nullptr;
}

LogicalResult ProgramInterpreter::initialize() {
  auto module = program.getOp()->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(program.getOp().getMeshAttr());
  if (!mesh)
    return program.getOp().emitOpError() << "is on no mesh of this module";
  ranks = Ranks(mesh);
  initializeProtocol();
  initializePlaces();
  if (failed(initializeUnits()) || failed(initializeParameters()) ||
      failed(program.initialize(ranks)))
    return failure();
  fillFrozen();
  return success();
}

LogicalResult ProgramInterpreter::initializeParameters() {
  auto module = program.getOp()->getParentOfType<ModuleOp>();
  llvm::StringMap<Parameter> placed;
  for (auto arrivals : program.getOp().getOps<zrt::BucketTableOp>()) {
    auto bucket = module.lookupSymbol<BucketOp>(arrivals.getBucketAttr());
    for (auto [i, member] :
         llvm::enumerate(bucket.getMembers().getAsRange<FlatSymbolRefAttr>())) {
      auto op = module.lookupSymbol<ParameterOp>(member);
      int64_t begin = bucket.getOffsets()[i];
      placed[op.getSymName()] = {op,
                                 bucket,
                                 arrivals,
                                 {begin, begin + getNumHeld(bucket, op)},
                                 begin + bucket.getExtents()[i]};
    }
  }
  for (auto op : module.getOps<ParameterOp>()) {
    auto it = placed.find(op.getSymName());
    if (it == placed.end())
      continue;
    indices[op.getSymName()] = parameters.size();
    parameters.push_back(it->second);
    expected.push_back({op.getSymName().str(), it->second.range.size(),
                        op.getOptional(), ranks.getHolders(op.getValueType())});
  }
  return success();
}

void ProgramInterpreter::initializePlaces() {
  SymbolTableCollection symbols;
  auto add = [&](Operation *op) {
    if (ValueType type = zrt::getPlace(symbols, op);
        type && !type.getPresent().empty())
      places[op] = type;
  };
  for (auto handler : program.getOp().getOps<zrt::HandlerOp>())
    llvm::for_each(handler.getBody().front(),
                   [&](Operation &call) { add(&call); });
  for (auto unit : program.getOp().getOps<zrt::UnitTableOp>())
    add(unit);
}

void ProgramInterpreter::initializeProtocol() {
  states.assign(ranks.size(), {});
  for (auto op : program.getOp().getOps<zrt::TransitionOp>()) {
    // The first transition's state is the initial one.
    if (transitions.empty())
      for (RankState &state : states)
        state.protocol = op.getState().str();
    transitions[getKey(op.getState(), op.getEvent())] = op;
  }
}

//===----------------------------------------------------------------------===//
// The protocol
//===----------------------------------------------------------------------===//

void ProgramInterpreter::planHandler(int64_t rank, FlatSymbolRefAttr handler,
                                     const Parameter *arriving,
                                     zrt::UnitTableOp unit) {
  for (Operation &call : program.getHandler(handler).getBody().front())
    plans[rank].push_back({Action::Kind::call, &call, {}, arriving, unit});
}

LogicalResult ProgramInterpreter::planEvent(int64_t rank, Event event,
                                            const Parameter *arriving) {
  RankState &state = states[rank];
  auto transition = transitions.lookup(getKey(state.protocol, event));
  if (!transition)
    return program.getOp().emitError()
           << zrt::stringifyEvent(event) << " is not allowed in state '"
           << state.protocol << "'";
  for (auto handler : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    planHandler(rank, handler, arriving);
  state.protocol = transition.getNext().str();
  return success();
}

void ProgramInterpreter::closeBackward(int64_t rank) {
  RankState &state = states[rank];
  for (const ExpectedGradient &gradient : expected)
    state.missing += gradient.arrivesOn[rank] && !gradient.optional &&
                     !state.arrived.contains(gradient.name);
}

LogicalResult ProgramInterpreter::planArrival(int64_t rank, int64_t backward,
                                              const Parameter &parameter) {
  StringRef name = expected[&parameter - parameters.data()].name;
  if (!window->find(rank, backward, name))
    return success();
  // A view is written where it is lent.
  bool isWritten = !isLent(parameter);
  for (int64_t i = 0; i < getNumPieces(backward, parameter); ++i) {
    if (isWritten)
      add(rank, Action::Kind::write, &parameter);
    if (failed(planEvent(rank, Event::arrive, &parameter)))
      return failure();
    if (isWritten)
      add(rank, Action::Kind::write, &parameter);
    note(rank, [&state = states[rank], name] {
      if (state.arrived[name]++ == 0)
        ++state.delivered[name];
    });
  }
  return success();
}

/// A gradient with any number of uses arrives in one, two or three pieces.
int64_t ProgramInterpreter::getNumPieces(int64_t backward,
                                         const Parameter &parameter) {
  if (isLent(parameter))
    return 1;
  ParameterOp op = parameter.op;
  constexpr int64_t kMostPieces = 3;
  return op.isUsedAnyTimes()
             ? 1 + (backward + (&parameter - parameters.data())) % kMostPieces
             : op.getUses();
}

/// The caller can write only gradients of the type in which they are kept.
bool ProgramInterpreter::isLent(const Parameter &parameter) {
  BucketOp bucket = parameter.bucket;
  zrt::BucketTableOp table = parameter.table;
  zrt::BufferOp gradient = program.getBuffer(table.getGradientAttr()).op;
  return usesViews() &&
         bucket.getArrivalType() == gradient.getValueType().getElementType();
}

void ProgramInterpreter::planLend(int64_t rank, int64_t backward,
                                  const Parameter &parameter) {
  StringRef name = expected[&parameter - parameters.data()].name;
  if (isLent(parameter) && window->find(rank, backward, name))
    add(rank, Action::Kind::lend, &parameter);
}

/// Gradients arrive bucket by bucket. Other orders change the time at which a
/// bucket is closed, and not its contents.
LogicalResult ProgramInterpreter::planSequence(int64_t rank, int64_t backward,
                                               zrt::TransitionOp arrive) {
  auto sequence =
      program.getOp().lookupSymbol<zrt::SequenceOp>(arrive.getSequenceAttr());
  // A gradient that is stored must not depend on the old contents.
  bool stores = true;
  for (auto symbol : arrive.getHandlers().getAsRange<FlatSymbolRefAttr>())
    for (Operation &call : program.getHandler(symbol).getBody().front())
      if (auto pack = dyn_cast<zrt::PackOp>(call))
        stores &= !pack.getAccumulate();
  auto buckets =
      llvm::to_vector(sequence.getBuckets().getAsRange<FlatSymbolRefAttr>());
  auto handlers =
      llvm::to_vector(sequence.getHandlers().getAsRange<FlatSymbolRefAttr>());
  auto getMembers = [&](size_t i) {
    return llvm::make_filter_range(parameters, [&, i](const Parameter &p) {
      BucketOp own = p.bucket;
      return FlatSymbolRefAttr::get(own) == buckets[i];
    });
  };
  auto arriveIn = [&](size_t i) {
    bool isFirst = true;
    for (const Parameter &parameter : getMembers(i)) {
      if (std::exchange(isFirst, false) && stores)
        note(
            rank,
            [this, rank, &parameter] {
              zrt::BucketTableOp table = parameter.table;
              program.poisonMemoryOf(table.getGradientAttr(), rank);
            },
            Action::Kind::poison);
      if (failed(planArrival(rank, backward, parameter)))
        return failure();
    }
    return success();
  };
  auto open = [&](size_t i) {
    for (const Parameter &parameter : getMembers(i))
      planLend(rank, backward, parameter);
    return arrivesEarly() ? arriveIn(i) : success();
  };
  // A bucket opens when the one before it in the same memory is closed.
  llvm::DenseMap<Attribute, Attribute> memoryOf;
  for (auto table : program.getOp().getOps<zrt::BucketTableOp>()) {
    zrt::BufferOp gradient = program.getBuffer(table.getGradientAttr()).op;
    memoryOf[table.getBucketAttr()] = gradient.getMemory();
  }
  llvm::DenseMap<Attribute, size_t> last;
  SmallVector<size_t> next(buckets.size(), buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    auto [it, isFirst] = last.insert({memoryOf[buckets[i]], i});
    if (isFirst && failed(open(i)))
      return failure();
    if (!isFirst)
      next[std::exchange(it->second, i)] = i;
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    zrt::UnitTableOp unit = getUnit(buckets[i]);
    zrt::UnitTableOp later =
        i + 1 < buckets.size() ? getUnit(buckets[i + 1]) : nullptr;
    if (failed(planUse(rank, unit)) || failed(planPrefetch(rank, later)))
      return failure();
    if (!arrivesEarly() && failed(arriveIn(i)))
      return failure();
    if (closes(rank, buckets[i]))
      planHandler(rank, handlers[i]);
    if (unit != later && failed(planReshard(rank, unit)))
      return failure();
    if (next[i] < buckets.size() && failed(open(next[i])))
      return failure();
  }
  return success();
}

/// Ranks close buckets of their own pipeline stage. In program order all ranks
/// go through the handlers together, and calls choose their ranks.
bool ProgramInterpreter::closes(int64_t rank, FlatSymbolRefAttr symbol) {
  auto module = program.getOp()->getParentOfType<ModuleOp>();
  auto bucket = module.lookupSymbol<BucketOp>(symbol);
  return !order || ranks.isOn(bucket.getValueType(), rank);
}

/// Whether |action| is a call for which ranks meet.
static bool meets(const Action &action) {
  return isa_and_present<zrt::Collective>(action.call);
}

LogicalResult ProgramInterpreter::planBackward(int64_t rank, int64_t backward) {
  RankState &state = states[rank];
  size_t before = plans[rank].size();
  if (failed(planUnits(rank, /*isBackward=*/false)))
    return failure();
  note(rank, [&state, backward] {
    state.backward = backward;
    state.arrived.clear();
  });
  bool isHinted =
      window->isBegunAsLast(rank, backward) &&
      transitions.contains(getKey(state.protocol, Event::begin_last));
  if (failed(planEvent(rank, isHinted ? Event::begin_last : Event::begin)))
    return failure();
  auto arrive = transitions.lookup(getKey(state.protocol, Event::arrive));
  if (arrive && arrive.getSequenceAttr()) {
    if (failed(planSequence(rank, backward, arrive)))
      return failure();
  } else {
    if (failed(planUnits(rank, /*isBackward=*/true)))
      return failure();
    for (const Parameter &parameter : parameters)
      planLend(rank, backward, parameter);
    for (const Parameter &parameter : parameters)
      if (failed(planArrival(rank, backward, parameter)))
        return failure();
  }
  note(rank, [this, rank] { closeBackward(rank); });
  // A rank's last backward pass may be closed by apply.
  if ((backward + 1 < window->getBackwards(rank) || window->closesLast(rank)) &&
      failed(planEvent(rank, Event::accumulate)))
    return failure();
  // The caller gathers units in each of them.
  bool gathers = !program.getOp().getOps<zrt::UnitTableOp>().empty();
  meetsInBackwards |=
      gathers ||
      (!isHinted && llvm::any_of(llvm::drop_begin(plans[rank], before), meets));
  return success();
}

LogicalResult ProgramInterpreter::plan(int64_t rank, Event end) {
  for (int64_t b = 0; b < window->getBackwards(rank); ++b)
    if (failed(planBackward(rank, b)))
      return failure();
  bool measures = window->measures(rank);
  if (measures || end == Event::apply)
    note(rank, [this, rank] {
      zrt::ProgramOp op = program.getOp();
      for (auto [symbol, value] :
           llvm::zip_equal(op.getInputs().getAsRange<FlatSymbolRefAttr>(),
                           window->getInputs(rank)))
        program.writeSlots(symbol, rank)[0] = {value, 0};
    });
  if (measures && failed(planEvent(rank, Event::measure)))
    return failure();
  if (end == Event::apply)
    add(rank, Action::Kind::apply, nullptr);
  if (failed(planEvent(rank, end)))
    return failure();
  if (end == Event::apply && readsParameters())
    for (auto [i, parameter] : llvm::enumerate(parameters))
      if (expected[i].arrivesOn[rank] && !parameter.isSharded() &&
          (i == 0 || parameters[i - 1].table != parameter.table))
        add(rank, Action::Kind::read, &parameter);
  return success();
}

/// Whether |a| and |b| are the same collective. They may be in different
/// handlers.
bool ProgramInterpreter::isSameCollective(Operation *a, Operation *b) {
  return a == b || (a && b && a->getName() == b->getName() &&
                    a->getAttrDictionary() == b->getAttrDictionary());
}

LogicalResult ProgramInterpreter::runSideBySide() {
  std::vector<size_t> cursors(plans.size(), 0);
  while (true) {
    for (size_t rank = 0; rank < plans.size(); ++rank)
      for (; cursors[rank] < plans[rank].size(); ++cursors[rank]) {
        const Action &action = plans[rank][cursors[rank]];
        if (meets(action))
          break;
        if (action.note)
          action.note();
        else if (action.call && failed(run(action, rank)))
          return failure();
      }
    // Every rank is at a collective, or done.
    auto getNext = [&](size_t rank) {
      return cursors[rank] < plans[rank].size()
                 ? plans[rank][cursors[rank]].call
                 : nullptr;
    };
    Operation *first = getNext(0);
    for (size_t rank = 1; rank < plans.size(); ++rank) {
      Operation *other = getNext(rank);
      if (isSameCollective(first, other))
        continue;
      auto describe = [](Operation *op) -> StringRef {
        return op ? op->getName().getStringRef() : "no collective";
      };
      return (first ? first : other)->emitOpError()
             << "would wait forever: rank 0 is at " << describe(first)
             << " and rank " << rank << " at " << describe(other)
             << (first && other ? ", which are not the same op" : "");
    }
    if (!first)
      return success();
    for (const auto &group :
         getGroups(first, cast<zrt::Collective>(first).getAxes()))
      if (failed(runCollective(first, group)))
        return failure();
    for (size_t &cursor : cursors)
      ++cursor;
  }
}

LogicalResult ProgramInterpreter::openWindow(ArrayRef<RankInputs> perRank) {
  zrt::ProgramOp op = program.getOp();
  FailureOr<Window> created = Window::create(
      op, ranks.size(), op.getInputs().size(), expected, perRank);
  if (failed(created))
    return failure();
  window = *created;
  plans.assign(ranks.size(), {});
  unsharded.assign(ranks.size(), {});
  meetsInBackwards = false;
  for (RankState &state : states) {
    state.missing = 0;
    state.delivered.clear();
    state.committed = false;
  }
  return success();
}

LogicalResult ProgramInterpreter::discard(ArrayRef<RankInputs> perRank) {
  if (failed(openWindow(perRank)))
    return failure();
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (failed(plan(rank, Event::discard)))
      return failure();
  if (isStuck())
    return program.getOp().emitError()
           << "ranks that wait for each other in each backward pass make "
              "different numbers of them";
  return runPlans();
}

LogicalResult ProgramInterpreter::runPlans() {
  if (hasFailed)
    return failure();
  if (!order)
    program.poisonGradients();
  LogicalResult result = order ? order->run(plans) : runSideBySide();
  return failure(hasFailed || failed(result));
}

FailureOr<StepResult> ProgramInterpreter::apply(ArrayRef<RankInputs> perRank) {
  if (failed(openWindow(perRank)))
    return failure();
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (failed(plan(rank, Event::apply)))
      return failure();
  if (isStuck()) {
    StepResult refused;
    refused.outcome = Outcome::refused_unequal_backwards;
    refused.backwards = window->getBackwards(0);
    refused.message = window->describe(refused.outcome);
    return refused;
  }
  if (failed(runPlans()))
    return failure();
  return collectResult();
}

FailureOr<StepResult> ProgramInterpreter::collectResult() {
  zrt::ProgramOp op = program.getOp();
  StepResult result;
  result.outcome = states[0].outcome;
  result.backwards = window->getBackwards(0);
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    if (!states[rank].committed)
      return op.emitError()
             << "apply ends on rank " << rank << " without zrt.commit";
    if (states[rank].outcome != result.outcome)
      return op.emitError()
             << "ranks 0 and " << rank << " disagree on the outcome, "
             << stringifyOutcome(result.outcome) << " and "
             << stringifyOutcome(states[rank].outcome);
  }
  for (const Number &number : states[0].results) {
    result.values.push_back(number.value);
    result.bounds.push_back(number.bound);
  }
  result.message = window->describe(result.outcome, op.getTokensInput());
  return result;
}
