//===- ReadConfig.cpp - A configuration of DeepSpeed becomes choices ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"

using namespace zero;

void zero::readConfig(const llvm::json::Object &root,
                      std::optional<int64_t> numRanks, ImportedConfig &config,
                      std::vector<ConfigError> &errors) {
  ConfigReader reader(root, config, errors);
  reader.checkKeys(/*isImport=*/true);
  // Where a key has the wrong type or is refused, more about it is noise.
  if (!errors.empty())
    return;
  for (const std::string &key : reader.strangers)
    reader.decide(key, "ignored: DeepSpeed reads no such key");
  readBatch(reader, numRanks);
  readZero(reader);
  readPrecision(reader);
  readBuckets(reader);
  readSums(reader);
  readOptimizer(reader);
  readScheduler(reader);
}
