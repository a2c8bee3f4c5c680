//===- window.cpp - The backward passes since the last apply --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/window.h"

#include <algorithm>

using namespace zero_rt;

Window::Window(const zero_rt_library &library)
    : library(library), numArrivals(size_t(library.num_parameters), 0),
      numDelivered(size_t(library.num_parameters), 0),
      slots(size_t(library.num_parameters), Slot::None) {
  first.reserve(maxNamed);
}

void Window::begin(bool isAsLast) {
  open = true;
  ++numBackwards;
  if (inVain == 0)
    inVain = asLast;
  if (isAsLast)
    asLast = numBackwards;
  std::fill(numArrivals.begin(), numArrivals.end(), 0);
  std::fill(slots.begin(), slots.end(), Slot::None);
}

void Window::arrive(int32_t parameter) {
  if (numArrivals[size_t(parameter)]++ == 0)
    ++numDelivered[size_t(parameter)];
}

void Window::close() {
  if (!open)
    return;
  open = false;
  for (int64_t p = 0; p < library.num_parameters; ++p) {
    const zero_rt_parameter_row &row = library.parameters[p];
    if (row.bucket < 0)
      continue; // of another stage
    int64_t pieces = numArrivals[size_t(p)];
    bool slotOpen = slots[size_t(p)] != Slot::None;
    bool isWhole =
        row.uses == ZERO_RT_USES_ANY ? pieces > 0 : pieces == row.uses;
    if (!slotOpen && (isWhole || (pieces == 0 && row.optional)))
      continue;
    ++numMissing;
    if (first.size() < maxNamed)
      first.push_back({int32_t(p), int32_t(numBackwards), int32_t(pieces),
                       int32_t(slotOpen)});
  }
}

void Window::resume(int64_t backwards) {
  reset();
  numBackwards = backwards;
  // What may be missing has a number of its own, and what is on other stages
  // did not arrive here.
  for (int64_t p = 0; p < library.num_parameters; ++p)
    if (library.parameters[p].bucket >= 0 && !library.parameters[p].optional)
      numDelivered[size_t(p)] = backwards;
}

void Window::reset() {
  open = false;
  numBackwards = 0;
  numMissing = 0;
  asLast = inVain = 0;
  std::fill(numDelivered.begin(), numDelivered.end(), 0);
  first.clear();
}
