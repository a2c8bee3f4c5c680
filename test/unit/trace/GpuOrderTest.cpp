//===- GpuOrderTest.cpp - What a step asks of the driver ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TraceTest shows that a step makes the calls of its IR. Here each of these
// calls must become the launches, copies, events and calls of NCCL that it
// stands for, in its order, on the streams and behind the events of the IR, and
// without waiting.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "GpuRank.h"
#include "GpuSchedule.h"
#include "Recorder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <set>

using namespace mlir;
using namespace zero;
using namespace zero::test;

namespace {

const std::vector<std::string> kBackToFront = {
    "fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"};
const std::vector<std::string> kFrontToBack = {
    "fc1.weight", "fc1.bias", "fc2.weight", "fc1.weight", "fc2.bias"};

/// The ZeRO stage, the part that is offloaded, true for ranks that are
/// processes, and the hint for a backward pass.
using OrderPlan = std::tuple<int, std::string, bool, zero_rt_hint>;

class GpuOrder : public GpuTest, public testing::WithParamInterface<OrderPlan> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    LowerOptions options;
    options.mesh = "dp=2";
    options.stage = std::get<0>(GetParam());
    options.offload = std::get<1>(GetParam());
    options.bucketBytes = 1;
    library.hasUnits = options.stage == 3;
    open(options);
  }
  bool isOverNccl() { return std::get<2>(GetParam()); }
  /// Runs |steps| steps on two ranks that deliver in different orders, and
  /// keeps what each asked of the driver from step |first| on.
  void run(int steps, int first);
  /// The names of what a call of the program launches.
  std::vector<std::string> expectLaunches(llvm::StringRef call);
  /// What it asks of NCCL: "ncclAllReduce of 12 bytes".
  std::vector<std::string> expectNccl(llvm::StringRef call);
  Type getType(llvm::StringRef operand);
  int64_t getBytes(llvm::StringRef operand);

  std::vector<fake::Call> calls[2];
  std::vector<uint16_t> weights[2];
};

} // namespace

void GpuOrder::run(int steps, int first) {
  std::thread::id ids[2];
  auto body = [&](int r, zero_rt_group *group) {
    ids[r] = std::this_thread::get_id();
    GpuRank rank(library, group, r);
    Recorder recorder(rank.runtime, [](const std::string &call) {
      fake::mark("call " + call);
    });
    ASSERT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
    // Units are used on a stream of the rank's own: on that of another rank
    // they would wait for each other.
    cuCtxPushCurrent_v2(fake::contextOf(0)); // of all ranks
    if (library.hasUnits)
      ASSERT_EQ(cuStreamCreate(&rank.stream, 1), 0);
    for (int step = 0; step < steps; ++step) {
      fake::mark("step " + std::to_string(step));
      // Gradients are brought there by the test.
      rank.run(r ? kFrontToBack : kBackToFront, std::get<3>(GetParam()));
    }
    fake::mark("end");
    rank.getResults();
    if (library.hasUnits)
      rank.useUnit("fc1",
                   [&] { weights[r] = rank.getParameter("fc1.weight"); });
    else
      weights[r] = rank.getParameter("fc1.weight");
    rank.destroyStep();
    if (rank.stream)
      EXPECT_EQ(cuStreamDestroy_v2(rank.stream), 0);
    cuCtxPopCurrent_v2(nullptr);
  };
  if (isOverNccl())
    runProcesses(2, body);
  else
    runThreads(2, body);
  for (const fake::Call &call : fake::takeCalls())
    for (int r = 0; r < 2; ++r)
      if (call.thread == ids[r])
        calls[r].push_back(call);
  const std::string from = "step " + std::to_string(first);
  for (std::vector<fake::Call> &all : calls) {
    auto isMark = [&](const std::string &text) {
      return [text](const fake::Call &call) { return call.function == text; };
    };
    all.erase(all.begin(), llvm::find_if(all, isMark(from)));
    all.erase(llvm::find_if(all, isMark("end")), all.end());
  }
}

/// The last operand of what runs on the host beside the GPU.
constexpr char kHost[] = "stream 3)";

