//===- ControlMessageTest.cpp - Messages outside any order ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank is driven by hand, so that what it knows at every point is known:
// nothing of a message arrives before its receiver looks.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "ThreadTransport.h"
#include "comm/process/desync_check.h"
#include "comm/process/reports.h"

#include <cstring>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

constexpr uint64_t kStep = 5;
constexpr uint64_t kGroup = 77;

NamedTag makeNamedTag(const char *operation, const char *name, uint64_t group) {
  Tag tag = {operation, name, 8, ZERO_RT_F32, ZERO_RT_F32, kStep};
  return nameTag(makeTag(tag, group, /*sequence=*/0), tag);
}

/// One rank's end.
struct End {
  explicit End(const zero_rt_transport &transport) : link(transport) {
    link.noteStep(kStep);
  }
  zero_rt_status keep(uint64_t turn, int64_t value) {
    return reports.keep(kStep, turn, &value, sizeof(value));
  }
  zero_rt_status collect(uint64_t turn, int64_t *all,
                         int64_t timeoutMs = 20000) {
    return reports.collect(kStep, turn, all, sizeof(int64_t), timeoutMs);
  }
  zero_rt_status call(const char *operation, const char *name) {
    NamedTag named = makeNamedTag(operation, name, kGroup);
    return desync.call(named);
  }

  Link link;
  ControlMessages control{link};
  Reports reports{control};
  DesyncCheck desync{control};
};

class ControlMessageTest : public testing::Test {
protected:
  void start(int32_t ranks) {
    auto network = std::make_shared<Network>();
    std::vector<int32_t> all;
    for (int32_t r = 0; r < ranks; ++r) {
      ends.push_back(
          std::make_unique<End>(Network::connect(network, r, ranks)));
      all.push_back(r);
    }
    for (auto &end : ends)
      end->desync.join(kGroup, all);
  }
  End &end(int32_t rank) { return *ends[size_t(rank)]; }

  std::vector<std::unique_ptr<End>> ends;
};

using ReportTest = ControlMessageTest;
using DesyncTest = ControlMessageTest;

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

TEST_F(ReportTest, AreSentToThoseWhoAsk) {
  start(2);
  expectOk(end(0).keep(1, 10));
  expectOk(end(1).keep(1, 11));
  int64_t all[2] = {};
  std::thread other([&] {
    int64_t theirs[2] = {};
    expectOk(end(1).collect(1, theirs));
    EXPECT_EQ(theirs[0], 10);
  });
  expectOk(end(0).collect(1, all));
  other.join();
  EXPECT_EQ(all[0], 10);
  EXPECT_EQ(all[1], 11);
}

// Who does not want to know answers when it next keeps something.
TEST_F(ReportTest, AreAnsweredWithTheNextOne) {
  start(2);
  expectOk(end(0).keep(1, 10));
  expectOk(end(1).keep(1, 11));
  int64_t all[2] = {};
  expectStatus(ZERO_RT_TIMEOUT, end(0).collect(1, all, 20));
  expectOk(end(1).keep(2, 12));
  expectOk(end(0).collect(1, all));
  EXPECT_EQ(all[1], 11);
}

TEST_F(ReportTest, AreWaitedForByThoseWhoAreEarly) {
  start(2);
  expectOk(end(0).keep(1, 10));
  expectStatus(ZERO_RT_TIMEOUT,
               end(0).collect(1, std::array<int64_t, 2>().data(), 20),
               "rank 1 did not say in time what it lacks");
  // Its question is not forgotten.
  expectOk(end(1).keep(1, 11));
  int64_t all[2] = {};
  expectOk(end(0).collect(1, all));
  EXPECT_EQ(all[1], 11);
}

TEST_F(ReportTest, OfLaterTurnsSaySo) {
  start(2);
  expectOk(end(0).keep(1, 10));
  expectOk(end(1).keep(1, 11));
  expectOk(end(1).keep(2, 12));
  std::thread other([&] {
    // Answers as it waits, and then asks for what it alone has come to.
    int64_t theirs[2] = {};
    expectStatus(ZERO_RT_TIMEOUT, end(1).collect(2, theirs, 200),
                 "rank 0 did not say in time what it lacks");
  });
  int64_t all[2] = {};
  expectStatus(ZERO_RT_MISMATCH, end(0).collect(1, all),
               "rank 1 has applied its step again");
  other.join();
}

TEST_F(ReportTest, OfThoseWhoLeftAreMissed) {
  start(2);
  expectOk(end(0).keep(1, 10));
  end(1).reports.leave(kStep);
  int64_t all[2] = {};
  expectStatus(ZERO_RT_TIMEOUT, end(0).collect(1, all),
               "rank 1 has destroyed its step, and did not say what it lacks");
}

TEST_F(ReportTest, MustFit) {
  start(1);
  std::vector<char> large(sizeof(ControlMessage::data) + 1);
  expectStatus(
      ZERO_RT_INTERNAL,
      end(0).reports.keep(kStep, 1, large.data(), int64_t(large.size())),
      "a report of 481 bytes, expected at most 480");
}

//===----------------------------------------------------------------------===//
// Desync checks
//===----------------------------------------------------------------------===//

TEST_F(DesyncTest, AgreesWhereAllQueueTheSame) {
  start(3);
  for (int32_t r = 0; r < 3; ++r) {
    expectOk(end(r).call("all_reduce", "b0"));
    expectOk(end(r).call("all_gather", "b1"));
  }
  for (int32_t r = 0; r < 3; ++r)
    expectOk(end(r).desync.look());
}

