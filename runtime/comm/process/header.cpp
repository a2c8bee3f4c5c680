//===- header.cpp - What ranks tell of their collectives ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/header.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

using namespace zero_rt;

uint64_t zero_rt::numberOf(const std::vector<int32_t> &members, uint64_t step) {
  std::u32string ranks(members.begin(), members.end());
  return std::hash<std::u32string>()(ranks) + step;
}

Header zero_rt::makeHeader(const Tag &tag, uint64_t group, uint64_t sequence) {
  Header header;
  header.dtype = tag.dtype;
  header.sumType = tag.sumType;
  header.elements = tag.elements;
  header.step = tag.step;
  header.sequence = sequence;
  header.group = group;
  const char *name = tag.name ? tag.name : "";
  header.nameHash = std::hash<std::string_view>()(name);
  std::snprintf(header.operation, sizeof(header.operation), "%s",
                tag.operation);
  std::snprintf(header.name, sizeof(header.name), "%s", name);
  return header;
}

bool zero_rt::isValid(const Header &header) {
  auto isText = [](const char *text, size_t size) {
    return std::memchr(text, 0, size) != nullptr;
  };
  return header.kind >= Header::Collective &&
         header.kind <= Header::LeftRuntime && header.elements >= 0 &&
         isText(header.operation, sizeof(header.operation)) &&
         isText(header.name, sizeof(header.name));
}

Tag zero_rt::tagOf(const Header &header) {
  return {header.operation, header.name[0] ? header.name : nullptr,
          header.elements,  header.dtype,
          header.sumType,   header.step};
}

std::string zero_rt::findDifference(int32_t rank, const Header &header,
                                    int32_t other, const Header &others) {
  std::string text = findDifference({rank, tagOf(header), header.sequence},
                                    {other, tagOf(others), others.sequence});
  std::string both = "rank " + std::to_string(rank) + " and rank " +
                     std::to_string(other) + " are in " +
                     describe(tagOf(header));
  if (text.empty() && header.group != others.group)
    text = both + " of different groups";
  if (text.empty() && header.nameHash != others.nameHash)
    text = both + "... of buffers whose names differ behind that";
  return text;
}
