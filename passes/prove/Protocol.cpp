//===- Protocol.cpp - What a protocol must allow --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

#include "dialect/zrt/Stages.h"

#include <set>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Checks that a step may have any number of backward passes, or one if the
/// program declares this, and may be discarded at any time. A step that can be
/// measured can be measured whenever it can be applied.
void ProgramReader::requireEvents(const Node &node) {
  SmallVector<zrt::Event> events;
  if (node.isOpen)
    events = {zrt::Event::arrive, zrt::Event::accumulate, zrt::Event::apply,
              zrt::Event::discard};
  else if (node.hasEarlier)
    events = {zrt::Event::apply, zrt::Event::discard};
  else
    events = {zrt::Event::begin};
  if (node.hasEarlier && !node.isOpen && !semantics.oneBackward)
    events.push_back(zrt::Event::begin);
  if (measures && (node.isOpen || node.hasEarlier))
    events.push_back(zrt::Event::measure);
  if (!program.getOps<zrt::UnitTableOp>().empty())
    events.append({zrt::Event::unshard, zrt::Event::reshard});
  if (node.hasEarlier && semantics.oneBackward)
    for (zrt::TransitionOp op : transitions)
      if (op.getStateAttr() == node.state && op.begins())
        proof.report.error(op)
            << "a second backward pass begins in state '"
            << node.state.getValue() << "', and the program takes one";
  for (zrt::Event event : events)
    if (!getTransition(node.state, event))
      proof.report.error(program)
          << zrt::stringifyEvent(event) << " is refused in state '"
          << node.state.getValue() << "'"
          << (node.isOpen       ? ", in which a backward pass is open"
              : node.hasEarlier ? ", after a backward pass"
                                : ", in which a step begins");
}

/// The collectives of |transition|, with those of the buckets that it closes.
Collectives ProgramReader::getCollectives(zrt::TransitionOp transition) {
  SmallVector<Attribute> handlers;
  if (FlatSymbolRefAttr symbol = transition.getSequenceAttr())
    llvm::append_range(
        handlers,
        symbols.lookup<zrt::SequenceOp>(symbol.getAttr()).getHandlers());
  llvm::append_range(handlers, transition.getHandlers());
  Collectives found;
  for (Attribute symbol : handlers) {
    auto handler = symbols.lookup<zrt::HandlerOp>(
        cast<FlatSymbolRefAttr>(symbol).getAttr());
    for (Operation &call : handler.getBody().front())
      if (auto meeting = dyn_cast<zrt::Collective>(call)) {
        Collective collective;
        collective.name = call.getName().getStringRef();
        // Others say nothing to other ranks.
        for (NamedAttribute attribute : call.getAttrs())
          if (llvm::is_contained(call.getName().getAttributeNames(),
                                 attribute.getName()))
            collective.attributes.push_back(attribute);
        collective.axes = semantics.axes.getSet(meeting.getAxes());
        if (ValueType place = zrt::getPlace(places, &call))
          collective.stages = place.getPresent();
        if (collective.axes)
          found.push_back(std::move(collective));
      }
  }
  return found;
}

/// A stage closes a backward pass when its gradients have arrived, and another
/// one may begin it only after that: they must not wait for each other there.
void ProgramReader::checkStages(zrt::TransitionOp op,
                                const Collective &collective) {
  for (const AxisCoordinate &c : collective.stages)
    if (semantics.axes.getSet({c.axis}) & collective.axes) {
      proof.report.error(op)
          << "ranks of several pipeline stages meet where a backward pass is "
             "closed, and one may not have begun it yet";
      return;
    }
}

/// Whether a backward pass that is open in |state| was begun as the last.
bool ProgramReader::isHinted(StringAttr state) {
  bool hinted = false;
  for (zrt::TransitionOp op : transitions) {
    if (op.getNextAttr() != state || !op.begins())
      continue;
    if (op.getEvent() == zrt::Event::begin)
      return false;
    hinted = true;
  }
  return hinted;
}