/// "kernel 3" of "launch(kernel 3, ...)" is 3; -1 if there is none.
static int64_t getNumber(StringRef call, StringRef word) {
  int64_t number = -1;
  call = call.substr(call.find(word)).drop_front(word.size());
  return call.consumeInteger(10, number) ? -1 : number;
}

std::vector<std::string> GpuOrder::expectLaunches(StringRef call) {
  auto program = *library.getModule().getOps<zrt::ProgramOp>().begin();
  auto kernels = llvm::to_vector(program.getOps<zrt::KernelOp>());
  auto scalars = llvm::to_vector(program.getOps<zrt::ScalarsOp>());
  if (call.starts_with("launch(")) {
    auto kernel = kernels[getNumber(call, "kernel ")];
    if (call.ends_with(kHost))
      return {"on the host"};
    return {getCudaName(kernel.getSymName())};
  }
  if (call.starts_with("run_scalars("))
    return {getCudaName(scalars[getNumber(call, "program ")].getSymName())};
  bool isScalars = call.starts_with("all_reduce_scalars(");
  bool adds = call.starts_with("reduce_scatter_add(");
  if (!isScalars && !adds && !call.starts_with("all_reduce(") &&
      !call.starts_with("reduce_scatter("))
    return {};
  std::string sum = "zero$sum_f64_f64";
  std::string ranks = "_2";
  if (!isScalars) {
    // "reduce_scatter(reads b0.gradient, ..."
    bool isNarrow = getType(call.split('(').second.split(',').first).isBF16();
    sum = isNarrow ? "zero$sum_bf16_f32" : "zero$sum_f32_f32";
    if (isOverNccl() && !isNarrow)
      ranks = "_1"; // NCCL adds up
  }
  if (isOverNccl() && (isScalars || (!adds && ranks == "_1")))
    return {};
  return {sum + ranks + (adds ? "_add" : "")};
}

/// The buffer of an operand such as "reads b0.gradient".
static zrt::BufferOp getBuffer(ModuleOp module, StringRef operand) {
  auto program = *module.getOps<zrt::ProgramOp>().begin();
  return program.lookupSymbol<zrt::BufferOp>(operand.split(' ').second);
}

Type GpuOrder::getType(StringRef operand) {
  return getBuffer(library.getModule(), operand)
      .getValueType()
      .getElementType();
}

/// All bytes of a buffer, whoever holds them.
int64_t GpuOrder::getBytes(StringRef operand) {
  ValueType type = getBuffer(library.getModule(), operand).getValueType();
  return type.getNumElements() * type.getElementType().getIntOrFloatBitWidth() /
         8;
}

std::vector<std::string> GpuOrder::expectNccl(StringRef call) {
  auto describe = [](const char *function, int64_t bytes) {
    return std::vector<std::string>{std::string(function) + " of " +
                                    std::to_string(bytes) + " bytes"};
  };
  auto [name, rest] = call.split('(');
  SmallVector<StringRef> operands;
  rest.rtrim(')').split(operands, ", ");
  if (!isOverNccl())
    return {};
  if (name == "all_reduce_scalars")
    return describe("ncclAllReduce", 8 * std::stoll(operands[1].str()));
  if (name == "all_reduce")
    return describe("ncclAllReduce", getBytes(operands[0]));
  // Two ranks share. NCCL would sum in bf16, so it brings the addends only.
  if (name == "reduce_scatter" || name == "reduce_scatter_add") {
    std::string bytes =
        " of " + std::to_string(getBytes(operands[0]) / 2) + " bytes";
    if (getType(operands[0]).isBF16())
      return {"ncclGroupStart of 0 bytes", "ncclSend" + bytes,
              "ncclRecv" + bytes, "ncclGroupEnd of 0 bytes"};
    return {"ncclReduceScatter" + bytes};
  }
  if (name == "all_gather")
    return describe("ncclAllGather", getBytes(operands[0]) / 2);
  return {};
}

/// The events for which a call waits, each "NAME of stream N". The last operand
/// of wait_writable has all of them, behind the word "writable".
static std::vector<std::string> getEvents(StringRef call,
                                          ArrayRef<StringRef> operands) {
  if (call == "wait")
    return {operands[0].str()};
  SmallVector<StringRef> words;
  operands.back().split(words, ' ', -1, /*KeepEmpty=*/false);
  std::vector<std::string> events;
  for (size_t i = 1; i + 4 <= words.size(); i += 4)
    events.push_back(llvm::join(ArrayRef(words).slice(i, 4), " "));
  return events;
}

