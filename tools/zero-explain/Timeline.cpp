//===- Timeline.cpp - When a step does what -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Timeline.h"

#include "codegen/host/AbiNumbers.h"
#include "codegen/host/Traffic.h"
#include "dialect/zrt/CallDescription.h"
#include "tools/zero-explain/Liveness.h"

using namespace mlir;
using namespace zero;

namespace {
/// A bucket, and the gradients that arrive for it in a backward pass.
struct Arrivals {
  FlatSymbolRefAttr bucket;
  FlatSymbolRefAttr close; // a handler; null: the caller's `apply` reduces
  FlatSymbolRefAttr unit;  // null: none
  std::vector<int64_t> elements;
  int64_t bytesEach = 0; // of an element
};

struct Unit {
  FlatSymbolRefAttr symbol;
  zrt::HandlerOp unshard, reshard;
  int64_t elements = 0; // of its parameters
  int64_t frozen = 0;   // those that get no gradient
  bool isKept = false;  // from the forward to the backward pass
  bool isUnsharded = false;
  SmallVector<FlatSymbolRefAttr> ready; // events for which its user waits
};

class StepRun {
public:
  StepRun(const StageProgram &stage, const Machine &machine, double backward);

  Timeline run();

private:
  void readBuckets();
  void readUnits();

  /// What |event| does in the state of the protocol; null: nothing.
  zrt::TransitionOp find(zrt::Event event) const {
    return transitions.lookup({state, uint32_t(event)});
  }
  zrt::HandlerOp getHandler(Attribute symbol) const {
    return symbols.lookup<zrt::HandlerOp>(cast<FlatSymbolRefAttr>(symbol));
  }
  /// A record of an event, a wait for it, or one for the bucket of an arrival.
  struct Order {
    FlatSymbolRefAttr event; // null: neither
    std::optional<zrt::Stream> waits;
    bool isForArrival = false;
  };
  static Order readOrder(zrt::RuntimeCall call);

  void fire(zrt::Event event);
  void runHandler(zrt::HandlerOp handler, FlatSymbolRefAttr arriving,
                  int64_t arrivingBytes, Unit *unit);
  void runCall(zrt::RuntimeCall call, FlatSymbolRefAttr arriving,
               int64_t arrivingBytes);
  void wait(zrt::Stream stream, FlatSymbolRefAttr event);
  /// With the hint, if it has a meaning.
  zrt::Event getBegin() const {
    return find(zrt::Event::begin_last) ? zrt::Event::begin_last
                                        : zrt::Event::begin;
  }
  double &clock(zrt::Stream stream) { return clocks[size_t(stream)]; }
  double getLatest() { return *std::max_element(clocks, std::end(clocks)); }

  /// The caller works for |elements| of a pass that takes |seconds| in all.
  void work(const char *pass, StringRef what, int64_t elements, double seconds);
  void unshard(size_t place);
  void use(size_t place);
  void reshard(Unit &unit);
  void runForward();
  void runBackward();
  void arrive(const Arrivals &arrivals);

  zrt::ProgramOp program;
  const Tables &tables;
  const Machine &machine;
  double backward;
  zrt::ProgramSymbols symbols;
  SymbolTableCollection places;
  llvm::DenseMap<std::pair<Attribute, uint32_t>, zrt::TransitionOp> transitions;
  Liveness liveness;
  std::vector<Arrivals> buckets; // in the order in which they close
  std::vector<Unit> units;       // in the order of the pass that runs
  size_t ahead = 1;              // units that are gathered ahead
  int64_t elements = 0;          // of all parameters
  StringAttr state;
  double clocks[kNumStreams] = {};
  std::string waited[kNumStreams];
  llvm::DenseMap<Attribute, double> events;
  Timeline timeline;
};
} // namespace

StepRun::StepRun(const StageProgram &stage, const Machine &machine,
                 double backward)
    : program(stage.program), tables(stage.tables), machine(machine),
      backward(backward), symbols(stage.program), liveness(stage, symbols),
      state(StringAttr::get(program.getContext(), "idle")) {
  for (auto op : program.getOps<zrt::TransitionOp>())
    transitions[{op.getStateAttr(), uint32_t(op.getEvent())}] = op;
  readBuckets();
  readUnits();
}