/// The collectives of |all| in which ranks on |stage| take part.
static Collectives takePart(const Collectives &all, const zrt::Stage &stage) {
  Collectives part;
  llvm::copy_if(all, std::back_inserter(part), [&](const Collective &one) {
    return llvm::all_of(stage, [&](const AxisCoordinate &here) {
      bool isEverywhere = true;
      for (const AxisCoordinate &c : one.stages)
        isEverywhere &= c.axis != here.axis;
      return isEverywhere || llvm::is_contained(one.stages, here);
    });
  });
  return part;
}

/// Whether |all| begins with |first|, and goes on with a collective that ranks
/// tell from |begin|.
static bool goesOnOtherwise(const Collectives &all, const Collectives &first,
                            const Collective &begin) {
  return all.size() > first.size() &&
         ArrayRef(all).take_front(first.size()) == ArrayRef(first) &&
         !all[first.size()].looksAs(begin);
}

/// Ranks may meet when a backward pass that was begun as the last is closed. It
/// is a precondition that a wrong hint goes to all ranks. If one rank alone
/// gets it, this rank comes to the same collectives once more, and other ranks
/// must be at another collective by then. Ranks of the same process group
/// detect this. Ranks of other groups wait until a timeout.
void ProgramReader::checkHints() {
  for (zrt::TransitionOp op : closesHinted) {
    Collectives all = getCollectives(op), applied;
    if (firstApply)
      applied = firstApply->collectives;
    // Each stage has its own first one.
    bool isFoundOut = llvm::all_of(
        zrt::enumerateStages(program), [&](const zrt::Stage &stage) {
          Collectives again = takePart(all, stage);
          return again.empty() || goesOnOtherwise(takePart(applied, stage),
                                                  again, again.front());
        });
    if (!isFoundOut)
      proof.report.error(op)
          << "what ranks meet at in state '" << op.getState()
          << "' is not what apply begins with, and goes on from: a rank that "
             "is told in vain that no backward pass follows would take "
             "numbers of others for what they are not";
  }
}

/// The axes over which ranks meet in each backward pass. Then those that make
/// more of them wait for the others for ever, or find them at another
/// collective. Where they meet in some backward passes only is left in
/// |meetsSometimes|.
void ProgramReader::findMeetings() {
  // States that can be reached, with a backward pass open or closed.
  std::set<std::pair<std::string, bool>> seen;
  std::vector<std::pair<StringAttr, bool>> stack{
      {transitions.front().getStateAttr(), false}};
  SmallVector<zrt::TransitionOp> closing, applying;
  while (!stack.empty()) {
    auto [state, isOpen] = stack.back();
    stack.pop_back();
    if (!seen.insert({state.str(), isOpen}).second)
      continue;
    for (zrt::TransitionOp op : transitions) {
      zrt::Event event = op.getEvent();
      if (op.getStateAttr() != state || event == zrt::Event::arrive ||
          event == zrt::Event::discard || op.isOfUnit())
        continue;
      if (event == zrt::Event::apply || event == zrt::Event::measure) {
        applying.push_back(op);
        continue;
      }
      Collectives collectives = getCollectives(op);
      if (op.begins() && !collectives.empty())
        proof.report.error(op)
            << "ranks meet where a backward pass begins, before "
               "they know that all begin one";
      if (event == zrt::Event::accumulate && isHinted(state)) {
        closesHinted.insert(op);
        semantics.takesHints |= !collectives.empty();
        for (const Collective &collective : collectives)
          checkStages(op, collective);
      } else if (event == zrt::Event::accumulate) {
        closing.push_back(op);
        for (const Collective &collective : collectives) {
          semantics.addMeeting(collective.stages, collective.axes);
          checkStages(op, collective);
        }
      }
      stack.push_back({op.getNextAttr(), op.begins()});
    }
  }
  if (!semantics.meetsOver && semantics.meetsOnStages.empty())
    return;
  // Ranks may get different hints. A rank with a hint must meet the others at
  // the same collectives, which are not compared where ranks meet anyway.
  for (zrt::TransitionOp op : transitions) {
    if (op.getEvent() != zrt::Event::begin_last)
      continue;
    zrt::TransitionOp plain =
        getTransition(op.getStateAttr(), zrt::Event::begin);
    bool isSame = plain && plain.getNextAttr() == op.getNextAttr() &&
                  plain.getHandlers() == op.getHandlers();
    if (!isSame)
      proof.report.error(op)
          << "a backward pass begins as the last one in state '"
          << op.getState()
          << "', and ranks meet in each backward pass, where those without "
             "this hint would meet others; leave out the states for the hint";
  }
  for (zrt::TransitionOp op : closing) {
    StepSemantics own;
    for (const Collective &collective : getCollectives(op))
      own.addMeeting(collective.stages, collective.axes);
    bool isEach = own.meetsOver == semantics.meetsOver;
    for (auto &[stages, set] : semantics.meetsOnStages)
      isEach &= own.getMeetings(stages) == semantics.getMeetings(stages);
    if (!isEach)
      meetsSometimes.insert(op);
  }
  // Apply closes an open backward pass as accumulate does. The collectives that
  // follow must differ from those of a rank that closes one more backward pass.
  for (zrt::TransitionOp op : applying) {
    Collectives all = getCollectives(op), first;
    if (zrt::TransitionOp open =
            getTransition(op.getStateAttr(), zrt::Event::accumulate))
      first = getCollectives(open);
    bool isDistinct = llvm::all_of(
        zrt::enumerateStages(program), [&](const zrt::Stage &stage) {
          Collectives here = takePart(all, stage);
          Collectives closed = takePart(first, stage);
          return llvm::all_of(closing, [&](zrt::TransitionOp other) {
            Collectives begin = takePart(getCollectives(other), stage);
            return begin.empty() ||
                   goesOnOtherwise(here, closed, begin.front());
          });
        });
    if (!isDistinct)
      meetsSometimes.insert(op);
  }
}

