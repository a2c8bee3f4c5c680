//===- Units.cpp - Units of parameters that ranks shard -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Units.h"

#include <functional>
#include <map>
#include <optional>

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

/// Creates the buffer |name| for whole parameters, without memory. |kept| is
/// what a rank keeps of them.
static FlatSymbolRefAttr declareWhole(ProgramBuilder &program,
                                      const Twine &name, ValueType kept) {
  ValueType whole = kept.withSpace(MemorySpace::device);
  for (StringAttr axis : kept.getAxesOfDim(kept.getShape().size() - 1))
    whole = whole.withPlacement({axis});
  // Where ranks are at different units, the message has this name.
  FlatSymbolRefAttr symbol = program.buffer(name, whole, Role::parameter);
  program.getBuffer(symbol).setOnDemand(true);
  return symbol;
}

FlatSymbolRefAttr zero::declareUnsharded(ProgramBuilder &program,
                                         const BucketBuffers &bucket) {
  BucketOp op = bucket.op;
  return declareWhole(program, *op.getUnit() + ".unsharded", bucket.keptType);
}

namespace {
/// Parameters of a unit, of which a rank keeps a slice.
struct Part {
  Location loc;
  FlatSymbolRefAttr parameters;
  FlatSymbolRefAttr unsharded;
  FlatSymbolRefAttr whole; // one segment; null if no kernel needs it
  ArrayAttr axes;          // to gather over
  /// Where parameters travel in another type, which is narrower. Null: in
  /// |unsharded|, as they are.
  FlatSymbolRefAttr gathered = {};
  FlatSymbolRefAttr sent = {}; // on the host, if |parameters| are there
  FlatSymbolRefAttr narrow = {}, widen = {}; // kernels

  ArrayRef<FlatSymbolRefAttr> getGathered() const {
    return gathered ? ArrayRef(gathered) : ArrayRef<FlatSymbolRefAttr>();
  }
};

/// A unit, and what is gathered of it.
struct Unit {
  UnitOp op;
  SmallVector<Part, 1> parts;
};
} // namespace

/// The axes over which a rank keeps a slice, if it keeps |kept|.
static ArrayAttr getGatherAxes(OpBuilder &builder, ValueType kept) {
  SmallVector<Attribute> axes;
  llvm::append_range(axes, kept.getAxesOfDim(kept.getShape().size() - 1));
  return builder.getArrayAttr(axes);
}

/// Creates the buffers in which |part| of |unit| travels, if that is in another
/// type.
static void declareGathered(ProgramBuilder &program, UnitOp unit, Part &part) {
  ValueType kept = program.getBuffer(part.parameters).getValueType();
  if (program.getBuffer(part.parameters).getSpace() == zrt::Space::host)
    kept = kept.withSpace(MemorySpace::host);
  ValueType narrow =
      kept.withElementType(unit.getTypeToGather(kept.getElementType()));
  if (narrow == kept)
    return;
  program.setLoc(part.loc);
  part.gathered =
      declareWhole(program, unit.getSymName() + ".gathered", narrow);
  if (kept.isOnHost())
    part.sent =
        program.buffer(unit.getSymName() + ".sent", narrow, Role::parameter);
  part.narrow =
      program.storeKernel(kept.getElementType(), narrow.getElementType());
  part.widen =
      program.storeKernel(narrow.getElementType(), kept.getElementType());
  if (!part.whole)
    part.whole =
        program.segments(unit.getSymName() + ".all", {kept.getShape().back()});
}

/// Creates the buffers and the table of |bucket|.
static Part declareFrozen(ProgramBuilder &program, FrozenBucketOp bucket) {
  program.setLoc(bucket.getLoc());
  ValueType kept = bucket.getValueType();
  FlatSymbolRefAttr parameters = program.buffer(
      bucket.getSymName() + ".parameters", kept, Role::parameter);
  FlatSymbolRefAttr unsharded =
      declareWhole(program, bucket.getUnit() + ".frozen", kept);
  OpBuilder &builder = program.getBuilder();
  builder.create<zrt::FrozenTableOp>(
      bucket.getLoc(), FlatSymbolRefAttr::get(bucket), parameters, unsharded);
  return {bucket.getLoc(), parameters, unsharded, /*whole=*/{},
          getGatherAxes(builder, kept)};
}

