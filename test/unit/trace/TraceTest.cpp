//===- TraceTest.cpp - A compiled step makes the calls of its IR ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Quickstart runs on two ranks with a recording table in the place of the
// runtime's. What each rank's generated code called, with which operands and in
// which order, must be what the handlers of the zrt.program say.
//
//===----------------------------------------------------------------------===//

#include "Recorder.h"
#include "Script.h"
#include "StepLibrary.h"
#include "Walker.h"
#include "zero_rt/step.h"

#include "mlir/IR/IRMapping.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

using namespace mlir;
using namespace zero;
using namespace zero::test;

namespace {
/// What one rank did, and what went wrong.
struct RankRun {
  Trace trace;
  std::string error;
};

class TraceTest : public testing::Test {
protected:
  void SetUp() override {
    if (!canRun())
      GTEST_SKIP() << "this machine cannot run x86-64-v3";
  }

  std::vector<RankRun> runOnTwoRanks(const Script (&scripts)[2]);
  void runRank(zero_rt_group *group, int rank, const Script &script,
               RankRun &run);
  void expectSame(const Script &script, const RankRun &run);

  StepLibrary library;
};

/// (ZeRO stage, offload, bytes of a bucket): with 1 there is a bucket per
/// parameter, with many one bucket with a segment per group.
using TracePlan = std::tuple<int, std::string, int64_t>;

class PlanTraceTest : public TraceTest,
                      public testing::WithParamInterface<TracePlan> {
protected:
  void SetUp() override {
    TraceTest::SetUp();
    if (IsSkipped())
      return;
    LowerOptions options;
    options.mesh = "dp=2";
    options.stage = std::get<0>(GetParam());
    options.offload = std::get<1>(GetParam());
    options.bucketBytes = std::get<2>(GetParam());
    library.hasUnits = options.stage == 3;
    ASSERT_EQ(library.open(options), "");
  }
  /// |script| as callers of this plan make it.
  Script plan(const Script &script);
};

const std::map<std::string, int64_t> kElements = {{"fc1.weight", 64 * 48},
                                                  {"fc1.bias", 64},
                                                  {"fc2.weight", 10 * 64},
                                                  {"fc2.bias", 10}};

const std::vector<std::string> kBackToFront = {
    "fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"};
const std::vector<std::string> kFrontToBack = {
    "fc1.weight", "fc1.bias", "fc2.weight", "fc1.weight", "fc2.bias"};
const std::vector<std::string> kWithoutOptional = {"fc1.weight", "fc1.weight",
                                                   "fc2.weight", "fc1.bias"};
} // namespace

Script PlanTraceTest::plan(const Script &script) {
  return std::get<0>(GetParam()) == 3 ? addUnits(script) : script;
}

namespace {
/// Runs |script| on one rank. A user calls the functions of step.h and no
/// others.
class User {
public:
  User(StepLibrary &library, std::string &error)
      : library(library), error(error) {}

  bool create(zero_rt_runtime *runtime);
  void act(const Action &action);
  void arrive(const std::string &parameter);
  int32_t findUnit(const std::string &name);
  void destroy() { check(zero_rt_step_destroy(step)); }
  bool check(zero_rt_status status) {
    if (status && error.empty())
      error = zero_rt_message();
    return status == ZERO_RT_OK;
  }

private:
  StepLibrary &library;
  std::string &error;
  zero_rt_step *step = nullptr;
  /// They live as long as the step may read them.
  std::vector<std::vector<uint16_t>> gradients;
};
} // namespace

bool User::create(zero_rt_runtime *runtime) {
  return check(
      zero_rt_step_create(runtime, &library.getLibrary(), nullptr, &step));
}

