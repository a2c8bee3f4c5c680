//===- ReadConfig.cpp - A configuration of DeepSpeed becomes choices ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"

using namespace zero;

void zero::readConfig(const llvm::json::Object &root, llvm::StringRef file,
                      std::optional<int64_t> numRanks, ImportedConfig &config,
                      std::vector<std::string> &errors) {
  ConfigReader reader(root, file.str(), config, errors);
  reader.checkKeys();
  // Where a key has the wrong type or is refused, more about it is noise.
  if (!errors.empty())
    return;
  readBatch(reader, numRanks);
  readZero(reader);
  readPrecision(reader);
  readBuckets(reader);
  readSums(reader);
  readOptimizer(reader);
  readScheduler(reader);
}