Collectives ProgramReader::getCollectives(ArrayRef<zrt::TransitionOp> path) {
  Collectives collectives;
  for (zrt::TransitionOp transition : path)
    llvm::append_range(collectives, getCollectives(transition));
  return collectives;
}

/// The collectives up to the end of |path| that are not part of each backward
/// pass.
Collectives ProgramReader::getMet(const Node &node,
                                  ArrayRef<zrt::TransitionOp> path) {
  Collectives collectives = node.met;
  llvm::append_range(collectives, getCollectives(path));
  llvm::erase_if(collectives, [&](const Collective &collective) {
    return (collective.axes & ~semantics.getMeetings(collective.stages)) == 0;
  });
  return collectives;
}

std::string prove::describe(ArrayRef<zrt::TransitionOp> path) {
  zrt::TransitionOp first = path.front();
  return (path.size() > 1 ? "after measure in state '" : "in state '") +
         first.getState().str() + "'";
}

/// Checks that the ranks |who| meet at the same collectives as on the |first|
/// path, with the same numbers.
void ProgramReader::compareMeetings(Meetings mine,
                                    std::optional<Meetings> &first,
                                    StringRef who) {
  if (!first) {
    first = std::move(mine);
    return;
  }
  bool isSame = mine.collectives == first->collectives;
  if (isSame && mine.sent == first->sent)
    return;
  InFlightDiagnostic diagnostic = proof.report.error(mine.path.front());
  diagnostic << "apply " << prove::describe(mine.path) << " "
             << (isSame ? "sends other numbers" : "has other collectives")
             << " than " << prove::describe(first->path) << ": " << who
             << " would "
             << (isSame ? "take one for the other"
                        : "wait for each other for ever");
  diagnostic.attachNote(first->path.front().getLoc()) << "the other one";
}

/// Ranks with unequal numbers of backward passes apply from different states.
/// They agree to refuse the step only if they meet at the same collectives on
/// the way. Ranks that meet in each backward pass have equal numbers and apply
/// from one state. From one state all apply with measure, or all without: that
/// is a precondition, and their collectives are compared nevertheless.
void ProgramReader::compareCollectives(const Node &node,
                                       ArrayRef<zrt::TransitionOp> path) {
  llvm::SmallVector<zrt::TransitionOp, 2> own(path);
  compareMeetings({own, getMet(node, path), calls->sent}, firstApply,
                  "ranks with unequal numbers of backward passes");
  if (!proof.report.hasErrors())
    compareMeetings({own, getCollectives(path), calls->sentInApply},
                    firstFromState, "ranks that measure and ranks that do not");
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