/// The units of |module|; none if ranks keep slices of none.
static SmallVector<Unit> collectUnits(ProgramBuilder &program, ModuleOp module,
                                      const BucketMap &buckets) {
  SmallVector<Unit> units;
  bool hasParts = false;
  for (auto op : module.getOps<UnitOp>()) {
    Unit unit{op, {}};
    for (const auto &[name, bucket] : buckets)
      if (BucketOp own = bucket.op;
          bucket.unsharded && own.getUnit() == op.getSymName())
        unit.parts.push_back(
            {own.getLoc(), bucket.parameters, bucket.unsharded, bucket.whole,
             getGatherAxes(program.getBuilder(), bucket.keptType)});
    for (auto frozen : module.getOps<FrozenBucketOp>())
      if (frozen.isSharded() && frozen.getUnit() == op.getSymName())
        unit.parts.push_back(declareFrozen(program, frozen));
    for (Part &part : unit.parts)
      declareGathered(program, op, part);
    hasParts |= !unit.parts.empty();
    units.push_back(std::move(unit));
  }
  // Callers number units, so one that nothing is gathered of has a table, too.
  if (!hasParts)
    units.clear();
  return units;
}

namespace {
/// An order in which callers use units, by index, and how many of them are
/// gathered ahead.
struct DeclaredOrder {
  SmallVector<size_t> units;
  size_t prefetch;
};
} // namespace

/// The orders that the module of |units| declares, or that in which it lists
/// them.
static SmallVector<DeclaredOrder> listOrders(ArrayRef<Unit> units) {
  UnitOp first = units.front().op;
  llvm::DenseMap<Attribute, size_t> indexOf;
  SmallVector<size_t> listed;
  for (auto [i, unit] : llvm::enumerate(units)) {
    indexOf[FlatSymbolRefAttr::get(unit.op)] = i;
    listed.push_back(i);
  }
  SmallVector<DeclaredOrder> orders;
  for (auto op : first->getParentOfType<ModuleOp>().getOps<UnitOrderOp>())
    orders.push_back(
        {llvm::map_to_vector(op.getUnits(),
                             [&](Attribute unit) { return indexOf.at(unit); }),
         size_t(op.getPrefetch())});
  if (orders.empty())
    orders.push_back({std::move(listed), /*prefetch=*/1});
  return orders;
}

/// By unit, the number of its pipeline stages. Units of the same stages may
/// have one memory. None if nothing of the unit is gathered.
static SmallVector<std::optional<size_t>> numberStages(ProgramBuilder &program,
                                                       ArrayRef<Unit> units) {
  SmallVector<SmallVector<AxisCoordinate>> known;
  return llvm::map_to_vector(
      units, [&](const Unit &unit) -> std::optional<size_t> {
        if (unit.parts.empty())
          return std::nullopt;
        auto stages = llvm::to_vector(program.getBuffer(unit.parts[0].unsharded)
                                          .getValueType()
                                          .getPresent());
        auto *it = llvm::find(known, stages);
        size_t number = it - known.begin();
        if (it == known.end())
          known.push_back(std::move(stages));
        return number;
      });
}

/// By unit, the numbers of those that are gathered ahead while it is in use, or
/// in use while it is, among those of its ring.
static SmallVector<SmallVector<size_t, 4>>
findNeighbours(ArrayRef<DeclaredOrder> orders,
               ArrayRef<std::optional<size_t>> rings) {
  SmallVector<SmallVector<size_t, 4>> neighbours(rings.size());
  for (const DeclaredOrder &order : orders) {
    std::map<size_t, SmallVector<size_t>> used; // by ring
    for (size_t unit : order.units) {
      if (!rings[unit])
        continue;
      SmallVector<size_t> &before = used[*rings[unit]];
      for (size_t other : ArrayRef(before).take_back(order.prefetch)) {
        neighbours[unit].push_back(other);
        neighbours[other].push_back(unit);
      }
      before.push_back(unit);
    }
  }
  return neighbours;
}

