//===- witness.cpp - Who is in which collective of a fabric ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/witness.h"

#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

Witness::Witness(Notes &notes) : notes(notes) {
  for (Note::Kind kind :
       {Note::Called, Note::Waiting, Note::Came, Note::LeftGroup})
    notes.setReader(
        kind, [this](int32_t from, const Note &note) { take(from, note); });
}

void Witness::join(uint64_t group, std::vector<int32_t> members) {
  // Notes of other ranks may have arrived already.
  groups[group].members = std::move(members);
}

/// Null if the process group has ended.
Witness::Group *Witness::find(uint64_t group) {
  return over.count(group) ? nullptr : &groups[group];
}

/// The member that is |distance| behind this rank, in a ring.
int32_t Witness::neighbor(const Group &group, size_t distance) const {
  auto mine =
      std::find(group.members.begin(), group.members.end(), notes.link.rank());
  size_t index = size_t(mine - group.members.begin()) + distance;
  return group.members[index % group.members.size()];
}

zero_rt_status Witness::tell(int32_t to, Note::Kind kind, uint64_t group,
                             uint64_t number, uint64_t step) {
  Note note;
  note.kind = kind;
  note.step = step;
  note.group = group;
  note.turn = number;
  return notes.send(to, note);
}

zero_rt_status Witness::call(NamedTag &named) {
  Group &mine = groups[named.tag.group];
  named.tag.sequence = ++mine.calls;
  mine.mine.push_back(named);
  Note note;
  note.kind = Note::Called;
  note.group = named.tag.group;
  note.turn = named.tag.sequence;
  note.bytes = int32_t(sizeof(NamedTag));
  static_assert(sizeof(NamedTag) <= sizeof(note.data));
  std::memcpy(note.data, &named, sizeof(NamedTag));
  ZERO_RT_TRY(notes.send(neighbor(mine, 1), note));
  for (auto &[rank, member] : mine.others)
    ZERO_RT_TRY(answer(named.tag.group, rank));
  return look();
}

zero_rt_status Witness::announce(uint64_t group, uint64_t number) {
  for (int32_t member : groups[group].members)
    if (member != notes.link.rank())
      ZERO_RT_TRY(tell(member, Note::Waiting, group, number));
  return ZERO_RT_OK;
}

/// Tells |to| that this rank is in the collective that |to| asked about.
zero_rt_status Witness::answer(uint64_t group, int32_t to) {
  Group &mine = groups[group];
  uint64_t &asked = mine.others[to].asked;
  if (asked == 0 || mine.calls < asked)
    return ZERO_RT_OK;
  asked = 0;
  return tell(to, Note::Came, group, mine.calls);
}

void Witness::take(int32_t from, const Note &note) {
  Group *group = find(note.group);
  if (!group)
    return;
  Member &member = group->others[from];
  member.came = std::max(member.came, note.turn);
  if (note.kind == Note::LeftGroup)
    member.leftSteps.insert(note.step);
  if (note.kind == Note::Called)
    std::memcpy(&group->theirs.emplace_back(), note.data, sizeof(NamedTag));
  if (note.kind != Note::Waiting)
    return;
  member.asked = note.turn;
  // An error breaks the link, and later calls report it.
  (void)answer(note.group, from);
}

zero_rt_status Witness::compare(Group &group) {
  for (; !group.mine.empty() && !group.theirs.empty();
       group.mine.pop_front(), group.theirs.pop_front()) {
    std::string text = findDifference(notes.link.rank(), group.mine.front(),
                                      neighbor(group, group.members.size() - 1),
                                      group.theirs.front());
    if (!text.empty())
      return notes.link.breakWith(ZERO_RT_MISMATCH, text);
  }
  return ZERO_RT_OK;
}

zero_rt_status Witness::look() {
  ZERO_RT_TRY(notes.poll());
  for (auto &[number, group] : groups)
    ZERO_RT_TRY(compare(group));
  return ZERO_RT_OK;
}

std::vector<int32_t> Witness::findMissing(uint64_t group,
                                          uint64_t number) const {
  std::vector<int32_t> missing;
  const Group &mine = groups.at(group);
  for (int32_t member : mine.members) {
    auto other = mine.others.find(member);
    if (member != notes.link.rank() &&
        (other == mine.others.end() || other->second.came < number))
      missing.push_back(member);
  }
  return missing;
}

const char *Witness::findLoss(uint64_t group, uint64_t step, int32_t member,
                              uint64_t number) const {
  const Group &mine = groups.at(group);
  auto found = mine.others.find(member);
  bool hasCome = found != mine.others.end() && found->second.came >= number;
  if (hasCome || member == notes.link.rank())
    return nullptr;
  if (found != mine.others.end() && found->second.leftSteps.count(step))
    return " destroyed its step";
  return notes.isGone(member) ? " is gone" : nullptr;
}

void Witness::leaveStep(uint64_t group, uint64_t step) {
  for (int32_t member : groups[group].members)
    if (member != notes.link.rank() && !notes.link.isBroken())
      (void)tell(member, Note::LeftGroup, group, groups[group].calls, step);
}

void Witness::leave(uint64_t group) {
  groups.erase(group);
  over.insert(group);
}
