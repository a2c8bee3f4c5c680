//===- door.cpp - How two ranks of a job make sure of each other ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/door.h"

#include "core/status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>

using namespace zero_rt;

static constexpr uint64_t magic = 0x7a65726f2d746375; // and version 6
/// Ranks answer at once, so others are let go after this time.
static constexpr auto patienceOfDoor = std::chrono::seconds(2);
/// In a crowd each visitor has this time: a rank has then proved that it is
/// one.
static constexpr auto leastStay = std::chrono::milliseconds(50);
/// And one that has said nothing has this time: the hello of a rank comes with
/// its connection.
static constexpr auto leastSilence = std::chrono::milliseconds(5);

/// What an HMAC is about.
namespace {
struct Transcript {
  char role[8] = {};
  Hello hello;
  Digest nonce = {};
  Contact contact;
};
struct Refusal {
  char role[8] = {};
  Hello hello;
  Challenge answer; // without the proof
};
} // namespace
// Padding would be part of the HMAC.
static_assert(sizeof(Address) == 20 && sizeof(Contact) == 184 &&
              sizeof(Hello) == 216 && sizeof(Challenge) == 320 &&
              sizeof(Proof) == 216 && sizeof(Transcript) == 440 &&
              sizeof(Refusal) == 544);

/// Of the rank that connects, or of the one that listens.
static zero_rt_status prove(const std::string &secret, const char *role,
                            const Hello &hello, const Digest &nonce,
                            const Contact &contact, Digest &out) {
  out = {};
  if (secret.empty())
    return ZERO_RT_OK;
  Transcript transcript;
  copyText(transcript.role, role);
  transcript.hello = hello;
  transcript.nonce = nonce;
  transcript.contact = contact;
  return authenticate(secret, &transcript, sizeof(transcript), out);
}

/// Of a rank that listens and refuses |hello| with |answer|.
static zero_rt_status proveRefusal(const std::string &secret,
                                   const Hello &hello, const Challenge &answer,
                                   Digest &out) {
  out = {};
  if (secret.empty())
    return ZERO_RT_OK;
  Refusal refusal;
  copyText(refusal.role, "refuse");
  refusal.hello = hello;
  refusal.answer = answer;
  refusal.answer.proof = {};
  return authenticate(secret, &refusal, sizeof(refusal), out);
}

/// The text of |answer|, fit for a terminal.
static std::string textOf(Challenge answer) {
  answer.text[sizeof(answer.text) - 1] = 0;
  std::string text = answer.text;
  for (char &c : text)
    if (c < ' ' || c > '~')
      c = '?';
  return text;
}

