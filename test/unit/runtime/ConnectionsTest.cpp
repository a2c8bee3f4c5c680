//===- ConnectionsTest.cpp - What ranks send over TCP is bounded ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/connections.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "comm/tcp/address.h"

#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// A connection to a rank that sends what it likes.
class Liar {
public:
  Liar() {
    Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    Socket listener;
    Address loopback = Address::loopback();
    std::string why;
    expectOk(listener.listen(&loopback, 0));
    EXPECT_TRUE(theirs.connect(loopback, listener.port(), end, -1, why));
    std::vector<Socket> sockets(2);
    sockets[1] = listener.accept();
    transport = Connections::makeTransport(
        new Connections(0, sockets, /*mostKeptBytes=*/1 << 20));
  }
  ~Liar() { transport.destroy(transport.context); }

  void send(int64_t bytes, int64_t channel, size_t sent) {
    int64_t frame[] = {bytes, channel};
    std::vector<char> data(sent, 1);
    Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    (void)sendAll(theirs.get(), frame, sizeof(frame), end);
    (void)sendAll(theirs.get(), data.data(), sent, end);
  }

  /// Sends messages that are not taken until that fails, as |text| says.
  void expectFull(const char *text) {
    std::vector<char> data(4096);
    zero_rt_status status = ZERO_RT_OK;
    void *request = nullptr;
    int32_t isDone = 1;
    // The buffers of the sockets take some MiB.
    for (int i = 0; i < 16384 && isDone; ++i) {
      expectOk(transport.send(transport.context, 1, 5, data.data(),
                              int64_t(data.size()), &request));
      status = transport.test(transport.context, request, &isDone);
    }
    ASSERT_FALSE(isDone);
    EXPECT_EQ(status, ZERO_RT_MISMATCH);
    EXPECT_STREQ(transport.error(transport.context), text);
    transport.cancel(transport.context, request);
  }

  /// Receives on another channel until that fails, as |text| says.
  void expectMistake(const char *text) {
    char byte = 0;
    void *request = nullptr;
    int32_t isDone = 0;
    zero_rt_status status =
        transport.receive(transport.context, 1, 5, &byte, 1, &request);
    Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!status && !isDone && std::chrono::steady_clock::now() < end)
      status = transport.test(transport.context, request, &isDone);
    EXPECT_EQ(status, ZERO_RT_MISMATCH);
    EXPECT_NE(std::string(transport.error(transport.context)).find(text),
              std::string::npos)
        << transport.error(transport.context);
    transport.cancel(transport.context, request);
  }

private:
  Socket theirs;
  zero_rt_transport transport;
};

TEST(Tcp, WhatRanksSendIsChecked) {
  for (auto [bytes, channel] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 0}, {0, 0}, {INT64_MAX, 0}, {8, -1}, {8, 16}, {8, INT64_MIN}}) {
    Liar liar;
    liar.send(bytes, channel, 8);
    liar.expectMistake("rank 1 sent bytes that are no message: a length of ");
  }
}

TEST(Tcp, MessagesThatNobodyReceivesAreBounded) {
  Liar liar;
  std::thread sender([&] {
    for (int i = 0; i < 5; ++i)
      liar.send(1 << 18, i, 1 << 18);
  });
  liar.expectMistake(
      "rank 1 sent more than 1 MiB that this rank has not received");
  sender.join();
}

TEST(Tcp, MessagesThatARankDoesNotTakeAreBounded) {
  Liar().expectFull("rank 1 has not taken more than 1 MiB of messages that "
                    "this rank sent");
}

// A message of 1 byte takes more memory than that.
TEST(Tcp, SmallMessagesThatNobodyReceivesAreBounded) {
  Liar liar;
  constexpr int most = (1 << 20) / 64;
  std::thread sender([&] {
    for (int i = 0; i < most; ++i)
      liar.send(1, 0, 1);
  });
  liar.expectMistake(
      "rank 1 sent more than 1 MiB that this rank has not received");
  sender.join();
}

// The connections break, as if the process had died: who waits is told at once.
TEST(Tcp, ARankThatDiesFreesThoseWhoWait) {
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Socket listener, theirs;
  Address loopback = Address::loopback();
  std::string why;
  expectOk(listener.listen(&loopback, 0));
  ASSERT_TRUE(theirs.connect(loopback, listener.port(), end, -1, why));
  std::vector<Socket> sockets(2);
  sockets[1] = listener.accept();
  auto *connections = new Connections(0, sockets);
  zero_rt_transport transport = Connections::makeTransport(connections);
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_transport_group_create(&transport, &group));
  expectOk(zero_rt_create(group, 0, nullptr, &runtime));
  LibraryBuilder library = makeTrainStep(2);
  zero_rt_step *step = nullptr;
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    theirs = Socket();
  });
  auto begin = std::chrono::steady_clock::now();
  expectStatus(
      ZERO_RT_TIMEOUT,
      callsOf(runtime).step_create(runtime, &library.get(), nullptr, &step),
      "rank 1 is gone and will not come to step_create");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  killer.join();
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
}

} // namespace
