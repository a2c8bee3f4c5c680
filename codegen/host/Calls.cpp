//===- Calls.cpp - The calls of handlers, from their C prototypes ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Calls.h"

#include "dialect/zrt/EachCall.h"
#include "zero_rt/library.h"

#include <cstddef>
#include <string_view>

using namespace mlir;
using namespace zero;

namespace {
/// The names of the program calls.
constexpr std::string_view kProgramCalls[] = {
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) #NAME,
#include "zero_rt/calls.def"
};

/// Whether a program call has the name of OpT. True for ops that are no calls.
template <typename OpT> constexpr bool isNamed() {
  if (!zrt::isCall<OpT>)
    return true;
  std::string_view op(OpT::getOperationName().data(),
                      OpT::getOperationName().size());
  for (std::string_view name : kProgramCalls)
    if (op.substr(std::string_view("zrt.").size()) == name)
      return true;
  return false;
}

template <typename... OpTs> constexpr bool areNamed(zrt::OpList<OpTs...>) {
  return (isNamed<OpTs>() && ...) &&
         (size_t(zrt::isCall<OpTs>) + ...) == std::size(kProgramCalls);
}
static_assert(areNamed(zrt::AllOps()),
              "calls.def has one program call for each zrt op that is a call");
} // namespace

Call zero::getProgramCall(StringRef name) {
  for (auto [i, call] : llvm::enumerate(kProgramCalls))
    if (name == StringRef(call))
      return static_cast<Call>(i);
  llvm_unreachable("each call of a handler has a row");
}

/// The form of an argument of the C type T.
template <typename T> static constexpr ArgumentForm formOf() {
  if constexpr (std::is_same_v<T, zero_rt_step *>)
    return ArgumentForm::step;
  else if constexpr (std::is_same_v<T, const zero_rt_event *>)
    return ArgumentForm::event;
  else if constexpr (std::is_same_v<T, const int32_t *>)
    return ArgumentForm::list;
  else if constexpr (std::is_same_v<T, int32_t>)
    return ArgumentForm::number32;
  else {
    static_assert(std::is_same_v<T, int64_t>, "a type that calls.def may use");
    return ArgumentForm::number64;
  }
}

template <typename... Args>
static ArrayRef<ArgumentForm> formsOf(zero_rt_status (*)(Args...)) {
  static constexpr ArgumentForm forms[] = {formOf<Args>()...};
  return forms;
}

ArrayRef<ArgumentForm> zero::getCallForms(Call call) {
  switch (call) {
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  case Call::NAME:                                                             \
    return formsOf(static_cast<decltype(zero_rt_calls::NAME)>(nullptr));
#include "zero_rt/calls.def"
  }
  llvm_unreachable("unknown call");
}

int64_t zero::getCallOffset(Call call) {
  switch (call) {
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  case Call::NAME:                                                             \
    return offsetof(zero_rt_calls, NAME);
#include "zero_rt/calls.def"
  }
  llvm_unreachable("unknown call");
}
