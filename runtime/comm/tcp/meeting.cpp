//===- meeting.cpp - How ranks find each other over TCP -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/meeting.h"

#include "comm/tag.h"
#include "core/status.h"
#include "core/timeout.h"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <thread>
#include <utility>

using namespace zero_rt;

/// How long a process may take to prove that it is a rank: at first, and at
/// most. A stranger may have the port before the rank has it, and be silent.
static constexpr auto leastPatience = std::chrono::milliseconds(100);
static constexpr auto mostPatience = std::chrono::milliseconds(2000);
/// How long rank 0 waits behind its deadline for what the others say, and how
/// long these wait for rank 0.
static constexpr auto graceOfRankZero = std::chrono::milliseconds(150);
static constexpr auto graceOfOthers = std::chrono::milliseconds(400);
static constexpr Tag tag = {"tcp_group_create", nullptr, 0, 0, 0, 0};

/// What a rank says at the end.
namespace {
struct Word {
  int32_t status = ZERO_RT_OK;
  int32_t isSuspicion = 0;
  char text[248] = {};
};
} // namespace

Meeting::Meeting(const zero_rt_tcp_options &options, Socket listener)
    : sockets(size_t(options.ranks)), options(options),
      listener(std::move(listener)),
      timeoutMs(getTimeoutMs(options.timeout_ms)),
      deadline(std::chrono::steady_clock::now() +
               std::chrono::milliseconds(timeoutMs)),
      contacts(size_t(options.ranks)), descriptors(size_t(options.ranks), -1),
      heard(size_t(options.ranks)) {
  mine.rank = options.rank;
  mine.ranks = options.ranks;
  mine.job = options.job;
  mine.secret = options.secret;
}

zero_rt_status Meeting::failAsMissing(const std::vector<int32_t> &ranks) {
  std::string text = describeMissing(tag, timeoutMs, ranks);
  // It may be a stranger who has said so.
  if (door && !door->refusal().empty())
    text += "; a process was refused: " + door->refusal();
  return fail(ZERO_RT_TIMEOUT, "%s", text.c_str());
}

