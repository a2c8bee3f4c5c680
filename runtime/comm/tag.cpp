//===- tag.cpp - What ranks compare when they meet ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tag.h"

#include "core/numeric.h"

#include <cstring>

using namespace zero_rt;

std::string zero_rt::makePrintable(const char *text, size_t size) {
  std::string printable(text, strnlen(text, size));
  for (char &c : printable)
    if ((c >= 0 && c < ' ') || c == 127)
      c = '?';
  return printable;
}

std::string zero_rt::describe(const Tag &tag, bool withSize) {
  std::string text = tag.operation;
  if (tag.name)
    text += std::string(" of '") + tag.name + "'";
  if (withSize)
    text += " (" + std::to_string(tag.elements) + " x " + dtypeName(tag.dtype) +
            (tag.sumType == tag.dtype
                 ? ")"
                 : std::string(" summed in ") + dtypeName(tag.sumType) + ")");
  return text;
}

static bool sameNames(const Tag &a, const Tag &b) {
  return std::strcmp(a.operation, b.operation) == 0 &&
         std::strcmp(a.name ? a.name : "", b.name ? b.name : "") == 0;
}

std::string zero_rt::findDifference(const Arrival &one, const Arrival &other) {
  // The text is the same on every rank that finds the difference.
  if (one.rank > other.rank)
    return findDifference(other, one);
  const Tag &a = one.tag;
  const Tag &b = other.tag;
  bool isSameOp = sameNames(a, b);
  bool sizes =
      a.elements == b.elements && a.dtype == b.dtype && a.sumType == b.sumType;
  bool order = one.sequence == other.sequence && a.step == b.step;
  if (isSameOp && sizes && order)
    return {};
  std::string text = "rank " + std::to_string(one.rank) + " is in " +
                     describe(a, isSameOp && !sizes) + ", rank " +
                     std::to_string(other.rank) + " in " +
                     describe(b, isSameOp && !sizes);
  if (isSameOp && sizes)
    text += " of another step or another turn";
  return text;
}

std::string zero_rt::describeMissing(const Tag &tag, int64_t timeoutMs,
                                     const std::vector<int32_t> &ranks) {
  std::string list;
  for (int32_t rank : ranks)
    list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return describe(tag) + " did not finish within " + std::to_string(timeoutMs) +
         " ms: " + (ranks.size() == 1 ? "rank " : "ranks ") + list +
         " did not come";
}

std::string zero_rt::describeLeft(const Tag &tag, int32_t rank,
                                  const char *owner, int32_t waiting) {
  return "rank " + std::to_string(rank) + " destroyed its " + owner +
         " and will not come to " + describe(tag) + ", where rank " +
         std::to_string(waiting) + " waits";
}
