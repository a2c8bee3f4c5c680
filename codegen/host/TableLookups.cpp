//===- TableLookups.cpp - Rows of the tables by symbols -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Tables.h"

using namespace mlir;
using namespace zero;

int64_t StringBlob::add(StringRef text) {
  auto [it, isNew] = offsets.try_emplace(text, bytes.size());
  if (isNew) {
    bytes.append(text.data(), text.size());
    bytes.push_back('\0');
  }
  return it->second;
}

std::optional<StringRef> StringBlob::findCut() const {
  for (const auto &entry : offsets)
    if (entry.getKey().contains('\0'))
      return entry.getKey().split('\0').first;
  return std::nullopt;
}

static int64_t findRow(const llvm::DenseMap<Attribute, int64_t> &rows,
                       FlatSymbolRefAttr symbol) {
  auto it = rows.find(symbol);
  assert(it != rows.end() && "verified to exist");
  return it->second;
}

int64_t Tables::getBuffer(FlatSymbolRefAttr s) const {
  return findRow(bufferRows, s);
}
int64_t Tables::getBucket(FlatSymbolRefAttr s) const {
  return findRow(bucketRows, s);
}
int64_t Tables::getParameter(FlatSymbolRefAttr s) const {
  return findRow(parameterRows, s);
}
int64_t Tables::getKernel(FlatSymbolRefAttr s) const {
  return findRow(kernelRows, s);
}
int64_t Tables::getScalars(FlatSymbolRefAttr s) const {
  return findRow(scalarsRows, s);
}
int64_t Tables::getTable(FlatSymbolRefAttr s) const {
  return findRow(tableRows, s);
}
int64_t Tables::getEvent(FlatSymbolRefAttr s) const {
  return findRow(eventRows, s);
}
int64_t Tables::getHandler(FlatSymbolRefAttr s) const {
  return findRow(handlerRows, s);
}
std::vector<int64_t> Tables::getInputs(int64_t set) const {
  size_t words = (inputs.size() + 63) / 64;
  std::vector<int64_t> found;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputSets[set * words + i / 64] >> (i % 64) & 1)
      found.push_back(int64_t(i));
  return found;
}

int64_t Tables::getSlot(FlatSymbolRefAttr s) const {
  return findRow(slotRows, s);
}
