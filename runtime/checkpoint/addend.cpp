//===- addend.cpp - One of the addends of a sum ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/addend.h"

#include "comm/communicator.h"

#include <charconv>

using namespace zero_rt;

std::string Addend::text() const {
  return std::to_string(number) + "/" + std::to_string(count);
}

bool Addend::takes(const Addend &stored) const {
  return stored.number * count / stored.count == number;
}

int64_t Addend::countTaken(int64_t stored) const {
  auto first = [&](int64_t rank) { // the first addend that it takes
    return (rank * stored + count - 1) / count;
  };
  return first(number + 1) - first(number);
}

static bool readNumber(std::string_view text, int64_t &out) {
  const char *end = text.data() + text.size();
  auto [last, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && last == end && out >= 0;
}

bool zero_rt::readAddend(std::string_view text, Addend &out) {
  size_t slash = text.find('/');
  return slash != std::string_view::npos &&
         readNumber(text.substr(0, slash), out.number) &&
         readNumber(text.substr(slash + 1), out.count) &&
         out.number < out.count && out.count <= mostRanks;
}
