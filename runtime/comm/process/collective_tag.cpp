//===- collective_tag.cpp - Tags of collectives as messages ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/collective_tag.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>

using namespace zero_rt;

uint64_t zero_rt::numberOf(const std::vector<int32_t> &members, uint64_t step) {
  std::u32string ranks(members.begin(), members.end());
  return std::hash<std::u32string>()(ranks) + step;
}

CollectiveTag zero_rt::makeTag(const Tag &tag, uint64_t group,
                               uint64_t sequence) {
  CollectiveTag made;
  made.step = tag.step;
  made.sequence = sequence;
  made.group = group;
  std::string names = tag.operation;
  names.append(1, '\0').append(tag.name ? tag.name : "");
  made.names = std::hash<std::string>()(names);
  made.elements = tag.elements;
  made.dtype = uint8_t(tag.dtype);
  made.sumType = uint8_t(tag.sumType);
  return made;
}

NamedTag zero_rt::nameTag(const CollectiveTag &made, const Tag &tag) {
  NamedTag named;
  named.tag = made;
  std::snprintf(named.operation, sizeof(named.operation), "%s", tag.operation);
  std::snprintf(named.name, sizeof(named.name), "%s", tag.name ? tag.name : "");
  return named;
}

bool zero_rt::isValid(const TagMessage &message) {
  return message.tag.elements >= 0 &&
         message.tag.bytes <= sizeof(message.payload);
}

bool zero_rt::isValid(const NamedTag &named) {
  auto isText = [](const char *text, size_t size) {
    return std::memchr(text, 0, size) && makePrintable(text, size) == text;
  };
  return named.tag.elements >= 0 &&
         isText(named.operation, sizeof(named.operation)) &&
         isText(named.name, sizeof(named.name));
}

Tag zero_rt::tagOf(const NamedTag &named) {
  const CollectiveTag &tag = named.tag;
  return {named.operation, named.name[0] ? named.name : nullptr,
          tag.elements,    tag.dtype,
          tag.sumType,     tag.step};
}

bool zero_rt::areEqual(const CollectiveTag &one, const CollectiveTag &other) {
  auto key = [](const CollectiveTag &tag) {
    return std::tie(tag.step, tag.sequence, tag.group, tag.names, tag.elements,
                    tag.dtype, tag.sumType);
  };
  return key(one) == key(other);
}

std::string zero_rt::findDifference(int32_t rank, const NamedTag &mine,
                                    int32_t other, const NamedTag &theirs) {
  if (areEqual(mine.tag, theirs.tag))
    return {};
  std::string text =
      findDifference({rank, tagOf(mine), mine.tag.sequence},
                     {other, tagOf(theirs), theirs.tag.sequence});
  if (!text.empty())
    return text;
  return "rank " + std::to_string(rank) + " and rank " + std::to_string(other) +
         " are in " + describe(tagOf(mine)) +
         (mine.tag.group != theirs.tag.group
              ? " of different groups"
              : "... of buffers whose names differ behind that");
}
