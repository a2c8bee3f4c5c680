//===- IdleState.cpp - What a program must hold between steps -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/IdleState.h"

#include "dialect/zrt/MemoryUses.h"
#include "passes/prove/Example.h"

#include "passes/prove/Slots.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

IdleState::IdleState(Proof &proof, zrt::ProgramOp program,
                     const SymbolTable &symbols, const Buckets &buckets,
                     const MeshAxes &axes)
    : proof(proof), algebra(proof.algebra), program(program), symbols(symbols),
      buckets(buckets), axes(axes) {
  readStates();
  fillBuffers();
  fillSlots();
}

void IdleState::readStates() {
  llvm::DenseMap<StringAttr, zrt::BucketTableOp> arrivals;
  for (auto op : program.getOps<zrt::BucketTableOp>())
    arrivals[op.getBucketAttr().getAttr()] = op;
  for (auto op : program.getOps<zrt::StateOp>()) {
    Entry &entry = lasting[op.getBufferAttr().getAttr()];
    bool matters = hasElements(op.getBucketAttr().getAttr());
    if (matters && !entry.role.empty())
      proof.report.error(op)
          << op.getBufferAttr() << " is state '" << op.getRole() << "' and '"
          << entry.role << "': a checkpoint would restore one over the other";
    entry = {op.getRole().str(), op.getBucketAttr().getAttr()};
    // The caller binds initial values to the parameters of the bucket table.
    zrt::BucketTableOp bound = arrivals.lookup(op.getBucketAttr().getAttr());
    if (!bound)
      proof.report.opError(op) << "is state of " << op.getBucketAttr()
                               << ", whose gradients never arrive";
    if (matters && op.getRole() == "master" &&
        (!bound || bound.getMasterAttr() != op.getBufferAttr()))
      proof.report.error(op)
          << op.getBufferAttr() << " is not the master weights of "
          << op.getBucketAttr() << " that arrivals name: it has no first value";
  }
  for (auto op : program.getOps<zrt::FrozenTableOp>()) {
    auto [it, isNew] =
        lasting.try_emplace(op.getParametersAttr().getAttr(),
                            Entry{"parameter", op.getBucketAttr().getAttr()});
    if (!isNew)
      proof.report.error(op)
          << op.getParametersAttr() << " holds frozen parameters, and is '"
          << it->second.role << "' of @" << it->second.bucket.getValue();
  }
  for (auto op : program.getOps<zrt::BucketTableOp>()) {
    if (hasElements(op.getBucketAttr().getAttr()) && !isParameters(op))
      proof.report.error(op)
          << op.getParametersAttr() << " is not the state 'parameter' of "
          << op.getBucketAttr() << ": no checkpoint would restore it";
    // Copies of the parameters. A write of the parameters writes them, too.
    for (FlatSymbolRefAttr copy : {op.getMasterAttr(), op.getStagingAttr()})
      if (copy)
        readCopy(op, copy);
  }
}

/// |copy| of |op| gets the initial values of its parameters. It is their master
/// weights, or a copy that no checkpoint needs.
void IdleState::readCopy(zrt::BucketTableOp op, FlatSymbolRefAttr copy) {
  StringAttr bucket = op.getBucketAttr().getAttr();
  if (!hasElements(bucket))
    return;
  auto [it, isNew] =
      lasting.try_emplace(copy.getAttr(), Entry{"parameter", bucket});
  const Entry &entry = it->second;
  bool isMaster = copy == op.getMasterAttr() && entry.role == "master";
  if (entry.bucket != bucket || (entry.role != "parameter" && !isMaster)) {
    proof.report.error(op) << copy << " gets the values of parameters of @"
                           << bucket.getValue() << ", and is state '"
                           << entry.role << "' of @" << entry.bucket.getValue();
    return;
  }
  auto buffer = symbols.lookup<zrt::BufferOp>(copy.getAttr());
  Type type = buckets.lookup(bucket).storage;
  if (!isMaster && buffer.getValueType().getElementType() != type)
    proof.report.error(op) << copy << " is a copy of parameters in another "
                           << "type, and no state: no checkpoint saves it";
}

