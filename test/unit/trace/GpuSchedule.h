//===- GpuSchedule.h - Streams and events of a driver -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_GPUSCHEDULE_H
#define ZERO_TEST_UNIT_TRACE_GPUSCHEDULE_H

#include "FakeDriver.h"

#include "llvm/ADT/ArrayRef.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace zero::test {

/// The stream that the caller passes.
constexpr char kCaller[] = "stream 5";

/// The streams and events of one rank, by what the IR calls them.
class Schedule {
public:
  /// Checks that |call| is on the driver's stream that stands for |stream|.
  void expectOn(const fake::Call &call, const std::string &stream,
                const std::string &mark) {
    auto [it, isNew] = streams.try_emplace(stream, call.stream);
    EXPECT_EQ(call.stream, it->second) << call.function << " of " << mark;
    if (isNew)
      EXPECT_TRUE(taken.insert(call.stream).second) << stream;
  }
  /// Checks the driver's |calls| of "record(NAME of STREAM)".
  void expectRecord(const std::string &text,
                    const std::vector<fake::Call> &calls) {
    ASSERT_EQ(calls.size(), 1u) << text;
    EXPECT_EQ(calls[0].function, "cuEventRecord") << text;
    expectOn(calls[0], text.substr(text.find(" of ") + 4), text);
    recorded[text] = {calls[0].event, {}};
  }
  /// A gradient waits for its bucket: |call| is a record of the caller's
  /// stream.
  void addDelivered(const fake::Call &call) {
    EXPECT_EQ(call.function, "cuEventRecord");
    expectOn(call, kCaller, "gradient");
    EXPECT_TRUE(delivered.insert(call.event).second);
  }
  /// The event |text| gets the record of a gradient that has waited.
  void expectDelivered(const std::string &text) {
    EXPECT_FALSE(delivered.empty()) << text;
    recorded[text] = {nullptr, {}};
  }
  bool isAnyDelivered() const { return !delivered.empty(); }
  /// What |stream| asks of the driver to wait for the event |text|: nothing
  /// where it was never recorded, or was waited for since. |asked|: what it
  /// does ask.
  std::vector<const void *> expectWait(const std::string &text,
                                       const std::string &stream,
                                       llvm::ArrayRef<const void *> asked) {
    auto it = recorded.find(text);
    if (it == recorded.end() || !it->second.followers.insert(stream).second)
      return {};
    if (!it->second.event && !asked.empty() && delivered.erase(asked[0]))
      it->second.event = asked[0];
    return {it->second.event};
  }

private:
  struct Recorded {
    const void *event;
    std::set<std::string> followers;
  };
  std::map<std::string, int64_t> streams;
  std::set<int64_t> taken;
  std::map<std::string, Recorded> recorded;
  std::set<const void *> delivered; // with gradients that wait
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_GPUSCHEDULE_H