zero_rt_status zero_rt::knock(const Identity &mine, int32_t to,
                              const Address &address, int port,
                              const Contact &contact,
                              std::chrono::milliseconds patience,
                              Deadline deadline, int watched, Socket &out,
                              bool &isFinal) {
  isFinal = false;
  std::string place = address.text() + " port " + std::to_string(port);
  std::string why;
  Socket socket;
  Deadline soon =
      std::min(deadline, std::chrono::steady_clock::now() + patience);
  if (!socket.connect(address, port, soon, watched, why))
    return fail(ZERO_RT_TIMEOUT, "nobody listens at %s: %s", place.c_str(),
                why.c_str());
  Hello hello;
  hello.magic = magic;
  copyText(hello.job, mine.job);
  ZERO_RT_TRY(drawNonce(hello.nonce));
  hello.from = mine.rank;
  hello.to = to;
  hello.ranks = mine.ranks;
  hello.hasSecret = !mine.secret.empty();
  hello.path = Path::of(socket.get(), /*connects=*/true);
  ZERO_RT_TRY(
      prove(mine.secret, "hello", hello, Digest(), Contact(), hello.proof));
  Challenge answer;
  if (!sendAll(socket.get(), &hello, sizeof(hello), soon, watched) ||
      !receiveAll(socket.get(), &answer, sizeof(answer), soon, watched) ||
      answer.magic != magic)
    return fail(ZERO_RT_TIMEOUT,
                "rank %d does not answer at %s: it is busy, or another program "
                "listens there",
                to, place.c_str());
  Digest expected;
  if (answer.status) {
    ZERO_RT_TRY(proveRefusal(mine.secret, hello, answer, expected));
    isFinal = isEqual(expected, answer.proof);
    std::string text = textOf(answer);
    if (isFinal)
      return fail(ZERO_RT_MISMATCH, "%s", text.c_str());
    return fail(ZERO_RT_MISMATCH,
                "a process at %s, which does not prove that it has the secret, "
                "says: %s",
                place.c_str(), text.c_str());
  }
  ZERO_RT_TRY(
      prove(mine.secret, "listen", hello, answer.nonce, Contact(), expected));
  if (!isEqual(expected, answer.proof))
    return fail(ZERO_RT_MISMATCH,
                "rank %d at %s has another secret than rank %d", to,
                place.c_str(), mine.rank);
  Proof proof;
  proof.contact = contact;
  ZERO_RT_TRY(
      prove(mine.secret, "connect", hello, answer.nonce, contact, proof.proof));
  // It is the rank, which may be busy with others, and answers or hangs up.
  Welcome welcome;
  ZERO_RT_TRY(
      prove(mine.secret, "welcome", hello, answer.nonce, contact, expected));
  if (!sendAll(socket.get(), &proof, sizeof(proof), deadline, watched) ||
      !receiveAll(socket.get(), &welcome, sizeof(welcome), deadline, watched) ||
      !isEqual(expected, welcome.proof))
    return fail(ZERO_RT_TIMEOUT, "rank %d at %s hung up", to, place.c_str());
  out = std::move(socket);
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// The rank that listens
//===----------------------------------------------------------------------===//

/// Not more than half of the descriptors that the process may still open: other
/// threads need some.
static size_t countPlaces() {
  constexpr size_t mostVisitors = 256;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit))
    return mostVisitors;
  size_t open = 0;
  if (DIR *folder = ::opendir("/proc/self/fd")) {
    while (::readdir(folder))
      ++open;
    ::closedir(folder);
  }
  size_t left = limit.rlim_cur > open ? limit.rlim_cur - open : 0;
  return std::clamp<size_t>(left / 2, 1, mostVisitors);
}

Door::Door(const Identity &mine, Socket listener)
    : mine(mine), listener(std::move(listener)), most(countPlaces()) {}

bool Door::isFull() const { return visitors.size() >= most; }

zero_rt_status Door::acceptAll(std::vector<Guest> &arrived) {
  int error = 0;
  for (size_t i = 0; i < most; ++i) {
    bool hasRoom = !isFull();
    if (!hasRoom && waitFor(listener.get(), POLLIN, Deadline()))
      ZERO_RT_TRY(makeRoom(arrived, hasRoom));
    if (!hasRoom)
      return ZERO_RT_OK; // the others wait before the door
    Socket socket = listener.accept();
    if (!socket) {
      error = errno;
      break;
    }
    Visitor &visitor = visitors.emplace_back();
    visitor.socket = std::move(socket);
    visitor.path = Path::of(visitor.socket.get(), /*connects=*/false);
    visitor.came = std::chrono::steady_clock::now();
  }
  // Others have opened the rest: from now on the door is full by then.
  if ((error == EMFILE || error == ENFILE) && !visitors.empty())
    most = visitors.size();
  return ZERO_RT_OK;
}

/// Closes the connection that is least likely a rank's: the oldest one without
/// a hello, or else the oldest one without a proof. Before that, it reads the
/// connection: a hello or a proof may have arrived. No connection is closed
/// within |leastStay| or |leastSilence|, so there may be no room.
zero_rt_status Door::makeRoom(std::vector<Guest> &arrived, bool &hasRoom) {
  Deadline now = std::chrono::steady_clock::now();
  for (bool isAsked : {false, true}) {
    Deadline before = now - (isAsked ? leastStay : leastSilence);
    for (auto visitor = visitors.begin(); visitor != visitors.end();) {
      if (visitor->isAsked != isAsked) {
        ++visitor;
        continue;
      }
      // Not one with a hello instead of one without.
      if (visitor->came > before)
        return ZERO_RT_OK;
      bool stays = true;
      ZERO_RT_TRY(advance(*visitor, stays, arrived));
      // A hello makes a silent visitor one of the others.
      if (stays && visitor->isAsked != isAsked) {
        ++visitor;
        continue;
      }
      visitors.erase(visitor);
      hasRoom = true;
      return ZERO_RT_OK;
    }
  }
  return ZERO_RT_OK;
}