/// Whether the parameters of |op| are the state of its bucket, whole unless
/// they are unsharded for the caller, and in the parameters' type.
bool IdleState::isParameters(zrt::BucketTableOp op) {
  auto it = lasting.find(op.getParametersAttr().getAttr());
  if (it == lasting.end() || it->second.role != "parameter" ||
      it->second.bucket != op.getBucketAttr().getAttr())
    return false;
  auto buffer = symbols.lookup<zrt::BufferOp>(op.getParametersAttr().getAttr());
  Type type = buckets.lookup(it->second.bucket).storage;
  return (op.getUnshardedAttr() || !buffer.isSharded()) &&
         buffer.getValueType().getElementType() == type;
}

void IdleState::fillBuffers() {
  for (auto op : program.getOps<zrt::BufferOp>()) {
    std::string symbol = ("@" + op.getSymName()).str();
    Contents &contents = idle.buffers[op.getSymNameAttr()];
    contents.op = op;
    // Slices over axes of one rank are whole.
    contents.owners = axes.getSet(op.getOwners());
    contents.hasOther = axes.getAll() != 0 && contents.owners == 0;
    contents.allocated = !op.getOnDemand();
    contents.role = op.getRole();
    contents.forget(algebra,
                    "what " + symbol + " holds before this step writes it");
    auto it = lasting.find(op.getSymNameAttr());
    if (it == lasting.end())
      continue;
    if (op.getRole() != zrt::Role::parameter &&
        op.getRole() != zrt::Role::state)
      proof.report.opError(op) << "lives across steps and counts as "
                               << zrt::stringifyRole(op.getRole());
    // Parameters, too, until the caller gives their first values.
    if (double fill = op.getFill().convertToDouble(); fill != 0)
      proof.report.error(op) << "state '" << it->second.role << "' begins as "
                             << fill << ", expected 0";
    contents.fill(makeSource(algebra, algebra.state(it->second.role)),
                  {algebra.undefined("pads of " + symbol)});
    contents.bucket = it->second.bucket;
    idle.inUse[op.getMemory().getAttr()].push_back(op.getSymNameAttr());
  }
}

void IdleState::fillSlots() {
  // Scalar slots that are never written are constants.
  SlotWriters writers = readSlotWriters(program, symbols);
  for (auto op : program.getOps<zrt::SlotsOp>())
    for (auto [i, initial] : llvm::enumerate(op.getInitial())) {
      std::pair<StringAttr, int64_t> slot{op.getSymNameAttr(), i};
      if (!writers.contains(slot))
        lastingSlots.insert(slot);
      idle.slots[slot] = makeSource(
          algebra, writers.contains(slot)
                       ? algebra.undefined("slot " + std::to_string(i) +
                                           " of @" + op.getSymName().str() +
                                           " before this step writes it")
                       : algebra.constant(initial));
    }
  for (auto op : program.getOps<zrt::ScalarStateOp>()) {
    auto slots = symbols.lookup<zrt::SlotsOp>(op.getSlotsAttr().getAttr());
    std::pair<StringAttr, int64_t> slot{op.getSlotsAttr().getAttr(),
                                        op.getIndex()};
    lastingSlots.insert(slot);
    Number &number = idle.slots[slot];
    bool isScale = slots.isLossScale() && op.getIndex() == 0;
    number = makeSource(
        algebra, isScale ? algebra.symbol(kLossScale)
                         : algebra.base({BaseKind::old, op.getRole().str()}));
    number.narrow(Precision::f64());
  }
}

