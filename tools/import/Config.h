//===- Config.h - What a configuration of DeepSpeed means -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_CONFIG_H
#define ZERO_TOOLS_IMPORT_CONFIG_H

#include "tools/recipe/Recipe.h"

#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace zero {

/// A choice of the step, and the key that made it.
struct Decision {
  std::string key;   // "gradient_clipping"
  std::string value; // as it is written; empty where the key is not there
  std::string text;  // "clips to norm 1.0"
};

/// What is wrong with a configuration.
struct ConfigError {
  std::string key;
  std::string text; // "is 3, expected 0, 1 or 2; ..."
};

/// A configuration, read and checked. A step has no |stage|, |isOffloaded| and
/// |bucketBytes|: they become options of zero-compile.
struct ImportedConfig {
  Recipe recipe;
  std::string dtype = "f32"; // of parameters and arriving gradients
  bool isEachOptional = false;
  int64_t stage = 0;
  bool isOffloaded = false;            // state, and its update
  bool areParametersOffloaded = false; // of units, besides
  /// At stage 3 a parameter of so many elements or fewer is of no unit.
  /// Nothing: 10 times the hidden size of the model.
  std::optional<int64_t> mostPersistent;
  std::optional<int64_t> bucketBytes;
  std::optional<int64_t> accumulation; // backward passes in a step
  std::optional<int64_t> numRanks;     // where the batch sizes say it
  std::vector<Decision> decisions;
};

/// Reads keys by their paths, and collects their errors. A key that
/// is null counts as one that is not there, and checkKeys reports one for which
/// DeepSpeed does not take null.
class ConfigReader {
public:
  ConfigReader(const llvm::json::Object &root, ImportedConfig &config,
               std::vector<ConfigError> &errors)
      : config(config), root(root), errors(errors) {}

  /// Checks every key against the table of keys.
  void checkKeys();
  bool hasErrors() const { return !errors.empty(); }

  const llvm::json::Value *find(llvm::StringRef path) const;
  bool isAuto(llvm::StringRef path) const;
  /// Whether the key is there, and null.
  bool isNull(llvm::StringRef path) const;
  /// Nothing where the key is not there, is "auto" or has another type, which
  /// checkKeys reports.
  std::optional<bool> getBool(llvm::StringRef path) const;
  std::optional<int64_t> getInteger(llvm::StringRef path) const;
  std::optional<double> getNumber(llvm::StringRef path) const;
  std::optional<llvm::StringRef> getString(llvm::StringRef path) const;
  /// The number, which must be at least |least|, or |otherwise|. Where it is
  /// "auto", that is an error.
  double getConstant(llvm::StringRef path, double otherwise, double least);
  int64_t getCount(llvm::StringRef path, int64_t otherwise, int64_t least);

  /// "'KEY' is VALUE, TEXT"
  void fail(llvm::StringRef path, const llvm::Twine &text);
  /// An error for "auto" where the step needs a number.
  void failAuto(llvm::StringRef path);
  /// Replaces an earlier decision of the key.
  void decide(llvm::StringRef path, const llvm::Twine &text);

  ImportedConfig &config;
  /// Keys that DeepSpeed does not know and does not read, after checkKeys.
  std::vector<std::string> strangers;

private:
  /// Also null; nullptr where the key is not there.
  const llvm::json::Value *findWritten(llvm::StringRef path) const;
  void checkNull(llvm::StringRef path);
  void checkBlock(const llvm::json::Object &object, llvm::StringRef path);
  void checkValue(const llvm::json::Value &value, llvm::StringRef path);

  const llvm::json::Object &root;
  std::vector<ConfigError> &errors;
};

inline constexpr llvm::StringLiteral kPersistenceKey =
    "zero_optimization.stage3_param_persistence_threshold";

/// Reads all keys for |numRanks| data-parallel ranks, if they are known, each
/// of which is |numTensorRanks| ranks.
void readConfig(ConfigReader &reader, std::optional<int64_t> numRanks,
                int64_t numTensorRanks);

// The parts of readConfig.
void readBatch(ConfigReader &reader, std::optional<int64_t> numRanks);
void readPrecision(ConfigReader &reader);
/// The switch of bfloat16: DeepSpeed reads its older block only where the other
/// one is missing.
std::string findBrainEnabled(const ConfigReader &reader);
void readSums(ConfigReader &reader);
void readOptimizer(ConfigReader &reader);
void readScheduler(ConfigReader &reader);
/// OneCycle, for readScheduler.
void readOneCycle(ConfigReader &reader);
void readZero(ConfigReader &reader);
void readBuckets(ConfigReader &reader);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_CONFIG_H