// Rank 1 sees that rank 0 queued something else, and tells the others.
TEST_F(DesyncTest, FindsDifferences) {
  start(3);
  const char *text = "rank 0 is in all_reduce of 'b0', rank 1 in all_gather "
                     "of 'b1'";
  expectOk(end(0).call("all_reduce", "b0"));
  expectStatus(ZERO_RT_MISMATCH, end(1).call("all_gather", "b1"), text);
  expectStatus(ZERO_RT_MISMATCH, end(2).link.check(), text);
}

TEST_F(DesyncTest, FindsThoseWhoAreMissing) {
  start(4);
  for (int32_t r : {0, 1, 2})
    expectOk(end(r).call("all_reduce", "b0"));
  // From the one before it, it knows already.
  expectOk(end(1).desync.look());
  EXPECT_EQ(end(1).desync.findMissing(kGroup, 1), (std::vector<int32_t>{2, 3}));
  expectOk(end(1).desync.announce(kGroup, 1));
  for (int32_t r : {0, 2, 3})
    expectOk(end(r).desync.look());
  expectOk(end(1).desync.look());
  EXPECT_EQ(end(1).desync.findMissing(kGroup, 1), (std::vector<int32_t>{3}));
  // Those who were asked know about the one that asked.
  EXPECT_EQ(end(0).desync.findMissing(kGroup, 1), (std::vector<int32_t>{2, 3}));
  // It comes late, and remembers who asked.
  expectOk(end(3).call("all_reduce", "b0"));
  expectOk(end(1).desync.look());
  EXPECT_EQ(end(1).desync.findMissing(kGroup, 1), (std::vector<int32_t>{}));
}

TEST_F(DesyncTest, KnowsWhoLeftBefore) {
  start(2);
  expectOk(end(1).call("all_reduce", "b0"));
  end(1).desync.leaveStep(kGroup, kStep);
  expectOk(end(0).call("all_reduce", "b0"));
  expectOk(end(0).desync.look());
  EXPECT_EQ(end(0).desync.findLoss(kGroup, kStep, 1, 1), nullptr);
  EXPECT_STREQ(end(0).desync.findLoss(kGroup, kStep, 1, 2),
               " destroyed its step");
  EXPECT_EQ(end(0).desync.findLoss(kGroup, kStep + 1, 1, 2), nullptr);
}

// A group may be told about before this rank has joined it, and after it has
// left.
TEST_F(DesyncTest, GroupsBeginAndEndAtDifferentTimes) {
  start(2);
  end(0).desync.leave(kGroup);
  expectOk(end(1).call("all_reduce", "b0"));
  expectOk(end(0).desync.look());
  const uint64_t next = kGroup + 1;
  end(1).desync.join(next, {0, 1});
  NamedTag named = makeNamedTag("all_gather", "b", next);
  expectOk(end(1).desync.call(named));
  expectOk(end(0).desync.look());
  end(0).desync.join(next, {0, 1});
  NamedTag other = makeNamedTag("All_gather", "b", next);
  expectStatus(ZERO_RT_MISMATCH, end(0).desync.call(other),
               "rank 0 is in All_gather of 'b', rank 1 in all_gather of 'b'");
}

//===----------------------------------------------------------------------===//
// A rank that sends without an end
//===----------------------------------------------------------------------===//

class FloodTest : public ControlMessageTest {
protected:
  /// Rank 1 sends |count| messages of |kind|. |set| makes each another one.
  void flood(ControlMessage::Kind kind, uint64_t count,
             void (*set)(ControlMessage &, uint64_t)) {
    NamedTag named = makeNamedTag("all_reduce", "b", kGroup);
    for (uint64_t n = 1; n <= count; ++n) {
      ControlMessage message;
      message.kind = kind;
      message.group = kGroup;
      message.turn = n;
      if (kind == ControlMessage::Called) {
        message.bytes = int32_t(sizeof(named));
        std::memcpy(message.data, &named, sizeof(named));
      }
      set(message, n);
      expectOk(end(1).control.send(0, message));
    }
  }
  void expectBroken(const char *text) {
    zero_rt_status status = ZERO_RT_OK;
    for (int n = 0; n < 1000 && !status; ++n) {
      status = end(0).control.poll();
      if (!status)
        status = end(0).link.check();
    }
    expectStatus(ZERO_RT_MISMATCH, status, text);
  }
};

TEST_F(FloodTest, OnePollTakesSomeMessages) {
  start(2);
  int taken = 0;
  end(0).control.setReader(ControlMessage::Waiting,
                           [&](int32_t, const ControlMessage &) {
                             ++taken;
                             return ZERO_RT_OK;
                           });
  flood(ControlMessage::Waiting, 3000, [](ControlMessage &, uint64_t) {});
  for (int expected : {1024, 2048, 3000, 3000}) {
    expectOk(end(0).control.poll());
    EXPECT_EQ(taken, expected);
  }
}

TEST_F(FloodTest, ReportsAreOfSomeSteps) {
  start(2);
  flood(ControlMessage::Report, 17000,
        [](ControlMessage &message, uint64_t n) { message.step = kStep + n; });
  expectBroken("rank 1 sent reports of too many steps");
}

TEST_F(FloodTest, MessagesAreOfSomeGroups) {
  start(2);
  flood(ControlMessage::Waiting, 17000,
        [](ControlMessage &message, uint64_t n) { message.group += n; });
  expectBroken("rank 1 sent messages of too many groups");
}

TEST_F(FloodTest, SomeCollectivesAreAhead) {
  start(2);
  flood(ControlMessage::Called, 66000, [](ControlMessage &, uint64_t) {});
  expectBroken("rank 1 sent too many collectives ahead");
}

} // namespace
