//===- ReadZero.cpp - ZeRO's stage, offload, buckets and missing gradients ===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"

using namespace zero;
using llvm::StringRef;
using llvm::Twine;

static void readOffload(ConfigReader &reader) {
  constexpr llvm::StringLiteral kDevice =
      "zero_optimization.offload_optimizer.device";
  constexpr llvm::StringLiteral kOld = "zero_optimization.cpu_offload";
  StringRef device = reader.getString(kDevice).value_or("none");
  ImportedConfig &config = reader.config;
  if (device == "nvme")
    return reader.fail(kDevice, "expected none or cpu: offload to NVMe is not "
                                "supported");
  if (device != "none" && device != "cpu")
    return reader.fail(kDevice, "expected none or cpu");
  StringRef key = kDevice;
  config.isOffloaded = device == "cpu";
  if (reader.getBool(kOld) == true) {
    config.isOffloaded = true;
    key = kOld;
  }
  if (!config.isOffloaded)
    return;
  if (config.stage == 0)
    return reader.fail(key, "and zero_optimization.stage is 0, where DeepSpeed "
                            "does not offload; write stage 1 or 2");
  reader.decide(key, "--offload=optimizer");
}

/// Read at stage 3 only.
static void readParameterOffload(ConfigReader &reader) {
  constexpr llvm::StringLiteral kDevice =
      "zero_optimization.offload_param.device";
  StringRef device = reader.getString(kDevice).value_or("none");
  if (device == "none")
    return reader.decide(kDevice, "slices of units stay on the device");
  if (device != "cpu")
    return reader.fail(kDevice, device == "nvme"
                                    ? "expected none or cpu: offload to NVMe "
                                      "is not supported"
                                    : "expected none or cpu");
  if (!reader.config.isOffloaded)
    return reader.fail(kDevice,
                       "and offload_optimizer is not: parameters on the host "
                       "are updated there; add offload_optimizer with device "
                       "cpu, or remove offload_param");
  reader.config.areParametersOffloaded = true;
  reader.decide(kDevice, "--offload=parameters");
}

/// What stage 3 reads, and no other stage.
static void readStage3(ConfigReader &reader) {
  if (reader.isAuto(kPersistenceKey))
    return reader.decide(kPersistenceKey,
                         "parameters of at most 10 times the hidden size are "
                         "of no unit");
  // DeepSpeed takes a parameter of just as many elements for a small one, too.
  int64_t most = reader.getCount(kPersistenceKey, 100'000, 0);
  reader.config.mostPersistent = most;
  reader.decide(kPersistenceKey, "parameters of at most " + Twine(most) +
                                     " elements are of no unit");
}

void zero::readZero(ConfigReader &reader) {
  constexpr llvm::StringLiteral kStage = "zero_optimization.stage";
  ImportedConfig &config = reader.config;
  config.stage = reader.getInteger(kStage).value_or(0);
  if (config.stage < 0 || config.stage > 3)
    return reader.fail(kStage, "expected 0, 1, 2 or 3");
  reader.decide(kStage,
                "--stage=" + Twine(config.stage) +
                    (config.stage == 3 ? ", and a unit for each layer" : ""));
  if (config.stage == 3)
    readStage3(reader);
  readOffload(reader);
  if (config.stage == 3)
    readParameterOffload(reader);
  constexpr llvm::StringLiteral kUnused =
      "zero_optimization.ignore_unused_parameters";
  // DeepSpeed's default is true. A gradient that is missing by mistake is
  // noticed only where the user did not ask for silence.
  config.isEachOptional = reader.getBool(kUnused).value_or(false);
  reader.decide(kUnused,
                config.isEachOptional
                    ? "every parameter is optional: a missing gradient counts "
                      "as zeros"
                    : "a missing gradient refuses the step, with names");
}

void zero::readBuckets(ConfigReader &reader) {
  constexpr llvm::StringLiteral kSize = "zero_optimization.reduce_bucket_size";
  std::optional<int64_t> elements = reader.getInteger(kSize);
  if (!elements)
    return reader.decide(kSize, "the default of --bucket-bytes");
  // What the layout counts.
  int64_t width = reader.config.recipe.accumulator == "f32" ? 4 : 2;
  int64_t bytes;
  if (*elements < 1 || __builtin_mul_overflow(*elements, width, &bytes))
    return reader.fail(kSize, "expected a number of elements from 1 to 2^60");
  reader.config.bucketBytes = bytes;
  reader.decide(kSize, "--bucket-bytes=" + Twine(bytes));
}
