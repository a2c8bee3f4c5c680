//===- Units.cpp - Units of parameters that ranks shard -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller unshards and reshards units in any order and in any state that
// allows it, so the states of units are no states of the proof. Instead: in
// each state of the protocol a unit that is unsharded holds its parameters; its
// handlers touch its own memory only, and nothing else touches this memory.
// They may pass parameters through memory that only handlers of units touch. So
// a unit holds its parameters as long as it is unsharded, whatever runs
// meanwhile. The runtime refuses what would change parameters in that time:
// apply, and a second unit in the same memory.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

#include "dialect/zrt/CallDescription.h"
#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Stages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Whether |use| by a call of |unit| is one that commutes with all that others
/// do: of the memory of its unsharded buffers, or a read of its parameters.
static bool isOwn(const zrt::ProgramSymbols &symbols, zrt::UnitTableOp unit,
                  const zrt::MemoryUse &use) {
  return llvm::any_of(symbols.getPartsOf(unit), [&](const zrt::UnitPart &part) {
    return use.memory == symbols.getMemory(part.unsharded) ||
           (!use.writes && use.memory == symbols.getMemory(part.parameters));
  });
}

/// The buffers through which parameters only pass on the way to callers: no
/// table names their memory, and no call does but those of |handlers|, of
/// units. Before such a handler they hold nothing that the proof knows.
static llvm::DenseSet<StringAttr>
findPassages(zrt::ProgramOp program, const zrt::ProgramSymbols &symbols,
             const llvm::DenseMap<Attribute, zrt::UnitTableOp> &handlers) {
  llvm::DenseSet<StringAttr> passages;
  for (auto buffer : program.getOps<zrt::BufferOp>())
    passages.insert(buffer.getMemory().getAttr());
  for (Operation &op : program.getBody().front()) {
    auto handler = dyn_cast<zrt::HandlerOp>(op);
    if (handler && handlers.contains(FlatSymbolRefAttr::get(handler)))
      continue;
    op.walk([&](Operation *inner) {
      if (isa<zrt::BufferOp>(inner))
        return;
      inner->getAttrDictionary().walk([&](FlatSymbolRefAttr symbol) {
        passages.erase(symbols.getMemory(symbol));
      });
    });
  }
  return passages;
}

/// Whether |kernel| only converts its first operand, once, and writes that to
/// the other one. Arithmetic may make nan of inf, and two conversions may round
/// twice: neither is in the number that the proof compares.
static bool onlyConverts(zrt::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  if (kernel.getNumArrays() != 2 || kernel.getPredicated() ||
      kernel.getArrayAccess(0) != zrt::Access::read ||
      kernel.getArrayAccess(1) != zrt::Access::write ||
      yield->getNumOperands() != 1 || body.getNumArguments() != 1)
    return false;
  Value from = body.getArgument(0), value = yield->getOperand(0);
  Operation *op = value.getDefiningOp();
  return value == from ||
         (isa_and_present<arith::ExtFOp, arith::TruncFOp>(op) &&
          op->getOperand(0) == from && !op->hasAttr("roundingmode"));
}

/// Checks that |call|, if it runs a kernel in a handler of |unit|, converts
/// parameters from or to the type in which they travel.
static void checkConverts(Proof &proof, const zrt::ProgramSymbols &symbols,
                          zrt::UnitTableOp unit, zrt::RuntimeCall call) {
  zrt::CallDescription description(call);
  auto *it = llvm::find_if(
      description.getArguments(), [](const zrt::CallArgument &argument) {
        return argument.kind == zrt::CallArgument::Kind::kernel;
      });
  if (it == description.getArguments().end())
    return;
  auto kernel = symbols.lookup<zrt::KernelOp>(it->symbol);
  auto op = unit->getParentOfType<ModuleOp>().lookupSymbol<UnitOp>(
      unit.getUnitAttr());
  if (onlyConverts(kernel) && op && op.getGatherDtype() &&
      llvm::is_contained({kernel.getArrayType(0), kernel.getArrayType(1)},
                         *op.getGatherDtype()))
    return;
  proof.report.opError(call)
      << "runs " << it->symbol << " in a handler of unit " << unit.getUnitAttr()
      << ", which only converts parameters, once, to the type in which they "
         "travel or from it";
}

