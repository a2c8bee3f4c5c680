//===- ProtocolOps.cpp - Rules of when calls run --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zrt/Require.h"
#include "dialect/zrt/ZrtDialect.h"

using namespace mlir;
using namespace zrt;

LogicalResult SequenceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // sequence_c1
  if (getBuckets().size() != getHandlers().size())
    return emitOpError() << "has "
                         << zero::countOf(getBuckets().size(), "bucket")
                         << " and "
                         << zero::countOf(getHandlers().size(), "handler");
  for (auto [bucket, symbol] : llvm::zip_equal(
           getBuckets(), getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    FailureOr<HandlerOp> handler = require<HandlerOp>(symbols, *this, symbol);
    if (failed(handler))
      return failure();
    // sequence_c3
    for (auto fill : handler->getBody().getOps<FillMissingOp>())
      if (fill.getBucketAttr() != bucket)
        return emitOpError()
               << "handler " << symbol << " of bucket " << bucket
               << " fills what is missing in " << fill.getBucketAttr();
    // sequence_c4
    auto owner =
        lookup<zero::BucketOp>(symbols, *this, cast<FlatSymbolRefAttr>(bucket));
    if (!owner || owner.getValueType().getPresent().empty())
      continue;
    for (Operation &call : handler->getBody().front()) {
      if (isa<RecordOp, WaitOp>(call))
        continue; // waits and records concern streams, which every rank has
      zero::ValueType place = getPlace(symbols, &call);
      if (place && place.getPresent() == owner.getValueType().getPresent())
        continue;
      InFlightDiagnostic diag =
          call.emitOpError() << "runs where bucket " << bucket
                             << " is closed, on its pipeline stages only, and "
                                "works on what is elsewhere, too";
      diag.attachNote(owner.getLoc()) << "bucket is declared here";
      return diag;
    }
  }
  // sequence_c2
  auto program = (*this)->getParentOfType<ProgramOp>();
  llvm::DenseSet<Attribute> tables, listed;
  for (auto op : program.getOps<BucketTableOp>())
    tables.insert(op.getBucketAttr());
  for (Attribute symbol : getBuckets()) {
    if (!tables.contains(symbol))
      return emitOpError() << "bucket " << symbol
                           << " has no zrt.bucket_table in this program";
    if (!listed.insert(symbol).second)
      return emitOpError() << "bucket " << symbol << " is listed twice";
  }
  for (auto op : program.getOps<BucketTableOp>())
    if (!listed.contains(op.getBucketAttr()))
      return emitOpError() << "bucket " << op.getBucketAttr()
                           << " has arrivals and is not listed";
  return success();
}

/// Whether the state of |transition| lists |event|.
static bool hasEvent(TransitionOp transition, Event event) {
  return llvm::any_of(
      transition->getParentOfType<ProgramOp>().getOps<TransitionOp>(),
      [&](TransitionOp other) {
        return other.getEvent() == event &&
               other.getState() == transition.getState();
      });
}

/// transition_c5
static LogicalResult verifyMeasured(TransitionOp measure) {
  if (measure.getEvent() != Event::measure)
    return success();
  bool applies = false, discards = false;
  for (auto other :
       measure->getParentOfType<ProgramOp>().getOps<TransitionOp>()) {
    if (other.getState() != measure.getNext())
      continue;
    bool isApply = other.getEvent() == Event::apply;
    bool isDiscard = other.getEvent() == Event::discard;
    applies |= isApply;
    discards |= isDiscard;
    if (isApply || isDiscard)
      continue;
    InFlightDiagnostic diag =
        measure.emitOpError()
        << "leads to state '" << measure.getNext() << "', which takes "
        << stringifyEvent(other.getEvent()) << ": only apply and discard may "
        << "follow measure";
    diag.attachNote(other.getLoc()) << "the other transition is here";
    return diag;
  }
  if (applies && discards)
    return success();
  return measure.emitOpError()
         << "leads to state '" << measure.getNext()
         << "', which must take apply and discard, and has no transition on "
         << (applies ? "discard" : "apply");
}

