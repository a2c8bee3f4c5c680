//===- CallText.cpp - A call of the runtime as a line of text -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/CallText.h"

#include "llvm/ADT/StringExtras.h"

using namespace zero;

std::string zero::callText(const std::string &call, const Operands &operands) {
  return call + "(" + llvm::join(operands, ", ") + ")";
}

std::string zero::segmentText(int64_t begin, int64_t end,
                              const std::string &slot) {
  return std::to_string(begin) + ".." + std::to_string(end) + " with " + slot;
}

std::string zero::slotText(const std::string &name, int64_t index) {
  return name + "[" + std::to_string(index) + "]";
}

std::string zero::axesText(const std::vector<std::string> &axes,
                           int64_t stages) {
  std::string text = "[" + llvm::join(axes, " ") + "]";
  if (stages)
    text += " on stages of bits " + std::to_string(stages);
  return text;
}

std::string zero::streamText(int64_t stream) {
  return "stream " + std::to_string(stream);
}

std::string zero::eventText(const std::string &name, int64_t stream) {
  return name + " of " + streamText(stream);
}

std::string zero::rowText(const std::string &row, const Fields &fields) {
  std::string text = row;
  const char *separator = ": ";
  for (const auto &[key, value] : fields) {
    text += separator + std::string(key) + " " + value;
    separator = ", ";
  }
  return text;
}
