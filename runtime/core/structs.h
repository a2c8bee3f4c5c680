//===- structs.h - Structs of callers of any version ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A struct that begins with struct_size grows at its end only. A caller of an
// earlier version has a smaller struct, and a caller of a later version has a
// larger one. A field that one side does not know is 0 for the other side:
//
// - Fields that the caller does not have are read as 0, and are not written.
// - Fields that the runtime does not have must be 0, and are set to 0.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STRUCTS_H
#define ZERO_RT_CORE_STRUCTS_H

#include "core/status.h"
#include "zero_rt/device.h"
#include "zero_rt/library.h"
#include "zero_rt/step.h"
#include "zero_rt/tcp.h"
#include "zero_rt/transport.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace zero_rt {

/// The least struct_size that is accepted for T.
template <typename T> constexpr size_t oldestSize = 0;

// A struct with padding at its end would keep its size when a field is added,
// and the field of an older caller would be what happens to be in the padding.
#define ZERO_RT_STRUCT(NAME, BYTES)                                            \
  template <> inline constexpr size_t oldestSize<NAME> = BYTES;                \
  static_assert(sizeof(NAME) >= (BYTES), "a struct does not become smaller");  \
  static_assert(std::has_unique_object_representations_v<NAME>,                \
                "a struct that grows has no padding");
#include "core/structs.def"

/// Checks the struct_size |size| of |name|, of which at least |oldest| bytes
/// are needed.
zero_rt_status checkSize(const char *name, uint32_t size, size_t oldest);

/// Checks that the bytes of |name| behind the |known| ones are 0.
zero_rt_status checkUnknown(const char *name, const void *data, size_t known,
                            uint32_t size);

/// Checks a struct of the caller that a call fills.
template <typename T>
zero_rt_status checkStruct(const T *pointer, const char *name) {
  static_assert(oldestSize<T> > 0, "a struct has a line in structs.def");
  if (!pointer)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s is null", name);
  return checkSize(name, pointer->struct_size, oldestSize<T>);
}

/// Copies a struct of the caller to |out|, a struct of this version.
template <typename T>
zero_rt_status readStruct(const T *from, const char *name, T &out) {
  ZERO_RT_TRY(checkStruct(from, name));
  ZERO_RT_TRY(checkUnknown(name, from, sizeof(T), from->struct_size));
  out = {};
  std::memcpy(static_cast<void *>(&out), from,
              std::min<size_t>(from->struct_size, sizeof(T)));
  out.struct_size = sizeof(T);
  return ZERO_RT_OK;
}

/// Copies |from| to a struct of the caller, which was checked and keeps its
/// struct_size.
template <typename T> void writeStruct(T from, T *to) {
  size_t size = to->struct_size;
  from.struct_size = to->struct_size;
  std::memcpy(static_cast<void *>(to), &from, std::min(size, sizeof(T)));
  if (size > sizeof(T))
    std::memset(reinterpret_cast<char *>(to) + sizeof(T), 0, size - sizeof(T));
}

/// Reads element |index| of an array of the caller. The distance between two
/// elements is the struct_size of the first one, and all have that size.
template <typename T>
zero_rt_status readElement(const T *array, int64_t index, const char *name,
                           T &out) {
  uint32_t stride = array->struct_size;
  ZERO_RT_TRY(checkSize(name, stride, oldestSize<T>));
  auto *element = reinterpret_cast<const T *>(
      reinterpret_cast<const char *>(array) + index * int64_t(stride));
  if (element->struct_size != stride)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s[%lld].struct_size is %u, expected %u as in %s[0]", name,
                (long long)index, unsigned(element->struct_size),
                unsigned(stride), name);
  return readStruct(element, name, out);
}

} // namespace zero_rt

#endif // ZERO_RT_CORE_STRUCTS_H
