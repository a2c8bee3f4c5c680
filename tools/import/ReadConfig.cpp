//===- ReadConfig.cpp - A configuration of DeepSpeed becomes choices ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"

using namespace zero;

/// AutoTP's size must be that of the mesh, which has 1 without the axis.
static void readTensorParallel(ConfigReader &reader, int64_t numRanks) {
  constexpr llvm::StringLiteral kSize = "tensor_parallel.autotp_size";
  std::optional<int64_t> size = reader.getInteger(kSize);
  if (size && std::max<int64_t>(1, *size) != numRanks)
    return reader.fail(kSize, "expected " + llvm::Twine(numRanks) +
                                  ", the size of the axis tp of --mesh; write "
                                  "--mesh=dp=N:tp=" +
                                  llvm::Twine(*size));
  if (numRanks > 1)
    reader.decide(kSize, "tensor parallelism over the axis tp");
}

void zero::readConfig(ConfigReader &reader, std::optional<int64_t> numRanks,
                      int64_t numTensorRanks) {
  reader.checkKeys();
  // Where a key has the wrong type or is refused, more about it is noise.
  if (reader.hasErrors())
    return;
  for (const std::string &key : reader.strangers)
    reader.decide(key, "ignored: DeepSpeed reads no such key");
  readBatch(reader, numRanks);
  readTensorParallel(reader, numTensorRanks);
  readZero(reader);
  readPrecision(reader);
  readBuckets(reader);
  readSums(reader);
  readOptimizer(reader);
  readScheduler(reader);
}