/// Whether |call| does something that is not in the memory that it touches.
static bool dependsOnMore(zrt::RuntimeCall call) {
  using Kind = zrt::CallArgument::Kind;
  zrt::CallDescription description(call);
  return llvm::any_of(
      description.getArguments(), [](const zrt::CallArgument &argument) {
        return argument.kind == Kind::arrival || argument.kind == Kind::role;
      });
}

/// Checks that tables are in the order in which callers number units.
static void checkOrderOfUnits(Proof &proof, zrt::ProgramOp program) {
  llvm::DenseMap<Attribute, int64_t> numberOf;
  for (auto unit : program->getParentOfType<ModuleOp>().getOps<UnitOp>())
    numberOf.insert({FlatSymbolRefAttr::get(unit), numberOf.size()});
  zrt::UnitTableOp before;
  for (auto unit : program.getOps<zrt::UnitTableOp>()) {
    if (before && numberOf.lookup(unit.getUnitAttr()) <
                      numberOf.lookup(before.getUnitAttr()))
      proof.report.error(unit)
          << "the table of unit " << unit.getUnitAttr()
          << " is behind that of unit " << before.getUnitAttr()
          << ", which is declared later: callers number units in the order of "
             "their declarations";
    before = unit;
  }
}

namespace {
/// An order in which callers use units, and how many are gathered ahead.
struct DeclaredOrder {
  SmallVector<Attribute> units;
  int64_t prefetch;
};
} // namespace

/// The orders that |module| declares, or that in which it lists its units.
static SmallVector<DeclaredOrder> listOrders(ModuleOp module) {
  SmallVector<DeclaredOrder> orders;
  for (auto order : module.getOps<UnitOrderOp>())
    orders.push_back(
        {llvm::to_vector(order.getUnits()), int64_t(order.getPrefetch())});
  if (orders.empty())
    orders.push_back({llvm::map_to_vector(module.getOps<UnitOp>(),
                                          [](UnitOp unit) -> Attribute {
                                            return FlatSymbolRefAttr::get(unit);
                                          }),
                      /*prefetch=*/1});
  return orders;
}

/// Checks that |unit|, which may be gathered while callers use |before|, has
/// none of its memory.
static void checkApart(Proof &proof, const zrt::ProgramSymbols &symbols,
                       zrt::UnitTableOp before, zrt::UnitTableOp unit,
                       int64_t prefetch) {
  llvm::DenseSet<StringAttr> memories;
  for (const zrt::UnitPart &part : symbols.getPartsOf(before))
    memories.insert(symbols.getMemory(part.unsharded));
  for (const zrt::UnitPart &part : symbols.getPartsOf(unit))
    if (memories.contains(symbols.getMemory(part.unsharded)))
      proof.report.error(unit)
          << part.unsharded << " has memory of unit " << before.getUnitAttr()
          << ": " << prefetch << (prefetch == 1 ? " unit is" : " units are")
          << " gathered ahead of the one that callers use";
}

/// Checks that units can be gathered as far ahead as their orders say, on each
/// pipeline stage. A unit that callers keep has memory that no other unit
/// has, and they pass it over where it is unsharded already.
static void checkNeighbours(Proof &proof, zrt::ProgramOp program,
                            const zrt::ProgramSymbols &symbols,
                            ArrayRef<AxisCoordinate> stage) {
  SymbolTableCollection places;
  auto module = program->getParentOfType<ModuleOp>();
  llvm::DenseMap<Attribute, zrt::UnitTableOp> tables; // of those on the stage
  for (auto table : program.getOps<zrt::UnitTableOp>()) {
    ValueType place = zrt::getPlace(places, table);
    if (!place || place.isOnStage(stage))
      tables[table.getUnitAttr()] = table;
  }
  for (auto unit : module.getOps<UnitOp>())
    if (unit.getKept())
      tables.erase(FlatSymbolRefAttr::get(unit));
  // Most orders are the reverse of another.
  llvm::DenseSet<std::pair<Attribute, Attribute>> checked;
  for (const DeclaredOrder &order : listOrders(module)) {
    SmallVector<zrt::UnitTableOp> before;
    for (Attribute name : order.units) {
      zrt::UnitTableOp unit = tables.lookup(name);
      if (!unit)
        continue;
      for (zrt::UnitTableOp other :
           ArrayRef(before).take_back(size_t(order.prefetch)))
        if (!checked.contains({name, other.getUnitAttr()}) &&
            checked.insert({other.getUnitAttr(), name}).second)
          checkApart(proof, symbols, other, unit, order.prefetch);
      before.push_back(unit);
    }
  }
}

