//===- PlanBytes.cpp - The memory that a plan says a rank needs -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/plan/PlanBytes.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

std::vector<const json::Object *> zero::getStages(const json::Object &plan) {
  const json::Array *stages = plan.getArray("stages");
  if (!stages)
    return {&plan};
  std::vector<const json::Object *> found;
  for (const json::Value &stage : *stages)
    found.push_back(stage.getAsObject());
  return found;
}

int64_t zero::getNumber(const json::Object &stage, StringRef table,
                        StringRef row, StringRef column) {
  return *stage.getObject(table)->getObject(row)->getInteger(column);
}

int64_t zero::getMostBytes(const json::Object &plan, StringRef space) {
  int64_t most = 0;
  for (const json::Object *stage : getStages(plan))
    for (StringRef backwards : {"one_backward", "several_backwards"})
      most = std::max(
          most, getNumber(*stage, "total_bytes_per_rank", backwards, space));
  return most;
}

LogicalResult zero::readMaxBytes(const OptionText &option, int64_t &bytes,
                                 std::string &message) {
  bytes = 0;
  if (!option.isGiven)
    return success();
  if (std::optional<int64_t> given = parseBytes(option.text)) {
    bytes = *given;
    return success();
  }
  message = "--max-bytes must be a number of bytes, or of KiB, MiB or GiB, "
            "such as 80GiB; got '" +
            option.text + "'";
  return failure();
}
