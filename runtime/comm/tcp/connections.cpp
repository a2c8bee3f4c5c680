//===- connections.cpp - Messages over TCP --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/connections.h"

#include "core/status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <thread>

using namespace zero_rt;

/// A send of at most this size is copied, so it is done at once.
static constexpr int64_t mostCopied = 4096;
/// The runtime uses a few channels.
static constexpr int64_t mostChannels = 16;

/// The memory that a message of so many bytes takes while it is kept, at most.
static int64_t costOf(int64_t bytes) {
  constexpr int64_t kept = 128; // what is known of it, and its allocation
  return bytes + kept;
}

Connections::Connections(int32_t rank, std::vector<Socket> &sockets,
                         int64_t mostKeptBytes)
    : rank(rank), mostKeptBytes(mostKeptBytes), peers(sockets.size()) {
  for (size_t r = 0; r < peers.size(); ++r) {
    peers[r].socket = std::move(sockets[r]);
    peers[r].isClosed = int32_t(r) == rank;
  }
}

Connections::~Connections() {
  // The last messages must be sent. A rank that has stopped reads nothing.
  constexpr auto patience = std::chrono::milliseconds(200);
  auto isDone = [](const Peer &peer) {
    return peer.isClosed || peer.outgoing.empty();
  };
  uint64_t before = bytesSent;
  Deadline end = std::chrono::steady_clock::now() + patience;
  for (progress(); !std::all_of(peers.begin(), peers.end(), isDone) &&
                   std::chrono::steady_clock::now() < end;
       progress()) {
    if (std::exchange(before, bytesSent) != bytesSent)
      end = std::chrono::steady_clock::now() + patience;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (Peer &peer : peers)
    if (!peer.isClosed)
      ::shutdown(peer.socket.get(), SHUT_WR);
  progress();
}

/// Ends the connection at once. |why| is the mistake of the other rank, if it
/// made one.
void Connections::close(Peer &peer, const std::string &why) {
  if (peer.mistake.empty())
    peer.mistake = why;
  peer.isClosed = true;
  peer.outgoing.clear();
  peer.copiedBytes = 0;
  peer.socket = Socket();
}

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

/// Reads and writes without waiting.
void Connections::progress() {
  std::vector<pollfd> entries;
  std::vector<Peer *> polled;
  for (Peer &peer : peers) {
    if (peer.isClosed)
      continue;
    short events = POLLIN;
    if (!peer.outgoing.empty())
      events |= POLLOUT;
    entries.push_back({peer.socket.get(), events, 0});
    polled.push_back(&peer);
  }
  if (entries.empty() || ::poll(entries.data(), entries.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents & (POLLIN | POLLHUP | POLLERR))
      read(*polled[i]);
    if (entries[i].revents & POLLOUT && !polled[i]->isClosed)
      write(*polled[i]);
  }
}

/// Reads up to |bytes|; false if there is no more data for now.
bool Connections::readSome(Peer &peer, char *data, size_t bytes) {
  ssize_t got =
      ::recv(peer.socket.get(), data + peer.done, bytes - peer.done, 0);
  if (got > 0) {
    peer.done += size_t(got);
    return true;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR))
    peer.isClosed = true;
  return false;
}

/// Reads messages until there are none. Stops behind one that was requested,
/// unless |isLast|: its receiver requests the next one, which need not be kept.
/// A rank that sends without an end must not keep this one from its clock.
void Connections::read(Peer &peer, bool isLast) {
  constexpr int mostAtOnce = 1 << 16;
  for (int n = 0; (isLast || n < mostAtOnce) && !peer.isClosed; ++n) {
    if (peer.isInFrame) {
      if (peer.done < sizeof(Frame) &&
          !readSome(peer, reinterpret_cast<char *>(&peer.frame), sizeof(Frame)))
        return;
      if (peer.done == sizeof(Frame))
        beginContents(peer);
      continue;
    }
    char *data = peer.target ? peer.target->data : peer.buffer.data();
    if (peer.done < size_t(peer.frame.bytes) &&
        !readSome(peer, data, size_t(peer.frame.bytes)))
      return;
    if (peer.done < size_t(peer.frame.bytes))
      continue;
    bool isRequested = peer.target != nullptr;
    endContents(peer);
    if (isRequested && !isLast)
      return;
  }
}

