//===- ProgramUnits.cpp - Runs a zrt.program: units of parameters ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller uses units in order: forward, from some unit on unless the step
// declares an order, and in a backward pass in the order of the buckets. The
// next units are unsharded while the one before them is in use.
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ProgramInterpreter.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::UnitTableOp;

LogicalResult ProgramInterpreter::initializeUnits() {
  auto tables = llvm::to_vector(program.getOp().getOps<UnitTableOp>());
  if (tables.empty())
    return success();
  auto module = program.getOp()->getParentOfType<ModuleOp>();
  llvm::DenseMap<Attribute, UnitTableOp> tableOf;
  llvm::DenseSet<Operation *> kept;
  SmallVector<UnitTableOp> listed;
  for (UnitTableOp table : tables) {
    tableOf[table.getUnitAttr()] = table;
    numbered[table] = table;
  }
  for (auto [number, unit] : llvm::enumerate(module.getOps<UnitOp>())) {
    UnitTableOp table = tableOf.lookup(FlatSymbolRefAttr::get(unit));
    if (!table)
      return program.getOp().emitError()
             << "callers unshard unit @" << unit.getSymName() << " as number "
             << number << ", and the program has no zrt.unit_table of it";
    numbered[table] = tables[number];
    listed.push_back(table);
    if (unit.getKept())
      kept.insert(table);
  }
  SmallVector<UnitOrder> orders;
  for (auto order : module.getOps<UnitOrderOp>())
    orders.push_back({llvm::map_to_vector(
                          order.getUnits(),
                          [&](Attribute unit) { return tableOf.lookup(unit); }),
                      size_t(order.getPrefetch())});
  declaresOrder = !orders.empty();
  if (!declaresOrder) {
    orders.push_back({listed, /*prefetch=*/1});
    orders.push_back({{listed.rbegin(), listed.rend()}, /*prefetch=*/1});
  }
  forward = orders.front();
  backward = orders.back();
  for (const UnitOrder &order : orders)
    for (int64_t rank = 0; rank < ranks.size(); ++rank) {
      SmallVector<Operation *> before;
      for (UnitTableOp unit : order.units) {
        // A kept unit is passed over where it is unsharded already.
        if (!isOn(unit, rank) || kept.contains(unit))
          continue;
        for (Operation *other : ArrayRef(before).take_back(order.prefetch)) {
          neighbours.insert({other, unit});
          neighbours.insert({unit, other});
        }
        before.push_back(unit);
      }
    }
  return success();
}

bool ProgramInterpreter::meetOnRank(UnitTableOp a, UnitTableOp b) {
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (isOn(a, rank) && isOn(b, rank))
      return true;
  return false;
}

bool ProgramInterpreter::uses(int64_t rank, UnitTableOp unit) {
  // A caller may deliver gradients of units that it does not unshard. Then
  // nothing waits for their gathers.
  if (seed % 3 == 2)
    return false;
  return !unit.isElsewhere() && (!order || isOn(unit, rank));
}

LogicalResult ProgramInterpreter::planUnit(int64_t rank, UnitTableOp unit,
                                           Event event) {
  // Checks that the state allows the event, which runs no handler of its own.
  if (failed(planEvent(rank, event)))
    return failure();
  UnitTableOp called = numbered.lookup(unit);
  planHandler(rank,
              event == Event::unshard ? called.getUnshardAttr()
                                      : called.getReshardAttr(),
              /*arriving=*/nullptr, called);
  return success();
}

bool ProgramInterpreter::shareMemory(UnitTableOp a, UnitTableOp b) {
  const zrt::ProgramSymbols &symbols = program.getSymbols();
  for (const zrt::UnitPart &one : symbols.getPartsOf(a))
    for (const zrt::UnitPart &other : symbols.getPartsOf(b))
      if (symbols.getMemory(one.unsharded) ==
          symbols.getMemory(other.unsharded))
        return true;
  return false;
}

void ProgramInterpreter::planRead(int64_t rank, UnitTableOp unit) {
  if (isOn(unit, rank))
    plans[rank].push_back({Action::Kind::readUnit, nullptr,
                           [this, rank, unit] { readUnit(rank, unit); },
                           nullptr, unit});
}