zero_rt_status Meeting::openDoor() {
  // Without a secret, only processes of this machine may connect.
  Address loopback = Address::loopback();
  const Address *at = mine.secret.empty() ? &loopback : nullptr;
  if (!listener)
    ZERO_RT_TRY(listener.listen(at, mine.rank == 0 ? options.port : 0));
  door.emplace(mine, std::move(listener));
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Reads how |rank| has ended; its error if it failed.
zero_rt_status Meeting::readWord(int32_t rank, Deadline end) {
  Word word;
  int descriptor = descriptors[size_t(rank)];
  if (!receiveAll(descriptor, &word, sizeof(word), end)) {
    bool isGone = std::chrono::steady_clock::now() < end;
    heard[size_t(rank)] = isGone;
    if (!isGone)
      return failAsMissing({rank});
    return fail(ZERO_RT_TIMEOUT, "rank %d is gone and will not come to %s",
                rank, describe(tag).c_str());
  }
  heard[size_t(rank)] = 1;
  if (!word.status)
    return ZERO_RT_OK;
  isOfOther = true;
  isSuspicion = word.isSuspicion != 0;
  return fail(isError(word.status) ? word.status : ZERO_RT_INTERNAL, "%s",
              makePrintable(word.text, sizeof(word.text)).c_str());
}

/// Waits until all other ranks have ended, unless |status| is an error. The
/// first error counts. Of a suspicion it counts who else says nothing: ranks
/// that wait for each other say something.
zero_rt_status Meeting::gatherWords(zero_rt_status status) {
  Deadline end = deadline + graceOfRankZero;
  std::string suspicion;
  while (!status) {
    std::vector<pollfd> entries;
    std::vector<int32_t> ranks;
    for (int32_t r = 1; r < mine.ranks; ++r)
      if (!isHeard(r)) {
        ranks.push_back(r);
        entries.push_back({descriptors[size_t(r)], POLLIN, 0});
      }
    if (ranks.empty() && suspicion.empty())
      return ZERO_RT_OK;
    if (ranks.empty())
      return fail(ZERO_RT_TIMEOUT, "%s", suspicion.c_str());
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return failAsMissing(ranks);
    if (::poll(entries.data(), entries.size(), int(left.count())) <= 0)
      continue;
    for (size_t i = 0; i < ranks.size() && !status; ++i) {
      if (entries[i].revents)
        status = readWord(ranks[i], end);
      if (status && std::exchange(isSuspicion, false)) {
        suspicion = lastMessage();
        status = ZERO_RT_OK;
      }
    }
  }
  return status;
}

zero_rt_status Meeting::conclude(zero_rt_status status) {
  Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  if (mine.ranks == 1)
    return status;
  if (mine.rank == 0)
    status = gatherWords(status);
  Word word;
  word.status = status;
  word.isSuspicion = isSuspicion;
  // A timeout says which rank is missing.
  std::string sender = "rank " + std::to_string(mine.rank) + ": ";
  if (status)
    copyText(word.text, (status == ZERO_RT_TIMEOUT || isOfOther ? "" : sender) +
                            lastMessage());
  if (mine.rank == 0) {
    for (int descriptor : descriptors)
      if (descriptor >= 0)
        (void)sendAll(descriptor, &word, sizeof(word), soon);
    return status;
  }
  // Rank 0 knows what it told itself.
  if (descriptors[0] >= 0 && !isHeard(0))
    (void)sendAll(descriptors[0], &word, sizeof(word), soon);
  if (status && (!isSuspicion || isHeard(0)))
    return status;
  // Rank 0 knows who said nothing at all.
  std::string own = lastMessage();
  zero_rt_status other = readWord(0, deadline + graceOfOthers);
  return status && !other ? fail(status, "%s", own.c_str()) : other;
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

/// Keeps the connection to |guest|.
void Meeting::take(Guest guest) {
  size_t rank = size_t(guest.rank);
  if (sockets[rank] && !hasHungUp(descriptors[rank])) {
    Word word;
    word.status = ZERO_RT_MISMATCH;
    copyText(word.text, "two processes say that they are rank " +
                            std::to_string(guest.rank));
    (void)sendAll(guest.socket.get(), &word, sizeof(word),
                  std::chrono::steady_clock::now());
    return;
  }
  contacts[rank] = guest.contact;
  descriptors[rank] = guest.socket.get();
  sockets[rank] = std::move(guest.socket);
}

zero_rt_status Meeting::takeIn() {
  while (true) {
    std::vector<int32_t> missing;
    std::vector<int32_t> ranks; // that are here
    std::vector<int> watched;
    for (int32_t r = mine.rank + 1; r < mine.ranks; ++r)
      if (!sockets[size_t(r)])
        missing.push_back(r);
    // Rank 0 hears of failures, and the others hear of them from rank 0.
    for (int32_t r = 0; r < (mine.rank == 0 ? mine.ranks : 1); ++r)
      if (sockets[size_t(r)]) {
        ranks.push_back(r);
        watched.push_back(descriptors[size_t(r)]);
      }
    if (missing.empty())
      return ZERO_RT_OK;
    if (std::chrono::steady_clock::now() >= deadline)
      return failAsMissing(missing);
    std::vector<Guest> arrived;
    ZERO_RT_TRY(door->wait(watched, deadline, arrived));
    for (Guest &guest : arrived)
      take(std::move(guest));
    for (int32_t rank : ranks)
      if (waitFor(descriptors[size_t(rank)], POLLIN, Deadline()))
        ZERO_RT_TRY(readWord(rank, deadline));
  }
}

/// Sends all ranks where the others are.
zero_rt_status Meeting::sendContacts() {
  Word word;
  for (int32_t r = 1; r < mine.ranks; ++r) {
    // The others have the deadline of this rank.
    int64_t left = std::chrono::duration_cast<std::chrono::milliseconds>(
                       deadline - std::chrono::steady_clock::now())
                       .count();
    int descriptor = descriptors[size_t(r)];
    if (!sendAll(descriptor, &word, sizeof(word), deadline) ||
        !sendAll(descriptor, &left, sizeof(left), deadline) ||
        !sendAll(descriptor, contacts.data(), contacts.size() * sizeof(Contact),
                 deadline))
      return fail(ZERO_RT_TIMEOUT, "rank %d is gone and will not come to %s", r,
                  describe(tag).c_str());
  }
  return ZERO_RT_OK;
}

zero_rt_status Meeting::lead() {
  ZERO_RT_TRY(openDoor());
  ZERO_RT_TRY(takeIn());
  return sendContacts();
}

//===----------------------------------------------------------------------===//
// The other ranks
//===----------------------------------------------------------------------===//

/// The addresses at which rank 0 may listen.
zero_rt_status Meeting::findRankZero(std::vector<Address> &out) {
  ZERO_RT_TRY(resolve(options.host, deadline, out));
  if (!mine.secret.empty())
    return ZERO_RT_OK;
  // Without a secret, rank 0 must be on this machine.
  std::vector<Address> own = findOwnAddresses();
  auto isHere = [&](const Address &address) {
    return address.isLoopback() ||
           std::find(own.begin(), own.end(), address) != own.end();
  };
  if (std::none_of(out.begin(), out.end(), isHere))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "host '%s' is %s, which is another machine, and there is no "
                "secret; set ZERO_RT_SECRET_FILE or ZERO_RT_SECRET to the same "
                "secret on all ranks",
                options.host, out.front().text().c_str());
  out = {Address::loopback()};
  return ZERO_RT_OK;
}

/// Lets in who has come to the door of this rank meanwhile. Else a crowd of
/// strangers before it would keep ranks out.
zero_rt_status Meeting::lookOut() {
  std::vector<Guest> arrived;
  ZERO_RT_TRY(door->wait({}, Deadline(), arrived));
  for (Guest &guest : arrived)
    take(std::move(guest));
  return ZERO_RT_OK;
}

/// Connects to |rank|, at one of |addresses|.
zero_rt_status Meeting::callOn(int32_t rank,
                               const std::vector<Address> &addresses, int port,
                               const Contact &contact) {
  size_t index = size_t(rank);
  // What was heard last, and rather an answer than none.
  std::string why = "it has no address that this rank can use";
  zero_rt_status heardStatus = ZERO_RT_TIMEOUT;
  for (auto patience = leastPatience;;
       patience = std::min(2 * patience, mostPatience)) {
    for (const Address &address : addresses) {
      bool isFinal = false;
      zero_rt_status status =
          knock(mine, rank, address, port, contact, patience, deadline,
                rank ? descriptors[0] : -1, sockets[index], isFinal);
      ZERO_RT_TRY(lookOut());
      if (!status) {
        descriptors[index] = sockets[index].get();
        return ZERO_RT_OK;
      }
      // Another process may listen there, and this one may not be of the job.
      bool isRefused = status == ZERO_RT_MISMATCH && rank == 0 && isFinal;
      if (isRefused ||
          (status != ZERO_RT_MISMATCH && status != ZERO_RT_TIMEOUT))
        return status;
      if (status == ZERO_RT_MISMATCH || heardStatus == ZERO_RT_TIMEOUT) {
        heardStatus = status;
        why = lastMessage();
      }
      if (rank && waitFor(descriptors[0], POLLIN, Deadline()))
        ZERO_RT_TRY(readWord(0, deadline));
    }
    if (std::chrono::steady_clock::now() >= deadline)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (rank == 0)
    return fail(heardStatus, "%s", why.c_str());
  return fail(ZERO_RT_TIMEOUT, "%s: %s",
              describeMissing(tag, timeoutMs, {rank}).c_str(), why.c_str());
}

/// The addresses at which the rank of |contact| may listen, the best ones
/// first.
std::vector<Address> Meeting::placesOf(const Contact &contact) const {
  std::vector<Address> result;
  // Loopback never leaves the machine, nor a network namespace.
  bool isKnown = contact.machine != decltype(contact.machine)();
  if (mine.secret.empty() || (isKnown && contact.machine == findMachine()))
    result.push_back(Address::loopback());
  if (mine.secret.empty())
    return result;
  int32_t count = std::clamp<int32_t>(contact.count, 0, Contact::mostAddresses);
  for (int32_t i = 0; i < count; ++i)
    if (!contact.addresses[i].isLoopback())
      result.push_back(contact.addresses[i]);
  return result;
}

zero_rt_status Meeting::receiveContacts() {
  zero_rt_status status = readWord(0, deadline + graceOfOthers);
  if (status && !isHeard(0))
    return fail(ZERO_RT_TIMEOUT,
                "rank 0 at %s port %d did not say within %lld ms where the "
                "other ranks are",
                options.host, options.port, (long long)timeoutMs);
  ZERO_RT_TRY(status);
  heard[0] = 0; // there will be another word
  int64_t left = 0;
  if (!receiveAll(descriptors[0], &left, sizeof(left), deadline) ||
      !receiveAll(descriptors[0], contacts.data(),
                  contacts.size() * sizeof(Contact), deadline))
    return fail(ZERO_RT_TIMEOUT, "rank 0 hung up");
  deadline = std::min(
      deadline,
      std::chrono::steady_clock::now() +
          std::chrono::milliseconds(std::clamp<int64_t>(left, 0, timeoutMs)));
  return ZERO_RT_OK;
}

zero_rt_status Meeting::follow() {
  ZERO_RT_TRY(openDoor());
  Contact contact;
  contact.machine = findMachine();
  contact.port = door->port();
  contact.isChosen = options.network_interface[0] != 0;
  std::vector<Address> own;
  if (contact.isChosen)
    ZERO_RT_TRY(findAddressesOf(options.network_interface, own));
  else if (!mine.secret.empty())
    own = findOwnAddresses();
  for (const Address &address : own)
    if (contact.count < Contact::mostAddresses - 1)
      contact.addresses[contact.count++] = address;
  std::vector<Address> addresses;
  ZERO_RT_TRY(findRankZero(addresses));
  ZERO_RT_TRY(callOn(0, addresses, options.port, contact));
  ZERO_RT_TRY(receiveContacts());
  zero_rt_status status = meetOthers(contact);
  isSuspicion = status == ZERO_RT_TIMEOUT && !isHeard(0);
  return status;
}

/// Connects to the ranks but rank 0.
zero_rt_status Meeting::meetOthers(const Contact &contact) {
  for (int32_t r = 1; r < mine.rank; ++r) {
    const Contact &theirs = contacts[size_t(r)];
    ZERO_RT_TRY(callOn(r, placesOf(theirs), theirs.port, contact));
  }
  return takeIn();
}

zero_rt_status Meeting::meet() {
  if (mine.ranks == 1)
    return ZERO_RT_OK;
  return mine.rank == 0 ? lead() : follow();
}
