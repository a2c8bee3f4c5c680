//===- ThreadTransport.h - A network inside of a process --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What processes do to each other is tested with threads: a transport that
// keeps to the letter of transport.h. Short messages are on their way when they
// are sent; long ones wait for their receiver, as in MPI.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_THREADTRANSPORT_H
#define ZERO_TEST_UNIT_RUNTIME_THREADTRANSPORT_H

#include "zero_rt/transport.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace zero_rt::test {

/// What connects the ranks. Lives as long as one of its transports.
class Network {
public:
  /// The transport of |rank|; its context owns a share of |network|.
  static zero_rt_transport connect(std::shared_ptr<Network> network,
                                   int32_t rank, int32_t ranks);

  /// After it has sent that many more messages every call of |rank| fails.
  void failAfter(int32_t rank, int64_t messages);

  /// Changes the short messages that |rank| sends.
  using Change = std::function<void(int32_t channel, std::vector<char> &)>;
  void spoil(int32_t rank, Change change);

  /// What all ranks have sent so far.
  struct Traffic {
    int64_t messages = 0;
    int64_t bytes = 0;
  };
  Traffic traffic();

private:
  friend struct Port;
  struct Message {
    const char *data; // of the sender, unless it is short
    int64_t bytes;
    std::vector<char> copy;
    std::shared_ptr<bool> isDone;
  };
  std::mutex mutex;
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::deque<Message>>
      queues; // by sender, receiver and channel
  std::map<int32_t, int64_t> left;
  Traffic sent;
  std::map<int32_t, Change> changes;
};

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_THREADTRANSPORT_H
