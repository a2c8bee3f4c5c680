//===- ReadBatch.cpp - Batch sizes and the number of backward passes ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"

using namespace zero;
using llvm::StringRef;
using llvm::Twine;

/// The value of |path|, at least 1; nothing where somebody else chooses it.
static std::optional<int64_t> readSize(ConfigReader &reader, StringRef path) {
  std::optional<int64_t> size = reader.getInteger(path);
  if (size && *size < 1) {
    reader.fail(path, "expected at least 1");
    return std::nullopt;
  }
  return size;
}

/// a times b; nothing where that is beyond int64_t.
static std::optional<int64_t> multiplySizes(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

void zero::readBatch(ConfigReader &reader, std::optional<int64_t> numRanks) {
  constexpr llvm::StringLiteral kTotal = "train_batch_size";
  constexpr llvm::StringLiteral kMicro = "train_micro_batch_size_per_gpu";
  constexpr llvm::StringLiteral kAccumulation = "gradient_accumulation_steps";
  std::optional<int64_t> total = readSize(reader, kTotal);
  std::optional<int64_t> micro = readSize(reader, kMicro);
  std::optional<int64_t> passes = readSize(reader, kAccumulation);
  // DeepSpeed's default is 1 unless the other two are given.
  bool isInferred = !passes && !reader.isAuto(kAccumulation) && total && micro;
  if (!passes && !isInferred && !reader.isAuto(kAccumulation))
    passes = 1;

  if (total && micro && passes) {
    std::optional<int64_t> perRank = multiplySizes(*micro, *passes);
    if (!perRank || *total % *perRank != 0 ||
        (numRanks && *total / *perRank != *numRanks)) {
      reader.fail(kTotal,
                  "and " + Twine(kMicro) + " " + Twine(*micro) + " times " +
                      kAccumulation + " " + Twine(*passes) +
                      (numRanks ? " times " + std::to_string(*numRanks) +
                                      " ranks is another number"
                                : " does not divide it") +
                      "; remove one of the three keys, or change --mesh");
      return;
    }
    reader.config.numRanks = *total / *perRank;
  }
  if (isInferred && numRanks) {
    std::optional<int64_t> perPass = multiplySizes(*micro, *numRanks);
    if (!perPass || *total % *perPass != 0) {
      reader.fail(kTotal, "which is no multiple of " + Twine(kMicro) + " " +
                              Twine(*micro) + " times " + Twine(*numRanks) +
                              " ranks; change one of them");
      return;
    }
    passes = *total / *perPass;
  }
  if (total && passes && numRanks && !micro) {
    std::optional<int64_t> perSample = multiplySizes(*passes, *numRanks);
    if (!perSample || *total % *perSample != 0) {
      reader.fail(kTotal, "which is no multiple of " + Twine(kAccumulation) +
                              " " + Twine(*passes) + " times " +
                              Twine(*numRanks) + " ranks; change one of them");
      return;
    }
  }
  reader.config.accumulation = passes;
  for (StringRef key : {StringRef(kTotal), StringRef(kMicro)})
    if (reader.find(key))
      reader.decide(key, "the step does not see batches");
  if (passes)
    reader.decide(kAccumulation,
                  Twine(*passes) +
                      (*passes == 1 ? " backward pass" : " backward passes") +
                      " in a step; the caller decides, and the step divides by "
                      "the number");
  else
    reader.decide(kAccumulation, "the caller decides how many backward passes "
                                 "a step has, and the step divides by it");
}
