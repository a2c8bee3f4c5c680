//===- LibraryCalls.h - What the handlers of a library call -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_LIBRARYCALLS_H
#define ZERO_CODEGEN_VALIDATE_LIBRARYCALLS_H

#include "codegen/validate/LibraryNames.h"

namespace zero {

/// The prototypes of program calls, with a type of its own for each name of
/// arguments.def.
namespace typed {
#define ZERO_RT_ARGUMENT(TYPE, NAME)                                           \
  struct NAME {                                                                \
    TYPE value;                                                                \
  };
#include "zero_rt/arguments.def"
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) using NAME = void ARGUMENTS;
#include "zero_rt/calls.def"
} // namespace typed

/// Writes down arguments in the words of CallText.h, by their types. A type
/// that it does not take does not compile.
class ArgumentWords {
public:
  explicit ArgumentWords(const zero_rt_library &library)
      : library(library), names(library) {}
  virtual ~ArgumentWords() = default;

  void add(typed::zero_rt_buffer_named row) { put(names.buffer(row.value)); }
  void add(typed::zero_rt_buffer_read row) {
    put("reads " + names.buffer(row.value));
  }
  void add(typed::zero_rt_buffer_written row) {
    put("writes " + names.buffer(row.value));
  }
  void add(const typed::zero_rt_kernel_buffer *rows) { buffers = rows; }
  void add(typed::zero_rt_kernel_buffers count) {
    for (int32_t i = 0; i < count.value; ++i)
      put(names.buffer(buffers[i].value));
  }
  void add(typed::zero_rt_bucket_filled row) {
    put("writes " + names.bucket(row.value));
  }
  // Kernels and scalar programs have no names in a library, only places.
  void add(typed::zero_rt_kernel_index row) {
    put("kernel " + number(row.value));
  }
  void add(typed::zero_rt_program_index row) { addProgram(row.value); }
  void add(typed::zero_rt_parameter_number row) {
    put(names.parameter(row.value));
  }
  void add(typed::zero_rt_segments_index table) {
    for (const std::string &segment : names.segments(table.value))
      put(segment);
  }
  void add(typed::zero_rt_segments_end end) {
    put(number(end.value) + " elements");
  }
  void add(typed::zero_rt_axes_index row) { put(names.axes(row.value)); }
  void add(typed::zero_rt_slot_read row) {
    put("reads " + names.slot(row.value));
  }
  void add(typed::zero_rt_slot_written row) {
    put("writes " + names.slot(row.value));
  }
  void add(typed::zero_rt_slots_written first) {
    put("writes " + names.slot(first.value));
  }
  void add(typed::zero_rt_slots_count count) {
    put(number(count.value) + " slots");
  }
  void add(typed::zero_rt_event_index row) { put(names.event(row.value)); }
  void add(const zero_rt_event *arrival) { addArrival(arrival); }
  void add(typed::zero_rt_stream_number stream) {
    put(streamText(stream.value));
  }
  void add(typed::zero_rt_role_number role) {
    put("role " + number(role.value));
  }
  void add(typed::zero_rt_flag flag) { put(flag.value ? "yes" : "no"); }

  Operands take() { return std::move(operands); }

protected:
  virtual void addArrival(const zero_rt_event *arrival);
  virtual void addProgram(int32_t row) { put("program " + number(row)); }
  void put(const std::string &text) { operands.push_back(text); }

  const zero_rt_library &library;
  LibraryNames names;

private:
  const typed::zero_rt_kernel_buffer *buffers = nullptr;
  Operands operands;
};

/// Gives |words| the arguments of a call with prototype T.
template <typename T> struct DescribeCall;
template <typename... Types>
struct DescribeCall<void(zero_rt_step *, Types...)> {
  template <typename... Args>
  static void run(ArgumentWords &words, Args... args) {
    (words.add(convert<Types>(args)), ...);
  }

private:
  template <typename Type, typename Arg> static Type convert(Arg argument) {
    if constexpr (std::is_same_v<Type, Arg>)
      return argument;
    else if constexpr (std::is_pointer_v<Type>)
      return reinterpret_cast<Type>(argument);
    else
      return Type{argument};
  }
};

/// What a handler did.
struct HandlerRun {
  std::vector<std::string> calls; // a line each
  zero_rt_status status = ZERO_RT_OK;
};

/// Runs a handler of |library| with a table of calls that does nothing but
/// write down each call. Call |failing| returns an error; -1: none does.
HandlerRun recordHandler(const zero_rt_library &library, int64_t handler,
                         int64_t failing = -1);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_LIBRARYCALLS_H
