//===- Contract.cpp - What a caller knows of a step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Contract.h"
#include "passes/prove/AbsentGroups.h"
#include "passes/prove/Example.h"

#include "dialect/zero/CountOf.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

static std::string toText(ValueType type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string describeSkip(const SkippedWith &members) {
  return members ? "'absent skip' and the members " + *members
                 : "no 'absent skip'";
}

void prove::compareContract(Proof &proof, const StepSemantics &first,
                            const StepSemantics &second,
                            const ParameterSemantics &a,
                            const ParameterSemantics &b) {
  ParameterOp one = a.op, two = b.op;
  StringRef name = one.getSymName();
  auto differ = [&](StringRef what, const llvm::Twine &x, const llvm::Twine &y,
                    const std::string &example = "") {
    InFlightDiagnostic diagnostic = proof.report.error(two);
    diagnostic << what << " of '" << name << "' is " << y << ", expected " << x;
    Report::attach(diagnostic, two->getLoc(), example);
  };
  auto shapeOf = [](ParameterOp op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(op.getShape(), os, "x");
    return text;
  };
  auto usesOf = [](ParameterOp op) {
    return op.isUsedAnyTimes() ? "any" : std::to_string(op.getUses());
  };
  auto toText = [](auto value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  };
  if (one.getShape() != two.getShape())
    differ("shape", shapeOf(one), shapeOf(two));
  if (one.getValueType().getPlacements() !=
          two.getValueType().getPlacements() ||
      one.getValueType().getPresent() != two.getValueType().getPresent())
    differ("placement", toText(one.getValueType()), toText(two.getValueType()));
  if (a.arrivesOver != b.arrivesOver)
    differ("set of axes over which ranks have shares of the gradient",
           first.axes.describe(a.arrivesOver),
           second.axes.describe(b.arrivesOver));
  if (one.getDtype() != two.getDtype())
    differ("storage type", toText(one.getDtype()), toText(two.getDtype()));
  if (one.getOptional() != two.getOptional())
    differ("optional flag", one.getOptional() ? "set" : "not set",
           two.getOptional() ? "set" : "not set");
  if (!areSame(a.skippedWith, b.skippedWith))
    proof.report.error(two)
        << "group of '" << name << "' has " << describeSkip(b.skippedWith)
        << ", expected " << describeSkip(a.skippedWith);
  if (one.getUses() != two.getUses())
    differ("number of uses", usesOf(one), usesOf(two));
  if (a.arrival != b.arrival)
    differ("type of arriving gradients", toText(a.arrival), toText(b.arrival));
  if (a.normalization != b.normalization)
    differ("normalization of an arriving gradient", toString(a.normalization),
           toString(b.normalization));
  if (a.prescaled && b.prescaled && a.prescaled != b.prescaled)
    differ("factor in arriving gradients", toString(a.prescaled),
           toString(b.prescaled));
  if (!b.summedReduceDtype.holds(a.summedReduceDtype))
    differ("reduce dtype of sums over elements", a.summedReduceDtype.describe(),
           b.summedReduceDtype.describe());
  // Of a role that one step does not have, compareElements() tells.
  for (auto [role, type] : a.types)
    if (Type other = b.types.lookup(role);
        other && other != type && a.elements > 0)
      differ("type of '" + role.getValue().str() + "'", toText(type),
             toText(other));
  if (!b.kept.holds(a.kept))
    differ("type of kept gradients", a.kept.describe(), b.kept.describe(),
           findRounding(b.kept, a.kept));
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

/// All parameters that a caller binds, in the order in which it numbers them.
static SmallVector<ParameterOp> getParameters(const StepSemantics &semantics) {
  auto module = semantics.step->getParentOfType<ModuleOp>();
  return llvm::to_vector(module.getOps<ParameterOp>());
}

using ByName = llvm::StringMap<ParameterOp>;

static ByName sortByName(ArrayRef<ParameterOp> parameters) {
  ByName byName;
  for (ParameterOp op : parameters)
    byName.insert({op.getSymName(), op});
  return byName;
}

/// Whether both lists have the same frozen parameters. Reports those that
/// differ.
static bool compareFrozen(Proof &proof, const StepSemantics &second,
                          ArrayRef<ParameterOp> expected,
                          ArrayRef<ParameterOp> parameters) {
  unsigned errors = proof.report.getNumErrors();
  ByName known = sortByName(parameters), knownExpected = sortByName(expected);
  for (ParameterOp one : expected) {
    if (!one.getFrozen())
      continue;
    ParameterOp two = known.lookup(one.getSymName());
    if (!two)
      proof.report.error(second.step)
          << "frozen parameter '" << one.getSymName()
          << "' is missing, expected " << toText(one.getValueType());
    else if (!two.getFrozen())
      proof.report.error(two) << "'" << one.getSymName()
                              << "' is not frozen, expected a frozen parameter";
    else if (one.getValueType() != two.getValueType())
      proof.report.error(two) << "frozen parameter '" << one.getSymName()
                              << "' is " << toText(two.getValueType())
                              << ", expected " << toText(one.getValueType());
  }
  for (ParameterOp two : parameters)
    if (two.getFrozen() && !knownExpected.contains(two.getSymName()))
      proof.report.error(two) << "frozen parameter '" << two.getSymName()
                              << "' is none of the other step";
  return proof.report.getNumErrors() == errors;
}

/// The names of inputs for callers; empty where there is none.
static SmallVector<StringRef> getArgumentNames(const StepSemantics &semantics) {
  SmallVector<StringRef> names;
  if (auto program = dyn_cast<zrt::ProgramOp>(semantics.step)) {
    for (zrt::SlotsOp slots : program.getInputSlots())
      names.push_back(slots.getInputName().value_or(""));
    return names;
  }
  auto step = cast<StepOp>(semantics.step);
  for (BlockArgument argument : step.getBody().getArguments())
    names.push_back(step.getArgumentName(argument));
  return names;
}

/// The hyperparameter that each input is; empty if it is none.
static SmallVector<StringRef> getInputNames(const StepSemantics &semantics) {
  SmallVector<StringRef> names;
  if (auto program = dyn_cast<zrt::ProgramOp>(semantics.step)) {
    for (zrt::SlotsOp slots : program.getInputSlots())
      names.push_back(slots.getHyper().value_or(""));
    return names;
  }
  auto step = cast<StepOp>(semantics.step);
  // The first use of an input names it.
  llvm::DenseMap<Value, StringRef> nameOf;
  auto getHyperNames = [&](FlatSymbolRefAttr optimizer) {
    return SymbolTable::lookupNearestSymbolFrom<OptimizerOp>(step, optimizer)
        .getHyperNames()
        .getAsRange<StringAttr>();
  };
  step.walk([&](UpdateOp update) {
    auto given = update.getHyperNames().getAsRange<StringAttr>();
    for (StringAttr name : getHyperNames(update.getOptimizerAttr()))
      for (auto [other, value] : llvm::zip_equal(given, update.getHyper()))
        if (other == name)
          nameOf.try_emplace(value, name);
  });
  step.walk([&](PrepareOp prepare) {
    for (auto [name, value] : llvm::zip_equal(
             getHyperNames(prepare.getOptimizerAttr()), prepare.getHyper()))
      nameOf.try_emplace(value, name);
  });
  step.walk([&](Operation *op) {
    Value max = isa<ClipOp>(op) ? cast<ClipOp>(op).getMax()
                : isa<ClipCoefficientOp>(op)
                    ? cast<ClipCoefficientOp>(op).getMax()
                    : Value();
    if (max)
      nameOf.try_emplace(max, kMaxNorm);
  });
  for (BlockArgument argument : step.getBody().getArguments())
    names.push_back(nameOf.lookup(argument));
  return names;
}

/// Whether ranks keep slices of the parameters of units. At the placed phase a
/// slice is a sharded value that stays so. A logical step does not say it.
static bool shardsUnits(const StepSemantics &semantics) {
  if (auto program = dyn_cast<zrt::ProgramOp>(semantics.step))
    return !program.getOps<zrt::UnitTableOp>().empty();
  auto module = semantics.step->getParentOfType<ModuleOp>();
  if (llvm::any_of(module.getOps<FrozenBucketOp>(),
                   [](FrozenBucketOp op) { return op.isSharded(); }))
    return true;
  bool keepsSlices = false;
  SymbolTable symbols(module);
  semantics.step->walk([&](AssignOp op) {
    auto bucket = symbols.lookup<BucketOp>(op.getBucketAttr().getAttr());
    auto kept = cast<ValueType>(op.getValue().getType());
    keepsSlices |= bucket.getUnit() &&
                   !kept.getAxesOfDim(kept.getShape().size() - 1).empty();
  });
  return keepsSlices;
}

/// A caller numbers and names the units that it unshards, and knows their
/// parameters.
static void compareUnits(Proof &proof, const StepSemantics &first,
                         const StepSemantics &second) {
  if (!shardsUnits(first) && !shardsUnits(second))
    return;
  auto getUnits = [](const StepSemantics &semantics) {
    auto module = semantics.step->getParentOfType<ModuleOp>();
    return llvm::to_vector(module.getOps<UnitOp>());
  };
  SmallVector<UnitOp> expected = getUnits(first), units = getUnits(second);
  if (expected.size() != units.size()) {
    proof.report.opError(second.step) << "has " << countOf(units.size(), "unit")
                                      << ", expected " << expected.size();
    return;
  }
  for (auto [i, one, two] : llvm::enumerate(expected, units)) {
    if (one.getSymName() != two.getSymName()) {
      proof.report.error(two)
          << "unit " << i << " is '" << two.getSymName() << "', expected '"
          << one.getSymName() << "': callers number units in this order";
      return;
    }
    auto toSet = [](UnitOp unit) {
      return llvm::DenseSet<Attribute>(unit.getMembers().begin(),
                                       unit.getMembers().end());
    };
    if (toSet(one) != toSet(two))
      proof.report.error(two)
          << "unit '" << two.getSymName() << "' has " << two.getMembers()
          << ", expected " << one.getMembers();
    if (one.getGatherDtypeAttr() != two.getGatherDtypeAttr()) {
      auto print = [](UnitOp unit) {
        std::string text = "the type of each parameter";
        if (std::optional<Type> type = unit.getGatherDtype()) {
          text.clear();
          llvm::raw_string_ostream(text) << *type;
        }
        return text;
      };
      proof.report.error(two)
          << "parameters of unit '" << two.getSymName() << "' travel as "
          << print(two) << ", expected " << print(one);
    }
    // A written step has no memory, and its lowering may keep more units.
    if (isa<zrt::ProgramOp>(second.step) && one.getKept() && !two.getKept())
      proof.report.error(two) << "unit '" << two.getSymName()
                              << "' is not kept, expected one that callers "
                                 "leave unsharded from the "
                                 "forward to the backward pass";
  }
}

/// A program has the orders of its step. If the step has none, its caller may
/// have asked for orders when it was compiled.
static void compareUnitOrders(Proof &proof, const StepSemantics &first,
                              const StepSemantics &second) {
  auto getOrders = [](const StepSemantics &semantics) {
    auto module = semantics.step->getParentOfType<ModuleOp>();
    return llvm::to_vector(
        llvm::map_range(module.getOps<UnitOrderOp>(),
                        [](UnitOrderOp op) { return op.getUnits(); }));
  };
  SmallVector<ArrayAttr> expected = getOrders(first),
                         orders = getOrders(second);
  if (!shardsUnits(second) || expected.empty() || expected == orders)
    return;
  InFlightDiagnostic diag = proof.report.opError(second.step);
  auto print = [&](ArrayRef<ArrayAttr> list) {
    if (list.empty())
      diag << "no order";
    llvm::interleaveComma(list, diag);
  };
  diag << "unshards units in ";
  print(orders);
  diag << ", expected ";
  print(expected);
}

void prove::compareLists(Proof &proof, const StepSemantics &first,
                         const StepSemantics &second) {
  compareUnits(proof, first, second);
  compareUnitOrders(proof, first, second);
  SmallVector<ParameterOp> expected = getParameters(first);
  SmallVector<ParameterOp> parameters = getParameters(second);
  if (compareFrozen(proof, second, expected, parameters) &&
      expected.size() == parameters.size()) {
    ByName known = sortByName(parameters);
    for (auto [i, one, two] : llvm::enumerate(expected, parameters))
      if (one.getSymName() != two.getSymName() &&
          known.contains(one.getSymName())) {
        proof.report.error(two)
            << "parameter " << i << " is '" << two.getSymName()
            << "', expected '" << one.getSymName()
            << "': callers number parameters in this order";
        break;
      }
  }
  auto compare = [&](ArrayRef<StringRef> expected, ArrayRef<StringRef> names,
                     StringRef what, StringRef none) {
    auto describe = [&](StringRef name) {
      return name.empty() ? none.str() : (what + " '" + name + "'").str();
    };
    if (expected.size() != names.size())
      return;
    for (auto [i, one, two] : llvm::enumerate(expected, names))
      if (one != two)
        proof.report.error(second.step)
            << "input " << i << " of apply is " << describe(two)
            << ", expected " << describe(one);
  };
  compare(getInputNames(first), getInputNames(second), "hyperparameter",
          "no hyperparameter");
  compare(getArgumentNames(first), getArgumentNames(second), "called",
          "without a name");
}
