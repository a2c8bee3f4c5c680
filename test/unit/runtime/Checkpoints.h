//===- Checkpoints.h - Steps and folders for tests of checkpoints -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_CHECKPOINTS_H
#define ZERO_TEST_UNIT_RUNTIME_CHECKPOINTS_H

#include "LibraryBuilder.h"

#include <string>
#include <vector>

namespace zero_rt::test {

/// A folder that does not exist yet, and goes with this object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  /// The path of |name| in the folder |checkpoint|, or of that folder.
  std::string at(const std::string &name = "") const;

private:
  std::string parent;
};

std::string readText(const std::string &path);
void writeText(const std::string &path, const std::string &text);
/// The names in a folder, in order.
std::vector<std::string> namesIn(const std::string &path);

/// How a step with the parameters of TrainStep.h holds its state.
struct StateLayout {
  int64_t ranks = 1;
  bool isSharded = true;  // the master weights
  bool isSplit = false;   // into two buckets
  bool hasMaster = true;  // else parameters are f32
  int64_t parts = 1;      // over an axis tp, the faster one
  int32_t numScalars = 2; // at most 2
};

LibraryBuilder makeStateStep(const StateLayout &layout);

/// Two pipeline stages of |perStage| ranks each. The first one lacks `extra`,
/// and the second one has `extra` and `tied` only.
class StagedStep {
public:
  explicit StagedStep(int64_t perStage);
  const zero_rt_library &get();

private:
  LibraryBuilder first, second;
};

/// Writes bits to all state that depend on the name, the element and |seed|
/// only.
void fillState(zero_rt_step *step, uint64_t seed);
/// Whether all state has the bits that fillState writes with |seed|.
bool hasState(zero_rt_step *step, uint64_t seed);

zero_rt_status save(zero_rt_step *step, const std::string &folder,
                    int64_t number = 0);
zero_rt_status load(zero_rt_step *step, const std::string &folder,
                    int64_t *number = nullptr);

/// Saves state of |seed| with |library| on all of its ranks.
void saveState(const zero_rt_library &library, const std::string &folder,
               uint64_t seed, int64_t number = 0);
/// Loads it, and expects the state of |seed|.
void expectLoads(const zero_rt_library &library, const std::string &folder,
                 uint64_t seed, int64_t number = 0);
/// Expects that no rank loads it, that all messages contain |text|, and that no
/// state has changed.
void expectDoesNotLoad(const zero_rt_library &library,
                       const std::string &folder, const std::string &text,
                       zero_rt_status status = ZERO_RT_INVALID_ARGUMENT);

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_CHECKPOINTS_H