/// Without memory it throws, and the next call tries again.
void Connections::beginContents(Peer &peer) {
  const Frame &frame = peer.frame;
  std::string sender = "rank " + std::to_string(&peer - peers.data());
  if (frame.bytes <= 0 || frame.bytes > ZERO_RT_TRANSPORT_MOST_BYTES ||
      frame.channel < 0 || frame.channel >= mostChannels)
    return close(peer, sender +
                           " sent bytes that are no message: a length of " +
                           std::to_string(frame.bytes) + " on channel " +
                           std::to_string(frame.channel));
  auto &receives = peer.receives[int32_t(frame.channel)];
  if (!receives.empty() && receives.front()->bytes == peer.frame.bytes) {
    peer.target = receives.front();
    receives.pop_front();
  } else if (peer.earlyBytes + costOf(frame.bytes) > mostKeptBytes) {
    return close(peer, sender + " sent more than " +
                           std::to_string(mostKeptBytes >> 20) +
                           " MiB that this rank has not received");
  } else {
    peer.buffer.resize(size_t(frame.bytes));
  }
  peer.isInFrame = false;
  peer.done = 0;
}

void Connections::endContents(Peer &peer) {
  auto channel = int32_t(peer.frame.channel);
  if (peer.target) {
    peer.target->isDone = true;
  } else if (auto &receives = peer.receives[channel]; !receives.empty()) {
    // The message was requested in the meantime, or with another size.
    Request *request = receives.front();
    receives.pop_front();
    if (request->bytes == peer.frame.bytes)
      std::copy(peer.buffer.begin(), peer.buffer.end(), request->data);
    else
      request->status = ZERO_RT_MISMATCH;
    request->isDone = true;
  } else {
    peer.early[channel].push_back(std::move(peer.buffer));
    peer.earlyBytes += costOf(peer.frame.bytes);
  }
  peer.target = nullptr;
  peer.buffer = {};
  peer.isInFrame = true;
  peer.done = 0;
}

void Connections::write(Peer &peer) {
  while (!peer.outgoing.empty()) {
    Outgoing &next = peer.outgoing.front();
    auto *frame = reinterpret_cast<char *>(&next.frame);
    iovec parts[2];
    int count = 0;
    size_t bytes = size_t(next.frame.bytes);
    size_t begin = 0;
    if (next.done < sizeof(Frame))
      parts[count++] = {frame + next.done, sizeof(Frame) - next.done};
    else
      begin = next.done - sizeof(Frame);
    parts[count++] = {const_cast<char *>(next.data) + begin, bytes - begin};
    msghdr header = {};
    header.msg_iov = parts;
    header.msg_iovlen = size_t(count);
    ssize_t sent = ::sendmsg(peer.socket.get(), &header, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        // The rank may have sent its reason before it closed the connection.
        read(peer, /*isLast=*/true);
        close(peer);
      }
      return;
    }
    next.done += size_t(sent);
    bytesSent += uint64_t(sent);
    if (next.done < sizeof(Frame) + bytes)
      return;
    if (next.request)
      next.request->isDone = true;
    if (!next.copy.empty())
      peer.copiedBytes -= costOf(next.frame.bytes);
    peer.outgoing.pop_front();
  }
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void Connections::begin(Request *request, const void *data) {
  Peer &peer = peers[size_t(request->rank)];
  if (!data) {
    auto &early = peer.early[request->channel];
    if (early.empty()) {
      peer.receives[request->channel].push_back(request);
      return;
    }
    request->isDone = true;
    if (int64_t(early.front().size()) == request->bytes)
      std::copy(early.front().begin(), early.front().end(), request->data);
    else
      request->status = ZERO_RT_MISMATCH;
    peer.earlyBytes -= costOf(int64_t(early.front().size()));
    early.pop_front();
    return;
  }
  bool isShort = request->bytes <= mostCopied;
  if (peer.isClosed) { // a short one counts as on its way
    request->isDone = isShort;
    return;
  }
  Outgoing next = {{request->bytes, request->channel},
                   static_cast<const char *>(data),
                   {},
                   0,
                   request};
  if (isShort && peer.copiedBytes + costOf(request->bytes) > mostKeptBytes)
    return close(peer, "rank " + std::to_string(request->rank) +
                           " has not taken more than " +
                           std::to_string(mostKeptBytes >> 20) +
                           " MiB of messages that this rank sent");
  if (isShort)
    keepCopy(next);
  peer.outgoing.push_back(std::move(next));
  if (isShort)
    peer.copiedBytes += costOf(request->bytes);
  request->isDone = isShort;
  // Without memory the next call goes on.
  (void)guarded("send", [&]() -> zero_rt_status {
    write(peer);
    return ZERO_RT_OK;
  });
}

