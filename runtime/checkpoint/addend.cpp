//===- addend.cpp - One of the addends of a sum ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/addend.h"

#include "comm/communicator.h"
#include "core/stages.h"

#include <algorithm>
#include <charconv>

using namespace zero_rt;

const Addend::Axis *Addend::find(const std::string &name) const {
  auto found = std::find_if(axes.begin(), axes.end(),
                            [&](const Axis &a) { return a.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

bool Addend::hasAxesOf(const Addend &other) const {
  return axes.size() == other.axes.size() &&
         std::all_of(axes.begin(), axes.end(), [&](const Axis &a) {
           const Axis *b = other.find(a.name);
           return b && b->size == a.size;
         });
}

std::string Addend::text() const {
  std::string text;
  for (const Axis &axis : axes)
    text += (text.empty() ? "" : ",") + axis.name + "=" +
            std::to_string(axis.coordinate) + "/" + std::to_string(axis.size);
  return text;
}

/// Calls |visit| with the size and the coordinate of |mine| and with those of
/// |stored| over each axis of one of them.
template <typename Visit>
static void forEachAxis(const Addend &mine, const Addend &stored, Visit visit) {
  const Addend::Axis alone{"", 0, 1};
  for (const Addend::Axis &axis : mine.axes) {
    const Addend::Axis *other = stored.find(axis.name);
    visit(axis, other ? *other : alone);
  }
  for (const Addend::Axis &axis : stored.axes)
    if (!mine.find(axis.name))
      visit(alone, axis);
}

bool Addend::takes(const Addend &stored) const {
  bool isMine = true;
  forEachAxis(*this, stored, [&](const Axis &mine, const Axis &other) {
    isMine &= other.coordinate * mine.size / other.size == mine.coordinate;
  });
  return isMine;
}

int64_t Addend::countTaken(const Addend &stored) const {
  int64_t count = 1;
  forEachAxis(*this, stored, [&](const Axis &mine, const Axis &other) {
    // The first coordinate that the rank at |coordinate| takes.
    auto first = [&](int64_t coordinate) {
      return (coordinate * other.size + mine.size - 1) / mine.size;
    };
    count *= first(mine.coordinate + 1) - first(mine.coordinate);
  });
  return count;
}

Addend zero_rt::addendOf(const zero_rt_library &library, int64_t axes,
                         int32_t rank) {
  Addend addend;
  for (int64_t a = 0; a < library.num_axes; ++a)
    if (const zero_rt_axis_row &axis = library.axes[a];
        (axes >> a & 1) && axis.size > 1)
      addend.axes.push_back({library.strings + axis.name,
                             coordinateOf(library, rank, a), axis.size});
  return addend;
}

static bool readNumber(std::string_view text, int64_t &out) {
  const char *end = text.data() + text.size();
  auto [last, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && last == end && out >= 0;
}

bool zero_rt::readAddend(std::string_view text, Addend &out) {
  out.axes.clear();
  bool isMore = true;
  int64_t ranks = 1;
  while (isMore) {
    std::string_view axis = text.substr(0, text.find(','));
    isMore = text.size() > axis.size();
    text.remove_prefix(std::min(text.size(), axis.size() + 1));
    size_t equals = axis.rfind('='), slash = axis.rfind('/');
    if (equals == std::string_view::npos || slash == std::string_view::npos ||
        slash < equals)
      return false;
    Addend::Axis read{std::string(axis.substr(0, equals)), 0, 0};
    if (!readNumber(axis.substr(equals + 1, slash - equals - 1),
                    read.coordinate) ||
        !readNumber(axis.substr(slash + 1), read.size) ||
        read.coordinate >= read.size || out.find(read.name))
      return false;
    if (read.size > mostRanks / ranks)
      return false;
    ranks *= read.size;
    out.axes.push_back(std::move(read));
  }
  return true;
}
