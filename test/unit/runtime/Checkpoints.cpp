//===- Checkpoints.cpp - Steps and folders for tests of checkpoints -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"

#include "Ranks.h"
#include "TrainStep.h"
#include "core/numeric.h"
#include "core/step.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace zero_rt;
using namespace zero_rt::test;

TemporaryFolder::TemporaryFolder() {
  // In memory if there is such a file system: thousands of syncs take long.
  std::string memory = "/dev/shm/";
  bool hasMemory = access(memory.c_str(), W_OK) == 0;
  std::string path =
      (hasMemory ? memory : testing::TempDir()) + "zero-checkpoint-XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  parent = path;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(parent); }

std::string TemporaryFolder::at(const std::string &name) const {
  return parent + "/checkpoint" + (name.empty() ? "" : "/" + name);
}

std::string zero_rt::test::readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void zero_rt::test::writeText(const std::string &path,
                              const std::string &text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  EXPECT_TRUE(file.flush()) << path;
}

std::vector<std::string> zero_rt::test::namesIn(const std::string &path) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Moves `tied` and `extra` to a bucket of their own.
static void splitBucket(LibraryBuilder &library) {
  constexpr int64_t elements = 12;
  zero_rt_bucket_row bucket = library.buckets[0];
  bucket.name = library.addText("b1");
  bucket.elements = elements;
  for (int64_t *buffer : {&bucket.parameter_buffer, &bucket.master_buffer,
                          &bucket.gradient_buffer}) {
    zero_rt_buffer_row row = library.buffers[size_t(*buffer)];
    row.elements = elements;
    *buffer = int64_t(library.buffers.size());
    library.buffers.push_back(row);
  }
  library.buckets.push_back(bucket);
  for (auto [p, offset] : {std::pair(Extra, 0), std::pair(Tied, 7)}) {
    library.parameters[size_t(p)].bucket = 1;
    library.parameters[size_t(p)].offset = offset;
  }
  library.addState("parameter", 1, bucket.parameter_buffer);
  library.addState("master", 1, bucket.master_buffer);
}

LibraryBuilder zero_rt::test::makeStateStep(const StateLayout &layout) {
  LibraryBuilder library = makeTrainStep(layout.ranks);
  if (layout.parts > 1) {
    library.axes = {{library.addText("dp"), layout.ranks / layout.parts},
                    {library.addText("tp"), layout.parts}};
    library.axisSets = {1, 2, 3};
    library.buckets[0].rows = 1;
  }
  if (layout.isSplit)
    splitBucket(library);
  if (!layout.isSharded)
    for (zero_rt_buffer_row &row : library.buffers)
      row.owners = -1;
  if (layout.numScalars > 1)
    library.addState("loss_scale.scale", -1, LossScale);
  if (layout.hasMaster)
    return library;
  for (zero_rt_state_row &row : library.states)
    if (library.strings.data() + row.role == std::string("master"))
      row.role = library.addText("m");
  for (zero_rt_bucket_row &row : library.buckets) {
    row.master_buffer = -1;
    library.buffers[size_t(row.parameter_buffer)].dtype = ZERO_RT_F32;
  }
  for (zero_rt_parameter_row &row : library.parameters)
    row.dtype = ZERO_RT_F32;
  return library;
}

StagedStep::StagedStep(int64_t perStage)
    : first(makeStateStep({2 * perStage})),
      second(makeStateStep({2 * perStage})) {
  for (LibraryBuilder *stage : {&first, &second}) {
    stage->axes = {{stage->addText("pp"), 2}, {stage->addText("dp"), perStage}};
    stage->axisSets = {2, 3, 1};
    stage->buckets[0].rows = 2;
  }
  first.parameters[Extra].bucket = -1;
  for (int p : {Weight, Bias})
    second.parameters[size_t(p)].bucket = -1;
  first.stageAxes = 1;
  first.stages = {&first.get(), &second.get()};
}

const zero_rt_library &StagedStep::get() {
  second.get();
  return first.get();
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

namespace {
struct Described : zero_rt_state_entry {
  int64_t index;
  std::vector<char> bits; // that fillState writes
};
} // namespace

/// All entries of |step|, and the bits that |seed| gives them. The parts of a
/// parameter have different bits.
static std::vector<Described> describeState(zero_rt_step *step, uint64_t seed) {
  std::vector<Described> entries;
  int64_t count = 0;
  expectOk(callsOf(step).state_count(step, &count));
  const Step &inside = *step->get();
  for (int64_t e = 0; e < count; ++e) {
    Described entry = {};
    entry.struct_size = sizeof(zero_rt_state_entry);
    expectOk(callsOf(step).state_describe(step, e, &entry));
    entry.index = e;
    std::string name = entry.role;
    if (entry.parameter >= 0) {
      name = inside.parameterName(entry.parameter) + ("." + name);
      // The coordinate over tp, which is the faster axis.
      if (std::string(inside.text(inside.library->axes[0].name)) == "dp" &&
          inside.library->num_axes > 1)
        name +=
            std::to_string(inside.runtime->rank % inside.library->axes[1].size);
    }
    int64_t size = elementSize(entry.dtype);
    for (int64_t i = entry.begin; i < entry.end; ++i) {
      uint64_t bits = std::hash<std::string>()(name + " " + std::to_string(i) +
                                               " " + std::to_string(seed));
      const char *bytes = reinterpret_cast<const char *>(&bits);
      entry.bits.insert(entry.bits.end(), bytes, bytes + size);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

void zero_rt::test::fillState(zero_rt_step *step, uint64_t seed) {
  for (const Described &entry : describeState(step, seed))
    expectOk(callsOf(step).state_write(step, entry.index, entry.bits.data(),
                                       int64_t(entry.bits.size())));
}

bool zero_rt::test::hasState(zero_rt_step *step, uint64_t seed) {
  for (const Described &entry : describeState(step, seed)) {
    std::vector<char> bits(entry.bits.size());
    expectOk(callsOf(step).state_read(step, entry.index, bits.data(),
                                      int64_t(bits.size())));
    if (bits != entry.bits)
      return false;
  }
  return true;
}

zero_rt_status zero_rt::test::save(zero_rt_step *step,
                                   const std::string &folder, int64_t number) {
  return callsOf(step).save(step, folder.c_str(), number);
}

zero_rt_status zero_rt::test::load(zero_rt_step *step,
                                   const std::string &folder, int64_t *number) {
  return callsOf(step).load(step, folder.c_str(), number);
}

void zero_rt::test::saveState(const zero_rt_library &library,
                              const std::string &folder, uint64_t seed,
                              int64_t number) {
  runSteps(library, [&](int32_t, zero_rt_step *step) {
    fillState(step, seed);
    expectOk(save(step, folder, number));
  });
}

void zero_rt::test::expectLoads(const zero_rt_library &library,
                                const std::string &folder, uint64_t seed,
                                int64_t number) {
  runSteps(library, [&](int32_t, zero_rt_step *step) {
    int64_t loaded = -1;
    expectOk(load(step, folder, &loaded));
    EXPECT_EQ(loaded, number);
    EXPECT_TRUE(hasState(step, seed));
  });
}

void zero_rt::test::expectDoesNotLoad(const zero_rt_library &library,
                                      const std::string &folder,
                                      const std::string &text,
                                      zero_rt_status status) {
  constexpr uint64_t before = 77;
  runSteps(library, [&](int32_t, zero_rt_step *step) {
    fillState(step, before);
    expectStatus(status, load(step, folder), text.c_str());
    EXPECT_TRUE(hasState(step, before));
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  });
}