void User::act(const Action &action) {
  double rate = 1e-3;
  switch (action.event) {
  case zrt::Event::begin:
    check(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    return;
  case zrt::Event::begin_last:
    check(zero_rt_step_begin_backward(step, ZERO_RT_HINT_LAST));
    return;
  case zrt::Event::arrive:
    arrive(action.name);
    return;
  case zrt::Event::accumulate:
    check(zero_rt_step_accumulate(step));
    return;
  case zrt::Event::apply:
    check(zero_rt_step_apply(step, &rate, 1, nullptr));
    return;
  case zrt::Event::discard:
    check(zero_rt_step_discard(step));
    return;
  case zrt::Event::measure:
    check(zero_rt_step_measure(step, &rate, 1, nullptr));
    return;
  case zrt::Event::unshard:
    check(zero_rt_step_unshard(step, findUnit(action.name), nullptr));
    return;
  case zrt::Event::reshard:
    check(zero_rt_step_reshard(step, findUnit(action.name), nullptr));
    return;
  }
}

int32_t User::findUnit(const std::string &name) {
  int32_t unit = -1;
  check(zero_rt_step_find_unit(step, name.c_str(), &unit));
  return unit;
}

void User::arrive(const std::string &parameter) {
  int32_t id = -1;
  check(zero_rt_step_find_parameter(step, parameter.c_str(), &id));
  int64_t elements = kElements.at(parameter);
  gradients.emplace_back(elements, 0x3f80); // 1 in bf16
  zero_rt_tensor tensor = {
      sizeof(tensor), ZERO_RT_BF16,           ZERO_RT_SPACE_DEVICE, 0,
      elements,       gradients.back().data()};
  zero_rt_timepoint release = 0;
  check(zero_rt_step_gradient(step, id, &tensor, nullptr, &release));
}

void TraceTest::runRank(zero_rt_group *group, int rank, const Script &script,
                        RankRun &run) {
  User user(library, run.error);
  zero_rt_runtime *runtime = nullptr;
  if (!user.check(zero_rt_create(group, rank, nullptr, &runtime)))
    return;
  {
    Recorder recorder(runtime);
    if (user.create(runtime)) {
      for (const Action &action : script)
        user.act(action);
      user.destroy();
    }
    run.trace = recorder.trace;
  }
  user.check(zero_rt_destroy(runtime));
}

std::vector<RankRun> TraceTest::runOnTwoRanks(const Script (&scripts)[2]) {
  std::vector<RankRun> runs(2);
  zero_rt_group *group = nullptr;
  EXPECT_EQ(zero_rt_local_group_create(2, &group), ZERO_RT_OK);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] { runRank(group, r, scripts[r], runs[r]); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(zero_rt_group_destroy(group), ZERO_RT_OK);
  return runs;
}

static Walker walkScript(ModuleOp module, const Script &script) {
  Walker walker(module);
  walker.addStepCall("step_create");
  static const char *const calls[] = {
      "begin_backward", "gradient", "accumulate", "apply",  "discard",
      "begin_backward", "measure",  "unshard",    "reshard"};
  for (const Action &action : script) {
    if (action.event == zrt::Event::arrive)
      walker.addStepCall("find_parameter");
    if (action.event == zrt::Event::unshard ||
        action.event == zrt::Event::reshard)
      walker.addStepCall("find_unit");
    walker.addStepCall(calls[static_cast<int>(action.event)]);
    walker.walk(action.event, action.name);
  }
  walker.addStepCall("step_destroy");
  return walker;
}

void TraceTest::expectSame(const Script &script, const RankRun &run) {
  EXPECT_EQ(run.error, "");
  Walker walker = walkScript(library.getModule(), script);
  EXPECT_EQ(firstDifference(run.trace, walker.trace), "");
}

TEST_P(PlanTraceTest, OneBackward) {
  const Script scripts[] = {
      plan(makeScript({kBackToFront}, zrt::Event::apply)),
      plan(makeScript({kFrontToBack}, zrt::Event::apply))};
  std::vector<RankRun> runs = runOnTwoRanks(scripts);
  for (int r = 0; r < 2; ++r)
    expectSame(scripts[r], runs[r]);
}

// Three backward passes and then one, a discarded one between them; a gradient
// that may be missing is, on one rank.
TEST_P(PlanTraceTest, SeveralBackwardsAndADiscardedOne) {
  const Script one = makeScript({kBackToFront}, zrt::Event::apply);
  const Script dropped = makeScript({kFrontToBack}, zrt::Event::discard);
  const Script scripts[] = {
      plan(makeScript({kBackToFront, kFrontToBack, kBackToFront},
                      zrt::Event::apply) +
           dropped + one),
      plan(makeScript({kFrontToBack, kWithoutOptional, kFrontToBack},
                      zrt::Event::apply) +
           dropped + one)};
  std::vector<RankRun> runs = runOnTwoRanks(scripts);
  for (int r = 0; r < 2; ++r)
    expectSame(scripts[r], runs[r]);
}

// Backward passes that are begun as the last, and are or are not.
TEST_P(PlanTraceTest, Hints) {
  auto make = [](const std::vector<std::string> &order,
                 const std::vector<std::string> &other) {
    return makeScript({order, other}, zrt::Event::apply, {1}) +
           makeScript({order, other, order}, zrt::Event::apply, {0, 1}) +
           makeScript({other}, zrt::Event::discard, {0}) +
           makeScript({kWithoutOptional}, zrt::Event::apply, {0});
  };
  const Script scripts[] = {plan(make(kBackToFront, kFrontToBack)),
                            plan(make(kFrontToBack, kWithoutOptional))};
  std::vector<RankRun> runs = runOnTwoRanks(scripts);
  for (int r = 0; r < 2; ++r)
    expectSame(scripts[r], runs[r]);
}

// Steps that are measured, and then applied or dropped.
TEST_P(PlanTraceTest, Measured) {
  auto make = [](const std::vector<std::string> &order,
                 const std::vector<std::string> &other) {
    const Script apply = {{zrt::Event::apply, ""}};
    const Script discard = {{zrt::Event::discard, ""}};
    return makeScript({order}, zrt::Event::measure) + apply +
           makeScript({order, other}, zrt::Event::measure, {1}) + discard +
           makeScript({other, order}, zrt::Event::measure) + apply;
  };
  const Script scripts[] = {plan(make(kBackToFront, kFrontToBack)),
                            plan(make(kFrontToBack, kBackToFront))};
  std::vector<RankRun> runs = runOnTwoRanks(scripts);
  for (int r = 0; r < 2; ++r)
    expectSame(scripts[r], runs[r]);
}

// The comparison sees every call: without any one of them the IR says something
// else than what ran.
TEST_P(PlanTraceTest, EveryCallCounts) {
  const Script script =
      plan(makeScript({kBackToFront, kFrontToBack, kBackToFront},
                      zrt::Event::apply) +
           makeScript({kBackToFront, kBackToFront}, zrt::Event::apply, {0, 1}) +
           makeScript({kBackToFront}, zrt::Event::measure) +
           Script{{zrt::Event::discard, ""}} +
           makeScript({kBackToFront}, zrt::Event::apply));
  std::vector<RankRun> runs = runOnTwoRanks({script, script});
  ASSERT_EQ(runs[0].error, "");
  Walker whole = walkScript(library.getModule(), script);
  int tried = 0;
  auto program = *library.getModule().getOps<zrt::ProgramOp>().begin();
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    if (!whole.handlers.count(handler.getSymName()))
      continue;
    for (Operation &call : handler.getBody().getOps()) {
      IRMapping mapping;
      OwningOpRef<Operation *> copy(library.getModule()->clone(mapping));
      Operation *gone = mapping.lookup(&call);
      gone->dropAllUses();
      gone->erase();
      Walker walker = walkScript(cast<ModuleOp>(*copy), script);
      EXPECT_NE(firstDifference(runs[0].trace, walker.trace), "")
          << "without " << call.getName().getStringRef().str() << " of "
          << handler.getSymName().str();
      ++tried;
    }
  }
  EXPECT_GT(tried, 10);
}