LogicalResult ProgramInterpreter::planReshard(int64_t rank, UnitTableOp unit) {
  if (!llvm::is_contained(unsharded[rank], unit))
    return success();
  llvm::erase(unsharded[rank], unit);
  // Callers read a unit until they reshard it.
  planRead(rank, unit);
  return planUnit(rank, unit, Event::reshard);
}

LogicalResult ProgramInterpreter::planUse(int64_t rank, UnitTableOp unit) {
  if (unit && unit.isElsewhere() && isOn(unit, rank))
    return unit.emitOpError() << "has no handlers, and rank " << rank
                              << " uses unit " << unit.getUnitAttr();
  if (!unit || !uses(rank, unit))
    return success();
  if (!llvm::is_contained(unsharded[rank], unit)) {
    for (UnitTableOp other : llvm::to_vector(unsharded[rank]))
      if (shareMemory(unit, other) && failed(planReshard(rank, other)))
        return failure();
    unsharded[rank].push_back(unit);
    if (failed(planUnit(rank, unit, Event::unshard)))
      return failure();
  }
  planRead(rank, unit);
  return success();
}

LogicalResult ProgramInterpreter::planPrefetch(int64_t rank, UnitTableOp unit) {
  auto blocks = [&](UnitTableOp other) {
    return other == unit ||
           (!neighbours.contains({other, unit}) && shareMemory(unit, other));
  };
  if (!unit || !uses(rank, unit) || llvm::any_of(unsharded[rank], blocks))
    return success();
  unsharded[rank].push_back(unit);
  return planUnit(rank, unit, Event::unshard);
}

LogicalResult ProgramInterpreter::planUnits(int64_t rank, bool isBackward) {
  const UnitOrder &way = isBackward ? backward : forward;
  SmallVector<UnitTableOp> units = way.units;
  llvm::erase_if(units, [&](UnitTableOp unit) {
    return !uses(rank, unit) && !isOn(unit, rank);
  });
  // An order of streams also chooses the unit that is used first.
  if (!units.empty() && !declaresOrder) {
    size_t first = (seed + seed / 2) % units.size();
    size_t skipped = isBackward ? units.size() - first : first;
    std::rotate(units.begin(), units.begin() + skipped, units.end());
  }
  for (size_t i = 0; i < units.size(); ++i) {
    UnitTableOp unit = units[i];
    if (failed(planUse(rank, unit)))
      return failure();
    size_t ahead = 0;
    for (UnitTableOp next : ArrayRef(units).drop_front(i + 1)) {
      if (ahead == way.prefetch)
        break;
      if (!meetOnRank(unit, next))
        continue;
      ++ahead;
      if (failed(planPrefetch(rank, next)))
        return failure();
    }
    if (failed(planReshard(rank, unit)))
      return failure();
  }
  return success();
}

UnitTableOp ProgramInterpreter::getUnit(FlatSymbolRefAttr bucket) {
  zrt::BucketTableOp table = program.getSymbols().getTable(bucket);
  if (!table || !table.getUnshardedAttr())
    return nullptr;
  for (auto unit : program.getOp().getOps<UnitTableOp>())
    if (llvm::any_of(
            program.getSymbols().getPartsOf(unit),
            [&](const zrt::UnitPart &part) { return part.bucket == bucket; }))
      return unit;
  return nullptr;
}

void ProgramInterpreter::fillFrozen() {
  for (auto [t, table] :
       llvm::enumerate(program.getOp().getOps<zrt::FrozenTableOp>())) {
    const Buffer &buffer = program.getBuffer(table.getParametersAttr());
    PerRank &contents = program.write(table.getParametersAttr());
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      for (auto [i, number] : llvm::enumerate(contents[rank].elements))
        // Each type has these numbers. Neighbours differ, and so do buckets.
        number = {1.0 +
                  (buffer.held[rank].begin + int64_t(i) + 17 * int64_t(t)) %
                      127};
  }
}