/// Copies |message|, for which then no request waits.
void Connections::keepCopy(Outgoing &message) {
  message.copy.assign(message.data, message.data + message.frame.bytes);
  message.data = message.copy.data();
  message.request = nullptr;
}

zero_rt_status Connections::test(Request *request, int32_t *outDone) {
  *outDone = 0;
  if (!request->isDone)
    progress();
  if (!request->isDone) {
    const Peer &peer = peers[size_t(request->rank)];
    if (!peer.isClosed)
      return ZERO_RT_OK;
    if (!peer.mistake.empty()) {
      message = peer.mistake;
      return ZERO_RT_MISMATCH;
    }
    message = "rank " + std::to_string(request->rank) + " is gone";
    return ZERO_RT_TIMEOUT;
  }
  zero_rt_status status = request->status;
  if (status) {
    message = "rank " + std::to_string(request->rank) +
              " sent a message of another size than was expected";
    return status;
  }
  *outDone = 1;
  delete request;
  return ZERO_RT_OK;
}

void Connections::cancel(Request *request) {
  Peer &peer = peers[size_t(request->rank)];
  zero_rt_status status = guarded("cancel", [&]() -> zero_rt_status {
    // The rest of a message that is being received goes to a buffer. One that
    // is being sent still arrives: a later receive would take the next one for
    // it, and the reason of this rank comes behind it.
    if (peer.target == request)
      peer.buffer.resize(size_t(peer.frame.bytes));
    for (Outgoing &sending : peer.outgoing)
      if (sending.request == request) {
        keepCopy(sending);
        peer.copiedBytes += costOf(request->bytes);
        break;
      }
    return ZERO_RT_OK;
  });
  if (peer.target == request)
    peer.target = nullptr;
  if (auto found = peer.receives.find(request->channel);
      found != peer.receives.end()) {
    auto &receives = found->second;
    receives.erase(std::remove(receives.begin(), receives.end(), request),
                   receives.end());
  }
  if (status) // for want of memory
    close(peer);
  delete request;
}

//===----------------------------------------------------------------------===//
// The transport
//===----------------------------------------------------------------------===//

/// Runs |body|, and turns exceptions into a status.
template <typename Body>
static zero_rt_status callGuarded(std::string &message, Body &&body) {
  zero_rt_status status = guarded("tcp", body);
  if (status == ZERO_RT_OUT_OF_MEMORY)
    message = "out of memory";
  return status;
}

zero_rt_transport Connections::makeTransport(Connections *connections) {
  zero_rt_transport transport = {};
  transport.any_thread = 1;
  transport.struct_size = sizeof(transport);
  transport.rank = connections->rank;
  transport.ranks = int32_t(connections->peers.size());
  transport.context = connections;
  transport.send = [](void *context, int32_t to, int32_t channel,
                      const void *data, int64_t bytes, void **out) {
    auto &self = *static_cast<Connections *>(context);
    return callGuarded(self.message, [&]() -> zero_rt_status {
      auto request =
          std::make_unique<Request>(Request{to, channel, nullptr, bytes});
      self.begin(request.get(), data);
      *out = request.release();
      return ZERO_RT_OK;
    });
  };
  transport.receive = [](void *context, int32_t from, int32_t channel,
                         void *data, int64_t bytes, void **out) {
    auto &self = *static_cast<Connections *>(context);
    return callGuarded(self.message, [&]() -> zero_rt_status {
      auto request = std::make_unique<Request>(
          Request{from, channel, static_cast<char *>(data), bytes});
      self.begin(request.get(), nullptr);
      *out = request.release();
      return ZERO_RT_OK;
    });
  };
  transport.test = [](void *context, void *request, int32_t *outDone) {
    auto &self = *static_cast<Connections *>(context);
    return callGuarded(self.message, [&] {
      return self.test(static_cast<Request *>(request), outDone);
    });
  };
  transport.cancel = [](void *context, void *request) {
    auto &self = *static_cast<Connections *>(context);
    self.cancel(static_cast<Request *>(request));
  };
  transport.error = [](void *context) {
    return static_cast<Connections *>(context)->message.c_str();
  };
  transport.destroy = [](void *context) {
    delete static_cast<Connections *>(context);
  };
  return transport;
}