// Lowering gives buffers on demand no memory of their own, and code generation
// knows such: here a handler is given the two calls.
TEST_F(TraceTest, BuffersOnDemand) {
  LowerOptions options;
  options.mesh = "dp=2";
  auto addCalls = [](ModuleOp module) {
    auto program = *module.getOps<zrt::ProgramOp>().begin();
    auto buffer = *program.getOps<zrt::BufferOp>().begin();
    auto handler = *program.getOps<zrt::HandlerOp>().begin();
    OpBuilder builder(module.getContext());
    builder.setInsertionPointAfter(buffer);
    auto extra = cast<zrt::BufferOp>(builder.clone(*buffer));
    extra.setSymName("extra");
    extra.setOnDemand(true);
    builder.setInsertionPointToStart(&handler.getBody().front());
    auto symbol = FlatSymbolRefAttr::get(extra);
    builder.create<zrt::AllocateOp>(extra.getLoc(), symbol, zrt::StreamAttr());
    builder.create<zrt::ReleaseOp>(extra.getLoc(), symbol, zrt::StreamAttr());
  };
  ASSERT_EQ(library.open(options, addCalls), "");
  const Script script = makeScript({kBackToFront}, zrt::Event::apply);
  std::vector<RankRun> runs = runOnTwoRanks({script, script});
  for (const RankRun &run : runs) {
    expectSame(script, run);
    EXPECT_TRUE(llvm::is_contained(run.trace, "allocate(writes extra)"));
    EXPECT_TRUE(llvm::is_contained(run.trace, "release(writes extra)"));
  }
}

static std::string
describeTrace(const testing::TestParamInfo<TracePlan> &info) {
  return "stage" + std::to_string(std::get<0>(info.param)) + "_offload_" +
         std::get<1>(info.param) +
         (std::get<2>(info.param) == 1 ? "_buckets" : "_bucket");
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanTraceTest,
                         testing::Combine(testing::Values(0, 1, 2, 3),
                                          testing::Values("none", "optimizer"),
                                          testing::Values(1, 1 << 20)),
                         describeTrace);
INSTANTIATE_TEST_SUITE_P(Units, PlanTraceTest,
                         testing::Combine(testing::Values(3),
                                          testing::Values("parameters"),
                                          testing::Values(1, 1 << 20)),
                         describeTrace);