Array ProgramInterpreter::joinSlices(int64_t rank, FlatSymbolRefAttr parameters,
                                     const PerRank &slices) {
  const Buffer &buffer = program.getBuffer(parameters);
  zrt::BufferOp op = buffer.op;
  Array whole(*buffer.format, op.getRowLength());
  for (const auto &group : ranks.getGroups(op.getOwners()))
    if (llvm::is_contained(group, rank))
      for (int64_t owner : group)
        llvm::copy(slices[owner].elements,
                   whole.elements.begin() + buffer.held[owner].begin);
  return whole;
}

void ProgramInterpreter::keepGathered(const Action &action,
                                      ArrayRef<int64_t> group) {
  const zrt::ProgramSymbols &symbols = program.getSymbols();
  SmallVector<zrt::MemoryUse> uses =
      symbols.getUses(cast<zrt::RuntimeCall>(action.call), nullptr);
  for (const zrt::UnitPart &part : symbols.getPartsOf(action.unit)) {
    StringAttr parameters = symbols.getMemory(part.parameters);
    auto &[slices, rows, passed] = gathered[part.bucket];
    slices.resize(ranks.size(), Array(kF64, 0));
    rows.resize(ranks.size(), Array(kF64, 0));
    passed.insert(symbols.getMemory(part.unsharded));
    // A slice is kept when it is read, and a row when slices are gathered.
    bool isGather = isa<zrt::Collective>(action.call);
    bool readsSlice = false, comesFromSlice = false, isOnTheWay = false;
    for (const zrt::MemoryUse &use : uses) {
      readsSlice |= !use.writes && use.memory == parameters;
      comesFromSlice |= !use.writes && passed.contains(use.memory);
      isOnTheWay |= use.writes && passed.contains(use.memory);
    }
    for (int64_t rank : group)
      if (isGather && isOnTheWay)
        rows[rank] = joinSlices(rank, part.parameters, slices);
      else if (readsSlice)
        slices[rank] = program.read(part.parameters)[rank];
    if (readsSlice || comesFromSlice)
      for (const zrt::MemoryUse &use : uses)
        if (use.writes)
          passed.insert(use.memory);
  }
}

Array ProgramInterpreter::travel(UnitTableOp unit, const Array &array) {
  auto op = unit->getParentOfType<ModuleOp>().lookupSymbol<UnitOp>(
      unit.getUnitAttr());
  if (!op || !op.getGatherDtype())
    return array;
  return convert(calculator, *array.format,
                 convert(calculator, *getFormat(*op.getGatherDtype()), array));
}

static bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

void ProgramInterpreter::readUnit(int64_t rank, UnitTableOp unit) {
  auto module = unit->getParentOfType<ModuleOp>();
  for (const zrt::UnitPart &part : program.getSymbols().getPartsOf(unit)) {
    auto it = gathered.find(part.bucket);
    Array expected =
        it != gathered.end()
            ? it->second.rows[rank]
            : joinSlices(rank, part.parameters, program.read(part.parameters));
    expected = travel(unit, expected);
    const Array &view = program.read(part.unsharded)[rank];
    auto layout = cast<LaidOut>(module.lookupSymbol(part.bucket));
    for (auto [member, offset] :
         llvm::zip_equal(layout.getMembers().getAsRange<FlatSymbolRefAttr>(),
                         layout.getOffsets())) {
      auto parameter = module.lookupSymbol<ParameterOp>(member);
      int64_t end = offset + getNumHeld(layout, parameter);
      for (int64_t e = offset; e < end; ++e) {
        if (e < static_cast<int64_t>(view.size()) &&
            isSame(view[e].value, expected[e].value))
          continue;
        InFlightDiagnostic diag = unit.emitOpError();
        diag << "lets the caller of rank " << rank << " read ";
        if (e < static_cast<int64_t>(view.size()))
          diag << view[e].value;
        else
          diag << "nothing";
        diag << " as element " << e - offset << " of @"
             << parameter.getSymName() << ", expected " << expected[e].value;
        hasFailed = true;
        return;
      }
    }
  }
}