// The recorded schedule is that of the IR: each call on its stream, a record or
// a wait of the driver for each of the IR's, and no others. The caller's stream
// is recorded where a gradient is delivered, and does not wait, as gradients
// have a release timepoint. Events that collectives add are counted.
TEST_P(GpuOrder, EachCallBecomesItsLaunches) {
  run(/*steps=*/2, /*first=*/0);
  for (const std::vector<fake::Call> &all : calls) {
    Schedule schedule;
    bool isFirst = true; // tables are copied to the GPU
    int numCalls = 0, numWaits = 0, numReturns = 0;
    std::set<StringRef> packed;
    StringRef asker; // the caller's call
    for (size_t i = 0; i < all.size();) {
      StringRef mark = all[i++].function;
      if (!mark.consume_front("call "))
        continue;
      std::vector<fake::Call> asked;
      for (; i < all.size() && !StringRef(all[i].function).starts_with("call ");
           ++i) {
        if (all[i].function == "step 1") {
          isFirst = false;
          packed.clear();
        } else if (all[i].function != "cuEventCreate" && // once for each event
                   all[i].function != "cuEventQuery") {  // for one to use again
          asked.push_back(all[i]);
        }
      }
      auto [name, rest] = mark.split('(');
      if (name == "gradient" && !asked.empty()) {
        ASSERT_EQ(asked.size(), 1u) << asked[1].function;
        schedule.addDelivered(asked[0]);
      }
      if (rest.empty()) {
        asker = name;
        continue;
      }
      ++numCalls;
      SmallVector<StringRef> operands;
      rest.drop_back().split(operands, ", ", -1, /*KeepEmpty=*/false);
      std::string stream = "stream 0";
      if (!operands.empty() && operands.back().starts_with("stream "))
        stream = operands.pop_back_val().str();
      if (name == "record") {
        if (operands[0].ends_with(kCaller) && asker == "gradient" &&
            asked.empty())
          schedule.expectDelivered(operands[0].str());
        else
          schedule.expectRecord(operands[0].str(), asked);
        continue;
      }
      if (name == "wait" && stream == kCaller && asker == "gradient") {
        EXPECT_TRUE(asked.empty()) << mark.str() << ": " << asked[0].function;
        ++numReturns;
        continue;
      }
      if (name == "wait" || name == "wait_writable") {
        std::vector<const void *> events, expected;
        for (const fake::Call &call : asked) {
          EXPECT_EQ(call.function, "cuStreamWaitEvent") << mark.str();
          schedule.expectOn(call, stream, mark.str());
          events.push_back(call.event);
        }
        for (const std::string &event : getEvents(name, operands))
          llvm::append_range(expected,
                             schedule.expectWait(event, stream, events));
        EXPECT_EQ(events, expected) << mark.str();
        numWaits += events.size();
        continue;
      }
      bool sums =
          name.starts_with("reduce_scatter") || name.starts_with("all_reduce");
      bool isCollective = sums || name == "all_gather";
      std::vector<std::string> launched, nccl;
      int records = 0, waits = 0, copies = 0;
      for (const fake::Call &call : asked) {
        if (call.function == "cuLaunchKernel") {
          launched.push_back(call.kernel);
          schedule.expectOn(call, stream, mark.str());
        }
        if (call.function == "cuLaunchHostFunc") {
          launched.push_back("on the host");
          schedule.expectOn(call, stream, mark.str());
        }
        if (StringRef(call.function).starts_with("nccl")) {
          nccl.push_back(call.function + " of " + std::to_string(call.bytes) +
                         " bytes");
          if (call.bytes) // not the beginning of a process group
            schedule.expectOn(call, stream, mark.str());
        }
        records += call.function == "cuEventRecord";
        waits += call.function == "cuStreamWaitEvent";
        copies += call.function == "cuMemcpyAsync";
      }
      if (name == "pack") {
        // Which kernel it is says the bucket; the second use adds to the first.
        const char *kind = packed.insert(mark).second ? "store" : "add";
        ASSERT_EQ(launched.size(), 1u) << mark.str();
        EXPECT_NE(launched[0].find(kind), std::string::npos) << mark.str();
        EXPECT_EQ(records, 0) << mark.str();
        EXPECT_EQ(waits, 0) << mark.str();
        continue;
      }
      EXPECT_EQ(launched, expectLaunches(mark)) << mark.str();
      EXPECT_EQ(nccl, expectNccl(mark)) << mark.str();
      // Ranks that are threads: shown to the other rank, done with, and seen,
      // and once more where slices are gathered in place. Over NCCL: when it
      // began and when it was done, for the watch. A commit marks when results
      // are there.
      int phases = name.starts_with("all_reduce") ? 3 : 2;
      EXPECT_EQ(records, isCollective ? (isOverNccl() ? 2 : phases)
                                      : int(name == "commit"))
          << mark.str();
      EXPECT_EQ(waits, isCollective && !isOverNccl() ? phases : 0)
          << mark.str();
      if (name == "copy") {
        EXPECT_EQ(copies, 1) << mark.str();
        schedule.expectOn(asked[0], stream, mark.str());
      }
      if (isCollective && !isFirst)
        EXPECT_EQ(copies,
                  isOverNccl() || name.starts_with("reduce_scatter") ? 0 : 1)
            << mark.str();
    }
    EXPECT_GT(numCalls, 10);
    EXPECT_GT(numWaits, 3);
    EXPECT_EQ(numReturns, 2 * int(kBackToFront.size()));
    EXPECT_FALSE(schedule.isAnyDelivered());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

// From the second step on: what the first one makes, stays. Events aside, of
// which there are as many as timepoints were under way at once.
TEST_P(GpuOrder, AStepNeitherWaitsNorAllocates) {
  run(/*steps=*/2, /*first=*/1);
  for (const std::vector<fake::Call> &all : calls) {
    bool isOfTest = false;
    int numCalls = 0, numAsked = 0;
    for (const fake::Call &call : all) {
      if (call.function == "test" || call.function == "end of test")
        isOfTest = call.function == "test";
      if (isOfTest)
        continue;
      numCalls += call.function.rfind("cu", 0) == 0;
      EXPECT_FALSE(call.isWait) << call.function;
      // Who asks again and again waits too.
      StringRef function = call.function;
      numAsked = function.ends_with("Query") ? numAsked + 1 : 0;
      EXPECT_LE(numAsked, 12) << call.function;
      for (const char *lasting : {"cuMemAllocFromPoolAsync", "cuMemHostAlloc",
                                  "cuStreamCreate", "cuModuleLoadDataEx"})
        EXPECT_NE(call.function, lasting);
    }
    EXPECT_GT(numCalls, 50);
  }
}

// All ranks ask for the same collectives in one order, whatever the order in
// which their gradients come.
TEST_P(GpuOrder, CollectivesAreInOneOrder) {
  run(/*steps=*/1, /*first=*/0);
  std::vector<std::string> collectives[2];
  for (int r = 0; r < 2; ++r)
    for (const fake::Call &call : calls[r]) {
      StringRef text = call.function;
      if (text.consume_front("call ") &&
          (text.starts_with("all_") || text.starts_with("reduce_")))
        collectives[r].push_back(text.str());
    }
  EXPECT_EQ(collectives[0], collectives[1]);
  EXPECT_FALSE(collectives[0].empty());
}

static std::string
describeOrder(const testing::TestParamInfo<OrderPlan> &info) {
  return "stage" + std::to_string(std::get<0>(info.param)) + "_offload_" +
         std::get<1>(info.param) +
         (std::get<2>(info.param) ? "_processes" : "_threads") +
         (std::get<3>(info.param) == ZERO_RT_HINT_LAST ? "_last" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Stages, GpuOrder,
    testing::Combine(testing::Values(0, 1, 2, 3),
                     testing::Values("none", "optimizer"), testing::Bool(),
                     testing::Values(ZERO_RT_HINT_UNKNOWN, ZERO_RT_HINT_LAST)),
    describeOrder);
INSTANTIATE_TEST_SUITE_P(
    Units, GpuOrder,
    testing::Combine(testing::Values(3), testing::Values("parameters"),
                     testing::Bool(), testing::Values(ZERO_RT_HINT_UNKNOWN)),
    describeOrder);