void IdleState::checkBuffers(Operation *transition, const Memory &memory) {
  for (auto &[name, contents] : memory.buffers) {
    const Contents &before = idle.buffers.find(name)->second;
    if (contents.allocated != before.allocated)
      proof.report.error(transition)
          << "@" << name.getValue() << " is "
          << (contents.allocated ? "never released" : "gone after the step");
    else if (contents.role != before.role)
      proof.report.error(transition)
          << "@" << name.getValue() << " counts as "
          << zrt::stringifyRole(contents.role) << " after the step, expected "
          << zrt::stringifyRole(before.role);
  }
}

/// The op that wrote |contents|, for diagnostics.
static Operation *getCulprit(const Contents &contents, Operation *transition) {
  return contents.writer ? contents.writer : transition;
}

void IdleState::checkUnchanged(Operation *transition, const Twine &where,
                               Memory &memory) {
  for (auto &[name, entry] : lasting)
    if (hasElements(entry.bucket))
      checkHolds(transition, memory.buffers.find(name)->second, entry,
                 "changes " + where);
}

/// Whether |number| is the old |expr| with all bits that |kept| and |traveled|
/// hold: it was copied, and not computed. A number that is multiplied and
/// divided again may have been infinite or rounded on the way.
static bool isCopied(Algebra &algebra, const Number &number, Expr expr,
                     Type kept, Type traveled) {
  Number source = makeSource(algebra, expr), stored = source;
  stored.narrow(Precision(kept));
  stored.narrow(Precision(traveled));
  // A conversion may be on its way, and no other operation.
  uint64_t way = number.getWayIfSkipped();
  bool isMoved = Number::isMoved(way, kept) || Number::isMoved(way, traveled);
  return isMoved && (number.roundings == source.roundings ||
                     number.roundings == stored.roundings);
}

/// What a number is that equals |old| and is no copy of it.
static std::string describeNoCopy(Expr old) {
  return "what was computed from " + toString(old) +
         ", and may have been rounded or infinite on the way; expected a copy";
}

void IdleState::checkHolds(Operation *transition, const Contents &contents,
                           const Entry &entry, const Twine &wrong,
                           Type traveledAs) {
  Expr old = algebra.state(entry.role);
  zrt::BufferOp buffer = contents.op;
  Type keptAs = buffer.getValueType().getElementType();
  if (!traveledAs)
    traveledAs = keptAs;
  Precision kept(keptAs), traveled(traveledAs);
  bool isRounded = !traveled.holds(kept);
  Precision expected = kept.limitedBy(traveled);
  for (const Piece &piece :
       llvm::concat<const Piece>(contents.own, contents.other)) {
    bool isOld = piece.element.expr == old;
    Precision narrowest = piece.element.roundings.getNarrowest();
    bool isWide = isRounded ? narrowest == expected : narrowest.holds(expected);
    if (isOld && isWide && contents.bucket == entry.bucket &&
        isCopied(algebra, piece.element, old, keptAs, traveledAs))
      continue;
    InFlightDiagnostic diagnostic =
        proof.report.error(getCulprit(contents, transition));
    diagnostic << "@" << buffer.getSymName() << " " << wrong << ": it holds ";
    if (!isOld)
      diagnostic << toString(piece.element.expr, old) << ", expected "
                 << toString(old, piece.element.expr);
    else if (contents.bucket != entry.bucket)
      diagnostic << "elements of another bucket, expected those of @"
                 << entry.bucket.getValue();
    else if (!isWide)
      diagnostic << (narrowest.isExact()
                         ? std::string("what was not rounded")
                         : "what went through " + narrowest.describe())
                 << ", expected " << expected.describe();
    else
      diagnostic << describeNoCopy(old);
    noteMembers(diagnostic, buckets.find(entry.bucket)->second);
    Report::attach(diagnostic, transition->getLoc(),
                   isOld && !isWide
                       ? findRounding(narrowest.limitedBy(expected),
                                      narrowest.widenedTo(expected))
                   : isOld ? std::string()
                           : findExample(algebra, piece.element.expr, old,
                                         /*ranks=*/1));
    return;
  }
}

