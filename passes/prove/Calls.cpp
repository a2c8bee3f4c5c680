//===- Calls.cpp - What the calls of a program do to its memory -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Calls.h"

#include "dialect/zrt/EachCall.h"
#include "passes/prove/Gradient.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

Calls::Calls(Proof &proof, zrt::ProgramOp program, const SymbolTable &symbols,
             const Buckets &buckets, StepSemantics &semantics)
    : proof(proof), algebra(proof.algebra), program(program), buckets(buckets),
      semantics(semantics), symbols(symbols),
      writers(readSlotWriters(program, symbols)) {
  for (auto op : program.getOps<zrt::BucketTableOp>())
    arrivals[op.getBucketAttr().getAttr()] = op;
  for (auto op : program.getOps<zrt::BufferOp>())
    if (op.getSharesAttr())
      shared.insert(op.getMemory().getAttr());
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Contents &Calls::get(FlatSymbolRefAttr symbol) {
  Contents &contents = memory->get(symbol);
  StringAttr place = contents.op.getMemory().getAttr();
  if (shared.contains(place))
    if (auto &inUse = memory->inUse[place];
        !llvm::is_contained(inUse, symbol.getAttr()))
      inUse.push_back(symbol.getAttr());
  return contents;
}

Contents &Calls::require(Operation *call, FlatSymbolRefAttr symbol) {
  Contents &contents = get(symbol);
  if (!contents.allocated)
    proof.report.opError(call)
        << "uses " << symbol << ", which is not allocated";
  if (filling.contains(contents.op.getMemory().getAttr()))
    proof.report.opError(call) << "uses " << symbol
                               << ", into which gradients of a bucket that is "
                                  "still open may arrive at "
                                  "the same time";
  return contents;
}

Contents &Calls::read(Operation *call, FlatSymbolRefAttr symbol) {
  Contents &contents = require(call, symbol);
  settleAbsent(call, contents);
  return contents;
}

void Calls::overwrite(Contents &contents) {
  auto it = memory->inUse.find(contents.op.getMemory().getAttr());
  if (it == memory->inUse.end())
    return;
  llvm::erase_if(it->second, [&](StringAttr name) {
    Contents &sharer = memory->get(name);
    if (&sharer == &contents)
      return false;
    if (!sharer.isForgotten())
      sharer.forget(algebra,
                    "what @" + contents.op.getSymName() + " overwrote");
    return !sharer.op.getOnDemand() || !sharer.allocated;
  });
}

Contents &Calls::write(Operation *call, FlatSymbolRefAttr symbol,
                       StringAttr bucket) {
  Contents &contents = require(call, symbol);
  overwrite(contents);
  contents.bucket = bucket;
  contents.writer = call;
  return contents;
}

Contents &Calls::writeOwned(Operation *call, FlatSymbolRefAttr symbol,
                            StringAttr bucket, AxisSet owners) {
  Contents &contents = require(call, symbol);
  if (contents.hasOther &&
      (contents.bucket != bucket || !contents.isOwnedOver(owners))) {
    Number mixed{algebra.undefined("elements of several buckets")};
    contents.other = makePieces(contents.op.getRowLength(), mixed, mixed);
  }
  if (contents.hasOther)
    contents.owners = owners;
  return write(call, symbol, bucket);
}

bool Calls::requireOwners(Operation *call, const Contents &contents,
                          AxisSet owners) {
  if (contents.isOwnedOver(owners))
    return true;
  zrt::BufferOp buffer = contents.op;
  proof.report.opError(call)
      << "uses @" << buffer.getSymName() << ", of which owners over "
      << semantics.axes.describe(contents.owners)
      << " hold other numbers than the rest, as if owners over "
      << semantics.axes.describe(owners) << " did";
  return false;
}

//===----------------------------------------------------------------------===//
// Collectives and copies
//===----------------------------------------------------------------------===//

/// The sum over ranks of |own| on one and |other| on the others.
static Number sumOf(Algebra &algebra, Number own, Number other,
                    AxisSet arrivesOver, Precision sumType,
                    const MeshAxes &axes, AxisSet set, AxisSet stages) {
  if (own == other)
    return sumOverRanks(algebra, own, arrivesOver, sumType, axes, set, stages);
  return {algebra.undefined("a sum of different numbers over ranks")};
}

/// Calls |function| for the parts on which pieces of both are whole.
static void forEachPart(
    const Pieces &a, const Pieces &b,
    llvm::function_ref<void(const Piece &, const Piece &, int64_t)> function) {
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    int64_t end = std::min(x->end, y->end);
    function(*x, *y, end);
    if (x->end == end)
      ++x;
    if (y->end == end)
      ++y;
  }
}