void StepRun::readBuckets() {
  zrt::TransitionOp arrive = transitions.lookup(
      {find(getBegin()).getNextAttr(), uint32_t(zrt::Event::arrive)});
  std::vector<std::pair<Attribute, Attribute>> order;
  if (arrive && arrive.getSequenceAttr()) {
    auto sequence = symbols.lookup<zrt::SequenceOp>(arrive.getSequenceAttr());
    for (auto [bucket, handler] :
         llvm::zip_equal(sequence.getBuckets(), sequence.getHandlers()))
      order.push_back({bucket, handler});
  } else {
    for (auto table : program.getOps<zrt::BucketTableOp>())
      order.push_back({table.getBucketAttr(), Attribute()});
  }
  llvm::DenseMap<int64_t, size_t> numbers;
  for (auto [bucket, handler] : order) {
    auto symbol = cast<FlatSymbolRefAttr>(bucket);
    auto op = zrt::lookup<BucketOp>(places, program, symbol);
    numbers[tables.getBucket(symbol)] = buckets.size();
    buckets.push_back({symbol,
                       cast_if_present<FlatSymbolRefAttr>(handler),
                       op.getUnitAttr(),
                       {},
                       getDtypeBytes(getDtype(op.getArrivalType()))});
  }
  // A bucket has its parameters in the order of a backward pass.
  std::vector<const zero_rt_parameter_row *> rows;
  for (const zero_rt_parameter_row &row : tables.parameters)
    rows.push_back(&row);
  llvm::sort(rows, [](const auto *a, const auto *b) {
    return std::pair(a->offset, a) < std::pair(b->offset, b);
  });
  for (const zero_rt_parameter_row *row : rows)
    if (auto it = numbers.find(row->bucket); it != numbers.end()) {
      buckets[it->second].elements.push_back(row->elements);
      elements += row->elements;
    }
}

void StepRun::readUnits() {
  llvm::StringMap<size_t> numbers;
  for (auto table : program.getOps<zrt::UnitTableOp>()) {
    if (table.isElsewhere())
      continue;
    auto op = zrt::lookup<UnitOp>(places, program, table.getUnitAttr());
    numbers[table.getUnit()] = units.size();
    Unit &unit = units.emplace_back();
    unit.symbol = table.getUnitAttr();
    unit.unshard = getHandler(table.getUnshardAttr());
    unit.reshard = getHandler(table.getReshardAttr());
    unit.isKept = op.getKept();
  }
  for (Arrivals &bucket : buckets) {
    auto it =
        bucket.unit ? numbers.find(bucket.unit.getValue()) : numbers.end();
    if (it == numbers.end())
      bucket.unit = nullptr; // nothing of it is sharded
    else
      for (int64_t count : bucket.elements)
        units[it->second].elements += count;
  }
  for (const zero_rt_frozen_row &row : tables.frozen)
    if (row.parameter_buffer >= 0) {
      Unit &unit = units[numbers.lookup(tables.strings.getBytes().data() +
                                        tables.units[row.unit].name)];
      unit.elements += row.elements;
      unit.frozen += row.elements;
      elements += row.elements;
    }
  if (!tables.prefetches.empty())
    ahead = tables.prefetches.front();
}

void StepRun::wait(zrt::Stream stream, FlatSymbolRefAttr event) {
  auto it = events.find(event);
  if (it == events.end() || it->second <= clock(stream))
    return; // it was not recorded, or has passed
  clock(stream) = it->second;
  waited[size_t(stream)] = event.getValue().str();
}

void StepRun::runCall(zrt::RuntimeCall call, FlatSymbolRefAttr arriving,
                      int64_t arrivingBytes) {
  Traffic traffic;
  addTraffic(call, tables, places, traffic);
  int64_t bytes = 0;
  double seconds = 0;
  auto move = [&](int64_t moved, double bandwidth) {
    bytes += moved;
    seconds += double(moved) / bandwidth;
  };
  if (!traffic.collectives.empty()) {
    const CollectiveTotal &one = traffic.collectives.front();
    bytes = one.bytesSent;
    seconds = machine.getSeconds(one.span, one.among,
                                 getMessages(one.op, one.ranks), bytes);
  } else if (traffic.bytesCopied > 0) {
    move(traffic.bytesCopied, machine.copyBandwidth);
  } else if (arriving) {
    move(2 * arrivingBytes, machine.deviceBandwidth);
  } else {
    move(traffic.bytesOfKernels[ZERO_RT_SPACE_DEVICE], machine.deviceBandwidth);
    move(traffic.bytesOfKernels[ZERO_RT_SPACE_HOST], machine.hostBandwidth);
  }
  zrt::Stream stream = call.getStream();
  double start = clock(stream);
  clock(stream) = start + seconds;
  liveness.add(call, arriving, {start, start + seconds});
  if (seconds == 0)
    return;
  FlatSymbolRefAttr place = zrt::CallDescription(call).getPlace();
  if (arriving)
    place = arriving;
  timeline.calls.push_back(
      {stream,
       {start, start + seconds},
       call->getName().stripDialect().str(),
       place ? place.getValue().str() : "",
       bytes,
       std::exchange(waited[size_t(stream)], std::string())});
}

StepRun::Order StepRun::readOrder(zrt::RuntimeCall call) {
  using Kind = zrt::CallArgument::Kind;
  Order order;
  zrt::CallDescription description(call);
  for (const zrt::CallArgument &argument : description.getArguments())
    if (argument.kind == Kind::event)
      order.event = argument.symbol;
    else if (argument.kind == Kind::stream)
      order.waits = static_cast<zrt::Stream>(argument.number);
    else if (argument.kind == Kind::arrival)
      order.isForArrival = argument.use == zrt::CallArgument::Use::none;
  return order;
}