/// Checks that no unit has memory of one that callers keep.
static void checkKept(Proof &proof, zrt::ProgramOp program,
                      const zrt::ProgramSymbols &symbols) {
  llvm::DenseMap<Attribute, UnitOp> units;
  for (auto unit : program->getParentOfType<ModuleOp>().getOps<UnitOp>())
    units[FlatSymbolRefAttr::get(unit)] = unit;
  llvm::DenseMap<StringAttr, zrt::UnitTableOp> owners;
  for (auto unit : program.getOps<zrt::UnitTableOp>())
    for (const zrt::UnitPart &part : symbols.getPartsOf(unit)) {
      auto &owner = owners[symbols.getMemory(part.unsharded)];
      if (!owner)
        owner = unit;
      if (owner == unit)
        continue;
      for (zrt::UnitTableOp each : {owner, unit})
        if (units[each.getUnitAttr()].getKept())
          proof.report.error(unit)
              << part.unsharded << " has memory of unit " << owner.getUnitAttr()
              << ", and unit " << each.getUnitAttr()
              << " is kept: callers leave it unsharded while they use others";
    }
}

/// Checks that frozen parameters of units are gathered with them, if ranks keep
/// slices. Over which axes they do may leave some whole.
static void checkFrozen(Proof &proof, zrt::ProgramOp program) {
  auto module = program->getParentOfType<ModuleOp>();
  llvm::DenseSet<Attribute> tables, known, units;
  for (auto table : program.getOps<zrt::FrozenTableOp>())
    tables.insert(table.getBucketAttr());
  for (auto bucket : module.getOps<FrozenBucketOp>()) {
    known.insert(bucket.getMembers().begin(), bucket.getMembers().end());
    if (bucket.isSharded() && !tables.contains(FlatSymbolRefAttr::get(bucket)))
      proof.report.error(bucket)
          << "@" << bucket.getSymName()
          << " is sharded and has no zrt.frozen_table: nothing gathers it";
  }
  for (auto table : program.getOps<zrt::UnitTableOp>())
    units.insert(table.getUnitAttr());
  for (auto unit : module.getOps<UnitOp>())
    if (!units.empty() && !units.contains(FlatSymbolRefAttr::get(unit)))
      proof.report.error(unit)
          << "unit '" << unit.getSymName()
          << "' has no zrt.unit_table, and others have: callers number them in "
             "the order of their declarations";
  llvm::DenseSet<Attribute> frozen; // a look-up for each would be quadratic
  for (auto parameter : module.getOps<ParameterOp>())
    if (parameter.getFrozen())
      frozen.insert(FlatSymbolRefAttr::get(parameter));
  for (auto table : program.getOps<zrt::UnitTableOp>()) {
    if (table.isElsewhere())
      proof.report.error(table)
          << "the table of unit " << table.getUnitAttr()
          << " has no handlers: this is the program of one pipeline stage, or "
             "no rank can unshard the unit";
    auto unit = module.lookupSymbol<UnitOp>(table.getUnitAttr());
    if (!unit)
      continue; // its verifier reports it
    for (auto member : unit.getMembers().getAsRange<FlatSymbolRefAttr>())
      if (frozen.contains(member) && !known.contains(member))
        proof.report.error(table)
            << "frozen " << member << " of unit " << table.getUnitAttr()
            << " is in no zero.frozen_bucket";
  }
}

/// Checks that ranks of different pipeline stages do not meet in |call|, of a
/// handler of |unit|: each stage uses units at its own times.
static void checkMeets(Proof &proof, ArrayRef<StringAttr> stageAxes,
                       zrt::UnitTableOp unit, zrt::RuntimeCall call) {
  zrt::CallDescription description(call);
  for (const zrt::CallArgument &argument : description.getArguments())
    if (argument.kind == zrt::CallArgument::Kind::axes && argument.list)
      for (auto axis : argument.list.getAsRange<StringAttr>())
        if (llvm::is_contained(stageAxes, axis))
          proof.report.opError(call)
              << "is over " << axis << ", whose ranks are pipeline stages, and "
              << "each of them uses unit " << unit.getUnitAttr()
              << " at its own times";
}

