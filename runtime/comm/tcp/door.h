//===- door.h - How two ranks of a job make sure of each other --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rank that connects sends a hello with a nonce and an HMAC of it. A hello
// with another HMAC costs its sender the connection. The other rank answers
// with a nonce of its own and with the HMAC of both nonces, the job, the ranks
// and the two ends of the connection. The first rank checks the HMAC and sends
// one of its own, and the other one bids it welcome. A recorded message is of
// no use, since the nonces differ. A process in between has connections with
// other ends. A rank that is turned away, as in a crowd of strangers, gets no
// welcome and tries again.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCP_DOOR_H
#define ZERO_RT_COMM_TCP_DOOR_H

#include "comm/tcp/address.h"
#include "comm/tcp/authentication.h"

#include <algorithm>
#include <list>

namespace zero_rt {

/// What all messages of a rank say about it.
struct Identity {
  int32_t rank = 0;
  int32_t ranks = 0;
  std::string job;
  std::string secret; // empty if there is none
};

/// Where other ranks reach a rank.
struct Contact {
  static constexpr int32_t mostAddresses = 8;
  std::array<unsigned char, 16> machine = {};
  int32_t port = 0;
  int16_t count = 0;
  int16_t isChosen = 0; // nobody may connect at another address
  Address addresses[mostAddresses];
};

/// The first message of the rank that connects.
struct Hello {
  uint64_t magic = 0;
  char job[64] = {};
  Digest nonce = {};
  int32_t from = 0;
  int32_t to = 0;
  int32_t ranks = 0;
  int32_t hasSecret = 0;
  /// As the rank that connects sees it. A stranger that passes messages on, to
  /// this job or to another one with the same secret, has a connection with
  /// other ends, because no two connections of a network namespace have the
  /// same ones.
  Path path;
  /// Of all the above: nobody else is asked for a proof, which takes a while.
  Digest proof = {};
};

/// The answer. With another status than ok it is the last message, and |proof|
/// is about |text|.
struct Challenge {
  uint64_t magic = 0;
  int32_t status = ZERO_RT_OK;
  char text[244] = {};
  Digest nonce = {};
  Digest proof = {};
};

/// The last message of the rank that connects.
struct Proof {
  Digest proof = {};
  Contact contact;
};

/// The last message of the rank that listens.
struct Welcome {
  Digest proof = {};
};

/// Copies |text| to an array, which ends with a 0 and has no old bytes.
template <size_t size>
void copyText(char (&out)[size], const std::string &text) {
  std::fill(out, out + size, '\0');
  std::copy_n(text.begin(), std::min(text.size(), size - 1), out);
}

/// Connects to rank |to|, which listens at |address|. Sets |isFinal| if another
/// attempt would fail, too: a rank of the job refuses this one. Any process may
/// listen before the rank does, and say anything; without a secret it cannot be
/// told from a rank. A process gets |patience| to prove that it is the rank.
zero_rt_status knock(const Identity &mine, int32_t to, const Address &address,
                     int port, const Contact &contact,
                     std::chrono::milliseconds patience, Deadline deadline,
                     int watched, Socket &out, bool &isFinal);

/// A rank that has come in.
struct Guest {
  int32_t rank = 0;
  Socket socket;
  Contact contact;
};

/// Where a rank listens. Others than ranks of the job cannot come in, and
/// cannot make the ranks wait.
class Door {
public:
  Door(const Identity &mine, Socket listener);

  /// Waits until a rank comes in, one of |watched| can be read, or the
  /// deadline.
  zero_rt_status wait(const std::vector<int> &watched, Deadline deadline,
                      std::vector<Guest> &arrived);
  int port() const { return listener.port(); }
  /// What the last process that was refused had said of itself, if one was.
  const std::string &refusal() const { return lastRefusal; }

private:
  struct Visitor {
    Socket socket;
    Deadline came;
    Path path;              // as this rank sees it
    bool hasSecret = false; // by the proof of its hello
    bool isAsked = false;   // the challenge was sent
    size_t done = 0;        // bytes of the message that is being received
    Hello hello;
    Proof proof;
    Digest nonce = {};
  };
  zero_rt_status acceptAll(std::vector<Guest> &arrived);
  bool isFull() const;
  zero_rt_status makeRoom(std::vector<Guest> &arrived, bool &hasRoom);
  /// Reads from |visitor|; false if it must leave.
  zero_rt_status advance(Visitor &visitor, bool &stays,
                         std::vector<Guest> &arrived);
  zero_rt_status challenge(Visitor &visitor, bool &stays);
  zero_rt_status checkProof(Visitor &visitor, std::vector<Guest> &arrived);
  bool isForMe(const Visitor &visitor) const;
  std::string findObjection(const Visitor &visitor) const;
  zero_rt_status checkHello(Visitor &visitor) const;

  const Identity &mine;
  Socket listener;
  std::list<Visitor> visitors;
  size_t most; // visitors at a time
  std::string lastRefusal;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_DOOR_H