/// The axes of which the buffer is on some coordinates only.
static AxisSet getStages(const Contents &contents, const MeshAxes &axes) {
  zrt::BufferOp buffer = contents.op;
  return axes.getSet(buffer.getValueType().getStageAxes());
}

const ParameterSemantics *Calls::findMember(StringAttr name) {
  BucketOp bucket = buckets.lookup(name).op;
  if (!bucket)
    return nullptr;
  auto member = cast<FlatSymbolRefAttr>(bucket.getMembers()[0]);
  return &semantics.parameters[member.getAttr()];
}

Pieces Calls::sumOverOwners(const Contents &contents, Precision sumType,
                            AxisSet set) {
  Pieces sums;
  const Pieces &other = contents.hasOther ? contents.other : contents.own;
  AxisSet stages = getStages(contents, semantics.axes);
  const ParameterSemantics *member = findMember(contents.bucket);
  AxisSet arrivesOver = member ? member->arrivesOver : 0;
  auto sum = [&](const Number &own, const Number &others) {
    return sumOf(algebra, own, others, arrivesOver, sumType, semantics.axes,
                 set, stages);
  };
  forEachPart(
      contents.own, other, [&](const Piece &x, const Piece &y, int64_t end) {
        append(sums, {end, sum(x.element, y.element), sum(x.pad, y.pad)});
      });
  return sums;
}

/// Records that |number| goes to the ranks over |set|. Ranks meet over |meets|
/// in each backward pass.
void Calls::send(Expr number, AxisSet set, AxisSet meets) {
  if (set & ~meets)
    sent.push_back(number);
  if (inApply && set)
    sentInApply.push_back(number);
}

void Calls::send(const Contents &contents, AxisSet set) {
  zrt::BufferOp buffer = contents.op;
  AxisSet meets = semantics.getMeetings(buffer.getValueType().getPresent());
  for (const Piece &piece : contents.own)
    send(piece.element.expr, set, meets);
}

Precision Calls::getPrecision(FlatSymbolRefAttr buffer) {
  zrt::BufferOp op = memory->get(buffer).op;
  return Precision(op.getValueType().getElementType());
}

template <> void Calls::runOp(zrt::AllReduceOp op) {
  Contents &contents = read(op, op.getBufferAttr());
  AxisSet set = semantics.axes.getSet(op.getAxes());
  send(contents, set);
  Pieces sums =
      sumOverOwners(contents, getPrecision(op.getResultBuffer()), set);
  Contents &target = write(op, op.getResultBuffer(), contents.bucket);
  target.own = std::move(sums);
  if (target.hasOther)
    target.other = target.own;
}

void Calls::reduceScatter(Operation *op, const zrt::Exchange &exchange,
                          AxisSet set) {
  FlatSymbolRefAttr target = exchange.target;
  Contents &from = read(op, exchange.source);
  send(from, set);
  Precision sumType = getPrecision(target);
  Pieces sums = sumOverOwners(from, sumType, set);
  Contents &before =
      exchange.accumulates ? read(op, target) : require(op, target);
  if (exchange.accumulates && before.bucket && from.bucket &&
      before.bucket != from.bucket)
    proof.report.opError(op) << "adds elements of @" << from.bucket.getValue()
                             << " to those of @" << before.bucket.getValue();
  Pieces own = before.own, other = before.other;
  Contents &to = write(op, target, from.bucket);
  auto addSums = [&](const Pieces &old) {
    if (!exchange.accumulates)
      return sums;
    auto add = [&](const Number &a, const Number &b) -> Number {
      Number sum = a;
      sum.add(algebra, b);
      sum.narrow(sumType);
      return sum;
    };
    Pieces added;
    forEachPart(old, sums, [&](const Piece &x, const Piece &y, int64_t end) {
      append(added, {end, add(x.element, y.element), add(x.pad, y.pad)});
    });
    return added;
  };
  to.own = addSums(own);
  if (to.hasOther)
    to.other = addSums(other);
}

template <> void Calls::runOp(zrt::ReduceScatterOp op) {
  reduceScatter(op, op.getExchange(), semantics.axes.getSet(op.getAxes()));
}

template <> void Calls::runOp(zrt::ReduceScatterAddOp op) {
  reduceScatter(op, op.getExchange(), semantics.axes.getSet(op.getAxes()));
}