/// By unit, the number of a slot. One unit is in use, and the next ones are
/// gathered meanwhile, so they have different slots. For one order and its
/// reverse, one slot more than units are gathered ahead is enough. A unit of no
/// ring has a slot of its own.
static SmallVector<size_t> chooseSlots(ProgramBuilder &program,
                                       ArrayRef<Unit> units) {
  SmallVector<std::optional<size_t>> rings = numberStages(program, units);
  for (auto [unit, ring] : llvm::zip_equal(units, rings))
    if (UnitOp(unit.op).getKept())
      ring = std::nullopt;
  SmallVector<DeclaredOrder> orders = listOrders(units);
  auto neighbours = findNeighbours(orders, rings);
  // In a ring: the first place that no neighbour has yet.
  SmallVector<std::optional<size_t>> places(units.size());
  for (size_t unit : orders.front().units) {
    size_t place = 0;
    while (llvm::any_of(neighbours[unit],
                        [&](size_t other) { return places[other] == place; }))
      ++place;
    places[unit] = place;
  }
  std::map<std::pair<size_t, size_t>, size_t> slots; // by ring and place
  SmallVector<size_t> chosen;
  size_t numSlots = 0;
  for (auto [ring, place] : llvm::zip_equal(rings, places)) {
    size_t slot = numSlots;
    if (ring)
      slot = slots.insert({{*ring, *place}, numSlots}).first->second;
    numSlots += slot == numSlots;
    chosen.push_back(slot);
  }
  return chosen;
}

/// Gives the j-th largest of the |buffers| of a unit the memory j of its
/// |place|. A memory is as large as the largest buffer in it.
static void shareMemory(ProgramBuilder &program, StringRef name,
                        ArrayRef<size_t> places,
                        ArrayRef<SmallVector<FlatSymbolRefAttr, 1>> buffers) {
  std::map<std::pair<size_t, size_t>, SmallVector<zrt::BufferOp>> memories;
  for (auto [place, ofUnit] : llvm::zip_equal(places, buffers)) {
    // Buffers of one size keep their order.
    std::multimap<int64_t, zrt::BufferOp, std::greater<int64_t>> bySize;
    for (FlatSymbolRefAttr symbol : ofUnit) {
      zrt::BufferOp buffer = program.getBuffer(symbol);
      bySize.emplace(buffer.getNumBytes(), buffer);
    }
    for (auto [j, buffer] : llvm::enumerate(llvm::make_second_range(bySize)))
      memories[{place, j}].push_back(buffer);
  }
  for (auto &[place, sharers] : memories) {
    zrt::BufferOp largest = *std::max_element(
        sharers.begin(), sharers.end(), [](zrt::BufferOp a, zrt::BufferOp b) {
          return a.getNumBytes() < b.getNumBytes();
        });
    FlatSymbolRefAttr memory = program.buffer(
        name + "." + Twine(place.first) + "." + Twine(place.second),
        largest.getValueType(), Role::parameter);
    for (zrt::BufferOp buffer : sharers)
      buffer.setSharesAttr(memory);
  }
}

/// Gives the units memory. Each pipeline stage has memory of its own.
static void shareMemory(ProgramBuilder &program, ArrayRef<Unit> units) {
  SmallVector<SmallVector<FlatSymbolRefAttr, 1>> unsharded, gathered;
  for (const Unit &unit : units) {
    unsharded.emplace_back();
    gathered.emplace_back();
    for (const Part &part : unit.parts) {
      unsharded.back().push_back(part.unsharded);
      llvm::append_range(gathered.back(), part.getGathered());
    }
  }
  shareMemory(program, "unsharded", chooseSlots(program, units), unsharded);
  // What travels is converted at once, so one memory is enough.
  auto stages = llvm::map_to_vector(
      numberStages(program, units),
      [](std::optional<size_t> stage) { return stage.value_or(0); });
  shareMemory(program, "gathered", stages, gathered);
}

