//===- ProtocolOps.cpp - Rules of when calls run --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zrt/Require.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/ADT/MapVector.h"

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

/// The transitions of one state.
using Listed = ArrayRef<TransitionOp>;

static bool hasEvent(Listed listed, Event event) {
  return llvm::any_of(listed, [&](TransitionOp transition) {
    return transition.getEvent() == event;
  });
}

/// transition_c1 and transition_c3, of |transition| and those before it.
static LogicalResult verifyAlike(TransitionOp transition, Listed before) {
  auto refuse = [&](const llvm::Twine &why, TransitionOp other,
                    StringRef which) {
    InFlightDiagnostic diag = transition.emitOpError() << why;
    diag.attachNote(other.getLoc()) << which << " one is here";
    return diag;
  };
  for (TransitionOp other : llvm::reverse(before)) {
    if (!other.begins() && !transition.begins() &&
        other.getSequenceAttr() != transition.getSequenceAttr())
      return refuse("events of state '" + transition.getState() +
                        "' must have one sequence, or none",
                    other, "another");
    if (other.getEvent() == transition.getEvent())
      return refuse("state '" + transition.getState() +
                        "' has two transitions on " +
                        stringifyEvent(transition.getEvent()),
                    other, "the other");
  }
  return success();
}

/// transition_c5, of a |measure| that leads to a state of |next|.
static LogicalResult verifyMeasured(TransitionOp measure, Listed next) {
  for (TransitionOp other : next) {
    if (other.getEvent() == Event::apply || other.getEvent() == Event::discard)
      continue;
    InFlightDiagnostic diag =
        measure.emitOpError()
        << "leads to state '" << measure.getNext() << "', which takes "
        << stringifyEvent(other.getEvent()) << ": only apply and discard may "
        << "follow measure";
    diag.attachNote(other.getLoc()) << "the other transition is here";
    return diag;
  }
  bool applies = hasEvent(next, Event::apply);
  if (applies && hasEvent(next, Event::discard))
    return success();
  return measure.emitOpError()
         << "leads to state '" << measure.getNext()
         << "', which must take apply and discard, and has no transition on "
         << (applies ? "discard" : "apply");
}

/// transition_c4, transition_c6 and transition_c7, of a |transition| beside
/// those that its state lists.
static LogicalResult verifyBeside(TransitionOp transition, Listed listed) {
  if (transition.getSequenceAttr() && !hasEvent(listed, Event::arrive))
    return transition.emitOpError()
           << "has a sequence, and no gradient arrives in state '"
           << transition.getState() << "'";
  auto requireEvent = [&](Event event, StringRef why) -> LogicalResult {
    if (hasEvent(listed, event))
      return success();
    return transition.emitOpError()
           << "state '" << transition.getState() << "' has no transition on "
           << stringifyEvent(event) << why;
  };
  if (transition.getEvent() == Event::begin_last)
    return requireEvent(Event::begin, ", which callers without a hint need");
  if (transition.getEvent() == Event::unshard)
    return requireEvent(Event::reshard, "");
  if (transition.getEvent() == Event::reshard)
    return requireEvent(Event::unshard, "");
  return success();
}

LogicalResult zrt::verifyProtocol(ProgramOp program) {
  llvm::MapVector<StringAttr, SmallVector<TransitionOp>> states;
  for (auto transition : program.getOps<TransitionOp>())
    states[transition.getStateAttr()].push_back(transition);
  for (auto &[state, listed] : states)
    for (auto [i, transition] : llvm::enumerate(listed)) {
      if (failed(verifyAlike(transition, Listed(listed).take_front(i))) ||
          failed(verifyBeside(transition, listed)))
        return failure();
      if (transition.getEvent() == Event::measure &&
          failed(verifyMeasured(transition,
                                states.lookup(transition.getNextAttr()))))
        return failure();
    }
  return success();
}

LogicalResult TransitionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // transition_c3
  if (begins() && getSequenceAttr())
    return emitOpError() << "begins a backward pass, and has a sequence";
  // transition_c7
  if (isOfUnit() && (getNext() != getState() || !getHandlers().empty()))
    return emitOpError() << stringifyEvent(getEvent())
                         << " must lead to its own state and run no handlers: "
                            "those of the unit run";
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
