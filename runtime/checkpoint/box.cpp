//===- box.cpp - The part of a parameter that a rank holds ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/box.h"

#include "core/stages.h"

#include <algorithm>
#include <charconv>

using namespace zero_rt;

bool Box::isWhole() const {
  return std::all_of(
      dimensions.begin(), dimensions.end(),
      [](const Dimension &dim) { return dim.extent == dim.whole; });
}

int64_t Box::elements() const {
  int64_t count = 1;
  for (const Dimension &dim : dimensions)
    count *= dim.extent;
  return count;
}

bool Box::hasShapeOf(const Box &other) const {
  return std::equal(dimensions.begin(), dimensions.end(),
                    other.dimensions.begin(), other.dimensions.end(),
                    [](const Dimension &a, const Dimension &b) {
                      return a.whole == b.whole;
                    });
}

std::string Box::text() const {
  std::string text;
  for (const Dimension &dim : dimensions)
    text += (text.empty() ? "" : "x") + std::to_string(dim.whole) + ":" +
            std::to_string(dim.begin) + "+" + std::to_string(dim.extent);
  return text;
}

Box zero_rt::boxOf(const zero_rt_library &whole, int64_t parameter,
                   int32_t rank) {
  Box box;
  if (whole.num_dimensions == 0)
    return box;
  int64_t d = parameter == 0 ? 0 : whole.dimension_ends[parameter - 1];
  for (; d < whole.dimension_ends[parameter]; ++d) {
    const zero_rt_dimension_row &row = whole.dimensions[d];
    // The number of this rank's slice, and that of all slices.
    int64_t slice = 0, slices = 1;
    for (int64_t a = 0; row.axes >= 0 && a < whole.num_axes; ++a)
      if (whole.axis_sets[row.axes] >> a & 1) {
        slice = slice * whole.axes[a].size + coordinateOf(whole, rank, a);
        slices *= whole.axes[a].size;
      }
    box.dimensions.push_back(
        {row.extent * slices, row.extent * slice, row.extent});
  }
  if (box.dimensions.empty()) // a scalar
    box.dimensions.push_back({1, 0, 1});
  return box;
}

Box zero_rt::wholeOf(const Box &box) {
  Box whole = box;
  for (Box::Dimension &dim : whole.dimensions)
    dim = {dim.whole, 0, dim.whole};
  return whole;
}

/// Reads the number at the begin of |text|, and |behind| it, or the end.
static bool takeNumber(std::string_view &text, char behind, int64_t &out) {
  auto [last, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || out < 0)
    return false;
  text.remove_prefix(size_t(last - text.data()));
  if (behind == '\0')
    return true;
  if (text.empty() || text[0] != behind)
    return false;
  text.remove_prefix(1);
  return true;
}

bool zero_rt::readBox(std::string_view text, int64_t elements, Box &out) {
  out.dimensions.clear();
  int64_t count = 1;
  while (true) {
    Box::Dimension dim = {};
    if (!takeNumber(text, ':', dim.whole) ||
        !takeNumber(text, '+', dim.begin) ||
        !takeNumber(text, '\0', dim.extent) || dim.begin > dim.whole ||
        dim.extent > dim.whole - dim.begin ||
        __builtin_mul_overflow(count, dim.extent, &count))
      return false;
    out.dimensions.push_back(dim);
    if (text.empty())
      return count == elements;
    if (text[0] != 'x')
      return false;
    text.remove_prefix(1);
  }
}

/// Takes |inner| together with the dimension outside of it, which is whole
/// within: the rows are longer.
static void join(Box::Dimension &outer, const Box::Dimension &inner) {
  outer.whole *= inner.whole;
  outer.begin *= inner.whole;
  outer.extent *= inner.whole;
}

/// The position of the row of |box| that has |outer| coordinates in the whole;
/// -1 if there is none.
static int64_t findRow(const Box &box, const std::vector<int64_t> &outer) {
  int64_t row = 0;
  for (size_t d = 0; d < outer.size(); ++d) {
    const Box::Dimension &dim = box.dimensions[d];
    if (outer[d] < dim.begin || outer[d] >= dim.begin + dim.extent)
      return -1;
    row = row * dim.extent + (outer[d] - dim.begin);
  }
  return row;
}

void zero_rt::forEachRun(
    const Box &a, Range ofA, const Box &b, Range ofB,
    const std::function<void(int64_t, int64_t, int64_t)> &function) {
  Box x = a, y = b;
  while (x.dimensions.size() > 1 &&
         x.dimensions.back().extent == x.dimensions.back().whole &&
         y.dimensions.back().extent == y.dimensions.back().whole) {
    for (Box *box : {&x, &y}) {
      join(box->dimensions[box->dimensions.size() - 2], box->dimensions.back());
      box->dimensions.pop_back();
    }
  }
  const Box::Dimension &inX = x.dimensions.back(), &inY = y.dimensions.back();
  Range columns = intersect({inX.begin, inX.begin + inX.extent},
                            {inY.begin, inY.begin + inY.extent});
  if (ofA.empty() || ofB.empty() || columns.empty())
    return;
  std::vector<int64_t> outer(x.dimensions.size() - 1);
  for (int64_t row = ofA.begin / inX.extent; row * inX.extent < ofA.end;
       ++row) {
    int64_t rest = row;
    for (size_t d = outer.size(); d-- > 0;) {
      outer[d] = x.dimensions[d].begin + rest % x.dimensions[d].extent;
      rest /= x.dimensions[d].extent;
    }
    int64_t other = findRow(y, outer);
    if (other < 0)
      continue;
    // From positions in |a| to positions in |b|.
    int64_t shift =
        (other * inY.extent - inY.begin) - (row * inX.extent - inX.begin);
    int64_t first = row * inX.extent - inX.begin;
    Range run = intersect({first + columns.begin, first + columns.end}, ofA);
    run = intersect(run, {ofB.begin - shift, ofB.end - shift});
    if (!run.empty())
      function(run.begin, run.begin + shift, run.size());
  }
}