template <> void Calls::runOp(zrt::AllGatherOp op) {
  Contents &contents = read(op, op.getBufferAttr());
  AxisSet set = semantics.axes.getSet(op.getAxes());
  send(contents, set);
  if (!requireOwners(op, contents, set))
    return;
  write(op, op.getBufferAttr(), contents.bucket);
  if (!contents.hasOther)
    return;
  for (Piece &piece : contents.own)
    // A rank's own share is of that rank; the others would take it for theirs.
    for (Number *number : {&piece.element, &piece.pad})
      if (number->expr->getOwn() & set)
        number->expr =
            algebra.undefined("what one rank alone knows, gathered by all");
  contents.other = contents.own;
}

/// A sum over |set| as addends. Only their sum matters, so the addends that
/// were summed may stand for them.
static Expr keepOnRoot(Algebra &algebra, Expr sum, const MeshAxes &axes,
                       AxisSet set) {
  return algebra.mapTerms(sum, [&](const Term &term) -> Expr {
    BaseRef gradient = nullptr;
    Monomial rest;
    bool isLinear = true;
    for (auto [base, exponent] : term.monomial) {
      if (base->kind == BaseKind::gradient) {
        isLinear &= !gradient && exponent == 1 && (base->over & set) == 0;
        gradient = base;
        continue;
      }
      rest.push_back({base, exponent});
    }
    Expr factor = algebra.product(term.coefficient, rest);
    if (!gradient || !isLinear || (factor->getOwn() & set))
      return algebra.undefined("addends of what is no sum of gradients over " +
                               axes.describe(set));
    return algebra.multiply(
        factor, algebra.gradient(gradient->epoch, gradient->over | set));
  });
}

template <> void Calls::runOp(zrt::KeepOnRootOp op) {
  Contents &contents = read(op, op.getBufferAttr());
  AxisSet set = semantics.axes.getSet(op.getAxes());
  bool isAlike = !contents.hasOther || contents.isAlike();
  Contents &addends = write(op, op.getBufferAttr(), contents.bucket);
  for (Piece &piece : addends.own)
    for (Number *number : {&piece.element, &piece.pad}) {
      number->expr =
          isAlike
              ? ::keepOnRoot(algebra, number->expr, semantics.axes, set)
              : algebra.undefined("addends of what ranks do not have alike");
      number->holdsSum = true;
      number->beforeConversion.reset();
    }
  if (addends.hasOther)
    addends.other = addends.own;
}

