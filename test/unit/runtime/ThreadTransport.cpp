//===- ThreadTransport.cpp - A network inside of a process ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadTransport.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace zero_rt::test;

static constexpr int64_t shortBytes = 512;

namespace {
struct Request {
  std::shared_ptr<bool> isDone; // of a send
  int32_t from = 0;             // of a receive
  int32_t channel = 0;
  void *data = nullptr;
  int64_t bytes = 0;
  uint64_t number = 0; // among the receives of a sender and channel
};
} // namespace

namespace zero_rt::test {
/// The context of a transport.
struct Port {
  std::shared_ptr<Network> network;
  int32_t rank;
  /// Receives that are not done, in order.
  std::map<std::pair<int32_t, int32_t>, std::deque<Request *>> receives;

  static Port &of(void *context) { return *static_cast<Port *>(context); }

  bool fails() {
    auto it = network->left.find(rank);
    return it != network->left.end() && it->second <= 0;
  }

  static zero_rt_status send(void *context, int32_t to, int32_t channel,
                             const void *data, int64_t bytes, void **out) {
    Port &port = of(context);
    std::lock_guard<std::mutex> lock(port.network->mutex);
    EXPECT_GT(bytes, 0);
    EXPECT_NE(to, port.rank);
    if (port.fails())
      return ZERO_RT_INTERNAL;
    if (auto it = port.network->left.find(port.rank);
        it != port.network->left.end())
      --it->second;
    ++port.network->sent.messages;
    port.network->sent.bytes += bytes;
    auto *request = new Request;
    bool isShort = bytes <= shortBytes;
    request->isDone = std::make_shared<bool>(isShort);
    auto *from = static_cast<const char *>(data);
    Network::Message message = {from, bytes, {}, request->isDone};
    if (isShort)
      message.copy.assign(from, from + bytes);
    auto change = port.network->changes.find(port.rank);
    if (isShort && change != port.network->changes.end())
      change->second(channel, message.copy);
    port.network->queues[{port.rank, to, channel}].push_back(
        std::move(message));
    *out = request;
    return ZERO_RT_OK;
  }

  static zero_rt_status receive(void *context, int32_t from, int32_t channel,
                                void *data, int64_t bytes, void **out) {
    Port &port = of(context);
    std::lock_guard<std::mutex> lock(port.network->mutex);
    EXPECT_GT(bytes, 0);
    EXPECT_NE(from, port.rank);
    if (port.fails())
      return ZERO_RT_INTERNAL;
    auto *request = new Request{nullptr, from, channel, data, bytes};
    port.receives[{from, channel}].push_back(request);
    *out = request;
    return ZERO_RT_OK;
  }

  static zero_rt_status test(void *context, void *opaque, int32_t *outDone) {
    Port &port = of(context);
    auto *request = static_cast<Request *>(opaque);
    std::lock_guard<std::mutex> lock(port.network->mutex);
    *outDone = 0;
    if (port.fails())
      return ZERO_RT_INTERNAL;
    if (request->isDone) {
      *outDone = *request->isDone;
    } else {
      auto &mine = port.receives[{request->from, request->channel}];
      auto &queue =
          port.network->queues[{request->from, port.rank, request->channel}];
      if (mine.front() == request && !queue.empty()) {
        Network::Message &message = queue.front();
        EXPECT_EQ(message.bytes, request->bytes);
        std::memcpy(request->data,
                    message.copy.empty() ? message.data : message.copy.data(),
                    size_t(std::min(message.bytes, request->bytes)));
        *message.isDone = true;
        queue.pop_front();
        mine.pop_front();
        *outDone = 1;
      }
    }
    if (*outDone)
      delete request;
    return ZERO_RT_OK;
  }

  static void cancel(void *context, void *opaque) {
    Port &port = of(context);
    auto *request = static_cast<Request *>(opaque);
    std::lock_guard<std::mutex> lock(port.network->mutex);
    if (request->isDone) {
      // Whoever asks for it finds nothing to read.
      for (auto &[key, queue] : port.network->queues)
        for (auto it = queue.begin(); it != queue.end();)
          it = it->isDone == request->isDone && it->copy.empty()
                   ? queue.erase(it)
                   : std::next(it);
    } else {
      auto &mine = port.receives[{request->from, request->channel}];
      mine.erase(std::find(mine.begin(), mine.end(), request));
    }
    delete request;
  }

  static const char *error(void *) { return "the network is down"; }
  static void destroy(void *context) { delete &of(context); }
};
} // namespace zero_rt::test

zero_rt_transport Network::connect(std::shared_ptr<Network> network,
                                   int32_t rank, int32_t ranks) {
  auto *port = new Port{std::move(network), rank, {}};
  return {sizeof(zero_rt_transport),
          rank,
          ranks,
          /*any_thread=*/1,
          port,
          Port::send,
          Port::receive,
          Port::test,
          Port::cancel,
          Port::error,
          Port::destroy};
}

void Network::spoil(int32_t rank, Change change) {
  std::lock_guard<std::mutex> lock(mutex);
  changes[rank] = std::move(change);
}

Network::Traffic Network::traffic() {
  std::lock_guard<std::mutex> lock(mutex);
  return sent;
}

void Network::failAfter(int32_t rank, int64_t messages) {
  std::lock_guard<std::mutex> lock(mutex);
  left[rank] = messages;
}