void IdleState::forgetOthers(const llvm::DenseSet<StringAttr> &kept,
                             Memory &memory, StringRef why) {
  for (auto &[name, contents] : memory.buffers)
    if (!kept.contains(name) && !lasting.contains(name) &&
        !contents.isForgotten())
      contents.forget(algebra, "what @" + name.getValue() + " holds" + why);
  for (auto &[slot, number] : memory.slots) {
    auto [name, index] = slot;
    if (!lastingSlots.contains(slot) && !number.expr->isUndefined())
      number = {algebra.undefined(
          ("slot " + llvm::Twine(index) + " of @" + name.getValue() + why)
              .str())};
  }
}

void IdleState::checkFrozen(Operation *transition, Memory &memory) {
  for (auto op : program.getOps<zrt::FrozenTableOp>()) {
    StringAttr bucket = op.getBucketAttr().getAttr();
    if (hasElements(bucket))
      checkHolds(transition, memory.get(op.getParametersAttr()),
                 {"parameter", bucket}, "changes, and it is frozen");
  }
}

/// The type in which |contents|, of the unit of |table|, travel.
static Type getTypeToGather(zrt::UnitTableOp table, const Contents &contents) {
  zrt::BufferOp buffer = contents.op;
  Type type = buffer.getValueType().getElementType();
  auto unit = table->getParentOfType<ModuleOp>().lookupSymbol<UnitOp>(
      table.getUnitAttr());
  return unit ? unit.getTypeToGather(type) : type;
}

void IdleState::checkUnsharded(zrt::UnitTableOp unit, const zrt::UnitPart &part,
                               Memory &memory) {
  Contents &contents = memory.get(part.unsharded);
  StringAttr bucket = part.bucket.getAttr();
  if (!contents.allocated)
    proof.report.error(unit)
        << part.unsharded << " is not allocated while the unit is unsharded";
  else if (hasElements(bucket))
    checkHolds(unit, contents, {"parameter", bucket},
               "does not hold the parameters of the unit",
               getTypeToGather(unit, contents));
}

void IdleState::checkReadable(Operation *op, StringAttr state, Memory &memory,
                              bool isMeasured) {
  std::string where =
      ("before apply, in state '" + state.getValue() + "'").str();
  checkUnchanged(op, where, memory);
  if (!isMeasured)
    checkScalars(op, where, memory, NotApplied::discarded);
}

void IdleState::checkNotApplied(Operation *transition, Memory &memory,
                                NotApplied how) {
  checkUnchanged(transition, "where a step is not applied", memory);
  checkScalars(transition, "where a step is not applied", memory, how);
}

void IdleState::checkScalars(Operation *op, const Twine &where, Memory &memory,
                             NotApplied how) {
  for (auto state : program.getOps<zrt::ScalarStateOp>()) {
    if (how == NotApplied::skipped && state.getChangesOnSkip())
      continue;
    std::pair<StringAttr, int64_t> slot{state.getSlotsAttr().getAttr(),
                                        state.getIndex()};
    const Number &before = idle.slots[slot], &after = memory.slots[slot];
    Expr old = before.expr, now = after.expr;
    bool isCopy =
        !after.isComputedAgain() &&
        (how != NotApplied::discarded ||
         (after.roundings == before.roundings && after.isComputedAs(before)));
    if (now == old && isCopy)
      continue;
    InFlightDiagnostic diagnostic = proof.report.error(op);
    diagnostic << "'" << state.getRole() << "' changes " << where << ": it is ";
    if (now == old) {
      diagnostic << describeNoCopy(old);
      continue;
    }
    diagnostic << toString(now, old) << ", expected " << toString(old, now);
    Report::attach(diagnostic, op->getLoc(),
                   findExample(algebra, now, old, /*ranks=*/1));
  }
}