template <> void Calls::runOp(zrt::CopyOp op) {
  Contents &from = read(op, op.getSourceAttr());
  const Contents &target = memory->get(op.getTargetAttr());
  // Slices of one divided row are no slices of a row divided otherwise.
  if (!target.hasOther && !requireOwners(op, from, target.owners))
    return;
  bool isSlice = !from.hasOther && target.hasOther && from.owners;
  Contents &to =
      isSlice ? writeOwned(op, op.getTargetAttr(), from.bucket, from.owners)
              : write(op, op.getTargetAttr(), from.bucket);
  to.own = from.own;
  if (!to.hasOther || isSlice)
    return;
  to.other = from.hasOther ? from.other : from.own;
  to.owners = from.owners;
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

Number &Calls::writeSlot(Operation *call, FlatSymbolRefAttr slots,
                         int64_t index) {
  if (llvm::is_contained(program.getInputs(), slots))
    proof.report.opError(call)
        << "writes " << slots << ", which the caller passes to apply";
  // From here on the caller may read the loss scale.
  if (committed && symbols.lookup<zrt::SlotsOp>(slots.getAttr()).isLossScale())
    proof.report.opError(call)
        << "writes " << slots
        << ", the loss scale, after the step is committed";
  // Settling reports the results as they are then.
  if (committed && llvm::is_contained(program.getResults(), slots))
    proof.report.opError(call)
        << "writes result " << slots << " after the step is committed";
  return getSlot(slots, index);
}

template <> void Calls::runOp(zrt::RunScalarsOp op) {
  auto scalars = symbols.lookup<zrt::ScalarsOp>(op.getProgramAttr().getAttr());
  auto values = evaluateBody(
      algebra, scalars.getBody().front(), {},
      [&](Operation &inner, ArrayRef<Number> operands) -> FailureOr<Number> {
        if (auto load = dyn_cast<zrt::LoadSlotOp>(inner))
          return getSlot(load.getSlotsAttr(), load.getIndex());
        if (auto store = dyn_cast<zrt::StoreSlotOp>(inner))
          return writeSlot(op, store.getSlotsAttr(), store.getIndex()) =
                     operands[0];
        return failure();
      },
      &conditions);
  if (failed(values))
    proof.report.count();
}

Number Calls::getScalar(bool isOnHost, FlatSymbolRefAttr slots, int64_t index) {
  if (!isOnHost)
    return getSlot(slots, index);
  auto refuse = [&](const char *why) -> Number {
    return {algebra.undefined("slot " + std::to_string(index) + " of @" +
                              slots.getValue().str() + ", which was " + why)};
  };
  auto it = hostSlots.find({slots.getAttr(), index});
  if (it == hostSlots.end())
    return refuse("not copied to the host");
  // A device that is the host has one slot, and copies nothing.
  if (!(it->second == getSlot(slots, index)))
    return refuse("written after it was copied to the host");
  return it->second;
}

template <> void Calls::runOp(zrt::AllocateOp op) {
  Contents &contents = get(op.getBufferAttr());
  if (filling.contains(contents.op.getMemory().getAttr()))
    proof.report.opError(op)
        << "allocates " << op.getBufferAttr()
        << ", into which gradients may arrive at the same time";
  if (contents.allocated)
    proof.report.opError(op)
        << "allocates " << op.getBufferAttr() << " a second time";
  for (StringAttr name :
       memory->inUse.lookup(contents.op.getMemory().getAttr())) {
    Contents &sharer = memory->get(name);
    if (&sharer != &contents && sharer.op.getOnDemand() && sharer.allocated)
      proof.report.opError(op)
          << "allocates " << op.getBufferAttr() << ", whose memory @"
          << name.getValue() << " uses";
  }
  contents.allocated = true;
  contents.forget(algebra, "memory of " + llvm::Twine(op.getBuffer()) +
                               " that nobody wrote since it was allocated");
}

template <> void Calls::runOp(zrt::ReleaseOp op) {
  require(op, op.getBufferAttr()).allocated = false;
}

template <> void Calls::runOp(zrt::SetRoleOp op) {
  require(op, op.getBufferAttr()).role = op.getRole();
}

/// A count of backward passes, which is known when the last one has ended.
Number Calls::makeCount(Expr count) {
  return inApply ? makeSource(algebra, count)
                 : Number{algebra.undefined("a count before the step's end")};
}

template <> void Calls::runOp(zrt::CountArrivalsOp op) {
  writeSlot(op, op.getSlotsAttr(), 0) =
      makeCount(algebra.symbol(kAccumulation));
  writeSlot(op, op.getSlotsAttr(), 1) =
      makeCount(getMissing(algebra, semantics.axes));
}

template <> void Calls::runOp(zrt::CountDeliveredOp op) {
  writeSlot(op, op.getSlotsAttr(), op.getIndex()) =
      makeCount(getDelivered(algebra, op.getParameter(), semantics.axes));
}

template <> void Calls::runOp(zrt::AllReduceScalarsOp op) {
  int64_t size =
      symbols.lookup<zrt::SlotsOp>(op.getSlotsAttr().getAttr()).size();
  AxisSet set = semantics.axes.getSet(op.getAxes());
  for (int64_t i = 0; i < size; ++i) {
    Number &slot = writeSlot(op, op.getSlotsAttr(), i);
    send(slot.expr, set, semantics.meetsOver);
    slot.expr = sumOverRanks(algebra, slot.expr, semantics.axes, set);
    slot.way = slot.getWayOfSum(set);
  }
}

template <> void Calls::runOp(zrt::CountReplicatedOnceOp op) {
  Number &slot = writeSlot(op, op.getSlotsAttr(), op.getIndex());
  slot.expr = countReplicatedOnce(algebra, slot.expr,
                                  semantics.axes.getSet(op.getAxes()));
}

template <> void Calls::runOp(zrt::CopyScalarsOp) { hostSlots = memory->slots; }

// checkOrder() is about these.
template <> void Calls::runOp(zrt::RecordOp) {}
template <> void Calls::runOp(zrt::WaitOp) {}
template <> void Calls::runOp(zrt::WaitWritableOp) {}

template <> void Calls::runOp(zrt::CommitOp op) {
  if (!inApply)
    proof.report.opError(op) << "commits a step that is not being applied";
  // Ranks exchange what a refused step needs, once for each commit.
  if (committed)
    proof.report.opError(op) << "commits a step a second time";
  committed = op;
  outcome = getSlot(op.getOutcomeAttr(), 0);
}

// In ArrivalCalls.cpp and Launch.cpp.
template <> void Calls::runOp(zrt::PackOp op);
template <> void Calls::runOp(zrt::FillMissingOp op);
template <> void Calls::runOp(zrt::LaunchOp op);

void Calls::run(Operation *call, Memory &on) {
  memory = &on;
  zrt::visitCall(cast<zrt::RuntimeCall>(call), [&](auto op) { runOp(op); });
}
