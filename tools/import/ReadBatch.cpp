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

static constexpr llvm::StringLiteral kPasses = "gradient_accumulation_steps";

/// Chooses whether the step takes one backward pass or any number of them.
static void decidePasses(ConfigReader &reader, std::optional<int64_t> passes) {
  constexpr llvm::StringLiteral kManaged = "managed_gradient_accumulation";
  if (reader.getBool(kManaged) == false) {
    passes.reset();
    reader.decide(kManaged, "the script ends a step, after any number of "
                            "backward passes");
  }
  ImportedConfig &config = reader.config;
  config.accumulation = passes;
  config.recipe.oneBackward = passes == 1;
  if (!passes)
    return reader.decide(kPasses,
                         "the caller decides how many backward passes a step "
                         "has, and the step divides by it");
  if (config.recipe.oneBackward)
    return reader.decide(kPasses,
                         "1 backward pass in a step: the step is one_backward, "
                         "keeps and sends gradients as they arrive, and "
                         "refuses a second one; for a script that makes "
                         "several, add --set=" +
                             kPasses + "=auto");
  reader.decide(kPasses, Twine(*passes) +
                             " backward passes in a step; the caller "
                             "decides, and the step divides by the number");
}

void zero::readBatch(ConfigReader &reader, std::optional<int64_t> numRanks) {
  constexpr llvm::StringLiteral kTotal = "train_batch_size";
  constexpr llvm::StringLiteral kMicro = "train_micro_batch_size_per_gpu";
  std::optional<int64_t> total = readSize(reader, kTotal);
  std::optional<int64_t> micro = readSize(reader, kMicro);
  std::optional<int64_t> passes = readSize(reader, kPasses);
  // Where the number is left out, it is 1 with one of the batch sizes, and
  // follows from both. A batch size that is "auto" depends on it.
  bool isLeftOut = !reader.find(kPasses);
  bool isInferred = isLeftOut && total && micro;
  if (isLeftOut &&
      ((total && !reader.find(kMicro)) || (micro && !reader.find(kTotal))))
    passes = 1;

  if (total && micro && passes) {
    std::optional<int64_t> perRank = multiplySizes(*micro, *passes);
    if (!perRank || *total % *perRank != 0 ||
        (numRanks && *total / *perRank != *numRanks)) {
      reader.fail(kTotal,
                  "and " + Twine(kMicro) + " " + Twine(*micro) + " times " +
                      kPasses + " " + Twine(*passes) +
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
      reader.fail(kTotal, "which is no multiple of " + Twine(kPasses) + " " +
                              Twine(*passes) + " times " + Twine(*numRanks) +
                              " ranks; change one of them");
      return;
    }
  }
  for (StringRef key : {StringRef(kTotal), StringRef(kMicro)})
    if (reader.find(key))
      reader.decide(key, "the step does not see batches");
  decidePasses(reader, passes);
}
