//===- meeting.h - How ranks find each other over TCP -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks connect to rank 0, which sends them the addresses of the others.
// Then each rank connects to the ranks below it. At the end each rank tells
// rank 0 whether it succeeded, and rank 0 tells all ranks. So either all ranks
// have a process group, or all ranks have the error of the rank that failed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCP_MEETING_H
#define ZERO_RT_COMM_TCP_MEETING_H

#include "comm/tcp/door.h"
#include "zero_rt/tcp.h"

#include <optional>

namespace zero_rt {

class Meeting {
public:
  /// |listener| is null if rank 0 does not listen yet.
  Meeting(const zero_rt_tcp_options &options, Socket listener);

  /// Connects to all ranks.
  zero_rt_status meet();
  /// Tells the other ranks |status|, with the last message, and returns what
  /// all ranks return. The sockets must still be open.
  zero_rt_status conclude(zero_rt_status status);

  std::vector<Socket> sockets; // by rank

private:
  zero_rt_status openDoor();
  zero_rt_status lead();
  zero_rt_status follow();
  zero_rt_status meetOthers(const Contact &contact);
  zero_rt_status sendContacts();
  zero_rt_status receiveContacts();
  zero_rt_status findRankZero(std::vector<Address> &out);
  zero_rt_status lookOut();
  zero_rt_status callOn(int32_t rank, const std::vector<Address> &addresses,
                        int port, const Contact &mine);
  std::vector<Address> placesOf(const Contact &contact) const;
  /// Takes in the ranks above this one.
  zero_rt_status takeIn();
  void take(Guest guest);
  zero_rt_status gatherWords(zero_rt_status status);
  zero_rt_status readWord(int32_t rank, Deadline end);
  zero_rt_status failAsMissing(const std::vector<int32_t> &ranks);
  bool isHeard(int32_t rank) const { return heard[size_t(rank)] != 0; }

  const zero_rt_tcp_options &options;
  Socket listener;
  Identity mine;
  int64_t timeoutMs;
  Deadline deadline;
  std::optional<Door> door;
  std::vector<Contact> contacts; // by rank
  std::vector<int> descriptors;  // of the sockets, which may move
  std::vector<char> heard;       // ranks that said how they ended
  bool isOfOther = false;        // the error
  /// The error names a rank that did not come by the deadline. That may have
  /// waited for another one, in its turn.
  bool isSuspicion = false;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_MEETING_H
