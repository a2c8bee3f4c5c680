//===- desync_check.cpp - Compares queued collectives ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/desync_check.h"

#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// More process groups than a process has at a time, and more collectives than
/// a rank can queue before it waits for the others.
static constexpr size_t mostGroups = 16384;
static constexpr size_t mostAhead = 65536;

DesyncCheck::DesyncCheck(ControlMessages &control) : control(control) {
  for (ControlMessage::Kind kind :
       {ControlMessage::Called, ControlMessage::Waiting, ControlMessage::Came,
        ControlMessage::LeftGroup})
    control.setReader(kind,
                      [this](int32_t from, const ControlMessage &message) {
                        return take(from, message);
                      });
}

void DesyncCheck::join(uint64_t group, std::vector<int32_t> members) {
  // Messages of other ranks may have arrived already.
  groups[group].members = std::move(members);
}

/// Null if the process group has ended.
DesyncCheck::Group *DesyncCheck::find(uint64_t group) {
  return over.count(group) ? nullptr : &groups[group];
}

/// The member that is |distance| behind this rank, in a ring.
int32_t DesyncCheck::neighbor(const Group &group, size_t distance) const {
  auto mine = std::find(group.members.begin(), group.members.end(),
                        control.link.rank());
  size_t index = size_t(mine - group.members.begin()) + distance;
  return group.members[index % group.members.size()];
}

zero_rt_status DesyncCheck::tell(int32_t to, ControlMessage::Kind kind,
                                 uint64_t group, uint64_t number,
                                 uint64_t step) {
  ControlMessage message;
  message.kind = kind;
  message.step = step;
  message.group = group;
  message.turn = number;
  return control.send(to, message);
}

zero_rt_status DesyncCheck::call(NamedTag &named) {
  Group &mine = groups[named.tag.group];
  named.tag.sequence = ++mine.calls;
  mine.mine.push_back(named);
  ControlMessage message;
  message.kind = ControlMessage::Called;
  message.group = named.tag.group;
  message.turn = named.tag.sequence;
  message.bytes = int32_t(sizeof(NamedTag));
  static_assert(sizeof(NamedTag) <= sizeof(message.data));
  std::memcpy(message.data, &named, sizeof(NamedTag));
  ZERO_RT_TRY(control.send(neighbor(mine, 1), message));
  for (auto &[rank, member] : mine.others)
    ZERO_RT_TRY(answer(named.tag.group, rank));
  return look();
}

zero_rt_status DesyncCheck::announce(uint64_t group, uint64_t number) {
  for (int32_t member : groups[group].members)
    if (member != control.link.rank())
      ZERO_RT_TRY(tell(member, ControlMessage::Waiting, group, number));
  return ZERO_RT_OK;
}

/// Tells |to| that this rank is in the collective that |to| asked about.
zero_rt_status DesyncCheck::answer(uint64_t group, int32_t to) {
  Group &mine = groups[group];
  uint64_t &asked = mine.others[to].asked;
  if (asked == 0 || mine.calls < asked)
    return ZERO_RT_OK;
  asked = 0;
  return tell(to, ControlMessage::Came, group, mine.calls);
}

zero_rt_status DesyncCheck::take(int32_t from, const ControlMessage &message) {
  bool isKnown = groups.count(message.group) != 0;
  bool isTooMuch = isKnown ? groups[message.group].theirs.size() >= mostAhead
                           : groups.size() >= mostGroups;
  if (isTooMuch) {
    return control.link.breakWith(
        ZERO_RT_MISMATCH, "rank " + std::to_string(from) + " sent " +
                              (isKnown ? "too many collectives ahead"
                                       : "messages of too many groups"));
  }
  Group *group = find(message.group);
  if (!group)
    return ZERO_RT_OK;
  Member &member = group->others[from];
  member.came = std::max(member.came, message.turn);
  if (message.kind == ControlMessage::LeftGroup)
    member.leftSteps.insert(message.step);
  if (message.kind == ControlMessage::Called)
    std::memcpy(&group->theirs.emplace_back(), message.data, sizeof(NamedTag));
  if (message.kind != ControlMessage::Waiting)
    return ZERO_RT_OK;
  member.asked = message.turn;
  // An error breaks the link, and later calls report it.
  (void)answer(message.group, from);
  return ZERO_RT_OK;
}

zero_rt_status DesyncCheck::compare(Group &group) {
  for (; !group.mine.empty() && !group.theirs.empty();
       group.mine.pop_front(), group.theirs.pop_front()) {
    std::string text = findDifference(control.link.rank(), group.mine.front(),
                                      neighbor(group, group.members.size() - 1),
                                      group.theirs.front());
    if (!text.empty())
      return control.link.breakWith(ZERO_RT_MISMATCH, text);
  }
  return ZERO_RT_OK;
}

zero_rt_status DesyncCheck::look() {
  ZERO_RT_TRY(control.poll());
  for (auto &[number, group] : groups)
    ZERO_RT_TRY(compare(group));
  return ZERO_RT_OK;
}

std::vector<int32_t> DesyncCheck::findMissing(uint64_t group,
                                              uint64_t number) const {
  std::vector<int32_t> missing;
  const Group &mine = groups.at(group);
  for (int32_t member : mine.members) {
    auto other = mine.others.find(member);
    if (member != control.link.rank() &&
        (other == mine.others.end() || other->second.came < number))
      missing.push_back(member);
  }
  return missing;
}

const char *DesyncCheck::findLoss(uint64_t group, uint64_t step, int32_t member,
                                  uint64_t number) const {
  const Group &mine = groups.at(group);
  auto found = mine.others.find(member);
  bool hasCome = found != mine.others.end() && found->second.came >= number;
  if (hasCome || member == control.link.rank())
    return nullptr;
  if (found != mine.others.end() && found->second.leftSteps.count(step))
    return " destroyed its step";
  return control.isGone(member) ? " is gone" : nullptr;
}

bool DesyncCheck::isGone(int32_t rank) const { return control.isGone(rank); }

void DesyncCheck::leaveStep(uint64_t group, uint64_t step) {
  for (int32_t member : groups[group].members)
    if (member != control.link.rank() && !control.link.isBroken())
      (void)tell(member, ControlMessage::LeftGroup, group, groups[group].calls,
                 step);
}

void DesyncCheck::leave(uint64_t group) {
  groups.erase(group);
  over.insert(group);
}