void StepRun::runHandler(zrt::HandlerOp handler, FlatSymbolRefAttr arriving,
                         int64_t arrivingBytes, Unit *unit) {
  for (auto call : handler.getBody().getOps<zrt::RuntimeCall>()) {
    Order order = readOrder(call);
    if (order.isForArrival) {
      if (ArrayAttr list = symbols.getTable(arriving).getWritableAttr())
        for (auto event : list.getAsRange<FlatSymbolRefAttr>())
          wait(zrt::Stream::compute, event);
    } else if (!order.event) {
      runCall(call, arriving, arrivingBytes);
    } else if (!order.waits) {
      auto event = symbols.lookup<zrt::EventOp>(order.event);
      events[order.event] = clock(event.getStream());
    } else if (*order.waits != zrt::Stream::caller) {
      wait(*order.waits, order.event);
    } else if (unit) {
      unit->ready.push_back(order.event);
    } // A gradient is given back at a timepoint, for which nobody waits here.
  }
}

void StepRun::fire(zrt::Event event) {
  zrt::TransitionOp transition = find(event);
  for (Attribute symbol : transition.getHandlers())
    runHandler(getHandler(symbol), nullptr, 0, nullptr);
  state = transition.getNextAttr();
}

void StepRun::work(const char *pass, StringRef what, int64_t part,
                   double seconds) {
  if (elements == 0 || part == 0 || seconds == 0)
    return;
  double start = clock(zrt::Stream::caller);
  double finish = start + seconds * double(part) / double(elements);
  clock(zrt::Stream::caller) = finish;
  timeline.work += finish - start;
  std::string &after = waited[size_t(zrt::Stream::caller)];
  timeline.calls.push_back({zrt::Stream::caller,
                            {start, finish},
                            pass,
                            what.str(),
                            0,
                            std::exchange(after, std::string())});
}

void StepRun::unshard(size_t place) {
  Unit &unit = units[place];
  if (unit.isUnsharded)
    return;
  unit.isUnsharded = true;
  unit.ready.clear();
  runHandler(unit.unshard, nullptr, 0, &unit);
}

void StepRun::use(size_t place) {
  for (size_t i = place; i < units.size() && i <= place + ahead; ++i)
    unshard(i);
  for (FlatSymbolRefAttr event : units[place].ready)
    wait(zrt::Stream::caller, event);
}

void StepRun::reshard(Unit &unit) {
  unit.isUnsharded = false;
  runHandler(unit.reshard, nullptr, 0, nullptr);
}

void StepRun::runForward() {
  int64_t others = elements;
  for (const Unit &unit : units)
    others -= unit.elements;
  work("forward", units.empty() ? "" : "parameters of no unit", others,
       backward / 2);
  for (auto [i, unit] : llvm::enumerate(units)) {
    use(i);
    work("forward", unit.symbol.getValue(), unit.elements, backward / 2);
    if (!unit.isKept)
      reshard(unit);
  }
}

void StepRun::arrive(const Arrivals &arrivals) {
  zrt::TransitionOp transition = find(zrt::Event::arrive);
  for (int64_t count : arrivals.elements) {
    work("backward", arrivals.bucket.getValue(), count, backward);
    for (Attribute symbol : transition.getHandlers())
      runHandler(getHandler(symbol), arrivals.bucket,
                 count * arrivals.bytesEach, nullptr);
  }
  if (arrivals.close)
    runHandler(getHandler(arrivals.close), nullptr, 0, nullptr);
}

void StepRun::runBackward() {
  std::reverse(units.begin(), units.end());
  size_t place = 0;
  auto leave = [&] {
    work("backward", units[place].symbol.getValue(), units[place].frozen,
         backward);
    reshard(units[place++]);
    if (place < units.size())
      use(place);
  };
  if (!units.empty())
    use(0);
  for (const Arrivals &bucket : buckets) {
    // Gradients of a unit that is done already arrive late.
    auto user =
        llvm::find_if(llvm::drop_begin(units, place), [&](const Unit &unit) {
          return unit.symbol == bucket.unit;
        });
    if (bucket.unit && user != units.end())
      while (units[place].symbol != bucket.unit)
        leave();
    arrive(bucket);
  }
  while (place < units.size())
    leave();
}

Timeline StepRun::run() {
  runForward();
  timeline.phases.push_back({"forward", {0, getLatest()}});
  double start = clock(zrt::Stream::caller);
  fire(getBegin());
  runBackward();
  timeline.phases.push_back({"backward", {start, getLatest()}});
  start = clock(zrt::Stream::caller);
  // Closes the backward pass, of which this is the last one.
  fire(zrt::Event::accumulate);
  fire(zrt::Event::apply);
  timeline.finish = getLatest();
  timeline.phases.push_back({"apply", {start, timeline.finish}});
  timeline.buffers = liveness.finish(timeline.finish);
  return std::move(timeline);
}

Timeline zero::simulateStep(const StageProgram &stage, const Machine &machine,
                            double backward) {
  return StepRun(stage, machine, backward).run();
}
