//===- Protocol.cpp - What a protocol must allow --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// That a step may have any number of backwards, and be given up at any time.
void ProgramReader::requireEvents(const Node &node) {
  SmallVector<zrt::Event> events;
  if (node.isOpen)
    events = {zrt::Event::arrive, zrt::Event::accumulate, zrt::Event::apply,
              zrt::Event::discard};
  else if (node.hasEarlier)
    events = {zrt::Event::begin, zrt::Event::apply, zrt::Event::discard};
  else
    events = {zrt::Event::begin};
  for (zrt::Event event : events)
    if (!getTransition(node.state, event))
      proof.report.error(program)
          << zrt::stringifyEvent(event) << " is refused in state '"
          << node.state.getValue() << "'"
          << (node.isOpen       ? ", in which a backward is open"
              : node.hasEarlier ? ", after a backward"
                                : ", in which a step begins");
}

/// Whether ranks meet in the handlers of |transition|, other than at the end.
bool ProgramReader::communicatesBeforeApply(zrt::TransitionOp transition) {
  if (transition.getEvent() >= zrt::Event::apply)
    return false;
  SmallVector<Attribute> handlers(transition.getHandlers().getValue());
  if (FlatSymbolRefAttr symbol = transition.getSequenceAttr())
    llvm::append_range(
        handlers, program.lookupSymbol<zrt::SequenceOp>(symbol).getHandlers());
  return llvm::any_of(handlers, [&](Attribute symbol) {
    auto handler =
        program.lookupSymbol<zrt::HandlerOp>(cast<FlatSymbolRefAttr>(symbol));
    return llvm::any_of(handler.getBody().front(), [](Operation &call) {
      return zrt::isCollective(&call);
    });
  });
}

/// Ranks with unequal numbers of backwards apply from different states, and
/// agree to refuse the step only if they meet at the same collectives on the
/// way.
void ProgramReader::compareCollectives(zrt::TransitionOp transition) {
  SmallVector<std::pair<StringRef, DictionaryAttr>> collectives;
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    for (Operation &call :
         program.lookupSymbol<zrt::HandlerOp>(symbol).getBody().front())
      if (zrt::isCollective(&call))
        collectives.push_back(
            {call.getName().getStringRef(), call.getAttrDictionary()});
  if (!appliedBy) {
    applyCollectives = std::move(collectives);
    appliedBy = transition;
    return;
  }
  if (collectives == applyCollectives || meaning.communicatesInLoop)
    return;
  InFlightDiagnostic diagnostic = proof.report.error(transition);
  diagnostic
      << "apply in state '" << transition.getState()
      << "' has other collectives than in state '" << appliedBy.getState()
      << "': ranks with unequal numbers of backwards would wait for each "
         "other for ever";
  diagnostic.attachNote(appliedBy.getLoc()) << "the other one";
}

/// A step that is over leads to where steps begin.
bool ProgramReader::returns(zrt::TransitionOp transition) {
  StringAttr first = nodes.front().state;
  if (transition.getNextAttr() == first)
    return true;
  proof.report.error(transition)
      << zrt::stringifyEvent(transition.getEvent()) << " leads to state '"
      << transition.getNext() << "', expected '" << first.getValue()
      << "', where steps begin";
  return false;
}
