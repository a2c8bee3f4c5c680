//===- Units.cpp - Units of parameters that ranks shard -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Units.h"

#include <functional>
#include <map>

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

/// The number of units that can be unsharded at once: one that is in use, and
/// the next one, which is gathered meanwhile. Consecutive units have different
/// memory, forward and backward.
static constexpr size_t kUnshardedUnits = 2;

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
  ArrayAttr axes; // to gather over
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
  return {bucket.getLoc(), parameters, unsharded, getGatherAxes(builder, kept)};
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
            {own.getLoc(), bucket.parameters, bucket.unsharded,
             getGatherAxes(program.getBuilder(), bucket.keptType)});
    for (auto frozen : module.getOps<FrozenBucketOp>())
      if (frozen.isSharded() && frozen.getUnit() == op.getSymName())
        unit.parts.push_back(declareFrozen(program, frozen));
    hasParts |= !unit.parts.empty();
    units.push_back(std::move(unit));
  }
  // Callers number units, so one that nothing is gathered of has a table, too.
  if (!hasParts)
    units.clear();
  return units;
}

namespace {
/// The slots of units on one pipeline stage. Each stage has memory of its own.
struct Ring {
  ArrayRef<AxisCoordinate> stages;
  SmallVector<size_t, kUnshardedUnits> slots;
  size_t next = 0;
};
} // namespace

/// Gives the j-th largest part of the i-th unit of a ring the memory j of slot
/// i modulo the number of slots. A memory is as large as the largest part in
/// it. A unit that is kept has a slot of its own.
static void shareUnsharded(ProgramBuilder &program, ArrayRef<Unit> units) {
  std::map<std::pair<size_t, size_t>, SmallVector<zrt::BufferOp>> memories;
  SmallVector<Ring> rings;
  size_t numSlots = 0;
  auto chooseSlot = [&](const Unit &unit) {
    if (UnitOp(unit.op).getKept() || unit.parts.empty())
      return numSlots++;
    ArrayRef<AxisCoordinate> stages =
        program.getBuffer(unit.parts[0].unsharded).getValueType().getPresent();
    auto *ring = llvm::find_if(
        rings, [&](const Ring &ring) { return ring.stages == stages; });
    if (ring == rings.end()) {
      rings.emplace_back().stages = stages;
      ring = &rings.back();
    }
    size_t place = ring->next++ % kUnshardedUnits;
    if (place == ring->slots.size())
      ring->slots.push_back(numSlots++);
    return ring->slots[place];
  };
  for (const Unit &unit : units) {
    size_t slot = chooseSlot(unit);
    // Parts of one size keep their order.
    std::multimap<int64_t, zrt::BufferOp, std::greater<int64_t>> bySize;
    for (const Part &part : unit.parts) {
      zrt::BufferOp buffer = program.getBuffer(part.unsharded);
      bySize.emplace(buffer.getNumBytes(), buffer);
    }
    for (auto [j, buffer] : llvm::enumerate(llvm::make_second_range(bySize)))
      memories[{slot, j}].push_back(buffer);
  }
  for (auto &[place, sharers] : memories) {
    zrt::BufferOp largest = *std::max_element(
        sharers.begin(), sharers.end(), [](zrt::BufferOp a, zrt::BufferOp b) {
          return a.getNumBytes() < b.getNumBytes();
        });
    FlatSymbolRefAttr memory = program.buffer(
        "unsharded." + Twine(place.first) + "." + Twine(place.second),
        largest.getValueType(), Role::parameter);
    for (zrt::BufferOp buffer : sharers)
      buffer.setSharesAttr(memory);
  }
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
  shareUnsharded(program, units);
  for (Unit &unit : units) {
    UnitOp op = unit.op;
    program.setLoc(op.getLoc());
    FlatSymbolRefAttr unshard =
        buildHandler(program, op.getSymName() + ".unshard", unit.parts,
                     [](HandlerBuilder &calls, const Part &part) {
                       calls.call<zrt::AllocateOp>(part.unsharded);
                       calls.call<zrt::CopyOp>(part.parameters, part.unsharded);
                       calls.call<zrt::AllGatherOp>(part.unsharded, part.axes);
                     });
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
