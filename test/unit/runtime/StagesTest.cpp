//===- StagesTest.cpp - One library with a program for each stage ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

#include <atomic>
#include <functional>

using namespace zero_rt::test;

namespace {

/// Two stages of one rank each. The first lacks `extra`, the second has it
/// only.
struct TwoStages {
  TwoStages() {
    for (LibraryBuilder *stage : {&first, &second}) {
      stage->axes = {{stage->addText("pp"), 2}, {stage->addText("dp"), 1}};
      stage->axisSets = {2, 3};
    }
    first.parameters[Extra].bucket = -1;
    for (int p : {Weight, Bias, Tied})
      second.parameters[size_t(p)].bucket = -1;
    first.stageAxes = 1;
    first.stages = {&first.get(), &second.get()};
  }
  const zero_rt_library &get() {
    second.get();
    return first.get();
  }

  LibraryBuilder first = makeTrainStep(2);
  LibraryBuilder second = makeTrainStep(2);
};

} // namespace

TEST(Stages, ARankHasTheParametersOfItsOwn) {
  TwoStages stages;
  const zero_rt_library &library = stages.get();
  std::atomic<int64_t> changed{0};
  Options options;
  options.checkPreconditions = true;
  auto run = [&](int32_t rank, zero_rt_runtime *runtime) {
    zero_rt_step *step = nullptr;
    expectOk(callsOf(runtime).step_create(runtime, &library, nullptr, &step));
    // Numbers are the same on all stages.
    int32_t id = -1;
    expectOk(callsOf(step).find_parameter(step, "extra", &id));
    EXPECT_EQ(id, Extra);
    zero_rt_tensor view = sized<zero_rt_tensor>();
    int32_t mine = rank == 0 ? Bias : Extra;
    int32_t other = rank == 0 ? Extra : Bias;
    expectOk(callsOf(step).parameter(step, mine, &view));
    const char *text = rank == 0
                           ? "'extra' is on another pipeline stage than rank "
                             "0, which is at pp = 0; its first rank is 1"
                           : "'fc1.bias' is on another pipeline stage than "
                             "rank 1, which is at pp = 1; its first rank is 0";
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 callsOf(step).parameter(step, other, &view), text);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 callsOf(step).parameter_wait(step, other, nullptr), text);
    // Without a list, the call is about the parameters of this rank.
    static_cast<uint16_t *>(view.data)[2] = 0x4000;
    auto sayChanged = [&](const int32_t *listed, int64_t count) {
      int64_t elements = -1;
      zero_rt_status status = callsOf(step).parameters_changed(
          step, listed, count, nullptr, &elements);
      changed += elements;
      return status;
    };
    const int32_t both[] = {mine, other};
    expectStatus(ZERO_RT_INVALID_ARGUMENT, sayChanged(both, 2), text);
    expectOk(sayChanged(nullptr, 0));
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    expectStatus(ZERO_RT_INVALID_ARGUMENT, passGradient(step, other), text);
    expectOk(passGradient(step, mine));
    expectOk(callsOf(step).step_destroy(step));
  };
  runRanks(2, run, options);
  EXPECT_EQ(changed, 2); // one on each rank
}

TEST(Stages, RefusesStagesThatDoNotBelongTogether) {
  struct {
    std::function<void(TwoStages &)> damage;
    const char *text;
  } cases[] = {
      {[](TwoStages &s) { s.first.stageAxes = 0; }, "are over no axes"},
      {[](TwoStages &s) { s.first.stageAxes = 4; }, "are over no axes"},
      {[](TwoStages &s) { s.first.stageAxes = 2; },
       "are not one per coordinate"},
      {[](TwoStages &s) { s.first.stages.pop_back(); },
       "are not one per coordinate"},
      {[](TwoStages &s) { s.first.stages[1] = nullptr; },
       "are of different plans"},
      {[](TwoStages &s) { s.first.stages[0] = s.first.stages[1]; },
       "are of different plans"},
      {[](TwoStages &s) { s.second.planHash = 7; }, "are of different plans"},
      {[](TwoStages &s) { s.second.stages = s.first.stages; },
       "are of different plans"},
      {[](TwoStages &s) { s.second.parameters.pop_back(); },
       "have other numbers of axes, parameters, slots, inputs"},
      {[](TwoStages &s) { s.second.addSlot("more"); },
       "have other numbers of axes, parameters, slots, inputs"},
      {[](TwoStages &s) { s.second.parameters[Extra].bucket = 5; },
       "parameter 3: bad bucket"},
      {[](TwoStages &s) { s.first.parameters[Weight].bucket = -2; },
       "parameter 0: bad bucket"},
  };
  for (auto &one : cases) {
    TwoStages stages;
    one.damage(stages);
    expectRefused(stages.get(), ZERO_RT_INTERNAL, one.text);
  }
}

// Without stages every parameter is somewhere.
TEST(Stages, OtherLibrariesHaveAllParameters) {
  LibraryBuilder library = makeTrainStep(1);
  library.parameters[Extra].bucket = -1;
  expectRefused(library.get(), ZERO_RT_INTERNAL, "parameter 3: bad bucket");
}