static void gather(HandlerBuilder &calls, const Part &part) {
  calls.call<zrt::AllocateOp>(part.unsharded);
  if (!part.gathered) {
    calls.call<zrt::CopyOp>(part.parameters, part.unsharded);
    calls.call<zrt::AllGatherOp>(part.unsharded, part.axes);
    return;
  }
  auto convert = [&](FlatSymbolRefAttr kernel, FlatSymbolRefAttr from,
                     FlatSymbolRefAttr to, ArrayAttr own) {
    calls.call<zrt::LaunchOp>(
        kernel, ArrayAttr::get(kernel.getContext(), {from, to}), part.whole,
        own, /*sum=*/FlatSymbolRefAttr(), /*sum_index=*/IntegerAttr(),
        /*first_stage=*/UnitAttr());
  };
  // Another unit may have traveled before. Its release is in front of this
  // allocation, in the queue of the collectives.
  calls.call<zrt::AllocateOp>(part.gathered);
  // A kernel has its operands in one space, and fewer bytes leave the host.
  convert(part.narrow, part.parameters, part.sent ? part.sent : part.gathered,
          part.axes);
  if (part.sent)
    calls.call<zrt::CopyOp>(part.sent, part.gathered);
  calls.call<zrt::AllGatherOp>(part.gathered, part.axes);
  convert(part.widen, part.gathered, part.unsharded, /*own=*/ArrayAttr());
  calls.call<zrt::ReleaseOp>(part.gathered);
}

static FlatSymbolRefAttr
buildHandler(ProgramBuilder &program, const Twine &name, ArrayRef<Part> parts,
             llvm::function_ref<void(HandlerBuilder &, const Part &)> each) {
  zrt::HandlerOp handler = program.handler(name);
  HandlerBuilder calls(handler);
  for (const Part &part : parts) {
    calls.setLoc(part.loc);
    each(calls, part);
  }
  return FlatSymbolRefAttr::get(handler);
}

bool zero::buildUnits(ProgramBuilder &program, BucketMap &buckets) {
  BucketOp any = buckets.front().second.op;
  SmallVector<Unit> units =
      collectUnits(program, any->getParentOfType<ModuleOp>(), buckets);
  if (units.empty())
    return false;
  shareMemory(program, units);
  for (Unit &unit : units) {
    UnitOp op = unit.op;
    program.setLoc(op.getLoc());
    FlatSymbolRefAttr unshard =
        buildHandler(program, op.getSymName() + ".unshard", unit.parts, gather);
    FlatSymbolRefAttr reshard =
        buildHandler(program, op.getSymName() + ".reshard", unit.parts,
                     [](HandlerBuilder &calls, const Part &part) {
                       calls.call<zrt::ReleaseOp>(part.unsharded);
                     });
    program.getBuilder().create<zrt::UnitTableOp>(
        op.getLoc(), FlatSymbolRefAttr::get(op), unshard, reshard);
  }
  return true;
}

void zero::addUnitTransitions(ProgramBuilder &program) {
  OpBuilder &builder = program.getBuilder();
  auto op = cast<zrt::ProgramOp>(builder.getBlock()->getParentOp());
  llvm::MapVector<StringAttr, FlatSymbolRefAttr> sequences; // by state
  llvm::SmallDenseSet<StringAttr> measured;
  for (auto transition : op.getOps<zrt::TransitionOp>()) {
    FlatSymbolRefAttr &sequence = sequences[transition.getStateAttr()];
    if (transition.getSequenceAttr())
      sequence = transition.getSequenceAttr();
    if (transition.getEvent() == Event::measure)
      measured.insert(transition.getNextAttr());
  }
  for (auto [state, sequence] : sequences)
    if (!measured.contains(state))
      for (Event event : {Event::unshard, Event::reshard})
        builder.create<zrt::TransitionOp>(
            program.getLoc(), state,
            zrt::EventAttr::get(builder.getContext(), event), state,
            builder.getArrayAttr({}), sequence);
}
