//===- ProgramUnits.cpp - Runs a zrt.program: units of parameters ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller uses units in order: forward, from some unit on, and in a backward
// pass in the order of the buckets. The next unit is unsharded while the one
// before is in use.
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ProgramInterpreter.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::UnitTableOp;

bool ProgramInterpreter::uses(int64_t rank, UnitTableOp unit) {
  return !unit.isElsewhere() && (!order || isOn(unit, rank));
}

LogicalResult ProgramInterpreter::planUnit(int64_t rank, UnitTableOp unit,
                                           Event event) {
  // Checks that the state allows the event, which runs no handler of its own.
  if (failed(planEvent(rank, event)))
    return failure();
  planHandler(rank,
              event == Event::unshard ? unit.getUnshardAttr()
                                      : unit.getReshardAttr(),
              /*arriving=*/nullptr, unit);
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

LogicalResult ProgramInterpreter::planReshard(int64_t rank, UnitTableOp unit) {
  if (!llvm::is_contained(unsharded[rank], unit))
    return success();
  llvm::erase(unsharded[rank], unit);
  return planUnit(rank, unit, Event::reshard);
}

LogicalResult ProgramInterpreter::planUse(int64_t rank, UnitTableOp unit) {
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
  if (isOn(unit, rank))
    plans[rank].push_back({Action::Kind::readUnit, nullptr,
                           [this, rank, unit] { readUnit(rank, unit); },
                           nullptr, unit});
  return success();
}

LogicalResult ProgramInterpreter::planPrefetch(int64_t rank, UnitTableOp unit) {
  auto blocks = [&](UnitTableOp other) {
    return other == unit || shareMemory(unit, other);
  };
  if (!unit || !uses(rank, unit) || llvm::any_of(unsharded[rank], blocks))
    return success();
  unsharded[rank].push_back(unit);
  return planUnit(rank, unit, Event::unshard);
}

LogicalResult ProgramInterpreter::planUnits(int64_t rank, bool isBackward) {
  auto units = llvm::to_vector(program.getOp().getOps<UnitTableOp>());
  llvm::erase_if(units, [&](UnitTableOp unit) { return !uses(rank, unit); });
  // An order of streams also chooses the unit that is used first.
  if (!units.empty())
    std::rotate(units.begin(), units.begin() + (seed + seed / 2) % units.size(),
                units.end());
  if (isBackward)
    std::reverse(units.begin(), units.end());
  for (auto [i, unit] : llvm::enumerate(units))
    if (failed(planUse(rank, unit)) ||
        failed(planPrefetch(rank, i + 1 < units.size() ? units[i + 1]
                                                       : UnitTableOp())) ||
        failed(planReshard(rank, unit)))
      return failure();
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
  for (auto table : program.getOp().getOps<zrt::FrozenTableOp>()) {
    const Buffer &buffer = program.getBuffer(table.getParametersAttr());
    PerRank &contents = program.write(table.getParametersAttr());
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      for (auto [i, number] : llvm::enumerate(contents[rank].elements))
        // Each type has these numbers, and neighbours differ.
        number = {1.0 + (buffer.held[rank].begin + int64_t(i)) % 127};
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
    StringAttr memory = symbols.getMemory(part.unsharded);
    if (llvm::none_of(uses, [&](const zrt::MemoryUse &use) {
          return use.writes && use.memory == memory;
        }))
      continue;
    auto &[slices, rows] = gathered[part.bucket];
    slices.resize(ranks.size(), Array(kF64, 0));
    rows.resize(ranks.size(), Array(kF64, 0));
    // A slice is kept when it is copied, and a row when slices are gathered.
    for (int64_t rank : group)
      if (isa<zrt::Collective>(action.call))
        rows[rank] = joinSlices(rank, part.parameters, slices);
      else
        slices[rank] = program.read(part.parameters)[rank];
  }
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
            ? it->second.second[rank]
            : joinSlices(rank, part.parameters, program.read(part.parameters));
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
