//===- LibraryCalls.h - What the handlers of a library call -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_LIBRARYCALLS_H
#define ZERO_CODEGEN_VALIDATE_LIBRARYCALLS_H

#include "codegen/validate/LibraryNames.h"

namespace zero {

/// The operands of each program call of calls.def, in the words of CallText.h.
/// A call that is not described here does not compile.
// NOLINTBEGIN(readability-identifier-naming): the names of calls.def.
struct CallDescriber {
  explicit CallDescriber(const zero_rt_library &library) : names(library) {}

  Operands allocate(int32_t buffer) const { return {names.buffer(buffer)}; }
  Operands release(int32_t buffer) const { return {names.buffer(buffer)}; }
  Operands set_role(int32_t buffer, int32_t role) const;
  Operands pack(const zero_rt_event *arrival, int32_t accumulate) const;
  Operands fill_missing(int32_t bucket) const { return {names.bucket(bucket)}; }
  Operands launch(int32_t kernel, const int32_t *buffers, int32_t numBuffers,
                  int32_t table, int64_t elements, int32_t own, int32_t sumSlot,
                  int32_t stream) const;
  Operands run_scalars(int32_t program) const;
  Operands count_arrivals(int32_t backwards, int32_t missing) const {
    return {names.slot(backwards), names.slot(missing)};
  }
  Operands all_reduce(int32_t from, int32_t to, int32_t over,
                      int32_t stream) const {
    return collective(from, to, over, stream);
  }
  Operands reduce_scatter(int32_t from, int32_t to, int32_t over,
                          int32_t stream) const {
    return collective(from, to, over, stream);
  }
  Operands reduce_scatter_add(int32_t from, int32_t to, int32_t over,
                              int32_t stream) const {
    return collective(from, to, over, stream);
  }
  Operands keep_on_root(int32_t buffer, int32_t over) const {
    return {names.buffer(buffer), names.axes(over)};
  }
  Operands all_gather(int32_t buffer, int32_t over, int32_t stream) const {
    return {names.buffer(buffer), names.axes(over), streamText(stream)};
  }
  Operands count_replicated_once(int32_t slot, int32_t over) const {
    return {names.slot(slot), names.axes(over)};
  }
  Operands all_reduce_scalars(int32_t first, int32_t count, int32_t over,
                              int32_t stream) const;
  Operands copy(int32_t from, int32_t to, int32_t stream) const {
    return {names.buffer(from), names.buffer(to), streamText(stream)};
  }
  Operands commit(int32_t outcome) const { return {names.slot(outcome)}; }
  Operands record(int32_t event) const { return {names.event(event)}; }
  Operands wait(int32_t event, int32_t stream) const {
    return {names.event(event), streamText(stream)};
  }
  Operands wait_writable(const zero_rt_event *arrival) const;
  Operands copy_scalars() const { return {}; }

  LibraryNames names;

private:
  Operands collective(int32_t from, int32_t to, int32_t over,
                      int32_t stream) const {
    return {names.buffer(from), names.buffer(to), names.axes(over),
            streamText(stream)};
  }
};
// NOLINTEND(readability-identifier-naming)

/// What a handler did.
struct HandlerRun {
  std::vector<std::string> calls; // a line each
  zero_rt_status status = ZERO_RT_OK;
};

/// Runs a handler of |library| with a table of calls that does nothing but
/// write down each call. Call |failing| returns an error; -1: none does.
HandlerRun recordHandler(const zero_rt_library &library, int64_t handler,
                         int64_t failing = -1);

/// The library that PREFIX_create, found at |create| in a compiled library,
/// hands to the runtime; null if it hands none.
const zero_rt_library *recordLibrary(void *create);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_LIBRARYCALLS_H