/// Whether the hello of |visitor| is to this rank of this job, and comes from
/// the rank that made it.
bool Door::isForMe(const Visitor &visitor) const {
  const Hello &hello = visitor.hello;
  char job[sizeof(hello.job)];
  copyText(job, mine.job);
  return std::memcmp(job, hello.job, sizeof(job)) == 0 &&
         hello.to == mine.rank && hello.path == visitor.path &&
         visitor.hasSecret;
}

static std::string describePlace(const Address &address, int32_t port) {
  return address.text() + " port " + std::to_string(port);
}

/// What is wrong with the hello of |visitor|, of a rank of ours; empty if
/// nothing is.
std::string Door::findObjection(const Visitor &visitor) const {
  const Hello &hello = visitor.hello;
  const Path &theirs = hello.path, &path = visitor.path;
  std::string me = "rank " + std::to_string(mine.rank);
  std::string you = "rank " + std::to_string(hello.from);
  char job[sizeof(hello.job)];
  copyText(job, mine.job);
  if (std::memcmp(job, hello.job, sizeof(job)) != 0)
    return me + " at this port is of another job than " + you +
           "; give each job another port (ZERO_RT_PORT)";
  if (hello.hasSecret != int32_t(!mine.secret.empty()))
    return (mine.secret.empty() ? you : me) + " has a secret, and " +
           (mine.secret.empty() ? me : you) + " has none";
  if (!visitor.hasSecret)
    return you + " has another secret than " + me;
  if (hello.ranks != mine.ranks)
    return you + " says that there are " + std::to_string(hello.ranks) +
           " ranks, " + me + " that there are " + std::to_string(mine.ranks);
  bool isOther = !(theirs.to == path.to) || theirs.toPort != path.toPort;
  if (!(theirs == path))
    return (isOther ? you + " has dialled " +
                          describePlace(theirs.to, theirs.toPort) + ", and " +
                          me + " is at " + describePlace(path.to, path.toPort)
            : theirs.machine != path.machine
                ? you + " and " + me + " have the address " + path.to.text() +
                      " on two machines or in two network namespaces"
                : you + " comes from " +
                      describePlace(theirs.from, theirs.fromPort) +
                      ", and for " + me + " from " +
                      describePlace(path.from, path.fromPort)) +
           "; ranks connect directly, without mapped addresses or ports";
  if (hello.to != mine.rank)
    return you + " looks for rank " + std::to_string(hello.to) +
           ", and found " + me;
  if (hello.from <= mine.rank || hello.from >= mine.ranks)
    return "a process says that it is " + you;
  return {};
}

zero_rt_status Door::checkHello(Visitor &visitor) const {
  Hello hello = visitor.hello;
  hello.proof = {};
  Digest expected;
  ZERO_RT_TRY(
      prove(mine.secret, "hello", hello, Digest(), Contact(), expected));
  visitor.hasSecret = isEqual(expected, visitor.hello.proof);
  return ZERO_RT_OK;
}

/// Answers the hello of |visitor|.
zero_rt_status Door::challenge(Visitor &visitor, bool &stays) {
  Challenge answer;
  answer.magic = magic;
  ZERO_RT_TRY(checkHello(visitor));
  std::string objection = findObjection(visitor);
  if (!objection.empty()) {
    lastRefusal = objection;
    answer.status = ZERO_RT_MISMATCH;
    copyText(answer.text, objection);
    // The proof is worth something only from the rank that was asked. Others
    // may have got the hello from a stranger.
    if (isForMe(visitor))
      ZERO_RT_TRY(
          proveRefusal(mine.secret, visitor.hello, answer, answer.proof));
    stays = false;
  } else {
    ZERO_RT_TRY(drawNonce(visitor.nonce));
    answer.nonce = visitor.nonce;
    ZERO_RT_TRY(prove(mine.secret, "listen", visitor.hello, visitor.nonce,
                      Contact(), answer.proof));
  }
  // A new connection has room for so few bytes.
  if (::send(visitor.socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL) !=
      ssize_t(sizeof(answer)))
    stays = false;
  return ZERO_RT_OK;
}

