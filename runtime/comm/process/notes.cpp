//===- notes.cpp - What ranks tell each other in passing ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/notes.h"

#include "core/pause.h"
#include "core/status.h"

#include <cstdio>
#include <cstring>

using namespace zero_rt;

Notes::Notes(Link &link) : link(link) {
  for (int32_t rank = 0; rank < link.ranks(); ++rank)
    if (rank != link.rank())
      incoming.emplace(rank, link);
}

/// Whether another rank can have made |note|.
static bool isNote(const Note &note) {
  if (note.kind < 0 || note.kind >= Note::NumKinds || note.bytes < 0 ||
      note.bytes > int32_t(sizeof(note.data)))
    return false;
  if (note.kind != Note::Called && note.kind != Note::Named)
    return true;
  NamedTag named;
  std::memcpy(&named, note.data, sizeof(named));
  return note.bytes == int32_t(sizeof(named)) && isValid(named);
}

zero_rt_status Notes::send(int32_t to, const Note &note) {
  Outgoing &next = outgoing.emplace_back(link);
  next.note = note;
  zero_rt_status status =
      next.transfers.send(to, NoteChannel, &next.note, sizeof(Note));
  // A rank that is gone reads no notes.
  return status == ZERO_RT_TIMEOUT ? zero_rt_status(ZERO_RT_OK) : status;
}

void Notes::sendToAll(const Note &note) {
  for (const auto &[rank, next] : incoming)
    if (!link.isBroken())
      (void)send(rank, note);
}

zero_rt_status Notes::tell(int32_t to, Note::Kind kind) {
  Note note;
  note.kind = kind;
  return send(to, note);
}

zero_rt_status Notes::ask(const std::vector<int32_t> &ranks) {
  for (int32_t rank : ranks) {
    incoming.at(rank).hasAnswered = false;
    ZERO_RT_TRY(tell(rank, Note::Ask));
  }
  return ZERO_RT_OK;
}

bool Notes::hasAnswered(int32_t rank) const {
  return incoming.at(rank).hasAnswered;
}

zero_rt_status Notes::pollFrom(int32_t from, Incoming &next) {
  while (!next.isGone) {
    zero_rt_status status = ZERO_RT_OK;
    if (!next.isAwaited)
      status =
          next.transfers.receive(from, NoteChannel, &next.note, sizeof(Note));
    next.isAwaited = true;
    if (!status)
      status = next.transfers.poll();
    next.isGone = status == ZERO_RT_TIMEOUT;
    if (next.isGone)
      break;
    ZERO_RT_TRY(status);
    if (!next.transfers.isDone())
      break;
    next.isAwaited = false;
    if (!isNote(next.note))
      return link.breakWith(ZERO_RT_MISMATCH,
                            "rank " + std::to_string(from) +
                                " sent bytes that are no note");
    next.hasAnswered |= next.note.kind == Note::Answer;
    if (next.note.kind == Note::LeftRuntime)
      next.left = next.note.turn;
    if (next.note.kind == Note::Named) {
      next.hasNamed = true;
      std::memcpy(&next.named, next.note.data, sizeof(NamedTag));
    }
    if (next.note.kind == Note::Ask)
      ZERO_RT_TRY(tell(from, Note::Answer));
    if (const Reader &reader = readers[size_t(next.note.kind)])
      reader(from, next.note);
  }
  return ZERO_RT_OK;
}

zero_rt_status Notes::poll() {
  for (auto note = outgoing.begin(); note != outgoing.end();) {
    zero_rt_status status = note->transfers.poll();
    if (status && status != ZERO_RT_TIMEOUT)
      return status;
    bool isDone = status || note->transfers.isDone();
    note = isDone ? outgoing.erase(note) : std::next(note);
  }
  for (auto &[rank, next] : incoming)
    ZERO_RT_TRY(pollFrom(rank, next));
  return ZERO_RT_OK;
}

void Notes::leaveRuntime() {
  Note note;
  note.kind = Note::LeftRuntime;
  note.turn = uint64_t(link.incarnation);
  sendToAll(note);
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (Pause pause; !outgoing.empty() && !link.isBroken() && !poll() &&
                    std::chrono::steady_clock::now() < end;
       pause())
    ;
}

bool Notes::hasLeft(int32_t rank) const {
  // What a rank left may be an earlier runtime than the present one.
  uint64_t left = incoming.at(rank).left;
  return left && left >= uint64_t(link.incarnation) &&
         left >= uint64_t(link.incarnations[size_t(rank)]);
}

zero_rt_status Notes::tradeNames(int32_t rank, const NamedTag &mine,
                                 NamedTag &theirs) {
  Note note;
  note.kind = Note::Named;
  note.bytes = int32_t(sizeof(mine));
  static_assert(sizeof(mine) <= sizeof(note.data));
  std::memcpy(note.data, &mine, sizeof(mine));
  ZERO_RT_TRY(send(rank, note));
  const Incoming &next = incoming.at(rank);
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (Pause pause;
       !next.hasNamed && !next.isGone && std::chrono::steady_clock::now() < end;
       pause()) {
    ZERO_RT_TRY(link.check(/*waits=*/true));
    ZERO_RT_TRY(poll());
  }
  theirs = {};
  std::snprintf(theirs.operation, sizeof(theirs.operation),
                "another collective");
  if (next.hasNamed)
    theirs = next.named;
  return ZERO_RT_OK;
}

bool Notes::isGone(int32_t rank) const {
  auto found = incoming.find(rank);
  return found != incoming.end() && found->second.isGone;
}