void IdleState::checkAccesses() {
  zrt::ProgramSymbols uses(program);
  // |bound|: the caller may change them until the step is measured or applied.
  llvm::DenseSet<StringAttr> parameters, bound, buffers, scalars;
  for (auto &[name, entry] : lasting) {
    StringAttr memory = uses.getMemory(FlatSymbolRefAttr::get(name));
    buffers.insert(memory);
    if (entry.role == "parameter")
      parameters.insert(memory);
    if (entry.role == "parameter" || entry.role == "master")
      bound.insert(memory);
  }
  for (auto op : program.getOps<zrt::ScalarStateOp>())
    scalars.insert(op.getSlotsAttr().getAttr());
  auto check = [&](Attribute symbol, zrt::Event event) {
    auto handler = symbols.lookup<zrt::HandlerOp>(
        cast<FlatSymbolRefAttr>(symbol).getAttr());
    // Between measure and discard the caller reads parameters alone.
    bool isDiscarded = event == zrt::Event::discard;
    bool isMeasured = isDiscarded || event == zrt::Event::measure;
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>())
      for (const zrt::MemoryUse &use : uses.getUses(call, nullptr)) {
        if (use.writes &&
            ((isDiscarded ? parameters : buffers).contains(use.memory) ||
             (!isMeasured && scalars.contains(use.memory))))
          proof.report.opError(call)
              << "writes " << zrt::describeMemory(use.memory) << " on "
              << zrt::stringifyEvent(event)
              << ", where the caller reads what the step before left";
        else if (!use.writes && event != zrt::Event::measure &&
                 bound.contains(use.memory))
          proof.report.opError(call)
              << "reads " << zrt::describeMemory(use.memory) << " on "
              << zrt::stringifyEvent(event)
              << ", and the caller may change parameters afterwards in this "
                 "step, which starts from the changed ones; read it on apply";
      }
  };
  for (auto op : program.getOps<zrt::TransitionOp>())
    if (op.getEvent() != zrt::Event::apply)
      for (Attribute symbol : op.getHandlers())
        check(symbol, op.getEvent());
  for (auto op : program.getOps<zrt::SequenceOp>())
    for (Attribute symbol : op.getHandlers())
      check(symbol, zrt::Event::arrive);
}

void IdleState::checkReplicas(Operation *transition, Memory &memory) {
  auto isSame = [](const Pieces &a, const Pieces &b) {
    return a.size() == b.size() &&
           llvm::all_of_zip(a, b, [](const Piece &x, const Piece &y) {
             return x.end == y.end && x.element == y.element;
           });
  };
  for (auto &[name, entry] : lasting) {
    const Contents &contents = memory.buffers.find(name)->second;
    if (hasElements(entry.bucket) && contents.hasOther &&
        !isSame(contents.own, contents.other)) {
      InFlightDiagnostic diagnostic =
          proof.report.error(getCulprit(contents, transition));
      diagnostic << "@" << name.getValue()
                 << " holds other numbers on the owner of an element than on "
                    "the other ranks";
      noteMembers(diagnostic, buckets.find(entry.bucket)->second);
      for (auto [own, other] : llvm::zip(contents.own, contents.other))
        if (own.element.expr != other.element.expr) {
          Report::attach(diagnostic, transition->getLoc(),
                         findExample(algebra, other.element.expr,
                                     own.element.expr, /*ranks=*/1));
          break;
        }
    }
  }
  for (auto op : program.getOps<zrt::BucketTableOp>())
    for (FlatSymbolRefAttr copy : {op.getMasterAttr(), op.getStagingAttr()}) {
      if (!copy || lasting[copy.getAttr()].role != "parameter" ||
          !hasElements(op.getBucketAttr().getAttr()))
        continue;
      const Contents &contents = memory.get(copy);
      const Contents &parameters = memory.get(op.getParametersAttr());
      if (contents.bucket != parameters.bucket ||
          !isSame(contents.own, parameters.own))
        proof.report.error(getCulprit(contents, transition))
            << copy << " and " << op.getParametersAttr()
            << " hold different numbers after the step";
    }
}