zero_rt_status Door::checkProof(Visitor &visitor, std::vector<Guest> &arrived) {
  Contact &contact = visitor.proof.contact;
  Digest expected;
  ZERO_RT_TRY(prove(mine.secret, "connect", visitor.hello, visitor.nonce,
                    contact, expected));
  bool isRank = isEqual(expected, visitor.proof.proof) && contact.count >= 0 &&
                contact.count <= Contact::mostAddresses;
  if (!isRank)
    return ZERO_RT_OK;
  Welcome welcome;
  ZERO_RT_TRY(prove(mine.secret, "welcome", visitor.hello, visitor.nonce,
                    contact, welcome.proof));
  if (::send(visitor.socket.get(), &welcome, sizeof(welcome), MSG_NOSIGNAL) !=
      ssize_t(sizeof(welcome)))
    return ZERO_RT_OK; // it has left, and comes again
  // This rank may see an address that the other rank does not know of.
  if (!visitor.path.from.isLoopback() && !contact.isChosen &&
      contact.count < Contact::mostAddresses)
    contact.addresses[contact.count++] = visitor.path.from;
  arrived.push_back({visitor.hello.from, std::move(visitor.socket), contact});
  return ZERO_RT_OK;
}

zero_rt_status Door::advance(Visitor &visitor, bool &stays,
                             std::vector<Guest> &arrived) {
  char *message = visitor.isAsked ? reinterpret_cast<char *>(&visitor.proof)
                                  : reinterpret_cast<char *>(&visitor.hello);
  size_t bytes = visitor.isAsked ? sizeof(Proof) : sizeof(Hello);
  ssize_t got = ::recv(visitor.socket.get(), message + visitor.done,
                       bytes - visitor.done, 0);
  stays = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  visitor.done += size_t(std::max<ssize_t>(got, 0));
  // The first bytes of others differ.
  if (!visitor.isAsked && visitor.done >= sizeof(magic) &&
      visitor.hello.magic != magic)
    stays = false;
  if (!stays || visitor.done < bytes)
    return ZERO_RT_OK;
  visitor.done = 0;
  if (!std::exchange(visitor.isAsked, true))
    return challenge(visitor, stays);
  stays = false; // it is a guest now, or leaves
  return checkProof(visitor, arrived);
}

zero_rt_status Door::wait(const std::vector<int> &watched, Deadline deadline,
                          std::vector<Guest> &arrived) {
  while (true) {
    Deadline now = std::chrono::steady_clock::now();
    visitors.remove_if([&](const Visitor &visitor) {
      return visitor.came + patienceOfDoor <= now;
    });
    Deadline next = deadline;
    if (isFull())
      next = std::min(next, now + leastSilence);
    std::vector<pollfd> entries;
    for (int descriptor : watched)
      entries.push_back({descriptor, POLLIN, 0});
    // Where it is full, those at the door wait until somebody may leave.
    entries.push_back({listener.get(), short(isFull() ? 0 : POLLIN), 0});
    for (const Visitor &visitor : visitors) {
      entries.push_back({visitor.socket.get(), POLLIN, 0});
      next = std::min(next, visitor.came + patienceOfDoor);
    }
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - now)
            .count();
    int ready = ::poll(entries.data(), entries.size(),
                       int(std::clamp<long>(left, 0, 60000)));
    if (ready < 0 && errno != EINTR)
      return fail(ZERO_RT_INTERNAL, "poll failed: %s", std::strerror(errno));
    auto entry = entries.begin() + std::ptrdiff_t(watched.size()) + 1;
    for (auto visitor = visitors.begin(); ready > 0 && entry != entries.end();
         ++entry) {
      bool stays = true;
      if (entry->revents)
        ZERO_RT_TRY(advance(*visitor, stays, arrived));
      visitor = stays ? std::next(visitor) : visitors.erase(visitor);
    }
    if (isFull() || (ready > 0 && entries[watched.size()].revents))
      ZERO_RT_TRY(acceptAll(arrived));
    bool hasNews = std::any_of(entries.begin(),
                               entries.begin() + std::ptrdiff_t(watched.size()),
                               [](const pollfd &e) { return e.revents != 0; });
    if (!arrived.empty() || hasNews ||
        std::chrono::steady_clock::now() >= deadline)
      return ZERO_RT_OK;
  }
}