/// Checks that handlers of units touch memory of their unit only, and that
/// other handlers do not touch the memory in which units are unsharded.
void ProgramReader::checkUnitMemory() {
  zrt::ProgramSymbols uses(program);
  llvm::DenseMap<Attribute, zrt::UnitTableOp> unitOf; // by handler
  llvm::DenseSet<StringAttr> unsharded;
  for (auto unit : program.getOps<zrt::UnitTableOp>()) {
    if (unit.isElsewhere())
      continue; // an error below
    unitOf[unit.getUnshardAttr()] = unitOf[unit.getReshardAttr()] = unit;
    for (const zrt::UnitPart &part : uses.getPartsOf(unit))
      unsharded.insert(uses.getMemory(part.unsharded));
  }
  checkFrozen(proof, program);
  if (unitOf.empty())
    return;
  checkOrderOfUnits(proof, program);
  llvm::DenseSet<StringAttr> passages = findPassages(program, uses, unitOf);
  SmallVector<StringAttr> stageAxes = zrt::getStageAxes(program);
  for (const zrt::Stage &stage : zrt::enumerateStages(program))
    checkNeighbours(proof, program, uses, stage);
  checkKept(proof, program, uses);
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    zrt::UnitTableOp unit = unitOf.lookup(FlatSymbolRefAttr::get(handler));
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>()) {
      if (unit)
        checkMeets(proof, stageAxes, unit, call);
      if (unit)
        checkConverts(proof, uses, unit, call);
      if (unit && dependsOnMore(call))
        proof.report.opError(call)
            << "is in a handler of unit " << unit.getUnitAttr()
            << ", which gathers and releases parameters and does nothing else";
      for (const zrt::MemoryUse &use : uses.getUses(call, nullptr)) {
        bool isRight =
            unit ? isOwn(uses, unit, use) || passages.contains(use.memory)
                 : !unsharded.contains(use.memory);
        if (isRight)
          continue;
        InFlightDiagnostic diagnostic = proof.report.opError(call);
        diagnostic << (use.writes ? "writes " : "reads ")
                   << zrt::describeMemory(use.memory);
        if (unit)
          diagnostic << ", which is not of unit " << unit.getUnitAttr()
                     << ": other calls may run before and after";
        else
          diagnostic << ", in which a unit may be unsharded";
        break;
      }
    }
  }
}

void ProgramReader::checkUnits(const Node &node) {
  auto units = program.getOps<zrt::UnitTableOp>();
  if (units.empty() || proof.report.hasErrors())
    return;
  calls->inBackward = node.isOpen;
  zrt::ProgramSymbols tables(program);
  for (zrt::UnitTableOp unit : units) {
    // Only memory of units changes, as checkUnitMemory() found.
    Memory memory = node.memory;
    calls->begin();
    runHandler(unit.getUnshardAttr(), memory);
    llvm::DenseSet<StringAttr> unsharded;
    for (const zrt::UnitPart &part : tables.getPartsOf(unit)) {
      idle->checkUnsharded(unit, part, memory);
      unsharded.insert(part.unsharded.getAttr());
    }
    for (auto &[name, contents] : memory.buffers)
      if (!unsharded.contains(name) &&
          contents.allocated !=
              node.memory.buffers.find(name)->second.allocated)
        proof.report.error(unit)
            << "@" << name.getValue()
            << " is allocated while the unit is unsharded, and others may "
               "travel through its memory then";
    runHandler(unit.getReshardAttr(), memory);
    // Callers unshard units in any order, so each leaves what it has found.
    for (auto &[name, contents] : memory.buffers)
      if (contents.allocated !=
          node.memory.buffers.find(name)->second.allocated)
        proof.report.error(unit)
            << "@" << name.getValue()
            << (contents.allocated
                    ? " is never released: its memory is not free when the "
                      "unit is resharded"
                    : " is gone when the unit is resharded");
    if (proof.report.hasErrors())
      return;
  }
}
