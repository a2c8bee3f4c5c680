//===- shape_check.cpp - Whether the shapes of a library hold -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/shape_check.h"

using namespace zero_rt;

/// What is wrong with the dimensions [begin, end) of |parameter|; null:
/// nothing.
static const char *findFaultInShape(const zero_rt_library &library,
                                    int64_t parameter, int64_t begin,
                                    int64_t end) {
  if (end < begin || end > library.num_dimensions)
    return "bad number of dimensions";
  // All ranks together have no more elements than a number can say.
  int64_t held = 1, whole = 1;
  for (int64_t d = begin; d < end; ++d) {
    const zero_rt_dimension_row &row = library.dimensions[d];
    if (row.extent < 0 || row.axes < -1 || row.axes >= library.num_axis_sets)
      return "bad dimension";
    int64_t slices = 1;
    for (int64_t a = 0; row.axes >= 0 && a < library.num_axes; ++a)
      if (library.axis_sets[row.axes] >> a & 1)
        slices *= library.axes[a].size; // of ranks: a small number
    if (__builtin_mul_overflow(held, row.extent, &held) ||
        __builtin_mul_overflow(whole, row.extent, &whole) ||
        __builtin_mul_overflow(whole, slices, &whole))
      return "too many elements";
  }
  const zero_rt_parameter_row &row = library.parameters[parameter];
  bool isHere = row.bucket >= 0;
  return isHere && held != row.elements ? "shape has other elements" : nullptr;
}

zero_rt_status zero_rt::checkShapes(const zero_rt_library &library) {
  auto corrupt = [&](int64_t row, const char *what) {
    return fail(ZERO_RT_INTERNAL, "library '%s' is corrupt: shape %lld: %s",
                library.name, (long long)row, what);
  };
  if (library.num_dimensions == 0)
    return ZERO_RT_OK;
  if (library.num_dimensions < 0 || !library.dimensions ||
      !library.dimension_ends)
    return corrupt(0, "bad number of dimensions");
  int64_t begin = 0;
  for (int64_t p = 0; p < library.num_parameters; ++p) {
    int64_t end = library.dimension_ends[p];
    if (const char *what = findFaultInShape(library, p, begin, end))
      return corrupt(p, what);
    begin = end;
  }
  return ZERO_RT_OK;
}