LogicalResult TransitionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // transition_c1
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode()) {
    auto other = dyn_cast<TransitionOp>(op);
    // transition_c3
    if (other && other.getState() == getState() && !other.begins() &&
        !begins() && other.getSequenceAttr() != getSequenceAttr()) {
      InFlightDiagnostic diag = emitOpError()
                                << "events of state '" << getState()
                                << "' must have one sequence, or none";
      diag.attachNote(other.getLoc()) << "another one is here";
      return diag;
    }
    if (other && other.getState() == getState() &&
        other.getEvent() == getEvent()) {
      InFlightDiagnostic diag = emitOpError() << "state '" << getState()
                                              << "' has two transitions on "
                                              << stringifyEvent(getEvent());
      diag.attachNote(other.getLoc()) << "the other one is here";
      return diag;
    }
  }
  if (begins() && getSequenceAttr())
    return emitOpError() << "begins a backward pass, and has a sequence";
  // transition_c6
  if (getSequenceAttr() && !hasEvent(*this, Event::arrive))
    return emitOpError() << "has a sequence, and no gradient arrives in state '"
                         << getState() << "'";
  // transition_c4
  if (getEvent() == Event::begin_last && !hasEvent(*this, Event::begin))
    return emitOpError() << "state '" << getState()
                         << "' has no transition on begin, which callers "
                            "without a hint need";
  // transition_c7
  if (isOfUnit() && (getNext() != getState() || !getHandlers().empty()))
    return emitOpError() << stringifyEvent(getEvent())
                         << " must lead to its own state and run no handlers: "
                            "those of the unit run";
  Event pair = getEvent() == Event::unshard ? Event::reshard : Event::unshard;
  if (isOfUnit() && !hasEvent(*this, pair))
    return emitOpError() << "state '" << getState() << "' has no transition on "
                         << stringifyEvent(pair);
  // transition_c5
  if (failed(verifyMeasured(*this)))
    return failure();
  // transition_c2
  for (auto symbol : getHandlers().getAsRange<FlatSymbolRefAttr>())
    if (failed(require<HandlerOp>(symbols, *this, symbol)))
      return failure();
  if (!getSequenceAttr())
    return success();
  return require<SequenceOp>(symbols, *this, getSequenceAttr());
}

LogicalResult UnitTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // unit_table_c1
  if (!lookup<zero::UnitOp>(symbols, *this, getUnitAttr()))
    return emitOpError() << "refers to " << getUnitAttr()
                         << ", which is no zero.unit of this module";
  auto program = (*this)->getParentOfType<ProgramOp>();
  for (auto other : program.getOps<UnitTableOp>())
    if (other != *this && other.getUnitAttr() == getUnitAttr()) {
      InFlightDiagnostic diag = emitOpError() << "is a second table of unit "
                                              << getUnitAttr();
      diag.attachNote(other.getLoc()) << "the other one is here";
      return diag;
    }
  // unit_table_c3
  if (!getUnshardAttr() != !getReshardAttr())
    return emitOpError() << "has one handler, expected one for unshard and one "
                            "for reshard";
  if (isElsewhere())
    return success();
  for (FlatSymbolRefAttr symbol : {getUnshardAttr(), getReshardAttr()})
    if (failed(require<HandlerOp>(symbols, *this, symbol)))
      return failure();
  return success();
}

LogicalResult HandlerOp::verifyRegions() {
  for (Operation &op : getBody().getOps()) {
    // handler_c1
    auto call = dyn_cast<RuntimeCall>(op);
    if (!call)
      return op.emitOpError() << "is no call of the runtime and not allowed in "
                                 "a zrt.handler";
    // handler_c2
    if (call.getStream() == Stream::caller && !isa<WaitOp>(op))
      return op.emitOpError() << "queues work to stream 'caller', which is not "
                                 "a stream of the device";
  }
  return success();
}
